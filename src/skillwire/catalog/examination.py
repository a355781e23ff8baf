"""What the files of a skill contain: the review, and the problems that ``check`` finds in its text.

Nothing is read from another server without a request of the user (V5): ``Examiner`` reads only skills whose bytes
are on this machine. Its results are cached by content, so that a list of thousands of skills shows them at once.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from anyio import to_thread

from skillwire.errors import SkillwireError
from skillwire.limits import DEFAULT_LIMITS, MIB
from skillwire.skill.approval import claimed_contents, fingerprint
from skillwire.skill.check import SkillText, check_text
from skillwire.skill.review import Review, review_files
from skillwire.skill.uri import SKILL_MD, parse_uri, path_in_skill

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillwire.catalog.contract import Catalog
    from skillwire.skill import Diagnostic, SkillEntry
    from skillwire.skill.review import Risk

_MAX_BYTES = 32 * MIB  # of one skill; files beyond it are counted as not searched
_MAX_SKILLS = 20_000


async def read_files(catalog: Catalog, entry: SkillEntry) -> tuple[dict[str, bytes], frozenset[str]]:
    """The files of a skill that can be read, by path inside it, and which of them are executable."""
    files, left = dict[str, bytes](), _MAX_BYTES
    for uri in dict.fromkeys([entry.uri, *(file.uri for file in entry.files)]):
        known = entry.resource(uri)
        left -= (known.size or 0) if known else 0
        if left >= 0:
            try:
                files[path_in_skill(entry.uri, uri)] = (await catalog.read_file(uri)).data
            except SkillwireError:
                continue  # counted as not searched
    executables = set[str]()
    if entry.local:
        try:
            async for child in catalog.walk(str(parse_uri(entry.uri).parent)):
                if child.executable:
                    executables.add(path_in_skill(entry.uri, child.uri))
        except SkillwireError:
            pass  # the endings and the first lines of files are known
    return files, frozenset(executables)


async def review_skill(catalog: Catalog, entry: SkillEntry) -> Review:
    """Read the files of a skill, and return the facts in them."""
    files, executables = await read_files(catalog, entry)
    return await to_thread.run_sync(review_files, entry, files.items(), executables)


class Examined(NamedTuple):
    """The risk of one content of a skill, and the problems that ``check`` finds in its text."""

    risk: Risk
    problems: tuple[Diagnostic, ...]

    @property
    def others(self) -> list[Diagnostic]:
        """The problems that the risk does not show: hidden text is a part of it."""
        return [each for each in self.problems if each.severity != "note" and each.reference != "hidden-text"]


class Examiner:
    """Examines skills once per content."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[SkillEntry, str, Examined]] = {}  # by URI

    def known(self, entry: SkillEntry) -> Examined | None:
        """The result for exactly this content, if it was examined."""
        found = self._known.get(entry.uri)
        if found is None or found[0] is entry:
            return None if found is None else found[2]
        if found[1] != fingerprint(claimed_contents(entry)):
            return None
        self._known[entry.uri] = entry, *found[1:]  # the next comparison is by identity
        return found[2]

    async def examine(
        self, catalog: Catalog, entries: Sequence[SkillEntry], seconds: float
    ) -> Mapping[str, Examined]:
        """The results by URI. After ``seconds``, only those that are known. Skills of other servers have none."""
        until, found = time.monotonic() + seconds, dict[str, Examined]()
        for entry in entries:
            known = self.known(entry)
            if known is None and entry.local and not entry.is_dynamic and time.monotonic() < until:
                files, executables = await read_files(catalog, entry)
                known = await to_thread.run_sync(_examined, entry, files, executables)
                while len(self._known) >= _MAX_SKILLS:
                    self._known.pop(next(iter(self._known)))
                self._known[entry.uri] = entry, fingerprint(claimed_contents(entry)), known
            if known is not None:
                found[entry.uri] = known
        return found


def _examined(entry: SkillEntry, files: Mapping[str, bytes], executables: frozenset[str]) -> Examined:
    risk = review_files(entry, files.items(), executables).risk
    return Examined(risk, tuple(_text_problems(entry, files)))


def _text_problems(entry: SkillEntry, files: Mapping[str, bytes]) -> Iterator[Diagnostic]:
    """What ``check`` finds. The files of a nested skill are checked with that skill."""
    paths = [path_in_skill(entry.uri, file.uri) for file in entry.files] or list(files)
    parts = [path.split("/") for path in paths]
    names = {"/".join(words[:count]) for words in parts for count in range(len(words) + 1)}
    nested = tuple(path.removesuffix(SKILL_MD) for path in paths if path.endswith(f"/{SKILL_MD}"))
    for path, data in files.items():
        if len(data) > DEFAULT_LIMITS.max_checked_text or path.startswith(nested) or b"\0" in data:
            continue
        try:
            text = data.decode()
        except UnicodeDecodeError:
            continue  # not text
        yield from check_text(SkillText(entry.path, path, text, names))
