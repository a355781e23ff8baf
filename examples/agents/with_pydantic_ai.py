"""Pydantic AI: pip install 'skillwire[pydantic-ai]'. Swap ``FunctionModel`` for a real one and it is an agent."""

from __future__ import annotations

import asyncio

from offline import TASK, open_host, think
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from skillwire.adapters.pydantic_ai import SkillsCapability


def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    parts = [part for message in messages for part in message.parts]
    step = think(info.instructions or "", [str(p.content) for p in parts if isinstance(p, ToolReturnPart)])
    return ModelResponse(parts=[TextPart(step) if isinstance(step, str) else ToolCallPart(*step)])


async def main() -> None:
    async with open_host() as host:
        agent = Agent(
            FunctionModel(model), instructions="You answer customers.", capabilities=[SkillsCapability(host)]
        )
        print(f"\n{(await agent.run(TASK)).output}")


asyncio.run(main())
