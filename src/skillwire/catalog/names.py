"""Finds skills by name, for dialects and tools without URIs (N1, P1, M1).

A unique name identifies a skill. If several skills have the same name, each is labelled by its path, and the name
alone is refused with the candidates: no skill is dropped, preferred or shadowed. The label of a skill always finds
it. A path or a URI always works, for unlisted skills too. Text that is the name of one skill and the path of
another needs the URI.
"""

from __future__ import annotations

import math
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING

import anyio
from anyio import lowlevel

from skillwire.catalog.contract import LargeCatalog
from skillwire.errors import FormatError, NotFoundError, ProtocolError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.hidden import encode_hidden, is_seen
from skillwire.skill.uri import DEFAULT_SCHEME, SKILL_MD, parse_path, parse_uri, skill_md_uri

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from skillwire.catalog.contract import Catalog
    from skillwire.skill import SkillEntry

    Paths = dict[str, tuple[str, ...]]

_SUGGESTIONS = 5
_MOST_COMPARED = 512
_MOST_CANDIDATES = 20
_ATTEMPTS = 3
_PAUSE_EVERY = 256  # skills, so that other tasks can run


async def find_skill(catalog: Catalog, text: str, limits: Limits = DEFAULT_LIMITS) -> SkillEntry:
    """The current entry of the skill with this name, path or URI. ``NotFoundError`` suggests similar names.

    Unlike ``SkillNames``, it collects nothing in advance: a path needs one request, and only a name needs the
    listing. It works with URIs of any scheme. After a match the rest of the listing is only read to see whether
    the name is ambiguous, for a limited time: a listing may never end (B3).
    """
    if "://" in text:
        uri = text.removesuffix("/")
        return await catalog.get_skill(uri if uri.endswith(f"/{SKILL_MD}") else f"{uri}/{SKILL_MD}")
    wanted = text.strip("/").removesuffix(f"/{SKILL_MD}")
    with suppress(NotFoundError, FormatError, ProtocolError):
        return await catalog.get_skill(skill_md_uri(parse_path(wanted)))
    entries: list[SkillEntry] = []
    with anyio.CancelScope() as scope:
        async for entry in catalog.incoming():
            entries.append(entry)
            if wanted in {entry.path, entry.name} and scope.deadline == math.inf:
                scope.deadline = anyio.current_time() + limits.after_match_seconds
    found = [entry for entry in entries if entry.path == wanted] or [e for e in entries if e.name == wanted]
    if len(found) == 1:
        return await catalog.get_skill(found[0].uri)
    if found:
        more = f" and {len(found) - _MOST_CANDIDATES} more" if len(found) > _MOST_CANDIDATES else ""
        raise NotFoundError(
            "skill-ambiguous",
            f"{text!r:.100} matches {len(found)} skills:"
            f" {', '.join(entry.uri for entry in found[:_MOST_CANDIDATES])}{more}",
            "use a path or a URI",
        )
    raise _unknown(wanted, sorted({name for entry in entries for name in (entry.path, entry.name)}))


class SkillNames:
    """The names in ``catalog``. They are collected on first use, and again after skills were added or removed.

    A ``LargeCatalog`` is asked for the names that matter instead.
    """

    def __init__(self, catalog: Catalog, scheme: str = DEFAULT_SCHEME) -> None:
        self._catalog = catalog
        self._scheme = scheme
        self._paths: Paths | None = None  # by name
        self._turn = anyio.Lock()
        self._watch = catalog.changes()
        if isinstance(catalog, LargeCatalog):  # nothing is collected, so no change matters
            self._watch.close()

    def close(self) -> None:
        """Stop watching the catalog."""
        self._watch.close()

    async def label(self, entry: SkillEntry) -> str:
        """The label of ``entry``."""
        return (await self.labels([entry]))[0]

    async def labels(self, entries: Sequence[SkillEntry]) -> list[str]:
        """The label of each entry: its name if it is unambiguous, else its path, else its URI.

        A name or path with hidden characters is not used; in the URI they are encoded (B6).
        """
        paths = await self._paths_of({label for entry in entries for label in (entry.name, entry.path)})
        return [await self._label(entry, paths) for entry in entries]

    async def _label(self, entry: SkillEntry, paths: Paths) -> str:
        for label in (entry.name, entry.path):
            meant = await self._meant(label, paths)
            if meant == [entry.path] and is_seen(label):
                return label
        return encode_hidden(entry.uri)

    async def find(self, name: str) -> SkillEntry:
        """The skill for ``name``: a name, a path or a URI. ``NotFoundError`` suggests similar names."""
        if "://" in name:
            return await self._catalog.get_skill(name)
        wanted = name.removesuffix(f"/{SKILL_MD}").strip("/")
        paths = await self._paths_of({wanted})
        meant = await self._meant(wanted, paths)
        if not meant:
            raise _unknown(name, paths)
        if len(meant) > 1:
            paths = await self._paths_of({*paths, *meant[:_MOST_CANDIDATES]})
            raise NotFoundError(
                "skill-ambiguous", f"several skills are named {name!r:.100}", await self._candidates(meant, paths)
            )
        try:
            return await self._catalog.get_skill(skill_md_uri(meant[0], self._scheme))
        except NotFoundError as error:  # removed meanwhile
            raise _unknown(name, paths) from error

    async def _meant(self, name: str, paths: Paths) -> list[str]:
        """The paths of all skills that ``name`` may refer to.

        If several skills have that name, and it is the path of one of them, it means that one.
        """
        named = list(paths.get(name, ()))
        if name in named:
            return [name]
        return [*named, name] if await self._is_at(name) else named

    async def _is_at(self, path: str) -> bool:
        with suppress(FormatError, NotFoundError):
            uri = str(parse_uri(skill_md_uri(path, self._scheme)))
            return await self._catalog.peek_skill(uri) is not None
        return False

    async def _candidates(self, meant: list[str], paths: Paths) -> str:
        labels: list[str] = []
        for path in meant[:_MOST_CANDIDATES]:
            alone = await self._meant(path, paths) == [path]
            labels.append(path if alone else skill_md_uri(path, self._scheme))
        return f"use one of {', '.join(labels)}"

    async def _paths_of(self, names: Collection[str]) -> Paths:
        """The paths of at least the skills with these names."""
        if isinstance(self._catalog, LargeCatalog):
            return {name: tuple(paths) for name, paths in (await self._catalog.named(names)).items()}
        async with self._turn:
            change = await self._watch.pending()
            if change.added or change.removed:
                self._paths = None
            paths = self._paths
            for _ in range(_ATTEMPTS if paths is None else 0):
                paths = await self._gather()
                change = await self._watch.pending()
                if not (change.added or change.removed):  # nothing was added or removed meanwhile
                    self._paths = paths
                    break
            return paths or {}  # if the catalog keeps changing, the last result, which is not stored

    async def _gather(self) -> Paths:
        paths: Paths = {}
        count = 0
        async for entry in self._catalog.entries():
            paths[entry.name] = (*paths.get(entry.name, ()), entry.path)
            count += 1
            if count % _PAUSE_EVERY == 0:
                await lowlevel.checkpoint()
        return paths


def _unknown(name: str, names: Iterable[str]) -> NotFoundError:
    known = list(names)
    if len(known) > _MOST_COMPARED:  # comparing is slow, and most typing errors do not change the beginning
        known = [other for other in known if other.startswith(name[:2])][:_MOST_COMPARED]
    near = get_close_matches(name[:100], known, _SUGGESTIONS, 0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else "list the skills to see their names"
    return NotFoundError("skill-unknown", f"no skill is named {name!r:.100}", hint)
