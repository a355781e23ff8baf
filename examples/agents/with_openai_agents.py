"""OpenAI Agents SDK: pip install 'skillwire[openai-agents]'. Take ``model`` away and it is an agent."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import RunConfig, Runner
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call
from offline import TASK, open_host, think

from skillwire.adapters.openai_agents import SkillsAgent


def respond(call: ModelCall) -> ModelStep:
    items: list[dict[str, Any]] = [] if isinstance(call.input, str) else call.input
    results = [item["output"] for item in items if item.get("type") == "function_call_output"]
    step = think(call.system_instructions or "", results)
    if isinstance(step, str):
        return ModelStep(output=[assistant_message(step)])
    return ModelStep(output=[function_call(*step, call_id=f"call-{len(items)}")])


async def main() -> None:
    async with open_host() as host:
        agent = SkillsAgent(
            "Support",
            host=host,
            instructions="You answer customers.",
            model=ScriptedModel([ModelStep.respond(respond)] * 3),
        )
        run = await Runner.run(agent, TASK, run_config=RunConfig(tracing_disabled=True))
        print(f"\n{run.final_output}")


asyncio.run(main())
