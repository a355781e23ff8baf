"""Skills of a FastMCP server that is mounted into another FastMCP server.

A parent asks a mounted server through FastMCP's providers, and not through the middleware that serves the skills.
So a FastMCP server with skills gets this provider. It offers every file of the visible skills as a resource, and
FastMCP's ``_manifest`` for each skill: clients find the skills among the resources of the parent, with the digests
of their files (I4). While the server answers its own clients, the provider offers nothing.
"""

from __future__ import annotations

import json
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from fastmcp.resources import Resource
from fastmcp.server.providers import Provider
from pydantic import AnyUrl

from skillwire.errors import FormatError, NotFoundError
from skillwire.skill.uri import SKILL_MD, format_uri, parse_uri
from skillwire.wire.extension import media_type

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from skillwire.catalog.contract import Catalog
    from skillwire.server.dialect import ServedSkills
    from skillwire.skill import SkillEntry

_MANIFEST = "_manifest"
_DIRECT: ContextVar[int] = ContextVar("skillwire_direct", default=0)  # the server that answers its own client


def provide_skills(server: Any, low: Any, served: ServedSkills) -> None:
    """Add the provider to a FastMCP server; ``low`` is its low-level server."""

    async def mark_direct(ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        token = _DIRECT.set(id(low))
        try:
            return await call_next(ctx)
        finally:
            _DIRECT.reset(token)

    low.middleware.append(mark_direct)
    server.add_provider(_SkillsProvider(id(low), served))


class _SkillsProvider(Provider):
    # FastMCP documents ``_list_resources`` and ``_get_resource`` as the methods that a provider overrides.

    def __init__(self, server: int, served: ServedSkills) -> None:
        super().__init__()
        self._server = server
        self._served = served

    async def _visible(self) -> Catalog:
        await self._served.identify_caller()
        return self._served.visible()

    async def _list_resources(self) -> Sequence[Resource]:
        if _DIRECT.get() == self._server:
            return []
        catalog, found = await self._visible(), dict[str, Resource]()
        async for entry in catalog.entries():
            for resource in (_manifest(entry), *(_file(catalog, entry, file.uri) for file in entry.files)):
                found.setdefault(str(resource.uri), resource)  # a nested skill's files are in both entries
        return list(found.values())

    async def _get_resource(self, uri: str, version: Any = None) -> Resource | None:  # noqa: ARG002
        if _DIRECT.get() == self._server:
            return None
        catalog = await self._visible()
        with suppress(FormatError, NotFoundError):
            place = parse_uri(uri)
            if place.segments[-1] == _MANIFEST:
                entry = await catalog.get_skill(str(place.parent) + f"/{SKILL_MD}")
                return _manifest(entry)
            await catalog.read_file(uri)  # raises if the caller may not see it
            name = place.segments[-1]
            return _File(uri=AnyUrl(uri), name=name, mime_type=media_type(name), catalog=catalog)
        return None


class _Manifest(Resource):
    text: str

    async def read(self) -> str:
        return self.text


class _File(Resource):
    catalog: Any

    async def read(self) -> str | bytes:
        data = (await self.catalog.read_file(str(self.uri))).data
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data


def _file(catalog: Catalog, entry: SkillEntry, uri: str) -> _File:
    is_skill_md, name = uri == entry.uri, parse_uri(uri).segments[-1]
    return _File(
        uri=AnyUrl(uri),
        name=entry.name if is_skill_md else name,
        description=entry.description if is_skill_md else None,
        mime_type=media_type(name),
        catalog=catalog,
    )


def _manifest(entry: SkillEntry) -> _Manifest:
    root = entry.root
    files = [{"path": file.path, "size": file.size, "hash": file.digest} for file in entry.files]
    return _Manifest(
        uri=AnyUrl(format_uri(f"{root.path}/{_MANIFEST}", root.scheme)),
        name=f"{entry.name}/{_MANIFEST}",
        mime_type="application/json",
        text=json.dumps({"skill": entry.name, "files": files}),
    )
