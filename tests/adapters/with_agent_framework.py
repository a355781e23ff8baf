"""An agent of the Microsoft Agent Framework on a scripted chat client: the package has none of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)

from adapters.driving import Call, Seen, documented
from skillwire.adapters.agent_framework import skills_provider

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire import SkillHost


class ScriptedClient(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """Answers with what it was told to, and remembers what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = Seen()
        self.turns: list[list[Content]] = []

    async def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: dict[str, Any], **kwargs: Any
    ) -> ChatResponse:
        contents = [content for message in messages for content in message.contents]
        self.seen.system.append(options.get("instructions") or "")
        self.seen.messages.append(str([content.to_dict() for content in contents]))
        self.seen.offered = {tool.name for tool in options.get("tools") or []}
        self.seen.results = [str(content.result) for content in contents if content.type == "function_result"]
        turn = self.turns.pop(0)
        return ChatResponse(messages=[Message("assistant", turn)])


class AgentFramework:
    def __init__(self, host: SkillHost) -> None:
        self.ran: list[str] = []

        @tool(approval_mode="never_require")
        def shell(command: str) -> str:
            """Run a command."""
            self.ran.append(command)
            return f"ran {command}"

        self.client = ScriptedClient()
        self.agent = documented(
            "agent-framework",
            Agent=Agent,
            skills_provider=skills_provider,
            client=self.client,
            host=host,
            text="Be brief.",
            tools=[shell],
        )

    async def converse(self, calls: Sequence[Call], answer: str) -> Seen:
        self.client.seen = Seen()
        self.client.turns = [
            *([call_content(n, call)] for n, call in enumerate(calls)),
            [Content.from_text(answer)],
        ]
        self.client.seen.answer = (await self.agent.run("Do the task.")).text
        return self.client.seen


def call_content(number: int, call: Call) -> Content:
    return Content.from_function_call(f"call-{number}", call.tool, arguments=call.arguments)
