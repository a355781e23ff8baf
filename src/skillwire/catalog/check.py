"""Checks skills on disk: all problems of a scan, and problems in the text of skills.

Checks one ``SKILL.md``, one skill (folder or archive), or a whole tree. Files are opened as safely as for serving.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from skillwire.catalog.archive import ArchiveCatalog, is_archive, local_catalog
from skillwire.catalog.safe_open import open_folder, open_root, read_file_at
from skillwire.errors import FormatError, LimitError, NotFoundError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.check import SkillText, check_body, check_text, source_line
from skillwire.skill.frontmatter import parse_skill_md
from skillwire.skill.uri import SKILL_MD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from skillwire.catalog.snapshot import SkillRecord
    from skillwire.skill.diagnostics import Diagnostic


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
        return len(self.problems) - self.errors


def check_path(
    path: str | os.PathLike[str],
    *,
    limits: Limits = DEFAULT_LIMITS,
    on_skill: Callable[[int], None] | None = None,
) -> CheckReport:
    """Check a ``SKILL.md``, a skill's folder, an archive or a tree. ``NotFoundError`` for other paths."""
    return Checker(path, limits=limits).run(on_skill)


class Checker:
    """A check that can be repeated. Files that did not change are not hashed again."""

    def __init__(self, path: str | os.PathLike[str], *, limits: Limits = DEFAULT_LIMITS) -> None:
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
        self._catalog = local_catalog(given, limits=limits)
        self._limits = limits

    @property
    def root(self) -> Path:
        """The checked folder or archive."""
        return self._catalog.root

    def run(self, on_skill: Callable[[int], None] | None = None) -> CheckReport:
        """Check everything once."""
        self._catalog.load(on_skill)
        snapshot = self._catalog.snapshot()
        problems = snapshot.problems()
        for count, (path, record) in enumerate(snapshot.records(), 1):
            problems += self._check_skill(path, record)
            if on_skill is not None:
                on_skill(count)
        unique = dict.fromkeys(self._with_source(problem) for problem in problems)
        skills = {problem.skill for problem in problems if problem.skill} | {
            path for path, _ in snapshot.records()
        }
        return CheckReport(
            self._given,
            self._catalog.base,
            tuple(sorted(unique, key=_place)),
            len(skills),
            tuple(snapshot.ignored()),
        )

    def _check_skill(self, path: str, record: SkillRecord) -> Iterator[Diagnostic]:
        names = {"", *record.files, *record.folders}
        for file, known in record.files.items():
            owner = self._owner(path, file)
            if owner != path or known.size > self._limits.max_checked_text:
                continue  # files of a nested skill are checked with that skill
            data = self._read(f"{path}/{file}")
            text = None if data is None else _as_text(data)
            if data is None or text is None:
                continue
            yield from check_text(SkillText(path, file, text, names))
            if file == SKILL_MD:
                yield from self._check_body(path, data)

    def _check_body(self, path: str, data: bytes) -> Iterator[Diagnostic]:
        try:
            document = parse_skill_md(data, self._limits)
        except FormatError:  # changed since the scan; the next run reports it
            return
        yield from check_body(path, document.body, document.body_line)

    def _owner(self, path: str, file: str) -> str:
        folder = f"{path}/{file}".rpartition("/")[0]
        located = self._catalog.snapshot().locate(folder)
        return located[0] if located else path

    def _with_source(self, problem: Diagnostic) -> Diagnostic:
        if problem.line is None or problem.source is not None:
            return problem
        data = self._read(problem.file)
        text = None if data is None else data.decode(errors="replace")
        return problem if text is None else replace(problem, source=source_line(text, problem.line))

    def _read(self, path: str) -> bytes | None:
        if isinstance(self._catalog, ArchiveCatalog):
            return self._catalog.data_at(path)
        *folders, name = self._catalog.on_disk(path).split("/")
        try:
            with open_root(str(self.root)) as root, open_folder(root, folders) as folder:
                return read_file_at(folder, name, self._limits.max_skill_md_bytes)[1]
        except (OSError, LimitError):
            return None


def _as_text(data: bytes) -> str | None:
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _place(problem: Diagnostic) -> tuple[str, int, int, str]:
    return problem.file, problem.line or 0, problem.column or 0, problem.reference
