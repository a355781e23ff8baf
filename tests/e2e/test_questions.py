"""Processes that ask a person who is elsewhere: they wait, are answered by others, give up, and die."""

from __future__ import annotations

import json
import signal
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import Client, MCPError

from e2e.installing import serving
from e2e.talking import PATIENCE, Talking, gateway
from reviewed import approve
from rules import rule
from skillwire.cli.main import run
from skillwire.host.approvals import Answer
from skillwire.host.desk import LIVES_SECONDS, give_answer
from skillwire.host.state import open_store
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillwire.store.records import Question

FLAT = "skill://flat/SKILL.md"
STATE = ["--state", "state"]
HOST = [*STATE, "--config", "servers.json", "--timeout", str(PATIENCE)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where we are: a folder of skills, and a file with a server of it."""
    monkeypatch.chdir(tmp_path)
    write_tree(tmp_path / "tree", {"flat/SKILL.md": skill_md("flat", body="Do it well.\n")})
    command, *words = serving(Path("tree"))
    entry = {"command": command, "args": words, "cwd": str(tmp_path)}
    (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": {"acme": entry}}))
    (tmp_path / "gateway.toml").write_text('mode = "admit"\nservers = "servers.json"\n')
    return tmp_path


@contextmanager
def loading(folder: Path) -> Iterator[Talking]:
    """``skillwire load``, waiting for an answer."""
    with Talking("load", "flat", "--ask", "desk", *HOST, folder=folder) as process:
        process.wait_for_talk(r"skillwire approvals questions \w+ --state state")
        yield process


def questions(folder: Path, now: float | None = None) -> Sequence[Question]:
    async def look() -> Sequence[Question]:
        store = await open_store(folder / "state")
        try:
            return await store.questions(time.time() if now is None else now)
        finally:
            await store.close()

    return anyio.run(look)


@rule("A1")
def test_a_waiting_process_goes_on_when_another_approves(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same content; it says who, and the log says why."""
    with loading(folder) as process:
        assert run(["approvals", "questions", "--json", *STATE]) == 0
        [question] = json.loads(capsys.readouterr().out)["questions"]
        assert (question["by"], question["kind"], question["uri"]) == ("skillwire load", "load", FLAT)
        assert approve("flat", "--by", "ada", "--note", "read it whole", options=HOST) == 0
        assert "skillwire load" in capsys.readouterr().err
        code, out = process.wait()
    assert (code, "Do it well." in out) == (0, True), process.talk
    assert "ada" in process.talk
    assert run(["log", *STATE]) == 0
    assert "read it whole" in capsys.readouterr().out
    assert questions(folder) == []


@rule("A1")
def test_a_waiting_process_is_answered_by_its_question(folder: Path) -> None:
    """Who answers needs no server, only the memory."""
    with loading(folder) as process:
        [question] = questions(folder)

        async def answer() -> bool:
            store = await open_store(folder / "state")
            try:
                return await give_answer(store, question, Answer(yes=True, by="ada"))
            finally:
                await store.close()

        assert anyio.run(answer) is True
        code, out = process.wait()
    assert (code, "Do it well." in out) == (0, True), process.talk


@rule("A1")
def test_a_waiting_process_is_refused_when_another_declines(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is told why."""
    with loading(folder) as process:
        assert run(["approvals", "decline", "flat", "--note", "too curious", *HOST]) == 0
        assert "skillwire load" in capsys.readouterr().err
        assert process.wait() == (1, "")
    assert "too curious" in process.talk
    assert "[not-approved]" in process.talk


@rule("A1")
def test_what_was_declined_is_refused_until_somebody_changes_their_mind(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody is asked again, and everybody can see it."""
    assert run(["approvals", "decline", "flat", "--by", "ada", "--json", *HOST]) == 0
    declined = json.loads(capsys.readouterr().out)
    assert declined["uri"] == FLAT
    assert run(["load", "flat", "--ask", "desk", *HOST]) == 1
    assert "[skill-declined]" in capsys.readouterr().err
    assert run(["approvals", "show", "flat", "--json", *HOST]) == 0
    review = json.loads(capsys.readouterr().out)
    assert (review["status"], review["fingerprint"]) == ("declined", declined["fingerprint"])
    assert approve("flat", options=HOST) == 0
    assert run(["list", "--origins", *HOST]) == 0
    assert "\tapproved\t" in capsys.readouterr().out


def test_one_that_is_interrupted_takes_its_question_back(folder: Path) -> None:
    with loading(folder) as process:
        assert len(questions(folder)) == 1
        assert process.end(signal.SIGINT) == 130
    assert questions(folder) == []


def test_one_that_is_killed_is_not_asked_for_long(folder: Path) -> None:
    """Nobody can say yes to a process that is not there."""
    with loading(folder) as process:
        process.popen.kill()
        process.wait()
    [question] = questions(folder)
    assert question.waits_until - time.time() <= LIVES_SECONDS
    assert questions(folder, now=time.time() + LIVES_SECONDS) == []


@rule("A1")
def test_without_a_terminal_there_is_none_to_ask_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor is anybody, if nobody shall be."""
    assert run(["load", "flat", "--ask", "terminal", *HOST]) == 2
    assert "[no-terminal]" in capsys.readouterr().err
    assert run(["load", "flat", "--ask", "never", *HOST]) == 1
    assert "[cannot-ask]" in capsys.readouterr().err


@rule("A1")
@pytest.mark.anyio
async def test_what_a_gateways_client_wants_is_asked_and_then_served(folder: Path) -> None:
    """The client is told at once, and served as soon as somebody said yes."""

    async def read(client: Client) -> Any:
        return (await client.read_resource("skill://acme/flat/SKILL.md")).contents[0].text

    store = await open_store(folder / "state")
    try:
        with gateway(folder, "--policy", "gateway.toml", "--http", "0") as process:
            url = process.wait_for_talk(r"listening at (\S+) ")[1]
            process.wait_for_talk("skillwire approvals show ")
            async with Client(url) as client:
                with pytest.raises(MCPError, match="skillwire approvals show "):
                    await read(client)
                with anyio.fail_after(PATIENCE):
                    while not (found := await store.questions(time.time())):
                        await anyio.lowlevel.checkpoint()
                [question] = found
                assert (question.origin, question.entry.uri) == ("acme", FLAT)
                assert question.by.startswith("gateway, for client:")
                assert await give_answer(store, question, Answer(yes=True, by="ada"))
                assert "Do it well." in await read(client)
    finally:
        await store.close()
