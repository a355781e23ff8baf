"""The composition root: turns settings into catalogs, servers and gateways.

Imports are late, so that a folder is opened without the SDK, and a URL without what reads folders.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast

from skillwire.catalog.git_source import GitSource
from skillwire.client.servers import target_kind
from skillwire.errors import ApprovalError, FormatError, NotFoundError, UpstreamError
from skillwire.limits import DEFAULT_LIMITS, MIB, Limits
from skillwire.skill.uri import DEFAULT_SCHEME

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncGenerator, Sequence

    from skillwire.catalog.contract import Catalog
    from skillwire.catalog.git import GitCatalog
    from skillwire.client.dialects import DialectName
    from skillwire.client.servers import SkillPlace
    from skillwire.client.skills import SkillsClient
    from skillwire.gateway.gateway import Gateway
    from skillwire.registry.app import Registry, RegistryOptions
    from skillwire.server.access import Access
    from skillwire.server.dialect import Endpoint, Fallback
    from skillwire.server.http import HttpServer
    from skillwire.server.page import PageMaker
    from skillwire.server.skills import Skills
    from skillwire.skill.entry import SkillMeta

T = TypeVar("T")
P = TypeVar("P", bound="SkillPlace")

Consent: TypeAlias = Callable[[Path, str, Mapping[str, Any]], Awaitable[None]]
"""Asks the user before a server from a file of the project is used: file, label and entry (Z1)."""

Progress: TypeAlias = Callable[[], AbstractContextManager[Callable[[int], None]]]
"""Shows a running count of skills."""

FindToken: TypeAlias = Callable[[str], str | None]
"""Returns the token that the user has stored for the registry at a URL."""


async def no_consent(file: Path, label: str, _entry: Mapping[str, Any]) -> None:
    """Refuse every server from a file of the project."""
    raise ApprovalError(
        "server-not-allowed",
        f"{file.name!r:.200}, a file of this project, names the server {label!r:.100}",
        f"review the file, then use it with --config {shlex.quote(str(file))}",
        rule="Z1",
    )


def read_folders(
    paths: Sequence[str],
    progress: Progress,
    *,
    prefix: str = "",
    unlisted: Sequence[str] = (),
    scheme: str = DEFAULT_SCHEME,
) -> Catalog:
    """Read the folders and archives at ``paths`` into one catalog. Several get their names as labels.

    Skills whose path, including the prefix, matches one of the globs in ``unlisted`` are served but not listed.
    Git repositories among ``paths`` are fetched when they are first used.
    """
    from skillwire.catalog.archive import local_catalog
    from skillwire.catalog.git import GitCatalog
    from skillwire.catalog.union import CombinedCatalog, Mount, unique_labels

    def describe(path: str, meta: SkillMeta) -> SkillMeta:
        outside = f"{prefix}/{path}" if prefix else path
        return replace(meta, listed=False) if any(fnmatchcase(outside, glob) for glob in unlisted) else meta

    if unlisted and any(target_kind(path) == "git" for path in paths):
        raise FormatError("option-needs-folder", "--unlisted is for folders", "serve the repository without it")
    catalogs = [
        GitCatalog(path, scheme=scheme)
        if target_kind(path) == "git"
        else local_catalog(path, scheme=scheme, describe=describe)
        for path in paths
    ]
    for catalog in catalogs:
        if not isinstance(catalog, GitCatalog):
            with progress() as count:
                catalog.load(count)
    if len(catalogs) == 1 and not prefix:
        return catalogs[0]
    labels = unique_labels(
        [each.source.name if isinstance(each, GitCatalog) else each.root.name for each in catalogs]
    )
    mounts = [Mount(catalog, label, prefix) for catalog, label in zip(catalogs, labels, strict=True)]
    return CombinedCatalog(mounts, scheme=scheme)


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """How to open a target."""

    config: Path | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    dialect: str | None = None
    era: str = "auto"
    instructions: bool = False
    allow_unverified: bool = False
    consent: Consent = no_consent
    timeout: float | None = None
    on_url: Callable[[str], None] | None = None  # called with the URL that responded
    sign_in: FindToken = lambda _: None


@asynccontextmanager
async def open_target(
    target: str | Sequence[str] | Mapping[str, Any],
    options: TargetOptions,
    *,
    folder: Path,
    home: Path,
    on_skill: Callable[[int], None] | None = None,
) -> AsyncGenerator[Catalog]:
    """Open a target as a catalog: a command (a list of words), a folder, a repository, a URL, or a label.

    A label is looked up in ``options.config``, or in the files of hosts below ``home`` and ``folder``. ``target``
    may also be an entry of such a file, or the path of a saved listing.
    """
    local: Catalog | None = None
    if isinstance(target, str) and options.config is None:
        local = await _open_git(target, options) or _open_local(target, home, on_skill)
    if local is not None:
        yield local
        return
    from skillwire.client.remote import RemoteCatalog  # late: it imports the SDK
    from skillwire.client.servers import CommandServer, UrlServer, program_of

    limits, seconds = DEFAULT_LIMITS, options.timeout
    if seconds is not None:
        limits = replace(limits, max_call_seconds=seconds, max_listing_seconds=2 * seconds)
    place = await server_place(target, options, folder, home)
    async with AsyncExitStack() as stack:
        try:
            client, place = await _connect(place, options, limits, stack)
        except UpstreamError as error:
            if isinstance(place, CommandServer) and error.reference in ("connection-lost", "not-mcp"):
                is_typed = isinstance(target, list | tuple)  # the words of an entry may be secret
                words = shlex.join(place.command) if is_typed else program_of(place.command)
                error.hint = f"run it yourself, to see why: {words}"
            if error.reference == "not-allowed" and isinstance(place, UrlServer) and options.sign_in(place.url):
                error.hint = f"sign in again: skillwire registry login {shlex.quote(place.url)}"
            raise
        if options.on_url is not None and isinstance(place, UrlServer):
            options.on_url(place.url)
        yield RemoteCatalog(client, allow_unverified=options.allow_unverified)


async def _connect(
    place: SkillPlace, options: TargetOptions, limits: Limits, stack: AsyncExitStack
) -> tuple[SkillsClient, SkillPlace]:
    """Connect to ``place``, and return it with the path at which it responds."""
    from skillwire.client.connect import connect

    async def attempt(place: SkillPlace) -> tuple[SkillsClient, SkillPlace]:
        opened = connect(
            place,
            dialect=cast("DialectName | None", options.dialect),
            mode="legacy" if options.era == "legacy" else "auto",
            instructions=options.instructions,
            limits=limits,
        )
        return await stack.enter_async_context(opened), place

    return await also_at_usual_path(place, attempt)


async def also_at_usual_path(place: P, attempt: Callable[[P], Awaitable[T]]) -> T:
    """The result of ``attempt``. Where a URL has no path and no MCP server responds there, ``/mcp`` is tried."""
    from skillwire.client.servers import UrlServer, with_usual_path

    try:
        return await attempt(place)
    except UpstreamError as error:
        url = with_usual_path(place.url) if isinstance(place, UrlServer) else None
        if error.reference != "not-mcp" or url is None:
            raise
        return await attempt(replace(place, url=url))


async def _open_git(target: str, options: TargetOptions) -> GitCatalog | None:
    """Fetch a repository, or return ``None`` if the target is something else."""
    if target_kind(target) != "git":
        return None
    from skillwire.catalog.git import GitCatalog
    from skillwire.catalog.git_source import is_short

    if options.headers:
        raise FormatError(
            "header-unused", "--header is for MCP servers; git signs in by itself", "omit it: git help credentials"
        )
    limits = DEFAULT_LIMITS
    if options.timeout is not None:
        limits = replace(limits, max_git_seconds=options.timeout)
    catalog = GitCatalog(target, limits=limits)
    try:
        await catalog.refresh()
    except (NotFoundError, UpstreamError) as error:
        if is_short(target) and error.reference in ("git-sign-in", "git-unknown", "git-unreachable"):
            error.message = f"no folder here has the path {target!r:.200}, and on GitHub: {error.message}"
        raise
    return catalog


def _open_local(target: str, home: Path, on_skill: Callable[[int], None] | None) -> Catalog | None:
    if target_kind(target) != "path":
        return None
    from skillwire.catalog.archive import is_archive, local_catalog
    from skillwire.catalog.listing import read_listing
    from skillwire.client.servers import check_local_name

    check_local_name(target, home)
    if os.path.isdir(target) or (is_archive(target) and os.path.isfile(target)):
        catalog = local_catalog(target)
        catalog.load(on_skill)
        return catalog
    if target.endswith(".json") and os.path.isfile(target):
        return read_listing(Path(target))
    return None


async def server_place(
    target: str | Sequence[str] | Mapping[str, Any], options: TargetOptions, folder: Path, home: Path
) -> SkillPlace:
    """Return the place of a server, given by a command, a URL, an entry or a label.

    Z1: an entry from a file of the project needs consent before any variable in it is replaced. It never gets a
    stored sign-in.
    """
    from skillwire.client.servers import (
        CommandServer,
        UrlServer,
        as_url,
        check_own_configs,
        find_configs,
        find_server,
        is_own,
        parse_server,
    )

    url = as_url(target) if isinstance(target, str) else None
    if url is not None:
        return UrlServer(url, {**_signed_in(url, options), **options.headers})
    if isinstance(target, str):
        if options.config is None and (os.sep in target or target.startswith(".")):
            raise NotFoundError(
                "target-unknown",
                f"{target!r:.200} is not a folder, an archive or a repository",
                "use a path that exists, owner/repository, a URL, a label, or a command after --",
            )
        configs = find_configs(folder, home) if options.config is None else iter([options.config])
        try:
            file, entry = find_server(target, configs)
        except NotFoundError as error:
            if error.reference == "server-unknown" and options.config is None:
                error.message = f"no file or folder has the path {target!r:.100}, and {error.message}"
                error.hint = "use a path, owner/repository, a URL, a label, or a command after --"
            raise
        if options.config is None and not is_own(file, home):
            check_own_configs(target, home)
            await options.consent(file, target, entry)
        target = entry
    place = parse_server(target) if isinstance(target, Mapping) else CommandServer(tuple(target))
    if isinstance(place, GitSource):
        return place
    if isinstance(place, CommandServer):
        return replace(place, cwd=os.path.join(folder, place.cwd or ""))
    return UrlServer(place.url, {**place.headers, **options.headers})


def _signed_in(url: str, options: TargetOptions) -> Mapping[str, str]:
    """Return the header with the stored sign-in, unless the user gave another one."""
    if any(name.lower() == "authorization" for name in options.headers):
        return {}
    token = options.sign_in(url)
    return {} if token is None else {"Authorization": f"Bearer {token}"}


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """How a catalog is served. The fields from ``access`` on are for HTTP."""

    name: str = "skillwire"
    instructions: str | None = None
    scheme: str = DEFAULT_SCHEME
    watch: bool = True
    page_size: int = 100
    ttl_seconds: int = 0
    cache_scope: Literal["private", "public"] = "private"
    dialect: Endpoint = "extension"
    fallback: Fallback = "auto"
    keep_listed: bool = False
    activation_key: bytes | None = field(default=None, repr=False)
    access: Access | None = None
    public_url: str | None = None
    replay_bytes: int = 128 * MIB


def _skills_of(catalog: Catalog, settings: ServerSettings) -> Skills:
    from skillwire.server.dialect import Dialects
    from skillwire.server.skills import Skills, ignore_problem
    from skillwire.wire.extension import Freshness

    return Skills(
        catalog,
        scheme=settings.scheme,
        page_size=settings.page_size,
        freshness=Freshness(settings.ttl_seconds * 1000, settings.cache_scope),
        watch=settings.watch,
        on_problem=ignore_problem,
        dialects=Dialects(
            settings.dialect,
            settings.fallback,
            keep_listed=settings.keep_listed,
            activation_key=settings.activation_key,
        ),
    )


def build_stdio_server(catalog: Catalog, settings: ServerSettings, gateway: Gateway | None = None) -> Any:
    """Make a server of the SDK for stdio. A gateway asks its client for approvals."""
    from skillwire.server.skills import build_server

    skills = _skills_of(catalog, settings)
    server = build_server(skills, name=settings.name, instructions=settings.instructions)
    if gateway is not None:
        gateway.ask_clients(server)
    return server


def build_http_server(
    catalog: Catalog,
    listener: socket.socket,
    settings: ServerSettings,
    *,
    page: PageMaker | None,
    gateway: Gateway | None = None,
) -> HttpServer:
    """Put the skills of ``catalog``, and their page, on a listening socket."""
    from skillwire.server.http import HttpOptions, HttpServer

    skills = _skills_of(catalog, settings)
    options = HttpOptions(settings.access, settings.public_url, replay_bytes=settings.replay_bytes)
    name, text = settings.name, settings.instructions
    if gateway is None:
        app = skills.web_app(options, name=name, instructions=text, page=page)
    else:
        is_public = is_open(listener, settings.access)
        app = gateway.web_app(skills, options, name=name, instructions=text, page=page, is_open=is_public)
    return HttpServer(app, listener)


def is_open(listener: socket.socket, access: Access | None) -> bool:
    """Return whether every machine in the network can connect without a token."""
    return access is None and not ip_address(listener.getsockname()[0]).is_loopback


@asynccontextmanager
async def open_registry(
    database: str | Path | None, state: Path, options: RegistryOptions | None = None
) -> AsyncGenerator[Registry]:
    """Open the registry in a PostgreSQL database, or in a file of the state folder."""
    from skillwire.registry.app import Registry
    from skillwire.registry.schema import SCHEMA
    from skillwire.registry.store import SqlRegistryStore
    from skillwire.store.place import open_database

    opened = await open_database(database or state / "registry.sqlite3", SCHEMA)
    store = SqlRegistryStore(opened)
    try:
        yield Registry(store, options, wait=opened.wait_for_change, hold=opened.hold)
    finally:
        await store.close()
