"""A Git repository for tests, which commits change and ``git http-backend`` serves over HTTP."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from trees import write_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


class Repository:
    """A repository with a work tree at ``folder``."""

    def __init__(self, folder: Path, files: Mapping[str, bytes]) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("config", "uploadpack.allowAnySHA1InWant", "true")
        self.commit(files)

    def git(self, *arguments: str) -> str:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            **{
                f"GIT_{role}_{what}": "tests@example.com"
                for role in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")
            },
        }
        run = subprocess.run(
            ["git", "-c", "protocol.file.allow=always", *arguments],
            cwd=self.folder, env=environment, check=True, capture_output=True, text=True,
        )  # fmt: skip
        return run.stdout.strip()

    def commit(self, files: Mapping[str, bytes] | None = None) -> str:
        """Write ``files``, commit everything in the work tree, and return the id."""
        if files:
            write_tree(self.folder, dict(files))
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--allow-empty", "--message", "A change")
        return self.git("rev-parse", "HEAD")


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The URL under which ``git http-backend`` serves the repositories in ``folder``."""

    class Backend(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            place = urlsplit(self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            environment = {
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(folder),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "REQUEST_METHOD": self.command,
                "PATH_INFO": place.path,
                "QUERY_STRING": place.query,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
            }
            run = subprocess.run(
                ["git", "http-backend"], env=environment, input=body, capture_output=True, check=False
            )
            head, _, content = run.stdout.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
            self.send_response(int(headers.pop("Status", "200").split()[0]))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            return

    with _running(Backend) as url:
        yield url


@contextmanager
def answering(status: int, headers: Mapping[str, str] | None = None) -> Iterator[str]:
    """The URL of a server that answers every request with ``status``."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": "0", **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    with _running(Answer) as url:
        yield url


@contextmanager
def _running(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
