"""``/history/…``: the versions of a skill, who decided about each, and the differences between any two.

A version is a content that a user decided about, or the current one. The log has its digests, and the cache has
the files that were approved. No server receives a request for an old version.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from anyio import to_thread
from starlette.routing import Route

from skillwire.errors import NotFoundError, OriginError
from skillwire.skill.approval import claimed_contents, file_digests, fingerprint, frontmatter_digest, has_contents
from skillwire.skill.uri import path_in_skill
from skillwire.store.records import DECISIONS
from skillwire.store.store import log_pages
from skillwire.web.desk.diff import FileChange, compare
from skillwire.web.desk.reader import HeldFiles
from skillwire.web.desk.responses import named_skill, skill_url

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from skillwire.host.host import SkillHost
    from skillwire.host.origins import NamedEntry
    from skillwire.skill.approval import Contents
    from skillwire.store.records import LogLine
    from skillwire.web.desk.app import Desk

MAX_COMPARED = 50
_MAX_FILES = 1000
_MAX_EVENTS = 2000
_COLOUR_SECONDS = 2.0  # for all files of a page

_NOT_KNOWN = "the lines cannot be compared, because one of the two versions is not cached; read the whole file"
_TOO_MANY = "not compared, because too many files changed; read the whole file"


@dataclass(frozen=True, slots=True)
class KnownVersion:
    """One content of a skill, with the decisions about it, newest first."""

    contents: Contents
    events: tuple[LogLine, ...] = ()
    is_current: bool = False

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the content."""
        return fingerprint(self.contents)


async def list_versions(host: SkillHost, label: str, uri: str, skill: NamedEntry | None) -> list[KnownVersion]:
    """The known versions of a skill, the current one first, then by their latest decision."""
    found: dict[str, KnownVersion] = {}
    if skill is not None and has_contents(skill.entry):
        current = KnownVersion(claimed_contents(skill.entry), is_current=True)
        found[current.fingerprint] = current
    approval = await host.store.approval(label, uri)
    events: list[LogLine] = []
    async for lines in log_pages(host.store, origin=label, uri=uri, what=DECISIONS):
        events += lines
        if len(events) >= _MAX_EVENTS:
            break
    for line in events:
        contents = frozenset((each, digest) for each, digest in line.facts.get("contents", ()))
        key = fingerprint(contents) if contents else str(line.facts.get("fingerprint", ""))
        if approval is not None and key == approval.fingerprint:
            contents = approval.contents
        known = found.get(key)
        if known is not None:
            found[key] = replace(known, events=(*known.events, line))
        elif contents:  # older lines of the log do not have it
            found[key] = KnownVersion(contents, (line,))
    return list(found.values())


async def read_version(
    host: SkillHost, skill: NamedEntry | None, place: tuple[str, str], contents: Contents, held: HeldFiles
) -> dict[str, bytes]:
    """The files of a version by path, as far as they are among the current ones in ``held``, or cached."""
    found: dict[str, bytes] = {}
    label, uri = place
    for file, digest in sorted(file_digests(contents).items())[:_MAX_FILES]:
        resource = None if skill is None else skill.entry.resource(file)
        data = held.files[file].data if file in held.files and resource and resource.digest == digest else None
        if data is None and host.cache is not None:
            data = await to_thread.run_sync(host.cache.get, label, file, digest)
        if data is not None:
            found[path_in_skill(uri, file)] = data
    return found


@dataclass(frozen=True, slots=True)
class Comparison:
    """The differences between two versions."""

    files: tuple[FileChange, ...] = ()
    has_other_frontmatter: bool = False

    def __bool__(self) -> bool:
        return bool(self.files) or self.has_other_frontmatter

    @property
    def plus(self) -> int:
        """The number of added lines."""
        return sum(file.plus for file in self.files)

    @property
    def minus(self) -> int:
        """The number of removed lines."""
        return sum(file.minus for file in self.files)


def compare_versions(
    uri: str,
    old: Contents,
    new: Contents,
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    unknown: str = _NOT_KNOWN,
) -> Comparison:
    """Every added, removed or changed file, ``SKILL.md`` first, with a diff if both of its versions are known.

    Run it in a thread, because a server chooses the amount.
    """
    old_files, new_files = file_digests(old), file_digests(new)
    changed = {each for each, _ in old_files.items() ^ new_files.items()}
    found, until = list[FileChange](), time.monotonic() + _COLOUR_SECONDS
    for each in sorted(changed, key=lambda each: (each != uri, each)):
        path = path_in_skill(uri, each)
        is_known = (each not in old_files or path in before) and (each not in new_files or path in after)
        if len(found) >= MAX_COMPARED or not is_known:
            kind = "added" if each not in old_files else "removed" if each not in new_files else "changed"
            found.append(FileChange(path, kind, note=unknown if not is_known else _TOO_MANY))
            continue
        texts = before.get(path) if each in old_files else None, after.get(path) if each in new_files else None
        found.append(compare(path, *texts, in_colour=time.monotonic() < until))
    return Comparison(tuple(found), frontmatter_digest(old) != frontmatter_digest(new))


def _chosen(versions: Sequence[KnownVersion], name: str, default: int) -> KnownVersion | None:
    """The version with a fingerprint, or the one at the position ``default``."""
    named = next((each for each in versions if name and each.fingerprint == name), None)
    return named or (versions[default] if not name and default < len(versions) else None)


def routes(desk: Desk) -> list[BaseRoute]:
    """The history of a skill."""

    async def history(request: Request) -> Response:
        label, uri = named_skill(request)
        try:
            skill = await desk.requested_skill(request)
        except (NotFoundError, OriginError):
            skill = None
        versions = await list_versions(desk.host, label, uri, skill)
        query = request.query_params
        new = _chosen(versions, query.get("to", ""), 0)
        default = versions.index(new) + 1 if new is not None else len(versions)
        old = _chosen(versions, query.get("from", ""), default)
        comparison = None
        if new is not None and old is not new:
            held = HeldFiles() if skill is None else await desk.reader.read_all(skill)
            contents = frozenset[tuple[str, str]]() if old is None else old.contents
            before = await read_version(desk.host, skill, (label, uri), contents, held)
            after = await read_version(desk.host, skill, (label, uri), new.contents, held)
            comparison = await to_thread.run_sync(compare_versions, uri, contents, new.contents, before, after)
        place = skill_url(label, uri, "history")
        between = {"from": old.fingerprint if old else "", "to": new.fingerprint if new else ""}
        return await desk.show(
            request,
            "desk/history.html",
            label=label,
            uri=uri,
            name=uri if skill is None else skill.entry.name,
            back=skill_url(label, uri),
            place=place,
            here=skill_url(label, uri, "history", **{key: value for key, value in between.items() if value}),
            versions=versions,
            old=old,
            new=new,
            comparison=comparison,
            lines=query.get("lines", ""),
        )

    return [Route("/history/{origin}/{skill:path}", history)]
