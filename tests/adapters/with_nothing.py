"""No framework: a loop of one's own over plain JSON Schema tools, as the Anthropic and OpenAI APIs take them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator

from adapters.driving import Call, Seen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire import SkillHost


class Nothing:
    def __init__(self, host: SkillHost) -> None:
        self.ran: list[str] = []
        self.host = host

    async def converse(self, calls: Sequence[Call], answer: str) -> Seen:
        seen = Seen()
        tools = {tool["name"]: tool["input_schema"] for tool in self.host.tools("anthropic")}
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Do the task."}]
        for call in [*calls, None]:
            seen.system.append(f"Be brief.\n\n{self.host.catalog_prompt()}")
            seen.offered = {*tools, "shell"}
            seen.messages.append(json.dumps(messages))
            if call is None:
                break
            if call.tool in tools:
                Draft202012Validator(tools[call.tool]).validate(call.arguments)
                text = (await self.host.call(call.tool, call.arguments)).text
            else:
                text = await self.shell(call.arguments["command"])
            messages.append({"role": "user", "content": [{"type": "tool_result", "content": text}]})
            seen.results.append(text)
        seen.answer = answer
        return seen

    async def shell(self, command: str) -> str:
        refusal = await self.host.gate("shell")
        if refusal is not None:
            return refusal.for_model
        self.ran.append(command)
        return f"ran {command}"
