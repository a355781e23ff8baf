"""A Pydantic AI agent on its ``FunctionModel``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from adapters.driving import Call, Seen, documented
from skillwire.adapters.pydantic_ai import SkillsCapability

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire import SkillHost


class PydanticAI:
    def __init__(self, host: SkillHost) -> None:
        self.ran: list[str] = []
        self.agent = documented(
            "pydantic-ai",
            Agent=Agent,
            SkillsCapability=SkillsCapability,
            model=None,  # each conversation brings its own
            host=host,
            text="Be brief.",
            tools=[self.shell],
        )

    def shell(self, command: str) -> str:
        """Run a command."""
        self.ran.append(command)
        return f"ran {command}"

    async def converse(self, calls: Sequence[Call], answer: str) -> Seen:
        seen = Seen()

        def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            turn = len(seen.system)
            seen.system.append(info.instructions or "")
            seen.messages.append(str(messages))
            seen.offered = {tool.name for tool in info.function_tools}
            parts = [part for message in messages for part in message.parts]
            seen.results = [part.model_response_str() for part in parts if isinstance(part, ToolReturnPart)]
            if turn == len(calls):
                return ModelResponse(parts=[TextPart(answer)])
            return ModelResponse(parts=[ToolCallPart(calls[turn].tool, calls[turn].arguments)])

        seen.answer = (await self.agent.run("Do the task.", model=FunctionModel(model))).output
        return seen
