"""Verified content of any catalog: one ``SKILL.md``, a whole skill, or everything (R2, V1, V2, V4).

``skillwire verify`` uses ``verify_catalog`` to check all entries and all bytes of a server, and reports the rule
for each failure. It is for maintainers and pipelines; a host never reads everything (V5).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, NamedTuple

import anyio
from anyio import lowlevel

from skillwire.errors import FormatError, LimitError, SkillwireError, UpstreamError, VerificationError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.approval import has_contents
from skillwire.skill.entry import digest_of
from skillwire.skill.frontmatter import parse_skill_md
from skillwire.skill.uri import SKILL_MD, SkillUri, parse_uri
from skillwire.skill.verify import verify_file, verify_frontmatter, verify_skill_md

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillwire.catalog.contract import Catalog
    from skillwire.skill import Resource, SkillEntry
    from skillwire.skill.frontmatter import SkillDocument

_ATTEMPTS = 3
_AT_ONCE = 8
_SECONDS_PER_SKILL = 1.0  # for its directories, in addition to the time for all skills together


class Failure(NamedTuple):
    """A false claim, or information that is missing for a check (``is_gap``)."""

    rule: str
    reference: str
    uri: str
    message: str
    hint: str
    is_gap: bool = False


@dataclass
class VerifyReport:
    """The number of checks per rule, and the failures."""

    skills: int = 0
    files: int = 0
    size: int = 0
    checked: Counter[str] = field(default_factory=Counter[str])
    failures: list[Failure] = field(default_factory=list[Failure])

    @property
    def false_claims(self) -> list[Failure]:
        """Claims that are false."""
        return [failure for failure in self.failures if not failure.is_gap]

    @property
    def gaps(self) -> list[Failure]:
        """Checks that were not possible because information is missing."""
        return [failure for failure in self.failures if failure.is_gap]


async def read_current(catalog: Catalog, entry: SkillEntry) -> tuple[SkillEntry, SkillDocument]:
    """The current entry and its parsed ``SKILL.md``. ``UpstreamError`` if it keeps changing or is invalid (R2)."""
    for _ in range(_ATTEMPTS):
        data = (await catalog.read_file(entry.uri)).data
        claimed = entry.resource(entry.uri)
        if claimed is None or claimed.digest in (None, digest_of(data)):
            break
        entry = await catalog.get_skill(entry.uri)
    else:
        raise UpstreamError("changing", f"the skill {entry.uri!r:.300} keeps changing", "try again")
    try:
        document = parse_skill_md(data)
    except FormatError as error:
        message = f"the SKILL.md of {entry.uri!r:.300} cannot be read: {error.message}"
        raise UpstreamError(error.reference, message, error.hint) from error
    return replace(entry, frontmatter=document.frontmatter), document


async def read_verified(
    catalog: Catalog,
    entry: SkillEntry,
    *,
    limits: Limits = DEFAULT_LIMITS,
    on_file: Callable[[int], None] | None = None,
) -> dict[str, bytes]:
    """Every file of ``entry`` by path inside the skill, verified (V1, V2, V4)."""
    check_promises(entry, limits)
    files: dict[str, bytes] = {}
    for count, resource in enumerate(entry.files, 1):
        files[resource.path] = await read_verified_file(catalog, entry, resource, limits)
        if on_file is not None:
            on_file(count)
    return files


async def read_verified_file(
    catalog: Catalog, entry: SkillEntry, resource: Resource, limits: Limits = DEFAULT_LIMITS
) -> bytes:
    """One file of ``entry``, verified; of ``SKILL.md`` also the frontmatter."""
    await lowlevel.checkpoint()  # a catalog that answers without waiting would block other tasks
    data = (await catalog.read_file(resource.uri)).data
    if resource.path == SKILL_MD:
        return verify_skill_md(entry, data, limits).data
    return verify_file(entry, resource.uri, data, limits).data


def check_promises(entry: SkillEntry, limits: Limits = DEFAULT_LIMITS) -> None:
    """Refuse an entry whose files cannot all be verified, or are too large (V7, B1)."""
    if not has_contents(entry):
        missing = (
            "its bytes are generated on each read"
            if entry.is_dynamic
            else "its server does not send digests of all files"
        )
        raise VerificationError(
            "skill-unverifiable",
            f"{entry.uri!r:.300} cannot be verified completely: {missing}",
            "the server must send a digest of every file",
            rule="V7",
        )
    if len(entry.files) > limits.max_resources or entry.size > limits.max_skill_bytes:
        raise LimitError(
            "skill-too-large",
            f"{entry.uri!r:.300} has {len(entry.files)} files and {entry.size} bytes, more than the limits",
            "raise Limits.max_skill_bytes if you trust the server",
            rule="B1",
        )


async def verify_catalog(
    catalog: Catalog, *, limits: Limits = DEFAULT_LIMITS, on_file: Callable[[int], None] | None = None
) -> VerifyReport:
    """Read and check all of ``catalog``, a few files at a time."""
    work = _Verification(catalog, limits, on_file)
    async for entry in catalog.entries():
        await work.check(entry)
    for problem in await catalog.problems():
        if problem.refuses:
            work.report.failures.append(
                Failure(problem.rule, problem.reference, problem.file, problem.message, problem.hint)
            )
    return work.report


class _Verification:
    def __init__(self, catalog: Catalog, limits: Limits, on_file: Callable[[int], None] | None) -> None:
        self.report = VerifyReport()
        self._catalog = catalog
        self._limits = limits
        self._on_file = on_file
        self._room = anyio.CapacityLimiter(_AT_ONCE)
        self._seconds = limits.max_listing_seconds  # time that is left for the directories of all skills

    async def check(self, entry: SkillEntry) -> None:
        """Check one entry: ``get_skill``, its size, its files, its directories."""
        self.report.skills += 1
        self.report.checked["E1"] += 1
        await self._check_get(entry)
        self._check_size(entry)
        if entry.is_dynamic:
            self._gap(
                "V7", "skill-dynamic", entry.uri, "the skill is generated on each read and cannot be verified"
            )
            return
        for gap in sorted(entry.gaps):
            self._gap("E2", f"{gap}-unpromised", entry.uri, f"incomplete information from the server: {gap}")
        async with anyio.create_task_group() as group:
            for resource in entry.files:
                group.start_soon(self._check_file, entry, resource)
        if entry.is_complete and self._seconds > 0:
            await self._check_directories(entry)

    async def _check_get(self, entry: SkillEntry) -> None:
        self.report.checked["G1"] += 1
        try:
            fresh = await self._catalog.get_skill(entry.uri)
        except SkillwireError as error:
            self._fail("G1", entry.uri, error)
        else:
            same = set(fresh.files) == set(entry.files) and fresh.frontmatter == entry.frontmatter
            if entry.is_complete and not same:
                self._false("G1", "entry-differs", entry.uri, "get and list return different entries of the skill")

    def _check_size(self, entry: SkillEntry) -> None:
        self.report.checked["E6"] += 1
        if len(entry.files) > self._limits.skill_resources or entry.size > self._limits.skill_bytes:
            self._gap(
                "E6",
                "over-limit",
                entry.uri,
                f"{len(entry.files)} files and {entry.size} bytes: a host may refuse it",
            )

    async def _check_file(self, entry: SkillEntry, resource: Resource) -> None:
        if resource.digest is None:
            return
        async with self._room:
            self.report.checked["V1"] += 1
            try:
                data = (await self._catalog.read_file(resource.uri)).data
                verify_file(entry, resource.uri, data, self._limits)
                if resource.uri == entry.uri:
                    self.report.checked["V4"] += 1
                    verify_frontmatter(entry, data, self._limits)
            except SkillwireError as error:
                self._fail("V1", resource.uri, error)
            else:
                self.report.size += len(data)
            self.report.files += 1
            if self._on_file is not None:
                self._on_file(self.report.files)

    async def _check_directories(self, entry: SkillEntry) -> None:
        """Compare the files in the directories with those of the entry (D1, V2)."""
        listed = {parse_uri(file.uri) for file in entry.files}
        try:
            walked = await self._walked(entry)
        except SkillwireError as error:
            self._fail("D1", entry.uri, error)
            return
        self.report.checked["D1"] += 1
        for uri in sorted(map(str, walked - listed)):
            self._false("V2", "file-unlisted", uri, "a directory contains a file that the entry does not list")
        for uri in sorted(map(str, listed - walked)):
            self._false("D1", "file-hidden", uri, "the entry lists a file that no directory contains")

    async def _walked(self, entry: SkillEntry) -> set[SkillUri]:
        """Every file in the directories. After a limit is exceeded, no further directories are read (B3)."""
        walked, pending, met = set[SkillUri](), [entry.uri.rpartition("/")[0]], 0
        self._seconds += _SECONDS_PER_SKILL
        begun = anyio.current_time()
        with anyio.move_on_after(self._seconds):
            while pending and met <= self._limits.max_entries:
                async for child in self._catalog.children(pending.pop()):
                    met += 1
                    if child.is_directory:
                        pending.append(child.uri)
                    else:
                        walked.add(parse_uri(child.uri))
            if not pending:
                self._seconds -= anyio.current_time() - begun
                return walked
        self._seconds = -inf
        raise LimitError(
            "listing-too-long",
            f"the directories of this skill have more than {self._limits.max_entries} entries, or reading them"
            " took too long; the directories of further skills were not compared",
            "the server must be fixed",
            rule="B3",
        )

    def _fail(self, rule: str, uri: str, error: SkillwireError) -> None:
        self.report.failures.append(Failure(error.rule or rule, error.reference, uri, error.message, error.hint))

    def _false(self, rule: str, reference: str, uri: str, message: str) -> None:
        self.report.failures.append(Failure(rule, reference, uri, message, "the server must be fixed"))

    def _gap(self, rule: str, reference: str, uri: str, message: str) -> None:
        self.report.failures.append(Failure(rule, reference, uri, message, "", is_gap=True))
