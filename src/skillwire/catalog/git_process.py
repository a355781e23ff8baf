"""Runs the user's own ``git`` in a bare repository: without questions, within limits, and with errors for people.

Every protocol but those of ``git_source`` is forbidden, even if the user's configuration or a redirect uses one.
Of the ``GIT_*`` variables only those for connections are passed on, and no hook or helper of a repository takes
part. A process has limits on its time, on the bytes that it may write, and on each piece of memory that it
requests. It runs in a session of its own, where neither git nor ssh has a terminal to ask on, and ends with all
its children.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time
from contextlib import suppress
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

from anyio import to_thread

from skillwire.catalog.git_source import without_credentials
from skillwire.errors import FormatError, LimitError, NotFoundError, SkillwireError, UpstreamError
from skillwire.limits import MIB, Limits

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skillwire.catalog.git_source import GitSource

_OUTPUT_BYTES = 64 * MIB
_ERROR_BYTES = 64 * 1024
_POLL_SECONDS = 0.05
# For connections only. Others could make git use another repository, write files, or log passwords.
_PASSED_ON = re.compile(
    "GIT_(SSH|SSH_COMMAND|SSH_VARIANT|SSL_CAINFO|SSL_CAPATH|SSL_CERT|SSL_KEY|PROXY_COMMAND|HTTP_PROXY_AUTHMETHOD"
    "|EXEC_PATH|CONFIG_(GLOBAL|SYSTEM|NOSYSTEM|COUNT|KEY_[0-9]+|VALUE_[0-9]+))"
)
# What a repository or the user's configuration could turn on, and a fetch does not need.
_SETTINGS = (
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.askPass=", "core.bigFileThreshold=16m",
    "core.alternateRefsCommand=", "submodule.recurse=false", "fetch.recurseSubmodules=false",
    "fetch.writeCommitGraph=false", "fetch.fsckObjects=true", "fetch.unpackLimit=1", "transfer.bundleURI=false",
    "gc.auto=0", "maintenance.auto=false", "credential.interactive=false", "http.followRedirects=initial",
)  # fmt: skip


class GitProcess:
    """Runs ``git`` in the bare repository ``folder``, for ``source``."""

    def __init__(self, source: GitSource, folder: Path, limits: Limits) -> None:
        self._source = source
        self._folder = folder
        self._limits = limits

    async def run(self, *arguments: str, given: bytes = b"", limit: int = _OUTPUT_BYTES) -> bytes:
        """The output of a command; ``LimitError`` if it has more than ``limit`` bytes."""
        stopped = threading.Event()
        try:
            return await to_thread.run_sync(self._run, arguments, given, limit, stopped, abandon_on_cancel=True)
        finally:
            stopped.set()

    def _run(self, arguments: Sequence[str], given: bytes, limit: int, stopped: threading.Event) -> bytes:
        git = shutil.which("git")
        if git is None:
            raise UpstreamError("git-missing", "git is not installed", "install git, and run the command again")
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        with TemporaryFile() as entered, TemporaryFile() as output, TemporaryFile() as errors:
            entered.write(given)
            entered.seek(0)
            process = subprocess.Popen(  # noqa: S603 - no shell, and every address follows "--"
                [git, *settings, *arguments],
                cwd=self._folder,
                env=self._environment(),
                stdin=entered,
                stdout=output,
                stderr=errors,
                start_new_session=True,
            )
            try:
                self._wait(process, output, limit, stopped)
            finally:
                with suppress(ProcessLookupError, PermissionError):  # also its children, such as git-remote-https
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if process.returncode != 0:
                errors.seek(0)
                raise self._failure(errors.read(_ERROR_BYTES).decode("utf-8", "replace"))
            output.seek(0)
            return output.read(limit)

    def _environment(self) -> dict[str, str]:
        inherited = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith("GIT_") or _PASSED_ON.fullmatch(key)
        }
        protocols = ["https", "ssh"]
        if self._source.is_local:
            protocols.append("file")
        elif self._source.url.startswith("http://"):
            protocols.append("http")
        return {
            **inherited,
            "GIT_DIR": str(self._folder),
            "GIT_ALLOW_PROTOCOL": ":".join(protocols),  # it overrides every protocol.*.allow
            "GIT_ALLOC_LIMIT": f"{self._limits.max_git_bytes // 1024}k",  # a small delta can mean gigabytes
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ASKPASS": "",
            "SSH_ASKPASS": "",
            "SSH_ASKPASS_REQUIRE": "never",
            "GCM_INTERACTIVE": "never",
            "GIT_LFS_SKIP_SMUDGE": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "LC_ALL": "C",
        }

    def _wait(
        self, process: subprocess.Popen[bytes], output: IO[bytes], limit: int, stopped: threading.Event
    ) -> None:
        """Wait for the end of the process; raises when it takes more time or room than it may."""
        seconds, room = self._limits.max_git_seconds, bytes_below(self._folder) + self._limits.max_git_bytes
        deadline = time.monotonic() + seconds
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
                    f"{self._name} did not answer within {seconds:.0f} seconds",
                    "check the address and the network; to wait longer: --timeout SECONDS",
                    rule="B4",
                )
            if os.fstat(output.fileno()).st_size > limit:
                raise LimitError("git-too-large", f"{self._name} has too many files", "name a folder: #folder")
            if bytes_below(self._folder) > room:
                raise self._too_large()

    @property
    def _name(self) -> str:
        return f"{self._source.url!r:.200}"

    def _too_large(self) -> LimitError:
        return LimitError(
            "git-too-large",
            f"{self._name} has more than {self._limits.max_git_bytes // MIB} MiB",
            "copy the skills to a smaller repository",
            rule="B1",
        )

    def _failure(self, errors: str) -> SkillwireError:
        """The error for the output of a failed command. Git has no codes, so its English messages are matched."""
        source, url, quoted = self._source, self._source.url, shlex.quote(self._source.url)
        see = f"try it yourself: git ls-remote {quoted}"

        def has(*patterns: str) -> bool:
            return any(re.search(pattern, errors, re.IGNORECASE) for pattern in patterns)

        if has("attempting to allocate", "out of memory"):
            return self._too_large()
        if has("couldn't find remote ref", "not our ref", "unadvertised object", "no such remote ref"):
            if not source.ref:
                return NotFoundError(
                    "git-empty", f"{self._name} has no commits", "commit and push something first"
                )
            what = "commit" if source.is_pinned else "branch or tag"
            return NotFoundError(
                "git-ref-unknown",
                f"{self._name} has no {what} {source.ref!r:.100}",
                f"see its branches and tags: git ls-remote {quoted}",
            )
        if has("could not read (username|password)", "authentication failed", r"error: 40[13]\b"):
            return UpstreamError(
                "git-sign-in",
                f"{self._name} does not exist, or git has to sign in to read it",
                f"check the spelling; for a private repository, sign in once: git ls-remote {quoted}",
            )
        if has(r"permission denied \(", "publickey"):
            return UpstreamError("git-sign-in", f"{self._name} refuses your SSH key", see)
        if has("host key verification failed"):
            host = url.partition("://")[2].partition("/")[0] if "://" in url else url.partition(":")[0]
            return UpstreamError(
                "git-host-unknown",
                f"ssh does not know the key of the host of {self._name}",
                f"connect once and compare the key: ssh {shlex.quote(host)}",
            )
        if has("dubious ownership"):
            return UpstreamError(
                "git-other-owner",
                f"{self._name} belongs to another user, so git does not read it",
                f"if you trust it: git config --global --add safe.directory {quoted}",
            )
        if has("repository .*not found", "not appear to be a git repository", "does not exist", r"error: 404\b"):
            return NotFoundError("git-unknown", f"{self._name} is not a Git repository", see)
        if has(
            "could not resolve host", "failed to connect", "couldn't connect", "connection (refused|timed out)"
        ):
            return UpstreamError("git-unreachable", f"the host of {self._name} cannot be reached", see)
        if has(r"transport '.*' not allowed"):
            return FormatError(
                "git-protocol",
                f"{self._name} leads to a protocol that is not allowed",
                "see url.*.insteadOf: git config --get-regexp '^url'",
            )
        lines = errors.strip().splitlines()
        reasons = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines[-1:] or ["no reason"]
        words = "".join(c if c.isprintable() else " " for c in without_credentials(reasons[0].partition(": ")[2]))
        if has("fsck"):
            return UpstreamError(
                "git-invalid",
                f"{self._name} has objects that git refuses: {words:.300}",
                "ask its owner to fix them",
            )
        return UpstreamError("git-failed", f"git cannot read {self._name}: {words:.300}", see)


def bytes_below(folder: Path) -> int:
    """The bytes of all files below ``folder``."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # a temporary file may be gone
                total += os.lstat(os.path.join(parent, name)).st_size
    return total
