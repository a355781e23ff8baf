"""LangChain: ``create_agent(model, tools, middleware=[SkillsMiddleware(host)])``.

A host is asynchronous, so use ``ainvoke`` and ``astream``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillwire.adapters import harmless_names, missing

try:
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.messages import SystemMessage, ToolMessage
    from langchain_core.tools import BaseTool, StructuredTool
except ImportError as error:
    raise missing("langchain", error) from error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from langchain.agents.middleware import ModelRequest, ModelResponse, ToolCallRequest
    from langgraph.types import Command

    from skillwire.host.conversation import Conversation


class SkillsMiddleware(AgentMiddleware[Any, Any, Any]):
    """Gives an agent the host's tools and, before each request to the model, the current list of skills.

    While text of a server's skill is in the context, each call of another tool needs a grant (A5). List a tool in
    ``harmless`` if it runs no code.
    """

    def __init__(self, host: Conversation, *, harmless: Collection[str] = ()) -> None:
        super().__init__()
        self.tools = [_tool(host, tool) for tool in host.tools("mcp")]
        self._host = host
        self._harmless = harmless_names(harmless)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Append the list of skills to the system message."""
        prompt = self._host.catalog_prompt()
        if not prompt:
            return await handler(request)
        blocks = request.system_message.content_blocks if request.system_message else []
        message = SystemMessage(content_blocks=[*blocks, {"type": "text", "text": prompt}])
        return await handler(request.override(system_message=message))

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Run the tool, or return the refusal."""
        name, call_id = request.tool_call["name"], request.tool_call["id"]
        is_ours = any(request.tool is tool for tool in self.tools)  # another tool may have the same name
        refusal = None if is_ours or name in self._harmless else await self._host.gate(name)
        if refusal is None:
            return await handler(request)
        return ToolMessage(refusal.for_model, name=name, tool_call_id=call_id, status="error")


def _tool(host: Conversation, tool: dict[str, Any]) -> BaseTool:
    name: str = tool["name"]

    async def call(**arguments: Any) -> str:
        return (await host.call(name, arguments)).text

    return StructuredTool(
        name=name, description=tool["description"], args_schema=tool["inputSchema"], coroutine=call
    )
