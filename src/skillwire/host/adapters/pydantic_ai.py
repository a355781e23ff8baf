"""Pydantic AI: ``Agent(model, toolsets=[SkillsToolset(host)])``. The list of skills comes as its instructions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic_core import SchemaValidator, core_schema

from skillwire.host.adapters import missing
from skillwire.host.tools import LOAD

try:
    from pydantic_ai.tools import RunContext, ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
except ImportError as error:
    raise missing("pydantic-ai", error) from error

if TYPE_CHECKING:
    from skillwire.host.runtime import Host

_ARGUMENTS = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))


class SkillsToolset(AbstractToolset[Any]):
    """The skills of a host as a toolset with instructions."""

    def __init__(self, host: Host, *, id: str = "skills") -> None:  # noqa: A002 - the framework's word
        self._host = host
        self._id = id

    @property
    def id(self) -> str:
        """The toolset's name among those of an agent."""
        return self._id

    async def get_instructions(self, ctx: RunContext[Any]) -> str | None:  # noqa: ARG002 - the framework's shape
        """The list of skills as it is now: the framework asks before each request to the model."""
        return self._host.catalog_prompt() or None

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:  # noqa: ARG002 - the same
        """The host's tools. Loading runs alone: a file that is asked for in the same breath is read after it."""
        return {
            tool["name"]: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=tool["name"],
                    description=tool["description"],
                    parameters_json_schema=tool["inputSchema"],
                    sequential=tool["name"] == LOAD,
                ),
                max_retries=1,
                args_validator=_ARGUMENTS,
            )
            for tool in self._host.tools("mcp")
        }

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],  # noqa: ARG002 - the framework's shape
        tool: ToolsetTool[Any],  # noqa: ARG002 - the same
    ) -> str:
        """What the host answers, a refusal included."""
        return (await self._host.call(name, tool_args)).text


@dataclass
class GatedToolset(WrapperToolset[Any]):
    """For tools that run code: each call is asked about while a server's skill is acted on (A5)."""

    host: Host

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """The tool's result, or why it may not run now."""
        refusal = await self.host.gate(name)
        return refusal.for_model if refusal else await super().call_tool(name, tool_args, ctx, tool)
