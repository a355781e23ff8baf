"""Clients that read everything again and again while the world under them changes, and what they may see of it.

A round that begins and ends under one truth must show exactly that. One during which the truth changed may show
of each file what was true before or after, and may decline a file that was replaced between listing and reading.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple, cast

import anyio
from agent_framework import MCPSkillsSource
from agent_framework import SkillsSourceContext as Context
from anyio import to_thread
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp import Client

from interop.honest import by_path, files_by_skill, hashes
from interop.running import PEERS
from interop.test_inspector import OK, verify

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from interop.running import Node
    from trees import Tree

    Read = Callable[[], Awaitable["Found"]]

SECONDS = 90
_LONGEST_LINE = 1 << 20


class Found(NamedTuple):
    """The hash of every file that a client read, by path, and what it complained of."""

    read: dict[str, str]
    complaint: str = ""


class Readers:
    """Clients at work, and the truth: the tree that they may see, or two while one takes the other's place."""

    def __init__(self, tree: Tree) -> None:
        self.truths = (tree,)
        self._rounds = 0
        self._ended = anyio.Event()

    async def run(self, reads: Mapping[str, Read]) -> None:
        """Have all clients read everything at the same time, round after round, until cancelled."""
        while True:
            async with anyio.create_task_group() as group:
                for name, read in reads.items():
                    group.start_soon(self._read, name, read)
            self._rounds += 1
            self._ended.set()
            self._ended = anyio.Event()

    async def rounds(self, many: int) -> None:
        """Wait until so many rounds ended that began after this call."""
        goal = self._rounds + many + 1  # one may be under way
        with anyio.fail_after(SECONDS):
            while self._rounds < goal:
                await self._ended.wait()

    async def _read(self, name: str, read: Read) -> None:
        before = self.truths
        found = await read()
        check_found(name, found, *before, *self.truths)


def check_found(name: str, found: Found, *truths: Tree) -> None:
    """See the module's docstring."""
    first, *others = map(hashes, truths)
    if all(other == first for other in others):
        assert (name, found.complaint, found.read) == (name, "", first)
        return
    for path, digest in found.read.items():
        assert digest in {truth.get(path) for truth in (first, *others)}, f"{name} read something else at {path}"
    lasting = {path for path, digest in first.items() if all(other.get(path) == digest for other in others)}
    assert lasting <= found.read.keys(), f"{name} did not read what never changed"


@asynccontextmanager
async def typescript(node: Node, url: str) -> AsyncIterator[Read]:
    """The official TypeScript client on one connection that lasts."""
    command = [str(node.program), str(PEERS / "read_again.mjs"), "modern", "http", url]
    async with await anyio.open_process(command, stderr=None) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        words, lines = process.stdin, BufferedByteReceiveStream(process.stdout)

        async def read() -> Found:
            await words.send(b"again\n")
            found = json.loads(await lines.receive_until(b"\n", _LONGEST_LINE))
            return Found(by_path(found["read"]), "; ".join(found["refused"].values()))

        try:
            yield read
        finally:
            process.kill()


def inspector(node: Node, url: str) -> Read:
    """The Inspector's command line, which verifies."""

    async def read() -> Found:
        verdict = await to_thread.run_sync(verify, node, [url], "modern")
        files = [file for report in verdict.reports.values() for file in report["files"]]
        verified = {file["uri"]: file["actualDigest"] for file in files if file["status"] == "verified"}
        read = {path: digest.removeprefix("sha256:") for path, digest in by_path(verified).items()}
        return Found(read, "" if verdict.code == OK else verdict.summary)

    return read


@asynccontextmanager
async def agent_framework(url: str, readers: Readers) -> AsyncIterator[Read]:
    """Microsoft Agent Framework on one connection that lasts. It knows files by name only: the truth's."""
    async with Client(url) as client:

        async def read() -> Found:
            wanted = files_by_skill(readers.truths[-1])
            found: dict[str, bytes] = {}
            for skill in await MCPSkillsSource(client=client).get_skills(cast("Context", None)):
                path = _path_of(skill)
                found[f"{path}/SKILL.md"] = (await skill.get_content()).encode()
                for file in wanted.get(path, []):
                    resource = await skill.get_resource(file.removeprefix(f"{path}/"))
                    if resource is not None:
                        data = await resource.read() or b""  # it makes nothing of an empty text
                        found[file] = data.encode() if isinstance(data, str) else data
            return Found({path: sha256(data).hexdigest() for path, data in found.items()})

        yield read


def _path_of(skill: object) -> str:
    uri: str = skill._skill_md_uri  # type: ignore[attr-defined] # names are not unique, and it shows nothing else
    return next(iter(by_path({uri: None}))).removesuffix("/SKILL.md")
