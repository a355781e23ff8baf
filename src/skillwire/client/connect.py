"""``connect`` opens a client of one server; ``list_many`` lists the skills of many servers at once."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import anyio
from mcp import Client
from mcp.client import ClientExtension, NotificationBinding
from mcp_types import Implementation, NotificationParams, ResourceListChangedNotification

from skillwire.catalog.git_source import GitSource, is_git_source, parse_git_source
from skillwire.client.bounds import bounded_client, open_http
from skillwire.client.connection import open_connection
from skillwire.client.dialects.by_name import LIST_CHANGED
from skillwire.client.servers import CommandServer, UrlServer, own_server, parse_server
from skillwire.client.skills import Listing, SkillsClient
from skillwire.client.stdio import open_stdio
from skillwire.errors import FormatError, SkillwireError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.model import READ_RESOURCE_TOOL, build_catalog
from skillwire.wire.extension import EXTENSION_ID

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from typing import Protocol

    from mcp.client import Transport
    from mcp.server import Server
    from mcp.server.mcpserver import MCPServer

    from skillwire.catalog.contract import Catalog
    from skillwire.client.connection import Connection, OpenClient, OwnConnection
    from skillwire.client.dialects import DialectName
    from skillwire.client.servers import ServerPlace, SkillPlace
    from skillwire.client.skills import Extractor
    from skillwire.server.skills import Skills
    from skillwire.skill import SkillEntry

    class FastMcpServer(Protocol):
        """A FastMCP server, which this package does not import."""

        def http_app(self, *args: Any, **kwargs: Any) -> Any:
            """Exists on every FastMCP server."""

    ConnectTarget = (
        str
        | Sequence[str]
        | Mapping[str, Any]
        | SkillPlace
        | Server[Any]
        | MCPServer
        | FastMcpServer
        | Skills
        | Catalog
    )

_TARGETS = (
    "a URL, a Git repository, a command (a list of strings), a label from your configuration, an entry of an"
    " mcpServers file, an MCPServer, a Server, a FastMCP server, Skills, or a Catalog"
)


@asynccontextmanager
async def connect(
    target: ConnectTarget,
    *,
    headers: Mapping[str, str] | None = None,
    dialect: DialectName | None = None,
    limits: Limits = DEFAULT_LIMITS,
    instructions: bool | Extractor = False,
    mode: str = "auto",
) -> AsyncGenerator[SkillsClient]:
    """Connect to the server at ``target`` for the duration of the block, and reconnect if the connection is lost.

    ``target`` is a URL, a command as a list of arguments, the label of a server in the user's own configuration,
    an entry of an ``mcpServers`` file, a server object of this process (``MCPServer``, ``Server`` or FastMCP), or
    ``Skills``, a ``Catalog`` or a Git repository such as ``"acme/skills@v1"``, which are served in memory.
    ``mode`` is the SDK's: ``"auto"``, ``"legacy"`` or a protocol version.
    """
    place, git = resolve_target(target, headers or {}), None
    if isinstance(place, GitSource):
        from skillwire.catalog.git import GitCatalog
        from skillwire.server.skills import Skills, ignore_problem

        git = GitCatalog(place, limits=limits)
        await git.refresh()  # its errors are more exact than those of a request
        place = Skills(git, on_problem=ignore_problem).server
    async with open_connection(_opener(place, mode), limits) as connection:
        client = SkillsClient(connection, dialect=dialect, instructions=instructions)
        client.git = git
        yield client


class SkillsExtension(ClientExtension):
    """The extension that a client of skills declares (K3), for your own SDK ``Client``.

    ``on_change`` is called for ``notifications/skills/list_changed`` in the dialects that have it (P5, M4).
    """

    identifier = EXTENSION_ID

    def __init__(self, on_change: Callable[[], None] | None = None) -> None:
        self._on_change = on_change

    def notifications(self) -> Sequence[NotificationBinding[Any]]:
        """The binding for ``on_change``, if it is set."""
        on_change = self._on_change
        if on_change is None:
            return ()

        async def handler(_: NotificationParams) -> None:
            on_change()

        return (NotificationBinding(method=LIST_CHANGED, params_type=NotificationParams, handler=handler),)


def check_target(target: object) -> None:
    """``TypeError`` if ``target`` is of no kind that ``connect`` takes. Nothing is read."""
    if not isinstance(target, str | Mapping | UrlServer | CommandServer | GitSource) and not _is_command(target):
        _server_object(target)


def resolve_target(target: ConnectTarget, headers: Mapping[str, str] | None = None) -> SkillPlace | Server[Any]:
    """The place of a server, or a server object; ``TypeError`` for anything else that is not a target."""
    if isinstance(target, str):
        if is_git_source(target):
            target = parse_git_source(target)
        else:
            target = UrlServer(target) if "://" in target else own_server(target, Path.home())
    elif isinstance(target, Mapping):
        target = parse_server(target)
    elif _is_command(target):
        target = CommandServer(tuple(target))
    if isinstance(target, UrlServer):
        return UrlServer(target.url, {**target.headers, **(headers or {})})
    if isinstance(target, CommandServer | GitSource):
        return target
    return _server_object(target)


def _is_command(target: object) -> TypeGuard[Sequence[str]]:
    return isinstance(target, list | tuple) and all(isinstance(word, str) for word in cast("list[Any]", target))


def _server_object(target: object) -> Server[Any]:
    """The low-level server of a server object, ``Skills`` or a catalog."""
    from skillwire.catalog.contract import Catalog  # late: a client of another process needs no server
    from skillwire.server.sdk_compat import lowlevel_server
    from skillwire.server.skills import Skills

    if isinstance(target, Catalog):
        target = Skills(target)
    if isinstance(target, Skills):
        return target.server
    try:
        return lowlevel_server(target)
    except FormatError:
        folder = f"; for a folder, give DirectoryCatalog({str(target)!r})" if isinstance(target, Path) else ""
        raise TypeError(f"cannot connect to {type(target).__name__}: give {_TARGETS}{folder}") from None


def _opener(place: ServerPlace | Server[Any], mode: str) -> OpenClient:
    def open_client(connection: OwnConnection) -> Client:
        async def handle(message: object) -> None:
            if isinstance(message, ResourceListChangedNotification):
                connection.notify_change()

        transport: Any = place
        if isinstance(place, UrlServer | CommandServer):
            transport = _transport(place, connection)
        return Client(
            transport,
            mode=mode,
            extensions=[SkillsExtension(connection.notify_change)],
            message_handler=handle,
            client_info=Implementation(name="skillwire", version=version("skillwire")),
            cache=None,  # this package caches by digest, not by a time to live
        )

    return open_client


def _transport(place: UrlServer | CommandServer, connection: Connection) -> Transport:
    if isinstance(place, CommandServer):
        return open_stdio(place.command, place.env, place.cwd, connection.meter)
    client = bounded_client(place.headers, connection.meter)
    return open_http(place.url, client, connection.limits)


async def list_many(clients: Mapping[str, SkillsClient]) -> dict[str, Listing]:
    """List the skills of all servers concurrently, by label. If one server fails, its listing has the error."""
    found: dict[str, Listing] = {}

    async def ask(label: str, client: SkillsClient) -> None:
        try:
            found[label] = await client.list_all()
        except SkillwireError as error:
            found[label] = Listing(error=error)

    async with anyio.create_task_group() as group:
        for label, client in clients.items():
            group.start_soon(ask, label, client)
    return {label: found[label] for label in clients}


@dataclass(frozen=True, slots=True)
class Discovered:
    """A server's skills, and the text that describes them to a model."""

    entries: tuple[SkillEntry, ...]
    catalog: str
    error: SkillwireError | None = None  # set if the listing is partial


async def discover_and_build_catalog(
    client: SkillsClient,
    *,
    tool_name: str = READ_RESOURCE_TOOL["name"],
    server_name: str | None = None,
    server_in_entries: bool = False,
) -> Discovered:
    """List a server's skills and build the block for the model's context, in one call."""
    listing = await client.list_all()
    text = build_catalog(
        listing.entries, tool_name=tool_name, server_name=server_name, server_in_entries=server_in_entries
    )
    return Discovered(listing.entries, text, listing.error)
