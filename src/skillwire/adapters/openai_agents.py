"""OpenAI Agents SDK: ``SkillsAgent("a", host=host, instructions=text, tools=tools)``, in place of ``Agent``."""

from __future__ import annotations

import copy
import inspect
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from skillwire.adapters import harmless_names, missing

try:
    from agents import Agent, CustomTool, FunctionTool, Handoff, LocalShellTool, ShellTool, UserError
    from agents.tool_guardrails import ToolGuardrailFunctionOutput, ToolInputGuardrail, ToolInputGuardrailData
except ImportError as error:
    raise missing("openai-agents", error) from error

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from agents import RunContextWrapper, Tool
    from agents.tool_context import ToolContext

    from skillwire.host.conversation import Conversation


@dataclass
class SkillsAgent(Agent[Any]):
    """An agent with the host's tools and, before each turn, the current list of skills.

    While text of a server's skill is in the context, each call of another tool needs a grant (A5), including tools
    of MCP servers and tools that are added later. List a tool in ``harmless`` if it runs no code. The target of a
    handoff sees the same conversation, so it has to be a ``SkillsAgent`` of the same host.
    """

    host: Conversation = field(kw_only=True)
    harmless: Collection[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.harmless = harmless_names(self.harmless)
        self._check_handoffs()
        others = [self._gated(tool) for tool in self.tools if not isinstance(tool, _SkillTool)]
        self.tools = [*(_skill_tool(self.host, tool) for tool in self.host.tools("mcp")), *others]

    async def get_system_prompt(self, run_context: RunContextWrapper[Any]) -> str | None:
        """The instructions, then the list of skills."""
        text = await super().get_system_prompt(run_context)
        return "\n\n".join(part for part in (text, self.host.catalog_prompt()) if part) or None

    async def get_all_tools(self, run_context: RunContextWrapper[Any]) -> list[Tool]:
        """Every tool of this turn."""
        self._check_handoffs()  # handoffs may have been added since
        return [self._gated(tool) for tool in await super().get_all_tools(run_context)]

    def _check_handoffs(self) -> None:
        """``UserError`` if a handoff leads to an agent without the gate, or may run functions of its own."""
        for item in self.handoffs:
            tool = item.tool_name if isinstance(item, Handoff) else Handoff.default_tool_name(item)
            if (isinstance(item, SkillsAgent) and item.host is self.host) or tool in self.harmless:
                continue
            if isinstance(item, Handoff):
                raise UserError(
                    f"the functions of the handoff {tool!r} cannot be gated: hand over to a SkillsAgent directly,"
                    f" handoffs=[agent], or list {tool!r} in 'harmless'"
                )
            raise UserError(
                f"the tools of {item.name!r} would not be gated: make it a SkillsAgent with the same host, or list"
                f" {tool!r} in 'harmless'"
            )

    def _gated(self, tool: Tool) -> Tool:
        """The tool, or a copy of it, that calls the gate before each run.

        A tool that is gated already is returned itself: the SDK compares tools by identity when it resumes a run.
        """
        guards = (tool.tool_input_guardrails or []) if isinstance(tool, FunctionTool) else []
        run = tool.on_invoke_tool if isinstance(tool, CustomTool) else getattr(tool, "executor", None)
        is_gated = any(
            isinstance(each, _Gate | _GatedFunction) and each.host is self.host for each in (*guards, run)
        )
        if is_gated or isinstance(tool, _SkillTool) or tool.name in self.harmless:
            return tool
        if isinstance(tool, FunctionTool):
            gated = copy.copy(tool)  # as the SDK does it: this keeps the private fields that bind the function
            gated.tool_input_guardrails = [*guards, _Gate(self.host)]
            return gated
        if isinstance(tool, CustomTool):
            return replace(tool, on_invoke_tool=_GatedFunction(self.host, tool.name, tool.on_invoke_tool))
        if isinstance(tool, LocalShellTool | ShellTool) and run is not None:
            return replace(tool, executor=_GatedFunction(self.host, tool.name, run))
        raise UserError(f"{tool.name!r} cannot be gated: remove it, or list it in 'harmless'")


class _Gate(ToolInputGuardrail[Any]):
    def __init__(self, host: Conversation) -> None:
        super().__init__(self._check, name="skill_gate")
        self.host = host

    async def _check(self, data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        refusal = await self.host.gate(data.context.tool_name)
        if refusal is None:
            return ToolGuardrailFunctionOutput.allow()
        return ToolGuardrailFunctionOutput.reject_content(refusal.for_model, {"reference": refusal.reference})


class _SkillTool(FunctionTool):
    """One of the host's own tools."""


class _GatedFunction:
    """The function of a tool, which runs if the gate allows it."""

    def __init__(self, host: Conversation, name: str, run: Callable[..., Any]) -> None:
        self.host, self._name, self._run = host, name, run

    async def __call__(self, *arguments: Any) -> Any:
        refusal = await self.host.gate(self._name)
        if refusal is not None:
            return refusal.for_model
        result = self._run(*arguments)
        return await result if inspect.isawaitable(result) else result


def _skill_tool(host: Conversation, tool: dict[str, Any]) -> FunctionTool:
    name: str = tool["name"]

    async def call(context: ToolContext[Any], text: str) -> str:  # noqa: ARG001 - the SDK's signature
        try:
            arguments = json.loads(text or "{}")
        except ValueError:
            arguments = None
        if not isinstance(arguments, dict):
            return "The arguments are not a JSON object. Call the tool again with one."
        return (await host.call(name, cast("dict[str, Any]", arguments))).text

    return _SkillTool(
        name=name,
        description=tool["description"],
        params_json_schema=tool["inputSchema"],
        on_invoke_tool=call,
        strict_json_schema=False,  # strict would make the optional arguments required
    )
