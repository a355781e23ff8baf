"""The well-known index of each skill, which ``npx skills`` and other installers read, and a search for them.

``/acme/refunds/.well-known/agent-skills/index.json`` is the index of one skill. It names the zip file of the
stable version. ``/acme/refunds@1.2.0/…`` and ``/acme/@1.2.0/refunds/…`` are an exact version; channels are written
in the same way. There is no index of several skills: installers download everything that an index names.

A caller sees what it sees over MCP: hidden and absent things have one answer, made by the same steps. Installers
send no token, so this door is for public namespaces; with a token, others answer too. Pages of other sites may not
read it (no CORS), because a registry is often in a private network.

A zip file never changes, and has its digest in its name. Caches may keep it for a day and not longer, because an
administrator can delete a version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from skillwire.catalog.contract import no_skill
from skillwire.errors import FormatError, SkillwireError
from skillwire.registry.api.call import SAFE, failure, parse_limit
from skillwire.registry.identity import current_identity
from skillwire.registry.model import STABLE, SkillRef, parse_reference, parse_served_path
from skillwire.search.text import parse_query
from skillwire.skill.entry import digest_of
from skillwire.skill.uri import skill_md_uri
from skillwire.skill.well_known import INDEX_FILE, archive_digest, index_document, index_entry

if TYPE_CHECKING:
    from starlette.requests import Request

    from skillwire.registry.contract import RegistryStore, Release

_NEW: Final = "no-cache"  # it may be kept, and is asked for again with its ETag
_FINAL: Final = "max-age=86400, immutable"
_MATCHES, _MOST_MATCHES = 20, 100


class WellKnown:
    """The routes of this door."""

    def __init__(self, store: RegistryStore, public_url: str | None = None) -> None:
        """``public_url`` is the address that clients use, if the registry cannot know it from a request."""
        self._store = store
        self._url = None if public_url is None else public_url.removesuffix("/").removesuffix("/mcp")

    def routes(self) -> list[Route]:
        """For the web application."""
        return [
            Route("/{place:path}/.well-known/agent-skills/{file}", self._answer),
            Route("/{place:path}/.well-known/skills/{file}", self._answer),
            Route("/api/search", self._search),
        ]

    async def _answer(self, request: Request) -> Response:
        """An index, or a zip file."""
        place, file = str(request.path_params["place"]), str(request.path_params["file"])
        who, ref, digest = current_identity(), _reference(place), archive_digest(file)
        try:
            if ref is not None and digest is not None:
                data = await self._store.archive(who, ref.path, digest)
                if data is not None:
                    return _response(request, data, digest, "application/zip", _FINAL)
            elif ref is not None and file == INDEX_FILE:
                release = await self._store.release(who, ref)
                if release is not None and release.archive is not None:
                    index = _index(release, release.archive)
                    return _response(request, index, digest_of(index), "application/json", _NEW)
        except SkillwireError as error:
            return failure(error)
        return failure(no_skill(skill_md_uri("PATH" if ref is None else ref.served_path)))

    async def _search(self, request: Request) -> Response:
        """The search of ``npx skills find``, with ``SKILLS_API_URL``. ``source`` is what its ``add`` takes."""
        try:
            limit = parse_limit(request, _MATCHES, _MOST_MATCHES)
            words = [term[0] for term in parse_query(request.query_params.get("q", "")).terms]
            matches = await self._store.search(current_identity(), words, limit) if words else ()
        except SkillwireError as error:
            return failure(error)
        url = self._url or str(request.base_url).rstrip("/")
        found = [
            {"id": match.path, "name": match.name, "source": f"{url}/{match.path}", "installs": 0}
            for match in matches
        ]
        return JSONResponse({"skills": found}, headers=SAFE)


def _reference(place: str) -> SkillRef | None:
    """The version that an address names: ``acme/refunds``, ``acme/refunds@1.2.0`` or ``acme/@1.2.0/refunds``.

    ``npx skills find`` prints ``acme/refunds@refunds``, with the name of the skill. That is the stable version.
    """
    ref = parse_served_path(place)
    if ref is None:
        try:
            ref = parse_reference(place)
        except FormatError:
            return None
    return SkillRef(ref.path, channel=STABLE) if ref.channel == ref.name else ref


def _index(release: Release, archive: str) -> bytes:
    description = str(release.manifest.frontmatter.get("description", ""))
    return index_document(
        [
            index_entry(
                SkillRef(release.path).name,
                description,
                archive,
                version=release.version,
                yanked=release.yanked,
                deprecated=release.deprecated,
                instead=release.instead,
            )
        ]
    )


def _response(request: Request, data: bytes, digest: str, media_type: str, keep: str) -> Response:
    tag, scope = f'"{digest}"', "private" if current_identity().principals else "public"
    headers = {**SAFE, "Cache-Control": f"{scope}, {keep}", "ETag": tag, "Vary": "Authorization"}
    known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    if tag in known:
        return Response(status_code=304, headers=headers)
    return Response(data, headers=headers, media_type=media_type)
