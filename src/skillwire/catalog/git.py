"""The skills of a Git repository, at one commit, read with the user's own ``git``.

``GitCatalog("acme/skills@v1#folder", cache)`` fetches one commit and answers from it. ``refresh`` fetches again,
and ``follow`` does so regularly, unless the source is pinned to a commit. The bytes stay in the bare repository in
``cache``; a read hashes what it returns (R2). Symbolic links and submodules are skipped and reported, as on disk.
A repository whose root is a skill serves it under the name in its frontmatter.

A repository is hostile. So:

- Only ``https``, ``ssh`` and local repositories are accepted, and ``http`` on this machine. Git may use no other
  protocol, whatever the repository or a redirect says (``ext::`` would run a program).
- One commit is fetched into a bare repository in the cache. There is no work tree: no hook, filter, LFS smudge or
  ``.gitattributes`` takes part, and submodules are not fetched.
- The fetch never asks: a missing password is an error. It has a time limit, and a limit on the bytes it may write.
- The objects are checked while they are received (``fsckObjects``), and files are read by their object id.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, NamedTuple, cast
from urllib.parse import unquote, urlsplit

from anyio import to_thread

from skillwire.catalog.files import Stored, StoredCatalog, StoredFile
from skillwire.catalog.memory import name_in
from skillwire.catalog.scan import printable
from skillwire.errors import FormatError, LimitError, NotFoundError, UpstreamError
from skillwire.limits import DEFAULT_LIMITS, MIB, Limits
from skillwire.skill.diagnostics import Diagnostic
from skillwire.skill.uri import DEFAULT_SCHEME, SKILL_MD, parse_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_FORMS = (
    "use owner/repository, an https:// or ssh:// URL, git@host:path, or a local repository; then @ref and #folder"
)
_HOSTS = frozenset({"github.com", "gitlab.com", "codeberg.org", "bitbucket.org"})
_SHORT = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+")
_SCP = re.compile(r"[A-Za-z0-9._-]+@[A-Za-z0-9][A-Za-z0-9.-]*:(?!//)[^:]+")
_AUTHORITY = re.compile(r"[a-z]+://[^/]*/|[A-Za-z0-9._-]+@[^/:]+:")  # before the path of a URL or git@host:path
_REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/+-]*")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REGULAR, _EXECUTABLE = "100644", "100755"
_KINDS = {"120000": "a symbolic link", "160000": "a submodule"}
_LISTING_BYTES = 64 * MIB
_ERROR_BYTES = 64 * 1024
_POLL_SECONDS = 0.05
# They would make git use another repository or another configuration than the one given here.
_REPOSITORY_VARIABLES = frozenset(
    {
        "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_NAMESPACE", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT",
        "GIT_EXTERNAL_DIFF", "GIT_ALLOW_PROTOCOL", "GIT_PROTOCOL_FROM_USER",
    }
)  # fmt: skip

# What a repository or the user's configuration could turn on, and a fetch does not need.
_SETTINGS = (
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.askPass=", "core.bigFileThreshold=16m",
    "submodule.recurse=false", "fetch.recurseSubmodules=false", "fetch.writeCommitGraph=false",
    "fetch.fsckObjects=true", "fetch.unpackLimit=1", "gc.auto=0", "maintenance.auto=false",
    "credential.interactive=false", "http.followRedirects=initial",
    "protocol.allow=never", "protocol.https.allow=always", "protocol.ssh.allow=always",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GitSource:
    """A repository, a branch, tag or commit of it, and a folder in it. An empty ``ref`` is the default branch."""

    url: str
    ref: str = ""
    folder: str = ""

    @property
    def is_pinned(self) -> bool:
        """Whether ``ref`` is a full commit id, which never changes."""
        return _COMMIT.fullmatch(self.ref) is not None

    @property
    def is_local(self) -> bool:
        """Whether the repository is a folder of this machine."""
        return "://" not in self.url and not _SCP.fullmatch(self.url)

    @property
    def name(self) -> str:
        """The last part of the folder or the address, without ``.git``."""
        last = (self.folder or self.url).rstrip("/").rpartition("/")[2].rpartition(":")[2]
        return last.removesuffix(".git") or "repository"

    def __str__(self) -> str:
        return self.url + (f"@{self.ref}" if self.ref else "") + (f"#{self.folder}" if self.folder else "")


def is_git_source(text: str) -> bool:
    """Whether ``text`` means a Git repository: a URL of an MCP server or the path of a folder does not."""
    address = text.partition("#")[0]
    if text.startswith(("git+", "ssh://", "file://")) or _SCP.fullmatch(_without_ref(address)):
        return True
    if address.lower().startswith(("https://", "http://")):
        place = urlsplit(address)
        return place.hostname in _HOSTS or _without_ref(place.path).rstrip("/").endswith(".git")
    if os.path.exists(text):
        return False  # a plain folder, or an archive
    bare = _without_ref(address)
    return _SHORT.fullmatch(bare) is not None or (bare != text and os.path.isdir(bare))


def parse_git_source(text: str) -> GitSource:
    """Parse ``owner/repository``, a URL or a path, followed by ``@ref`` and ``#folder``."""
    address, _, folder = text.removeprefix("git+").partition("#")
    ref = ""
    address_without_ref = _without_ref(address)
    if address_without_ref != address:
        ref = address[len(address_without_ref) + 1 :]
        address = address_without_ref
    source = GitSource(address, ref, unquote(folder).strip("/"))
    if _SHORT.fullmatch(address) and not os.path.isdir(address):
        source = replace(source, url=f"https://github.com/{address.removesuffix('.git')}")
    elif "://" in address:
        source = _parse_url(source)
    elif not _SCP.fullmatch(address):
        if not os.path.isdir(address) or address.startswith("-"):
            raise _invalid(f"{text!r:.200} is not a Git repository")
        source = replace(source, url=os.path.abspath(address))
    if source.ref and (
        not _REF.fullmatch(source.ref) or ".." in source.ref or source.ref.endswith((".lock", "/"))
    ):
        raise _invalid(f"{source.ref!r:.100} is not a branch, tag or commit")
    if source.folder:
        parse_path(source.folder)
    return source


def _parse_url(source: GitSource) -> GitSource:
    place = urlsplit(source.url)
    if place.scheme == "file" and not place.netloc:
        return replace(source, url=unquote(place.path))
    is_loopback = place.hostname in ("127.0.0.1", "localhost", "::1")
    if place.scheme not in ("https", "ssh") and not (place.scheme == "http" and is_loopback):
        raise _invalid(f"Git over {place.scheme!r:.40} is not allowed")
    if not place.hostname or place.hostname.startswith("-") or place.query:
        raise _invalid(f"{source.url!r:.200} is not the address of a Git repository")
    if place.password is not None:
        raise FormatError(
            "git-password",
            "the address of the repository contains a password, which would be stored in locks and logs",
            "remove it from the address, and let git ask a credential helper (git help credentials)",
        )
    parts = place.path.strip("/").split("/")
    if place.hostname == "github.com" and len(parts) >= 4 and parts[2] in ("tree", "blob"):
        folder = "/".join(parts[4:]).removesuffix("SKILL.md").rstrip("/")  # the address of a browser
        return GitSource(
            f"https://github.com/{parts[0]}/{parts[1]}", source.ref or parts[3], source.folder or folder
        )
    return source


def _without_ref(address: str) -> str:
    """``address`` without ``@ref``. An ``@`` before the host of a URL, or of ``git@host:path``, is not a ref."""
    beginning = _AUTHORITY.match(address)
    path = address[beginning.end() :] if beginning else address
    if "@" not in path or (not beginning and os.path.exists(address)):
        return address
    return address[: address.rindex("@")]


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
    """A bare repository in the folder ``cache`` with one commit of ``source``."""

    def __init__(self, source: GitSource, cache: Path, *, limits: Limits = DEFAULT_LIMITS) -> None:
        self.source = source
        self._limits = limits
        self._folder = cache / hashlib.sha256(f"{source.url}\0{source.ref}".encode()).hexdigest()[:32]

    async def fetch(self) -> str:
        """Fetch the current commit of the source, and return its id."""
        await self._create()
        if self.source.is_pinned and (commit := await self._commit(self.source.ref)) is not None:
            return commit
        if _bytes_below(self._folder) > self._limits.max_git_bytes // 2:
            await self._git("gc", "--quiet", "--prune=now")  # earlier commits, which no ref names
        url, ref = self.source.url, self.source.ref or "HEAD"
        arguments = [
            "fetch",
            "--quiet",
            "--depth=1",
            "--no-tags",
            "--no-recurse-submodules",
            "--no-write-fetch-head",
        ]
        await self._git(*arguments, "--", url, f"+{ref}:refs/skillwire/current")
        commit = await self._commit("refs/skillwire/current")
        if commit is None:
            raise NotFoundError(
                "git-ref-unknown",
                f"{ref!r:.100} of {url!r:.200} is not a commit",
                "name a branch, a tag or a commit",
            )
        return commit

    async def tree(self, commit: str) -> GitTree:
        """The files of ``commit`` below the folder of the source."""
        folder = self.source.folder
        try:
            listing = await self._git("ls-tree", "-r", "-z", "-l", "--full-tree", f"{commit}:{folder}")
        except UpstreamError as error:
            raise NotFoundError(
                "git-folder-unknown",
                f"{self.source.url!r:.200} has no folder {folder!r:.200}",
                "list the whole repository: leave out #folder",
            ) from error
        files, links = list[GitFile](), dict[str, str]()
        for row in listing.split(b"\0")[:-1]:
            facts, _, name = row.partition(b"\t")
            mode, _, blob, size = facts.decode("ascii").split()
            path = name.decode("utf-8", "surrogateescape")
            if mode in (_REGULAR, _EXECUTABLE):
                files.append(GitFile(path, blob, int(size), mode == _EXECUTABLE))
            else:
                links[path] = _KINDS.get(mode, "not a file")
            if len(files) > self._limits.max_tree_entries:
                raise LimitError("git-too-large", "the repository has too many files", "name a folder: #folder")
        return GitTree(commit, tuple(files), links)

    async def read(self, blob: str) -> bytes:
        """The bytes with the id ``blob``."""
        return await self._git("cat-file", "blob", blob, limit=self._limits.max_file_bytes)

    async def read_all(self, blobs: Sequence[str], *, size: int) -> dict[str, bytes]:
        """The bytes of many ids, ``size`` bytes in all. One process reads them."""
        wanted = "".join(f"{blob}\n" for blob in blobs).encode("ascii")
        heads = len(blobs) * 100  # of each object: its id, its type and its size
        data = await self._git("cat-file", "--batch", given=wanted, limit=size + heads)
        found, start = dict[str, bytes](), 0
        for blob in blobs:
            end = data.index(b"\n", start)
            length = int(data[start:end].split()[2])
            found[blob] = data[end + 1 : end + 1 + length]
            start = end + 1 + length + 1
        return found

    async def _create(self) -> None:
        if not (self._folder / "HEAD").exists():
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            await self._git("init", "--quiet", "--bare", "--template=", ".")

    async def _commit(self, ref: str) -> str | None:
        try:
            found = await self._git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        except (UpstreamError, NotFoundError):
            return None
        return found.decode("ascii").strip()

    async def _git(self, *arguments: str, given: bytes = b"", limit: int = _LISTING_BYTES) -> bytes:
        """Run ``git`` in the bare repository and return its output, within the limits."""
        stopped = threading.Event()
        try:
            return await to_thread.run_sync(self._run, arguments, given, limit, stopped, abandon_on_cancel=True)
        finally:
            stopped.set()

    def _run(self, arguments: Sequence[str], given: bytes, limit: int, stopped: threading.Event) -> bytes:
        git = shutil.which("git")
        if git is None:
            raise UpstreamError("git-missing", "git is not installed", "install git, and run the command again")
        settings = [word for setting in (*_SETTINGS, *self._protocols()) for word in ("-c", setting)]
        with TemporaryFile() as entered, TemporaryFile() as output, TemporaryFile() as errors:
            entered.write(given)
            entered.seek(0)
            # In a session of its own there is no terminal, so neither git nor ssh can ask for anything.
            process = subprocess.Popen(  # noqa: S603 - no shell, and every address follows "--"
                [git, *settings, *arguments],
                cwd=self._folder,
                env=_environment(self._folder),
                stdin=entered,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )
            try:
                self._wait(process, output, limit, stopped)
            finally:
                _kill(process)
            errors.seek(0)
            if process.returncode != 0:
                raise self._failure(errors.read(_ERROR_BYTES))
            output.seek(0)
            return output.read(limit)

    def _wait(
        self, process: subprocess.Popen[bytes], output: IO[bytes], limit: int, stopped: threading.Event
    ) -> None:
        """Wait for the end of the process; raises when it takes more time or room than it may."""
        deadline = time.monotonic() + self._limits.max_git_seconds
        is_running = True
        while is_running:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_SECONDS)
                is_running = False
            if stopped.is_set():
                raise UpstreamError("git-stopped", "the fetch was cancelled", "run the command again")
            if is_running and time.monotonic() > deadline:
                raise LimitError(
                    "git-too-slow",
                    f"git did not finish within {self._limits.max_git_seconds:.0f} seconds",
                    "check the address and the network, and try again",
                    rule="B4",
                )
            written = os.fstat(output.fileno()).st_size
            if written > limit or _bytes_below(self._folder) > self._limits.max_git_bytes:
                raise LimitError(
                    "git-too-large",
                    f"{self.source.url!r:.200} has more than {self._limits.max_git_bytes // MIB} MiB",
                    "copy the skills to a smaller repository",
                    rule="B1",
                )

    def _protocols(self) -> list[str]:
        """The protocols besides ``https`` and ``ssh`` that this source needs."""
        if self.source.is_local:
            return ["protocol.file.allow=always"]
        return ["protocol.http.allow=always"] if self.source.url.startswith("http://") else []

    def _failure(self, errors: bytes) -> UpstreamError:
        lines = errors.decode("utf-8", "replace").strip().splitlines()
        reason = next(
            (line for line in reversed(lines) if line.startswith(("fatal:", "error:"))), "".join(lines[-1:])
        )
        words = "".join(c if c.isprintable() else " " for c in reason.partition(": ")[2] or reason)
        return UpstreamError(
            "git-failed",
            f"git cannot read {self.source.url!r:.200}: {words[:300]}",
            f"try it yourself: git ls-remote {shlex.quote(self.source.url)}",
        )


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
        if head.size > self._limits.max_skill_md_bytes:
            return self.source.name
        return name_in(await self._repository.read(head.blob), self._limits) or self.source.name


def _environment(folder: Path) -> dict[str, str]:
    """The user's environment, in which git asks nothing and uses this repository only."""
    inherited = {key: value for key, value in os.environ.items() if key not in _REPOSITORY_VARIABLES}
    return {
        **inherited,
        "GIT_DIR": str(folder),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "",
        "SSH_ASKPASS": "",
        "SSH_ASKPASS_REQUIRE": "never",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C",
    }


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the process and its children, such as ``git-remote-https``."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _bytes_below(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # a temporary file may be gone
                total += os.lstat(os.path.join(parent, name)).st_size
    return total


def _invalid(message: str) -> FormatError:
    return FormatError("git-source-invalid", message, _FORMS)


def _skipped(path: str, kind: str) -> Diagnostic:
    return Diagnostic(
        "link-skipped",
        f"{printable(path)!r:.200} is {kind} and was skipped",
        "replace it by a copy of the files",
        file=printable(path),
    )
