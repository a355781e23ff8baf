"""An agent of the OpenAI Agents SDK on its ``ScriptedModel``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents import RunConfig, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call

from adapters.driving import Call, Seen, documented
from skillwire.adapters.openai_agents import SkillsAgent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire import SkillHost


class OpenAIAgents:
    def __init__(self, host: SkillHost) -> None:
        self.ran: list[str] = []

        @function_tool
        def shell(command: str) -> str:
            """Run a command."""
            self.ran.append(command)
            return f"ran {command}"

        self.agent = documented(
            "openai-agents", SkillsAgent=SkillsAgent, host=host, text="Be brief.", tools=[shell]
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
