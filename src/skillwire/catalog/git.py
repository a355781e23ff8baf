"""The skills of a Git repository, at one commit, read with the user's own ``git``.

``GitCatalog("acme/skills@v1#folder")`` fetches one commit and answers from it. ``refresh`` fetches again, and
``follow`` does so regularly, unless the source is pinned to a commit. The bytes stay in a bare repository in the
user's cache; a read hashes what it returns (R2). A repository whose root is a skill serves it under the name in
its frontmatter.

A repository is hostile, and so is its server. Addresses are checked in ``git_source``, and ``git_process`` bounds
every command. There is no work tree: no hook, filter, LFS smudge or ``.gitattributes`` takes part. Symbolic links
and submodules are skipped and reported, as on disk. Objects are checked while they are received (``fsckObjects``),
and files are read by their object id.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import asynccontextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

import anyio

from skillwire.catalog.files import Stored, StoredCatalog, StoredFile
from skillwire.catalog.git_process import GitProcess, bytes_below
from skillwire.catalog.git_source import GitSource, parse_git_source
from skillwire.catalog.memory import name_in
from skillwire.catalog.scan import printable
from skillwire.catalog.snapshot import files_by_skill
from skillwire.errors import LimitError, NotFoundError, SkillwireError, StoreError, UpstreamError
from skillwire.limits import DEFAULT_LIMITS, MIB, Limits
from skillwire.skill.diagnostics import Diagnostic
from skillwire.skill.uri import DEFAULT_SCHEME, SKILL_MD

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from skillwire.catalog.contract import Change

_REGULAR, _EXECUTABLE = "100644", "100755"
_KINDS = {"120000": "a symbolic link", "160000": "a submodule"}
_BUSY_SECONDS = 0.05
_POLL_SECONDS = 300.0
_AHEAD_BYTES = 32 * MIB
_FETCH = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head")
HISTORY = 200  # commits that ``GitRepository.position`` searches


class GitFile(NamedTuple):
    """One file of a commit: its path, the id of its bytes, their number, and the executable bit."""

    path: str
    blob: str
    size: int
    executable: bool


class GitTree(NamedTuple):
    """The files of a commit below the folder of the source. ``links``: other items by path, and what they are."""

    commit: str
    files: tuple[GitFile, ...]
    links: dict[str, str]


class GitRepository:
    """A bare repository in the folder ``cache``, with the fetched commits of one URL."""

    def __init__(self, source: GitSource, cache: Path, *, limits: Limits = DEFAULT_LIMITS) -> None:
        self.source = source
        self._limits = limits
        self._cache = cache
        self._folder = cache / sha256(source.url.encode()).hexdigest()[:32]
        self._git = GitProcess(source, self._folder, limits)

    async def fetch(self) -> str:
        """Fetch the current commit of the source, and return its id."""
        ref = self.source.ref or "HEAD"
        async with self._held():
            if self.source.is_pinned and (commit := await self._commit(ref)) is not None:
                return commit
            if bytes_below(self._folder) > self._limits.max_git_bytes // 2:
                await self._git.run("gc", "--quiet", "--prune=now")  # earlier commits, which no ref names
            ours = f"refs/skillwire/{sha256(ref.encode()).hexdigest()[:32]}"
            await self._git.run(*_FETCH, "--depth=1", "--", self.source.url, f"+{ref}:{ours}")
            commit = await self._commit(ours)
        if commit is None:
            raise NotFoundError(
                "git-ref-unknown",
                f"{ref!r:.100} of {self.source.url!r:.200} is not a commit",
                "name a branch, a tag or a commit",
            )
        return commit

    async def position(self, old: str, new: str) -> Literal["earlier", "rewritten", "unknown"]:
        """Whether the commit ``old`` is in the history of ``new``. Unknown if the history is too long to tell.

        Only commits are fetched, into a repository of their own, if the server supports it.
        """
        with TemporaryDirectory(dir=self._cache, prefix="history-") as folder:
            git = GitProcess(self.source, Path(folder), self._limits)
            await git.run("init", "--quiet", "--bare", "--template=", ".")
            try:
                depth = ("--depth", str(HISTORY), "--filter=tree:0")
                await git.run(*_FETCH, *depth, "--", self.source.url, f"+{new}:refs/skillwire/new")
                commits = (await git.run("rev-list", "refs/skillwire/new")).decode("ascii").split()
            except SkillwireError:
                return "unknown"
            if old in commits:
                return "earlier"
            is_whole = await git.run("rev-parse", "--is-shallow-repository") == b"false\n"
            return "rewritten" if is_whole else "unknown"

    async def tree(self, commit: str) -> GitTree:
        """The files of ``commit`` below the folder of the source."""
        folder = self.source.folder
        if folder:
            kind = await self._git.run("cat-file", "--batch-check", given=f"{commit}:{folder}\n".encode())
            if b" tree " not in kind:
                raise NotFoundError(
                    "git-folder-unknown",
                    f"{self.source.url!r:.200} has no folder {folder!r:.200} at {commit[:12]}",
                    f"see its skills: skillwire list git+{replace(self.source, folder='')}",
                )
        listing = await self._git.run("ls-tree", "-r", "-z", "-l", "--full-tree", f"{commit}:{folder}")
        files, links = list[GitFile](), dict[str, str]()
        for row in listing.split(b"\0")[:-1]:
            facts, _, name = row.partition(b"\t")
            mode, _, blob, size = facts.decode("ascii").split()
            path = name.decode("utf-8", "surrogateescape")
            if mode in (_REGULAR, _EXECUTABLE):
                files.append(GitFile(path, blob, int(size), mode == _EXECUTABLE))
            else:
                links[path] = _KINDS.get(mode, "not a file")
            is_deep = path.count("/") > self._limits.max_depth
            if is_deep or len(files) + len(links) > self._limits.max_tree_entries:
                what = f"folders deeper than {self._limits.max_depth} levels" if is_deep else "too many files"
                raise LimitError(
                    "git-too-large", f"the repository has {what}", "name a folder: #folder", rule="B1"
                )
        return GitTree(commit, tuple(files), links)

    async def read_all(self, blobs: Sequence[str], *, size: int) -> dict[str, bytes]:
        """The bytes of many ids, ``size`` bytes in all. One process reads them."""
        wanted = "".join(f"{blob}\n" for blob in blobs).encode("ascii")
        heads = len(blobs) * 100  # of each object: its id, its type and its size
        data = await self._git.run("cat-file", "--batch", given=wanted, limit=size + heads)
        found, start = dict[str, bytes](), 0
        for blob in blobs:
            end = data.index(b"\n", start)
            _, kind, *length = data[start:end].split()
            if kind != b"blob":  # "missing": another process removed it, or the disk is damaged
                raise UpstreamError(
                    "git-cache-damaged",
                    f"the cached copy of {self.source.url!r:.200} is incomplete",
                    f"remove it, and run the command again: rm -rf {self._folder}",
                )
            stop = end + 1 + int(length[0])
            found[blob] = data[end + 1 : stop]
            start = stop + 1
        return found

    @asynccontextmanager
    async def _held(self) -> AsyncGenerator[None]:
        """Create the repository if needed, and hold it: only one process fetches into it at a time."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise StoreError(
                "cache-unwritable",
                f"the folder for copies of repositories cannot be used: {error.strerror}",
                "set XDG_CACHE_HOME to a folder that you can write to",
            ) from error
        try:
            with anyio.fail_after(self._limits.max_git_seconds):
                while True:
                    try:
                        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
                    except BlockingIOError:
                        await anyio.sleep(_BUSY_SECONDS)
            if not (self._folder / "HEAD").exists():
                await self._git.run("init", "--quiet", "--bare", "--template=", ".")
            yield
        except TimeoutError:
            raise UpstreamError(
                "git-busy",
                f"another process is fetching {self.source.url!r:.200}",
                "run the command again when it has ended",
            ) from None
        finally:
            os.close(folder)

    async def _commit(self, ref: str) -> str | None:
        try:
            name = f"{ref}^{{commit}}"
            found = await self._git.run("rev-parse", "--verify", "--quiet", "--end-of-options", name)
        except (UpstreamError, NotFoundError):
            return None
        return found.decode("ascii").strip()


class GitCatalog(StoredCatalog):
    """The skills of the repository ``source``. The first call fetches it into a folder below ``cache``.

    ``cache`` is ``$XDG_CACHE_HOME/skillwire/git`` by default. ``follow`` fetches every five minutes.
    """

    def __init__(
        self,
        source: str | GitSource,
        cache: str | os.PathLike[str] | None = None,
        *,
        scheme: str = DEFAULT_SCHEME,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__(poll_seconds=_POLL_SECONDS, scheme=scheme, limits=limits)
        self.source = parse_git_source(source) if isinstance(source, str) else source
        self._ahead: Mapping[str, bytes] = {}  # new bytes by object id, while the catalog is loaded
        self.repository = GitRepository(
            self.source, _default_cache() if cache is None else Path(cache), limits=limits
        )

    async def follow(self) -> None:
        """Fetch regularly until cancelled. A source that is pinned to a commit cannot change."""
        if not self.source.is_pinned:
            await super().follow()

    async def _list_stored(self) -> Stored:
        commit = await self.repository.fetch()
        tree = await self.repository.tree(commit)
        name = await self._root_name(tree)
        prefix = f"{name}/" if name else ""
        self.commit = commit
        files = {
            prefix + file.path: StoredFile(prefix + file.path, file.blob, file.size, executable=file.executable)
            for file in tree.files
        }
        # Most repositories are small: all their new files are read at once, not with one process for each skill.
        members = {path for skill in files_by_skill(files).values() for path in skill.values()}
        new = [files[path] for path in members if files[path] != self._stored.get(path)]
        if sum(file.size or 0 for file in new) <= _AHEAD_BYTES:
            self._ahead = await self._read_blobs(new)
        return Stored(list(files.values()), [_skipped(prefix + path, kind) for path, kind in tree.links.items()])

    async def _load(self) -> Change:
        try:
            return await super()._load()
        finally:
            self._ahead = {}

    async def _read_stored(self, files: Sequence[StoredFile]) -> Mapping[str, bytes]:
        is_ahead = all(file.version in self._ahead for file in files)
        data = self._ahead if is_ahead else await self._read_blobs(files)
        return {file.path: data[cast("str", file.version)] for file in files}

    async def _read_blobs(self, files: Sequence[StoredFile]) -> Mapping[str, bytes]:
        size = sum(file.size or 0 for file in files)
        return await self.repository.read_all(sorted({cast("str", file.version) for file in files}), size=size)

    async def _root_name(self, tree: GitTree) -> str:
        """The name of the skill at the root of the tree; empty if the root is not a skill."""
        head = next((file for file in tree.files if file.path == SKILL_MD), None)
        if head is None:
            return ""
        if head.size > self._limits.max_skill_md_bytes:
            return self.source.name
        data = await self.repository.read_all([head.blob], size=head.size)
        return name_in(data[head.blob], self._limits) or self.source.name


def _default_cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "skillwire" / "git"


def _skipped(path: str, kind: str) -> Diagnostic:
    return Diagnostic(
        "link-skipped",
        f"{printable(path)!r:.200} is {kind} and was skipped",
        "replace it by a copy of the files",
        file=printable(path),
    )
