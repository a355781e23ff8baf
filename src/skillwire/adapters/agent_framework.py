"""Microsoft Agent Framework: ``Agent(client, tools=tools, context_providers=[skills_provider(host)])``.

The framework's own support for skills is not used: its tools find only listed skills, and ignore case in names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillwire.adapters import harmless_names, missing

try:
    import agent_framework as af
except ImportError as error:
    raise missing("agent-framework", error) from error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from skillwire.host.conversation import Conversation


def skills_provider(host: Conversation, *, harmless: Collection[str] = ()) -> HostSkillsProvider:
    """A context provider for the skills of a host. The host asks for approvals, which are bound to content (A1).

    While text of a server's skill is in the context, each call of another tool of the agent needs a grant (A5).
    List a tool in ``harmless`` if it runs no code.
    """
    return HostSkillsProvider(host, harmless)


class HostSkillsProvider(af.ContextProvider):
    """Adds the list of skills, the host's tools and the gate to each run of its agent."""

    def __init__(self, host: Conversation, harmless: Collection[str]) -> None:
        super().__init__("skillwire")
        self._host = host
        self._tools = [_skill_tool(host, tool) for tool in host.tools("mcp")]
        self._gate = _Gate(host, harmless)

    async def before_run(
        self,
        *,
        agent: af.SupportsAgentRun,  # noqa: ARG002 - the framework's signature
        session: af.AgentSession,  # noqa: ARG002 - the same
        context: af.SessionContext,
        state: dict[str, Any],  # noqa: ARG002 - the same
    ) -> None:
        """Add the current skills. The gate is always added: skills of an earlier run may be in the context."""
        if prompt := self._host.catalog_prompt():
            context.extend_instructions(self.source_id, prompt)
        context.extend_tools(self.source_id, self._tools)
        context.extend_middleware(self.source_id, self._gate)


class _SkillTool(af.FunctionTool):
    """One of the host's own tools."""


class _Gate(af.FunctionMiddleware):
    def __init__(self, host: Conversation, harmless: Collection[str]) -> None:
        self._host = host
        self._harmless = harmless_names(harmless)

    async def process(
        self, context: af.FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]
    ) -> None:
        """Run the tool, or return the refusal."""
        name = context.function.name
        is_open = isinstance(context.function, _SkillTool) or name in self._harmless
        refusal = None if is_open else await self._host.gate(name)
        if refusal is None:
            await call_next()
        else:
            context.result = refusal.for_model


def _skill_tool(host: Conversation, tool: dict[str, Any]) -> _SkillTool:
    async def call(
        name: str | None = None,
        path: str | None = None,
        origin: str | None = None,
        arguments: dict[str, Any] | None = None,
    ) -> str:
        # Not **arguments: the framework would add the values that the program passes to its own tools.
        given = {"name": name, "path": path, "origin": origin, "arguments": arguments}
        return (await host.call(tool["name"], given)).text

    return _SkillTool(
        name=tool["name"],
        description=tool["description"],
        func=call,
        approval_mode="never_require",  # the host asks itself
        input_model=tool["inputSchema"],
    )
