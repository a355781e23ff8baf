"""The records of local catalogs: for each folder a skill that is served, or the problems that prevent it.

Folders on disk, trees in memory and packages all become ``ReadFolder`` values here, by the same rules. No I/O.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from skillwire.errors import FormatError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.declarations import check_declared
from skillwire.skill.diagnostics import Diagnostic, from_error
from skillwire.skill.entry import DEFAULT_META, SkillEntry, SkillMeta, build_entry, fold
from skillwire.skill.frontmatter import SkillDocument, check_frontmatter, parse_skill_md
from skillwire.skill.uri import DEFAULT_SCHEME, SKILL_MD

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Set

# Version control, caches, files of editors and operating systems, credentials. Everything else in a skill's folder
# is served, including dotfiles. Ignored names are reported (``Catalog.ignored``).
_IGNORED_FOLDERS = frozenset(
    {
        ".git", ".hg", ".svn", ".bzr", ".jj", "CVS", "_darcs",
        "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".venv", "node_modules",
        ".idea", ".vscode", ".vs", ".history",
        "__MACOSX", ".Spotlight-V100", ".Trashes", ".fseventsd", "$RECYCLE.BIN", "System Volume Information",
        ".ssh", ".aws", ".gnupg",
    }
)  # fmt: skip
_IGNORED_FILES = re.compile(
    r"\.git|\.DS_Store|\._.*|Thumbs\.db|[Dd]esktop\.ini|\.directory|Icon\r"  # systems
    r"|.*~|\.#.*|#.*#|\..*\.sw[a-p]|\.netrwhist|4913"  # editors (4913 is vim's write test)
    r"|.*\.py[co]"
    r"|\.env|\.env\.(?:local|production)|\.netrc|\.pypirc|\.npmrc|id_(?:rsa|dsa|ecdsa|ed25519)"  # credentials
)


class Stamp(NamedTuple):
    """The state of a file in the file system. While it is the same, the bytes are too."""

    inode: int
    size: int
    modified_ns: int
    changed_ns: int


class LocalFile(NamedTuple):
    """One file of a local skill. ``data`` is set if the bytes are in memory, ``stamp`` if they are on disk."""

    digest: str
    size: int
    modified: float | None = None
    stamp: Stamp | None = None
    data: bytes | None = None
    executable: bool = False


@dataclass(frozen=True, slots=True)
class SkillRecord:
    """A served skill: its entry, its files by path inside the skill, and its folders."""

    entry: SkillEntry
    files: Mapping[str, LocalFile]
    folders: Set[str]

    @property
    def executables(self) -> set[str]:
        """Files with the executable bit. Only archives transmit it (I2)."""
        return {path for path, file in self.files.items() if file.executable}


@dataclass(frozen=True, slots=True)
class ReadFolder:
    """The result of reading a folder: its skill, if it can be served, its problems, and ignored paths."""

    is_skill: bool = False  # the folder has a SKILL.md, served or not
    record: SkillRecord | None = None
    problems: tuple[Diagnostic, ...] = ()
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SkillSource:
    """The content of a skill's folder, before the rules are applied."""

    path: str
    skill_md: bytes
    files: Mapping[str, LocalFile]
    folders: Set[str]
    problems: Iterable[Diagnostic] = ()
    ignored: Iterable[str] = ()


def make_found(
    source: SkillSource,
    *,
    scheme: str = DEFAULT_SCHEME,
    meta: SkillMeta = DEFAULT_META,
    limits: Limits = DEFAULT_LIMITS,
) -> ReadFolder:
    """Apply the rules: all problems, and a record if none of them refuses the skill."""
    problems = list(source.problems)
    document: SkillDocument | None = None
    file = f"{source.path}/{SKILL_MD}"
    try:
        document = parse_skill_md(source.skill_md, limits)
    except FormatError as error:
        problems.append(from_error(error, file))
    else:
        problems += check_frontmatter(document, source.path.rpartition("/")[2], file)
        problems += check_declared(document, file)
    problems += check_files(source, limits)
    record: SkillRecord | None = None
    if document is not None and not any(problem.refuses for problem in problems):
        facts = ((path, item.digest, item.size) for path, item in source.files.items())
        entry = build_entry(
            source.path,
            document.frontmatter,
            facts,
            scheme=scheme,
            meta=meta,
            modified=source.files[SKILL_MD].modified,
        )
        record = SkillRecord(entry, source.files, source.folders)
    return ReadFolder(
        True, record, tuple(_named(problem, source.path) for problem in problems), tuple(source.ignored)
    )


def check_files(source: SkillSource, limits: Limits) -> Iterator[Diagnostic]:
    """Check the limits of one skill (E6), and names that collide on other file systems (B5)."""
    count, size = len(source.files), sum(file.size for file in source.files.values())
    if count > limits.skill_resources or size > limits.skill_bytes:
        yield Diagnostic(
            "over-limit",
            f"the skill has {count} files and {size} bytes; hosts are not required to accept more than"
            f" {limits.skill_resources} files and {limits.skill_bytes} bytes",
            "split the skill, or move large files elsewhere",
            file=source.path,
        )
    for first, second in collisions((*source.files, *source.folders)):
        yield Diagnostic(
            "path-collision",
            f"{first!r} and {second!r} are the same name on file systems that ignore case or Unicode form",
            "rename one of them",
            file=f"{source.path}/{second}",
        )


def collisions(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Pairs of paths that are equal on file systems that ignore case and Unicode form (B5)."""
    seen: dict[str, str] = {}
    for path in paths:
        first = seen.setdefault(fold(path), path)
        if first is not path:
            yield first, path


def _named(problem: Diagnostic, skill: str) -> Diagnostic:
    return problem if problem.skill else replace(problem, skill=skill)


def is_ignored(name: str, *, is_folder: bool) -> bool:
    """Whether a file or folder of this name is never part of a skill."""
    return name in _IGNORED_FOLDERS if is_folder else _IGNORED_FILES.fullmatch(name) is not None
