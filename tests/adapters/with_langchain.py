"""A LangChain agent on its ``GenericFakeChatModel``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import tool

from adapters.driving import Call, Seen, documented
from skillwire.adapters.langchain import SkillsMiddleware

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.outputs import ChatResult

    from skillwire import SkillHost


class RecordingModel(GenericFakeChatModel):
    """LangChain's fake model, which knows no tools, with a memory of what it was given."""

    seen: Any = None

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> RecordingModel:
        self.seen.offered = {tool.name for tool in tools}
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.seen.system.append("\n".join(m.text for m in messages if m.type == "system"))
        self.seen.messages.append(str([message for message in messages if message.type != "system"]))
        self.seen.results = [message.text for message in messages if isinstance(message, ToolMessage)]
        return super()._generate(messages, *args, **kwargs)


def scripted(calls: Sequence[Call], answer: str) -> list[BaseMessage]:
    turns = [
        AIMessage("", tool_calls=[{"name": call.tool, "args": call.arguments, "id": f"call-{number}"}])
        for number, call in enumerate(calls)
    ]
    return [*turns, AIMessage(answer)]


class LangChain:
    def __init__(self, host: SkillHost) -> None:
        self.ran: list[str] = []

        @tool
        def shell(command: str) -> str:
            """Run a command."""
            self.ran.append(command)
            return f"ran {command}"

        self.model = RecordingModel(messages=iter(()))
        self.agent = documented(
            "langchain",
            create_agent=create_agent,
            SkillsMiddleware=SkillsMiddleware,
            model=self.model,
            host=host,
            text="Be brief.",
            tools=[shell],
        )

    async def converse(self, calls: Sequence[Call], answer: str) -> Seen:
        seen = self.model.seen = Seen()
        self.model.messages = iter(scripted(calls, answer))
        state = await self.agent.ainvoke({"messages": [{"role": "user", "content": "Do the task."}]})
        seen.answer = state["messages"][-1].text
        return seen
