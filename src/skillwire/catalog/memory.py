"""Skills in memory, for tests, for tools, and for content that arrives as bytes."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from skillwire.catalog.safe_open import LocalFile
from skillwire.catalog.snapshot import ReadFolder, SnapshotCatalog, apply_rules, files_by_skill, parents
from skillwire.errors import FormatError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.diagnostics import Diagnostic
from skillwire.skill.entry import DEFAULT_META, SkillMeta, digest_of
from skillwire.skill.frontmatter import parse_skill_md
from skillwire.skill.uri import DEFAULT_SCHEME, SKILL_MD, parse_path, segment_problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from skillwire.catalog.contract import Change
    from skillwire.catalog.snapshot import Snapshot

_NO_SKILL_MD = "the skill has no SKILL.md", "add a file named SKILL.md"


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill as values: its path, and its files by path inside the skill. Text is encoded as UTF-8."""

    path: str
    files: Mapping[str, bytes | str]
    meta: SkillMeta = DEFAULT_META

    def tree(self) -> dict[str, bytes]:
        """The files as bytes by full path. ``FormatError`` if a path is invalid."""
        return {
            f"{parse_path(self.path)}/{parse_path(name)}": data.encode() if isinstance(data, str) else data
            for name, data in self.files.items()
        }


class MemoryCatalog(SnapshotCatalog):
    """A catalog of ``Skill`` values. ``put`` replaces a skill's whole folder. Nested skills are listed too.

    ``put`` and ``remove`` may be called from any thread. A skill given to the constructor that cannot be served
    is one of the ``problems``, and the others are served.
    """

    def __init__(
        self, skills: Iterable[Skill] = (), *, scheme: str = DEFAULT_SCHEME, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        super().__init__(scheme)
        self._limits = limits
        self._tree: dict[str, bytes] = {}
        self._metas: dict[str, SkillMeta] = {}
        self._writing = threading.Lock()
        tree: dict[str, bytes] = {}
        refused: dict[str, ReadFolder] = {}
        for skill in skills:
            try:
                tree.update(skill.tree())
            except FormatError as error:
                path = skill.path
                problem = Diagnostic("file-name-invalid", error.message, error.hint, file=path, skill=path)
                refused[path] = ReadFolder(True, None, (problem,))
            else:
                if f"{skill.path}/{SKILL_MD}" not in tree:
                    problem = Diagnostic("skill-file-missing", *_NO_SKILL_MD, file=skill.path, skill=skill.path)
                    refused[skill.path] = ReadFolder(True, None, (problem,))
            self._metas[skill.path] = skill.meta
        found = find_skills(tree, scheme=scheme, limits=limits, metas=self._metas)
        self._adopt(tree, self._metas, *self._snapshot.updated((), {**found, **refused}))

    @classmethod
    def from_tree(
        cls, tree: dict[str, bytes], *, scheme: str = DEFAULT_SCHEME, limits: Limits = DEFAULT_LIMITS
    ) -> Self:
        """A catalog of every skill in a tree of files. A skill that breaks a rule becomes a problem."""
        catalog = cls(scheme=scheme, limits=limits)
        found = find_skills(tree, scheme=scheme, limits=limits)
        catalog._adopt(tree, {}, *catalog._snapshot.updated((), found))
        return catalog

    def put(self, skill: Skill) -> None:
        """Add a skill or replace the one at its path. ``FormatError``, and no change, if it cannot be served."""
        with self._writing:
            tree = {**_without(self._tree, skill.path), **skill.tree()}
            metas = {**self._metas, skill.path: skill.meta}
            snapshot, change = self._rebuilt(tree, metas, self._area(skill.path))
            error = refusal(skill.path, snapshot)
            if error is not None:
                raise error
            self._adopt(tree, metas, snapshot, change)

    def remove(self, path: str) -> None:
        """Remove a skill and everything below its path."""
        with self._writing:
            tree = _without(self._tree, path)
            self._adopt(tree, self._metas, *self._rebuilt(tree, self._metas, self._area(path)))

    def _rebuilt(
        self, tree: Mapping[str, bytes], metas: Mapping[str, SkillMeta], area: str
    ) -> tuple[Snapshot, Change]:
        inside = {key: data for key, data in tree.items() if not area or key.startswith(f"{area}/")}
        found = find_skills(inside, scheme=self._scheme, limits=self._limits, metas=metas)
        return self._snapshot.updated(self._snapshot.paths_below(area), found)

    def _adopt(
        self, tree: dict[str, bytes], metas: dict[str, SkillMeta], snapshot: Snapshot, change: Change
    ) -> None:
        self._tree, self._metas, self._snapshot = tree, metas, snapshot
        self._feed.publish(change)

    def _meta_of(self, path: str) -> SkillMeta:
        return self._metas.get(path, DEFAULT_META)

    def _area(self, path: str) -> str:
        """The outermost folder whose record depends on ``path`` (E4: enclosing skills list nested files)."""
        parts = path.split("/")
        prefixes = ("/".join(parts[:count]) for count in range(1, len(parts)))
        return next((prefix for prefix in prefixes if f"{prefix}/{SKILL_MD}" in self._tree), path)


def find_skills(
    files: Mapping[str, bytes],
    *,
    scheme: str = DEFAULT_SCHEME,
    limits: Limits = DEFAULT_LIMITS,
    metas: Mapping[str, SkillMeta] = MappingProxyType({}),
    executables: Collection[str] = (),
    folders: Iterable[str] = (),
) -> dict[str, ReadFolder]:
    """Every skill in a tree of files, including nested ones, with its problems.

    ``folders`` are empty folders; the folders of files need not be given.
    """
    local = {
        path: LocalFile(digest_of(data), len(data), data=data, executable=path in executables)
        for path, data in files.items()
    }
    found: dict[str, ReadFolder] = {}
    for skill, members in files_by_skill([*files, *(f"{folder}/" for folder in folders)]).items():
        found[skill] = apply_rules(
            skill,
            files[f"{skill}/{SKILL_MD}"],
            {inside: local[path] for inside, path in members.items() if path in local},
            folders={folder for inside in members for folder in parents(inside)},
            scheme=scheme,
            meta=metas.get(skill, DEFAULT_META),
            limits=limits,
        )
    return found


def name_in(skill_md: bytes, limits: Limits) -> str | None:
    """The name in a ``SKILL.md``, if it is valid as the name of a folder."""
    try:
        name = parse_skill_md(skill_md, limits).frontmatter.get("name")
    except FormatError:  # reported when the skill is checked
        return None
    return name if isinstance(name, str) and not segment_problem(name) else None


def _without(tree: Mapping[str, bytes], path: str) -> dict[str, bytes]:
    return {key: data for key, data in tree.items() if not key.startswith(f"{path}/")}


def refusal(path: str, snapshot: Snapshot) -> FormatError | None:
    """The reason why no skill is served at ``path``; ``None`` if one is."""
    if snapshot.record(path) is not None:
        return None
    for problem in snapshot.problems():
        if problem.refuses and problem.skill == path:
            return FormatError(
                problem.reference,
                f"the skill {path!r} cannot be served: {problem.message}",
                problem.hint,
                line=problem.line,
                column=problem.column,
            )
    return FormatError("skill-file-missing", f"the skill {path!r} has no SKILL.md", _NO_SKILL_MD[1])
