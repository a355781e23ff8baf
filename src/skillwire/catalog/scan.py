"""Reads a tree of folders into ``ReadFolder`` values, in one pass that hashes every file once, within all limits.

The walk uses open folders (``safe_open.py``), so a tree that changes during the walk cannot lead outside. A folder
with a ``SKILL.md`` opens a collector. Every file below is added to all open collectors, because an enclosing skill
lists the files of a nested one (E4). A problem is recorded, and the walk continues. A skill is served completely
or not at all, and does not affect other skills (F7).
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from skillwire.catalog.safe_open import (
    LocalFile,
    NotRegularError,
    hash_file_at,
    is_ignored,
    is_still,
    open_folder,
    open_root,
    read_file_at,
)
from skillwire.catalog.settings import SETTINGS_FILE
from skillwire.catalog.snapshot import ReadFolder, apply_rules
from skillwire.errors import LimitError
from skillwire.skill.diagnostics import Diagnostic
from skillwire.skill.uri import SKILL_MD, segment_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillwire.catalog.snapshot import Snapshot
    from skillwire.limits import Limits
    from skillwire.skill.entry import SkillMeta


@dataclass(slots=True)
class _Collector:
    """The content of one skill, collected while the walk is inside its folder."""

    path: str
    known: ReadFolder  # the previous result for this folder
    files: dict[str, LocalFile] = field(default_factory=dict[str, LocalFile])
    folders: set[str] = field(default_factory=set[str])
    problems: list[Diagnostic] = field(default_factory=list[Diagnostic])
    ignored: list[str] = field(default_factory=list[str])
    size: int = 0
    overflowed: bool = False

    def inside(self, path: str) -> str:
        return path[len(self.path) + 1 :]


@dataclass(slots=True)
class Scan:
    """One scan of a tree, or of a part of it. Files that are unchanged since ``previous`` are not read."""

    root: str
    base: str  # the logical path of the root: empty, or its name if the root is itself a skill
    scheme: str
    limits: Limits
    describe: Callable[[str], SkillMeta]
    previous: Snapshot
    fresh: frozenset[str] = frozenset()  # paths that are read even if their stamp is unchanged
    on_skill: Callable[[int], None] | None = None
    found: dict[str, ReadFolder] = field(default_factory=dict[str, ReadFolder])
    # Problems and ignored paths outside of skills, by folder.
    _notes: dict[str, tuple[list[Diagnostic], list[str]]] = field(
        default_factory=dict[str, tuple[list[Diagnostic], list[str]]]
    )
    _entries: int = 0
    _skills: int = 0

    def run(self, path: str) -> dict[str, ReadFolder]:
        """Scan the folder at the logical ``path``. Finds nothing if it does not exist."""
        inside = path[len(self.base) :].strip("/") if self.base else path
        segments = inside.split("/") if inside else []
        if len(segments) > self.limits.max_depth or any(
            segment_problem(segment) or is_ignored(segment, is_folder=True) for segment in segments
        ):
            return self.found  # a full scan would skip it too
        try:
            with open_root(self.root) as root, open_folder(root, segments) as folder:
                self._folder(folder, path, len(segments), ())
        except OSError as error:
            if not segments:
                self._cannot_read(path, error, ())
        for place, (problems, ignored) in self._notes.items():
            known = self.found.get(place, ReadFolder())
            self.found[place] = ReadFolder(
                known.is_skill, known.record, (*known.problems, *problems), (*known.ignored, *ignored)
            )
        return self.found

    def _folder(self, folder: int, path: str, depth: int, outer: tuple[_Collector, ...]) -> None:
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            self._cannot_read(path, error, outer)
            return
        self._entries += len(entries)
        if self._entries > self.limits.max_tree_entries:
            self._report(
                "too-many-entries",
                f"the tree has more than {self.limits.max_tree_entries} files and folders; the rest was not read",
                "serve the folder with the skills, not one far above it",
                path,
                outer,
            )
            return
        collectors = outer
        if any(entry.name == SKILL_MD and entry.is_file(follow_symlinks=False) for entry in entries):
            collectors = (*outer, _Collector(path, self.previous.found(path) or ReadFolder()))
        for entry in entries:
            if (
                collectors is outer or entry.name != SKILL_MD
            ):  # the SKILL.md of a skill is the last: see ``_finish``
                self._entry(folder, entry, f"{path}/{entry.name}" if path else entry.name, depth, collectors)
        if collectors is not outer:
            self._finish(folder, collectors)

    def _entry(
        self, folder: int, entry: os.DirEntry[str], path: str, depth: int, collectors: tuple[_Collector, ...]
    ) -> None:
        is_folder = entry.is_dir(follow_symlinks=False)
        if depth == 0 and entry.name == SETTINGS_FILE and not is_folder:
            return  # settings, never a file of a skill, even if the root is a skill
        if is_ignored(entry.name, is_folder=is_folder):
            self._ignored(path, collectors)
        elif is_folder:
            self._below(folder, entry.name, path, depth, collectors)
        elif entry.is_symlink():
            self._link(folder, entry.name, path, collectors)
        elif not entry.is_file(follow_symlinks=False):
            self._special(entry.name, path, collectors)
        elif collectors:
            self._file(folder, entry.name, path, collectors)
        if entry.name != SKILL_MD and entry.name.lower() == "skill.md" and not is_folder:
            self._report(
                "skill-file-case",
                f"the file is named {entry.name!r}, not 'SKILL.md'",
                "rename it to SKILL.md: names are case-sensitive",
                path,
                collectors[-1:] if collectors and collectors[-1].path == path.rpartition("/")[0] else (),
            )

    def _below(self, folder: int, name: str, path: str, depth: int, collectors: tuple[_Collector, ...]) -> None:
        if depth >= self.limits.max_depth:
            self._report(
                "too-deep",
                f"folders are nested deeper than {self.limits.max_depth}; deeper ones were not read",
                "move the skill up",
                path,
                collectors,
            )
            return
        if not self._has_good_name(name, path, collectors):
            return
        for collector in collectors:
            collector.folders.add(collector.inside(path))
        try:
            with open_folder(folder, (name,)) as below:
                self._folder(below, path, depth + 1, collectors)
        except OSError as error:
            self._cannot_read(path, error, collectors)

    def _file(self, folder: int, name: str, path: str, collectors: tuple[_Collector, ...]) -> None:
        is_wanted = any(not collector.overflowed for collector in collectors)
        if not self._has_good_name(name, path, collectors) or not is_wanted:
            return
        file = self._unchanged(folder, name, path, collectors[-1])
        if file is None:
            try:
                file = hash_file_at(folder, name, self.limits.max_skill_bytes)
            except (OSError, LimitError) as error:
                self._failed(path, error, collectors)
                return
        self._add(file, path, collectors)

    def _unchanged(self, folder: int, name: str, path: str, collector: _Collector) -> LocalFile | None:
        """The previous result for a file that need not be read again."""
        record = collector.known.record
        file = record.files.get(collector.inside(path)) if record and path not in self.fresh else None
        try:
            return file if file is not None and is_still(file, folder, name) else None
        except OSError:  # reading it reports the reason
            return None

    def _add(self, file: LocalFile, path: str, collectors: tuple[_Collector, ...]) -> None:
        for collector in collectors:
            if collector.overflowed:
                continue
            collector.files[collector.inside(path)] = file
            collector.size += file.size
            if len(collector.files) > self.limits.max_resources or collector.size > self.limits.max_skill_bytes:
                self._overflow(collector, collector.path, "the skill has too many files or bytes")

    def _finish(self, folder: int, collectors: tuple[_Collector, ...]) -> None:
        """Read the ``SKILL.md``, unless nothing in the skill has changed, and store the result."""
        self._skills += 1
        if self.on_skill is not None:
            self.on_skill(self._skills)
        collector = collectors[-1]
        path, known, record = f"{collector.path}/{SKILL_MD}", collector.known, collector.known.record
        meta, ignored = self.describe(collector.path), tuple(collector.ignored)
        head = self._unchanged(folder, SKILL_MD, path, collector)
        if record is not None and head is not None and not known.problems and not collector.problems:
            files = {**collector.files, SKILL_MD: head}
            if (files, collector.folders) == (record.files, record.folders):
                self._add(head, path, collectors)
                if (meta, ignored) != (record.entry.meta, known.ignored):
                    known = ReadFolder(True, replace(record, entry=replace(record.entry, meta=meta)), (), ignored)
                self.found[collector.path] = known
                return
        try:
            head, skill_md = read_file_at(folder, SKILL_MD, self.limits.max_skill_md_bytes)
        except (OSError, LimitError) as error:
            self._failed(path, error, collectors)
            self.found[collector.path] = ReadFolder(True, None, tuple(collector.problems), ignored)
            return
        self._add(head, path, collectors)
        self.found[collector.path] = apply_rules(
            collector.path,
            skill_md,
            collector.files,
            folders=frozenset(collector.folders),
            problems=collector.problems,
            ignored=ignored,
            scheme=self.scheme,
            meta=meta,
            limits=self.limits,
        )

    # Reports

    def _report(
        self, reference: str, message: str, hint: str, path: str, collectors: Sequence[_Collector]
    ) -> None:
        """Report a problem to every enclosing skill, or outside of skills to the folder."""
        if not collectors:
            problem = Diagnostic(reference, message, hint, file=printable(path))
            self._notes.setdefault(path.rpartition("/")[0], ([], []))[0].append(problem)
            return
        problem = Diagnostic(reference, message, hint, file=printable(path), skill=collectors[-1].path)
        for collector in collectors:
            collector.problems.append(problem)

    def _ignored(self, path: str, collectors: Sequence[_Collector]) -> None:
        if collectors:
            collectors[-1].ignored.append(printable(path))
        else:
            self._notes.setdefault(path.rpartition("/")[0], ([], []))[1].append(printable(path))

    def _has_good_name(self, name: str, path: str, collectors: Sequence[_Collector]) -> bool:
        if not segment_problem(name):
            return True
        self._report(
            "file-name-invalid",
            f"the name {printable(name)!r:.120} cannot be part of a URI",
            "rename it without control characters, backslashes or broken text",
            path,
            collectors,
        )
        return False

    def _link(self, folder: int, name: str, path: str, collectors: Sequence[_Collector]) -> None:
        if not collectors and name != SKILL_MD:
            return
        try:
            target = os.readlink(name, dir_fd=folder)
        except OSError:
            target = "?"
        segments = path.split("/")[:-1]
        if _escapes(target, len(segments) - (1 if self.base else 0)):
            self._report(
                "link-escape",
                f"the symbolic link {name!r:.120} leads out of the tree and was skipped",
                "replace the link by a copy of the file",
                path,
                collectors,
            )
        else:
            self._report(
                "link-skipped",
                f"the symbolic link {name!r:.120} was skipped: links are never followed",
                "replace the link by a copy of the file",
                path,
                collectors,
            )

    def _special(self, name: str, path: str, collectors: Sequence[_Collector]) -> None:
        if name == SKILL_MD:
            self._report("skill-file-kind", "SKILL.md is not a regular file", "make it a file", path, collectors)
        elif collectors:
            self._report(
                "special-file",
                f"{printable(name)!r:.120} is a device, pipe or socket and was skipped",
                "remove it from the skill",
                path,
                collectors,
            )

    def _overflow(self, collector: _Collector, path: str, reason: str) -> None:
        collector.overflowed = True
        self._report(
            "too-large",
            f"{reason}; the limits are {self.limits.max_resources} files and {self.limits.max_skill_bytes} bytes"
            f" per skill, and {self.limits.max_skill_md_bytes} bytes for SKILL.md",
            "split the skill, or move large files elsewhere",
            path,
            (collector,),
        )

    def _failed(self, path: str, error: OSError | LimitError, collectors: Sequence[_Collector]) -> None:
        if isinstance(error, OSError):
            self._cannot_read(path, error, collectors)
            return
        for collector in collectors:
            if not collector.overflowed:
                self._overflow(collector, path, error.message)

    def _cannot_read(self, path: str, error: OSError, collectors: Sequence[_Collector]) -> None:
        if isinstance(error, NotRegularError) or error.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO):
            self._report(
                "vanished",
                f"{printable(path)!r:.200} was removed or replaced while it was being read",
                "check again",
                path,
                collectors,
            )
            return
        self._report(
            "unreadable",
            f"{printable(path) or 'the folder'!r:.200} cannot be read: {os.strerror(error.errno or errno.EIO)}",
            "give the user who runs skillwire permission to read it",
            path,
            collectors,
        )


def _escapes(target: str, depth: int) -> bool:
    """Whether the target of a link, ``depth`` folders below the root, leads out of it according to its text."""
    if target.startswith("/"):
        return True
    for segment in target.split("/"):
        depth += -1 if segment == ".." else (0 if segment in ("", ".") else 1)
        if depth < 0:
            return True
    return False


def printable(text: str) -> str:
    """``text`` with escapes for characters that a terminal or JSON cannot represent."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)
