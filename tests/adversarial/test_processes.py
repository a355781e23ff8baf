"""Lies that only a child process can tell: junk, death, stubbornness, last output (B1, B2, B4)."""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from adversarial.adversary import MIB, SMALL
from adversarial.expecting import listed, memory_below, only, refused
from adversarial.speaking import Raw, to_message
from rules import rule
from skillwire import connect
from skillwire.client.bounds import Meter
from skillwire.client.stdio import each_line, running
from skillwire.errors import LimitError, NotFoundError, UpstreamError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from adversarial.adversary import HostileServer

pytestmark = pytest.mark.anyio

JUNK = (
    b"Starting server...\n",
    b"\n  \n\r\n",
    b"{}\n[]\nnull\n7\n",
    b'{"level": "info", "msg": "listening"}\n',
    b"\xff\xfe\x00 not text\n",
    b"{" * 100_000 + b"\n",
)


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


@rule("B1")
async def test_junk_on_stdout_is_no_message(process: HostileServer) -> None:
    """Servers print; the answer is found all the same, CRLF or not."""
    result = await process.answer("skills/list", {})

    async def noisy(request_id: Any) -> AsyncIterator[bytes]:
        for junk in JUNK:
            yield junk
        yield to_message(request_id, result) + b"\r\n"
        yield b"Done.\n"

    process.answers["skills/list"] = Raw(noisy)
    async with process.connect(dialect="extension") as client:
        assert await only(client)
        assert await only(client)
        assert client.connection.opened == 1


@rule("B2")
async def test_endless_junk_meets_the_budget(process: HostileServer) -> None:
    """Lines that are no messages count too."""

    async def junk(_: Any) -> AsyncIterator[bytes]:
        while True:
            yield b"still starting...\n" * 1000

    process.answers["skills/list"] = Raw(junk)
    async with process.connect(dialect="extension", limits=replace(SMALL, max_server_bytes=MIB // 8)) as client:
        with memory_below(8 * MIB), refused(LimitError, "server-budget", "B2"):
            await listed(client)
        assert client.connection.meter.received < MIB


@rule("B2")
async def test_endless_messages_meet_the_budget(process: HostileServer) -> None:
    """Requests and notifications that nobody asked for."""
    note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 500}}
    asks = {"jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage", "params": {"messages": []}}

    lines = json.dumps(note).encode() + b"\n" + json.dumps(asks).encode() + b"\n"

    async def chatter(_: Any) -> AsyncIterator[bytes]:
        while True:
            yield lines

    process.answers["skills/list"] = Raw(chatter)
    async with process.connect(dialect="extension", limits=replace(SMALL, max_server_bytes=MIB // 8)) as client:
        with memory_below(24 * MIB), refused(LimitError, "server-budget", "B2"):
            await listed(client)


@rule("B1")
async def test_a_line_that_never_ends_meets_the_bound_of_a_message(process: HostileServer) -> None:
    """Long before the server's budget."""

    async def unfinished(_: Any) -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 1000

    process.answers["skills/list"] = Raw(unfinished)
    limits = replace(SMALL, max_message_bytes=MIB // 8, max_server_bytes=16 * MIB)
    async with process.connect(dialect="extension", limits=limits) as client:
        with memory_below(4 * MIB), refused(LimitError, "message-too-large", "B1"):
            await listed(client)
        assert client.connection.meter.received < MIB


async def test_a_process_gets_few_of_our_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens in our environment are not the server's."""
    monkeypatch.setenv("SECRET_TOKEN", "mine")
    command = python("import json, os; print(json.dumps(dict(os.environ)))")
    meter = Meter(SMALL)
    async with (
        running(command, {"GIVEN": "yours"}, None, meter) as child,
        aclosing(each_line(child.stdout, meter)) as lines,
    ):
        seen = json.loads(await anext(lines))
    assert seen.pop("GIVEN") == "yours"
    seen.pop("LC_CTYPE", None)  # Python sets it for itself
    assert seen.keys() <= {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"}


async def test_a_command_that_does_not_exist_says_so() -> None:
    with refused(NotFoundError, "command-failed") as caught:
        async with connect(["/no/such/command", "serve"], limits=SMALL):
            pytest.fail("there is no such command")
    assert "/no/such/command" in caught.value.message


async def test_a_file_that_is_no_command_says_so(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("not a program")
    with refused(NotFoundError, "command-failed") as caught:
        async with connect([str(tmp_path / "notes.md")], limits=SMALL):
            pytest.fail("that is no command")
    assert "notes.md" in caught.value.message


@rule("B4")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_last_output_of_a_process_is_in_the_error(mode: str) -> None:
    """A command that ends at once."""
    command = python("import sys; print('a\\nb', file=sys.stderr); sys.exit('Error: no token is set')")
    with refused(UpstreamError, "connection-lost") as caught:
        async with connect(command, limits=SMALL, mode=mode):
            pytest.fail("it ended at once")
    assert "Error: no token is set" in caught.value.message


async def test_a_process_that_ends_without_a_word_is_a_lost_connection() -> None:
    with refused(UpstreamError, "connection-lost"):
        async with connect(python("pass"), limits=SMALL):
            pytest.fail("it ended at once")


@rule("B1")
async def test_words_without_end_are_not_kept(process: HostileServer, tmp_path: Path) -> None:
    """A process may write as much as it likes to stderr."""
    async with process.serving() as command:
        loud = tmp_path / "loud.py"
        relay = command[3]
        loud.write_text(
            "import sys, runpy\n"
            "for _ in range(200): sys.stderr.write('w' * 65536)\n"
            f"sys.argv = ['relay', {command[4]!r}]\n"
            f"runpy.run_path({relay!r}, run_name='__main__')\n"
        )
        with memory_below(8 * MIB):
            async with connect([sys.executable, "-I", "-S", str(loud)], limits=SMALL) as client:
                assert await only(client)
                assert len(client.connection.meter.last_output) < 10_000


def is_running(number: int) -> bool:
    try:
        with open(f"/proc/{number}/stat") as status:
            return status.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@rule("B4")
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at /proc")
async def test_a_process_that_does_not_want_to_end_is_ended_with_its_children(
    process: HostileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deaf to the end of stdin and to SIGTERM, and with a child of its own."""
    monkeypatch.setattr("skillwire.client.stdio._GRACE_SECONDS", 0.1)
    numbers = tmp_path / "numbers"
    stubborn = tmp_path / "stubborn.py"
    async with process.serving() as command:
        stubborn.write_text(
            "import os, runpy, signal, sys, time\n"
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "child = os.fork()\n"
            "if not child:\n"
            "    time.sleep(1000)\n"
            f"with open({str(numbers)!r}, 'w') as out: print(os.getpid(), child, file=out)\n"
            "os._exit = lambda code: time.sleep(1000)\n"
            f"sys.argv = ['relay', {command[4]!r}]\n"
            f"runpy.run_path({command[3]!r}, run_name='__main__')\n"
        )
        family: list[int] = []
        try:
            with anyio.fail_after(20):
                async with connect([sys.executable, "-I", "-S", str(stubborn)], limits=SMALL) as client:
                    assert await only(client)
                    family += [int(number) for number in numbers.read_text().split()]
                    assert all(map(is_running, family))
            assert not any(map(is_running, family))
        finally:
            for number in filter(is_running, family):
                os.kill(number, signal.SIGKILL)


@rule("B4")
async def test_a_process_is_ended_when_the_block_fails(process: HostileServer, tmp_path: Path) -> None:
    """Whatever the reason, nothing is left behind, and the reason is told as itself."""
    note = tmp_path / "number"
    async with process.serving() as command:
        wrapper = (
            f"import os, runpy, sys; open({str(note)!r}, 'w').write(str(os.getpid()));"
            f"sys.argv = ['relay', {command[4]!r}]; runpy.run_path({command[3]!r}, run_name='__main__')"
        )

        async def fail() -> None:
            async with connect(python(wrapper), limits=SMALL) as client:
                await listed(client)
                raise SystemExit(7)

        with pytest.raises(SystemExit, match="7"):
            await fail()
    assert not is_running(int(note.read_text()))
