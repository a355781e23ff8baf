"""A server that has nothing but skills: any catalog, on the official SDK's ``Server``.

Serves the ``extension`` dialect (K1, L1, G1, R1, D1) in both protocol eras. The SDK leaves
``capabilities.extensions`` out of ``initialize`` results of the handshake era; clients of that era must see the
extension all the same, so it is put back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp.server.lowlevel import Server
from mcp_types import PaginatedRequestParams, ReadResourceRequestParams

from skillwire import __version__
from skillwire.catalog.contract import DEFAULT_PAGE_SIZE
from skillwire.errors import SkillwireError
from skillwire.wire import extension
from skillwire.wire.errors import to_rpc_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from pydantic import BaseModel

    from skillwire.catalog.contract import Catalog

Answer = dict[str, Any]


def build_server(
    catalog: Catalog,
    *,
    name: str = "skillwire",
    freshness: extension.Freshness | None = None,
    page_size: int = DEFAULT_PAGE_SIZE,
) -> Server[Any]:
    """An MCP server for ``catalog``. Run it on any transport of the SDK."""
    server: Server[Any] = Server(name, version=__version__)
    keep = freshness or extension.Freshness()

    def bind(method: str, params_type: type[BaseModel], answer: Callable[[Any], Awaitable[Answer]]) -> None:
        async def handle(ctx: ServerRequestContext[Any, Any], params: BaseModel) -> Answer:
            try:
                return {**await answer(params), **keep.fields(ctx.protocol_version)}
            except SkillwireError as error:
                raise to_rpc_error(error) from error

        server.add_request_handler(method, params_type, handle)

    async def list_skills(params: extension.ListSkillsParams) -> Answer:
        return extension.list_result(await catalog.list_skills(params.cursor, page_size))

    async def get_skill(params: extension.GetSkillParams) -> Answer:
        return extension.get_result(await catalog.get_skill(params.uri))

    async def read_directory(params: extension.ReadDirectoryParams) -> Answer:
        return extension.directory_result(await catalog.read_directory(params.uri, params.cursor, page_size))

    async def list_resources(params: PaginatedRequestParams) -> Answer:
        return extension.resources_result(await catalog.list_skills(params.cursor, page_size))

    async def read_resource(params: ReadResourceRequestParams) -> Answer:
        return extension.read_result(await catalog.read_file(str(params.uri)))

    bind(extension.SKILLS_LIST, extension.ListSkillsParams, list_skills)
    bind(extension.SKILLS_GET, extension.GetSkillParams, get_skill)
    bind(extension.DIRECTORY_READ, extension.ReadDirectoryParams, read_directory)
    bind("resources/list", PaginatedRequestParams, list_resources)
    bind("resources/read", ReadResourceRequestParams, read_resource)
    server.extensions[extension.EXTENSION_ID] = {"directoryRead": True}
    server.middleware.append(_restore_extensions(server))
    return server


def _restore_extensions(server: Server[Any]) -> Any:
    async def middleware(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method == "initialize" and isinstance(result, dict):
            capabilities = {**result["capabilities"], "extensions": dict(server.extensions)}
            return {**result, "capabilities": capabilities}
        return result

    return middleware
