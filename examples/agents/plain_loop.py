"""No framework: a loop of your own over JSON Schema tools, in the shape of the Anthropic Messages API."""

from __future__ import annotations

import asyncio
from typing import Any

from offline import TASK, open_host, think


def model(system: str, tools: list[dict[str, Any]], messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Here you would call ``client.messages.create(system=system, tools=tools, messages=messages)``."""
    blocks = [block for message in messages if message["role"] == "user" for block in message["content"]]
    step = think(system, [block["content"] for block in blocks if block["type"] == "tool_result"])
    if isinstance(step, str):
        return {"type": "text", "text": step}
    assert step[0] in {tool["name"] for tool in tools}
    return {"type": "tool_use", "id": f"call-{len(messages)}", "name": step[0], "input": step[1]}


async def main() -> None:
    async with open_host() as host:
        messages: list[dict[str, Any]] = [{"role": "user", "content": [{"type": "text", "text": TASK}]}]
        while True:
            block = model(host.catalog_prompt(), host.tools("anthropic"), messages)
            messages.append({"role": "assistant", "content": [block]})
            if block["type"] == "text":
                break
            result = await host.call(block["name"], block["input"])
            answer = {"tool_use_id": block["id"], "content": result.text, "is_error": result.is_error}
            messages.append({"role": "user", "content": [{"type": "tool_result", **answer}]})
        print(f"\n{block['text']}")


asyncio.run(main())
