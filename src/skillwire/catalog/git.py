"""The skills of a Git repository, at one commit.

``GitCatalog("acme/skills@v1#folder", cache)`` fetches one commit and answers from it. ``refresh`` fetches again,
and ``follow`` does so regularly, unless the source is pinned to a commit. The bytes stay in the bare repository in
``cache``; a read hashes what it returns (R2). Symbolic links and submodules are skipped and reported, as on disk.
A repository whose root is a skill serves it under the name in its frontmatter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from skillwire.catalog.files import Stored, StoredCatalog, StoredFile
from skillwire.catalog.git_repository import GitRepository, parse_git_source
from skillwire.catalog.scan import printable
from skillwire.errors import FormatError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.diagnostics import Diagnostic
from skillwire.skill.frontmatter import parse_skill_md
from skillwire.skill.uri import DEFAULT_SCHEME, SKILL_MD, segment_problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from skillwire.catalog.git_repository import GitSource, GitTree


class GitCatalog(StoredCatalog):
    """The skills of the repository ``source``. The first call fetches it into a folder below ``cache``."""

    def __init__(
        self,
        source: str | GitSource,
        cache: Path,
        *,
        scheme: str = DEFAULT_SCHEME,
        limits: Limits = DEFAULT_LIMITS,
        poll_seconds: float = 300.0,
    ) -> None:
        super().__init__(poll_seconds=poll_seconds, scheme=scheme, limits=limits)
        self.source = parse_git_source(source) if isinstance(source, str) else source
        self.commit: str | None = None  # the commit that is served
        self._repository = GitRepository(self.source, cache, limits=limits)

    async def follow(self) -> None:
        """Fetch regularly until cancelled. A source that is pinned to a commit cannot change."""
        if not self.source.is_pinned:
            await super().follow()

    async def _list_stored(self) -> Stored:
        commit = await self._repository.fetch()
        tree = await self._repository.tree(commit)
        name = await self._root_name(tree)
        prefix = f"{name}/" if name else ""
        self.commit = commit
        files = [
            StoredFile(prefix + file.path, file.blob, file.size, executable=file.executable) for file in tree.files
        ]
        return Stored(files, [_skipped(prefix + path, kind) for path, kind in tree.links.items()])

    async def _read_stored(self, files: Sequence[StoredFile]) -> Mapping[str, bytes]:
        blobs = {file.path: cast("str", file.version) for file in files}
        size = sum(file.size or 0 for file in files)
        data = await self._repository.read_all(sorted(set(blobs.values())), size=size)
        return {path: data[blob] for path, blob in blobs.items()}

    async def _root_name(self, tree: GitTree) -> str:
        """The name of the skill at the root of the tree; empty if the root is not a skill."""
        head = next((file for file in tree.files if file.path == SKILL_MD), None)
        if head is None:
            return ""
        fallback = self.source.name
        if head.size > self._limits.max_skill_md_bytes:
            return fallback
        try:
            name = parse_skill_md(await self._repository.read(head.blob), self._limits).frontmatter.get("name")
        except FormatError:  # reported when the skill is read
            return fallback
        return name if isinstance(name, str) and not segment_problem(name) else fallback


def _skipped(path: str, kind: str) -> Diagnostic:
    return Diagnostic(
        "link-skipped",
        f"{printable(path)!r:.200} is {kind} and was skipped",
        "replace it by a copy of the files",
        file=printable(path),
    )
