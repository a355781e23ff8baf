"""OpenAI Agents SDK: ``Agent("a", instructions=instructions(host, "Be brief."), tools=skill_tools(host))``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from skillwire.host.adapters import missing

try:
    from agents import Agent, FunctionTool, RunContextWrapper, Tool
    from agents.tool_guardrails import ToolGuardrailFunctionOutput, ToolInputGuardrail, ToolInputGuardrailData
except ImportError as error:
    raise missing("openai-agents", error) from error

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents.tool_context import ToolContext

    from skillwire.host.runtime import Host


def skill_tools(host: Host) -> list[Tool]:
    """The host's tools."""
    return [_tool(host, tool) for tool in host.tools("mcp")]


def instructions(host: Host, text: str = "") -> Callable[[RunContextWrapper[Any], Agent[Any]], str]:
    """Instructions that end with the list of skills as it is when the SDK asks, before each turn."""

    def build(context: RunContextWrapper[Any], agent: Agent[Any]) -> str:  # noqa: ARG001 - the SDK's shape
        return "\n\n".join(part for part in (text, host.catalog_prompt()) if part)

    return build


def gate(host: Host) -> ToolInputGuardrail[Any]:
    """For tools that run code: each call is asked about while a server's skill is acted on (A5).

    ``@function_tool(tool_input_guardrails=[gate(host)])``
    """

    async def skill_gate(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
        refusal = await host.gate(data.context.tool_name)
        if refusal is None:
            return ToolGuardrailFunctionOutput.allow()
        return ToolGuardrailFunctionOutput.reject_content(refusal.for_model, {"reference": refusal.reference})

    return ToolInputGuardrail(skill_gate)


def _tool(host: Host, tool: dict[str, Any]) -> FunctionTool:
    name: str = tool["name"]

    async def call(context: ToolContext[Any], text: str) -> str:  # noqa: ARG001 - the SDK's shape
        arguments = _arguments(text)
        if arguments is None:
            return "The arguments are not a JSON object. Call the tool again with one."
        return (await host.call(name, arguments)).text

    return FunctionTool(
        name=name,
        description=tool["description"],
        params_json_schema=tool["inputSchema"],
        on_invoke_tool=call,
        strict_json_schema=False,  # strict would make the optional arguments required
    )


def _arguments(text: str) -> dict[str, Any] | None:
    """What the model wrote, which may be anything."""
    try:
        arguments = json.loads(text or "{}")
    except ValueError:
        return None
    return cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else None
