"""An agent of the OpenAI Agents SDK on its ``ScriptedModel``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from adapters.driving import Call, Seen
from skillwire.host.adapters.openai_agents import gate, instructions, skill_tools

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire import SkillHost


class OpenAIAgents:
    def __init__(self, host: SkillHost) -> None:
        self.ran: list[str] = []

        @function_tool(tool_input_guardrails=[gate(host)])
        def shell(command: str) -> str:
            """Run a command."""
            self.ran.append(command)
            return f"ran {command}"

        self.agent = Agent(
            "helper", instructions=instructions(host, "Be brief."), tools=[*skill_tools(host), shell]
        )

    async def converse(self, calls: Sequence[Call], answer: str) -> Seen:
        turns = [[function_call(c.tool, c.arguments, call_id=f"call-{n}")] for n, c in enumerate(calls)]
        model = ScriptedModel([*turns, [assistant_message(answer)]])
        run = await Runner.run(
            self.agent.clone(model=model), "Do the task.", run_config=RunConfig(tracing_disabled=True)
        )
        model.assert_complete()
        last = model.calls[-1]
        outputs = [item for item in last.input if item.get("type") == "function_call_output"]
        return Seen(
            system=[call.system_instructions or "" for call in model.calls],
            offered={tool.name for tool in last.tools},
            results=[item["output"] for item in outputs],
            messages=[str(call.input) for call in model.calls],
            answer=run.final_output,
        )
