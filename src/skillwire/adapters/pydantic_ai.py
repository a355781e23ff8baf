"""Pydantic AI: ``Agent(model, tools=tools, capabilities=[SkillsCapability(host)])``."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic_core import SchemaValidator, core_schema

from skillwire.adapters import harmless_names, missing
from skillwire.host.context import LOAD

try:
    from pydantic_ai import ModelRetry
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.tools import RunContext, ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
except ImportError as error:
    raise missing("pydantic-ai", error) from error

if TYPE_CHECKING:
    from collections.abc import Collection

    from pydantic_ai.capabilities.abstract import WrapOutputProcessHandler, WrapToolExecuteHandler
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.output import OutputContext

    from skillwire.host.conversation import Conversation

_ARGUMENTS = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))
# Marks the host's own tools, whose names may get a prefix. It is random, so that no other tool can have it.
_OURS = secrets.token_hex(8)


@dataclass
class SkillsCapability(AbstractCapability[Any]):
    """Gives an agent the host's tools and, as instructions, the current list of skills.

    While text of a server's skill is in the context, each call of another tool, and of an output function, needs a
    grant (A5). List a tool in ``harmless`` if it runs no code.
    """

    host: Conversation
    harmless: Collection[str] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        self.harmless = harmless_names(self.harmless)

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """None: a host cannot be serialized."""
        return None

    def get_toolset(self) -> AbstractToolset[Any]:
        """The host's tools."""
        return _SkillsToolset(self.host)

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 - the framework's signature
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: WrapToolExecuteHandler,
    ) -> Any:
        """Run the tool, or return the refusal."""
        is_open = (tool_def.metadata or {}).get("skillwire") == _OURS or call.tool_name in self.harmless
        refusal = None if is_open else await self.host.gate(call.tool_name)
        return refusal.for_model if refusal else await handler(args)

    async def wrap_output_process(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 - the framework's signature
        *,
        output_context: OutputContext,
        output: Any,
        handler: WrapOutputProcessHandler,
    ) -> Any:
        """Process the output. An output function runs code like a tool, so it needs a grant too."""
        call = output_context.tool_call
        name = output_context.function_name or (call.tool_name if call else "an output function")
        if output_context.has_function and name not in self.harmless:
            refusal = await self.host.gate(name)
            if refusal is not None:
                raise ModelRetry(refusal.for_model)
        return await handler(output)


class _SkillsToolset(AbstractToolset[Any]):
    def __init__(self, host: Conversation) -> None:
        self._host = host

    @property
    def id(self) -> None:
        """None: an agent may have several of these toolsets."""
        return None

    async def get_instructions(self, ctx: RunContext[Any]) -> str | None:  # noqa: ARG002 - the framework's signature
        """The current list of skills. The framework calls this before each request to the model."""
        return self._host.catalog_prompt() or None

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:  # noqa: ARG002 - the same
        """The host's tools. ``load_skill`` runs alone: a file requested in the same turn is read after it."""
        return {
            tool["name"]: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=tool["name"],
                    description=tool["description"],
                    parameters_json_schema=tool["inputSchema"],
                    sequential=tool["name"] == LOAD,
                    metadata={"skillwire": _OURS},
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
        ctx: RunContext[Any],  # noqa: ARG002 - the framework's signature
        tool: ToolsetTool[Any],  # noqa: ARG002 - the same
    ) -> str:
        """The result of the host, which may be a refusal."""
        return (await self._host.call(name, tool_args)).text
