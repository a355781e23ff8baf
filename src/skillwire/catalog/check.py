"""Checks skills on disk: all problems of a scan, and problems in the text of skills.

Checks one ``SKILL.md``, one skill (folder or archive), or a whole tree. Files are opened as safely as for serving.
Most of the time is spent on Markdown, so several processes check the skills of a large tree.
"""

from __future__ import annotations

import os
import signal
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from skillwire.catalog.archive import ArchiveCatalog, is_archive, local_catalog
from skillwire.catalog.safe_open import read_below
from skillwire.errors import LimitError, NotFoundError
from skillwire.limits import DEFAULT_LIMITS, MIB
from skillwire.skill.check import check_skill, source_line
from skillwire.skill.uri import SKILL_MD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from skillwire.catalog.snapshot import Snapshot
    from skillwire.skill.diagnostics import Diagnostic

    Read = Callable[[str], bytes | None]  # the bytes of a file, if it can be read

_PARALLEL_BYTES = MIB  # starting processes takes longer than checking less text
_CHUNK = 8  # skills that a process gets at once


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of a check: the problems, the number of skills, and the ignored paths."""

    given: Path
    base: str
    problems: tuple[Diagnostic, ...]
    skills: int
    ignored: tuple[str, ...]

    def place(self, path: str) -> Path:
        """The location on disk of ``path``, from a problem or from ``ignored``, under the checked path."""
        inside = path[len(self.base) :].lstrip("/") if self.base else path
        return self.given / inside

    @property
    def errors(self) -> int:
        """The number of problems that break a rule."""
        return sum(problem.severity == "error" for problem in self.problems)

    @property
    def warnings(self) -> int:
        """The number of problems that are only likely to cause trouble."""
        return sum(problem.severity == "warning" for problem in self.problems)

    @property
    def notes(self) -> int:
        """The number of finds that are usually intended."""
        return len(self.problems) - self.errors - self.warnings


def check_path(path: str | os.PathLike[str]) -> CheckReport:
    """Check a ``SKILL.md``, a skill's folder, an archive or a tree. ``NotFoundError`` for other paths."""
    return Checker(path).run()


class Checker:
    """A check that can be repeated. Files that did not change are not hashed again.

    More than one of ``processes`` needs a program whose main module can be imported, as for ``multiprocessing``.
    """

    def __init__(self, path: str | os.PathLike[str], *, processes: int = 1) -> None:
        given = Path(path)
        if os.path.isfile(given) and given.name.lower() == SKILL_MD.lower():
            given = given.parent
        elif is_archive(given) and os.path.isfile(given):
            pass
        elif not os.fspath(path) or not os.path.isdir(given):  # an empty path would mean the current folder
            raise NotFoundError(
                "path-unknown",
                f"{str(path)!r} is neither a folder nor a SKILL.md nor an archive",
                "give the folder of a skill, a folder of skills, or the path of a SKILL.md or an archive",
            )
        self._given = given
        self._catalog = local_catalog(given)
        self._processes = processes

    @property
    def root(self) -> Path:
        """The checked folder or archive."""
        return self._catalog.root

    def run(self, on_skill: Callable[[int], None] | None = None) -> CheckReport:
        """Check everything once."""
        self._catalog.load(on_skill)
        snapshot = self._catalog.snapshot()
        problems = snapshot.problems()
        skills = _texts(snapshot)
        count = 0
        for checked, more in self._check(skills):
            problems += more
            count += checked
            if on_skill is not None:
                on_skill(count)
        named = {problem.skill for problem in problems if problem.skill} | {skill.path for skill in skills}
        unique = dict.fromkeys(self._with_sources(problems))
        found = tuple(sorted(unique, key=_place))
        return CheckReport(self._given, self._catalog.base, found, len(named), tuple(snapshot.ignored()))

    def _check(self, skills: list[_Texts]) -> Iterator[tuple[int, list[Diagnostic]]]:
        """The problems in the texts of some skills and the number of these skills, until all are checked."""
        check = partial(_check_skills, self._reader())
        chunks = [skills[start : start + _CHUNK] for start in range(0, len(skills), _CHUNK)]
        is_small = sum(skill.size for skill in skills) < _PARALLEL_BYTES
        if self._processes < 2 or is_small or isinstance(self._catalog, ArchiveCatalog):
            yield from ((len(chunk), check(chunk)) for chunk in chunks)
            return
        # Ctrl-C is for this process. "spawn" works with threads, on every system.
        ignore = (signal.SIGINT, signal.SIG_IGN)
        pool = ProcessPoolExecutor(self._processes - 1, get_context("spawn"), signal.signal, ignore)
        try:
            waiting = [(chunk, pool.submit(check, chunk)) for chunk in chunks]
            # This process checks too, from the end, because a new process has to import everything first.
            for chunk, result in reversed(waiting):
                yield len(chunk), check(chunk) if result.cancel() else result.result()
        finally:
            pool.shutdown(cancel_futures=True)

    def _reader(self) -> Read:
        if isinstance(self._catalog, ArchiveCatalog):
            return self._catalog.data_at
        return partial(_read, str(self.root), self._catalog.base, DEFAULT_LIMITS.max_skill_md_bytes)

    def _with_sources(self, problems: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
        """The problems with the lines of text that they are about."""
        read = self._reader()
        for problem in problems:
            if problem.line is None or problem.source is not None:
                yield problem
            elif (data := read(problem.file)) is not None:
                yield replace(problem, source=source_line(data.decode(errors="replace"), problem.line))
            else:
                yield problem


class _Texts(NamedTuple):
    """The files of one skill that are checked, by path inside the skill, and the names of all of its files."""

    path: str
    files: list[str]
    names: set[str]
    size: int


def _texts(snapshot: Snapshot) -> list[_Texts]:
    """What to check for each served skill. The files of a nested skill are checked with that skill."""
    found: list[_Texts] = []
    for path, record in snapshot.records():
        below = (each for each in snapshot.paths_below(path) if each != path and snapshot.record(each) is not None)
        nested = tuple(f"{each[len(path) + 1 :]}/" for each in below)
        sizes = {
            file: known.size
            for file, known in record.files.items()
            if known.size <= DEFAULT_LIMITS.max_checked_text and not file.startswith(nested)
        }
        found.append(_Texts(path, list(sizes), {"", *record.files, *record.folders}, sum(sizes.values())))
    return found


def _check_skills(read: Read, skills: Iterable[_Texts]) -> list[Diagnostic]:
    problems: list[Diagnostic] = []
    for skill in skills:
        texts = ((file, data) for file in skill.files if (data := read(f"{skill.path}/{file}")) is not None)
        problems += check_skill(skill.path, texts, skill.names)
    return problems


def _read(root: str, base: str, most: int, path: str) -> bytes | None:
    try:
        return read_below(root, path[len(base) + 1 :] if base else path, most)[1]
    except (OSError, LimitError):
        return None


def _place(problem: Diagnostic) -> tuple[str, int, int, str]:
    return problem.file, problem.line or 0, problem.column or 0, problem.reference
