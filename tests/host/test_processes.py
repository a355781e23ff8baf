"""Processes that are killed, and several on one state directory: whole, or not at all (A1, A2, C1, W1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adversarial.speaking import silence
from host.children import child
from host.stage import NO, Person, hosting, reference
from rules import rule
from skillwire.host.approvals import Answer
from skillwire.skill.approval import EXECUTE
from trees import skill_md

if TYPE_CHECKING:
    from pathlib import Path

    from adversarial.adversary import HostileServer

pytestmark = [pytest.mark.anyio, pytest.mark.slow]  # each starts a Python of its own; test_damage.py is quick

URI = "skill://flat/SKILL.md"

KILLED_WHILE_ASKING = """
async def ask(request):
    stop()

async def main(host):
    await host.load_skill("flat")

anyio.run(lambda: run(main, ask=ask))
"""


@rule("A1", "C1")
async def test_a_host_killed_while_a_person_is_asked_has_approved_nothing(
    server: HostileServer, state: Path
) -> None:
    """Nothing is kept, nothing is half there, and the next host asks again."""
    async with server.serving() as target, child(KILLED_WHILE_ASKING, state, target) as host:
        assert await host.line() == "stopped"
        await host.kill()
    person = Person(NO)
    async with hosting(state, {"one": server}, ask=person) as again:
        assert list(await again.store.approvals()) == []
        assert again.cache is not None
        assert again.cache.usage().files == 0
        assert reference(await again.load("flat")) == ("not-approved", "A1")
        assert person.kinds == ["load"]


KILLED_IN_A_TRANSACTION = """
async def main(host):
    def trace(statement):
        if statement.startswith("COMMIT"):
            stop()
    host.store.database._connection.set_trace_callback(trace)
    await host.load_skill("flat")

anyio.run(lambda: run(main))
"""


@rule("A1")
async def test_a_host_killed_before_a_yes_was_committed_has_not_heard_it(
    server: HostileServer, state: Path
) -> None:
    """The approval and its line in the log are there together, or neither is."""
    async with server.serving() as target, child(KILLED_IN_A_TRANSACTION, state, target) as host:
        assert await host.line() == "stopped"
        await host.kill()
    async with hosting(state, {"one": server}) as again:
        assert (list(await again.store.approvals()), await again.happened()) == ([], [])
        assert reference(await again.load("flat")) == ("cannot-ask", "A1")


KILLED_WHILE_KEEPING = """
import skillwire.store.content_cache
async def main(host):
    setattr(skillwire.store.content_cache.os, sys.argv[3], stop)
    await host.load_skill("flat")

anyio.run(lambda: run(main))
"""


@rule("A1", "C1")
@pytest.mark.parametrize("moment", ["write", "rename"])
async def test_a_host_killed_while_it_keeps_a_file_has_the_yes_and_not_the_file(
    server: HostileServer, state: Path, moment: str
) -> None:
    """What was committed stands; half a file is found by nobody, and it is fetched again unasked."""
    async with server.serving() as target, child(KILLED_WHILE_KEEPING, state, target, moment) as host:
        assert await host.line() == "stopped"
        await host.kill()
    async with hosting(state, {"one": server}) as again:
        assert [approval.uri for approval in await again.store.approvals()] == [URI]
        assert again.cache is not None
        assert (again.cache.usage().files, again.cache.verify()) == (0, [])
        assert not (await again.load("flat")).is_error
        assert again.cache.usage().files == 1


KILLED_WHILE_READING = """
async def main(host):
    await host.load_skill("flat")
    say("loaded")
    await host.read_skill_file("flat", "notes.md")

anyio.run(lambda: run(main))
"""


@rule("C1", "W1")
async def test_a_host_killed_while_a_server_answers_kept_what_came_before(
    server: HostileServer, state: Path
) -> None:
    """The skill that was loaded is in the cache; a window does not outlive its process."""
    server.answers["resources/read"] = lambda params: None if params["uri"] == URI else silence(params)
    async with server.serving() as target, child(KILLED_WHILE_READING, state, target) as host:
        assert await host.line() == "loaded"
        await server.until(lambda: len(server.read_uris()) == 2)
        await host.kill()
    server.answers.clear()
    async with hosting(state, {"one": server}) as again:
        assert await again.happened() == ["approved", "loaded"]
        assert reference(await again.read("flat", "notes.md")) == ("skill-not-loaded", "W2")
        assert not (await again.load("flat")).is_error
        assert server.read_uris() == [URI, "skill://flat/notes.md"]


MANY = """
async def main(host):
    say("ready")
    await anyio.to_thread.run_sync(sys.stdin.readline)
    for status in await host.skills():
        result = await host.load_skill(status.name)
        assert "Do it." in result.text, result
        file = await host.read_skill_file(status.name, "notes.md")
        assert file.data == b"notes", file
    say("done")

anyio.run(lambda: run(main))
"""


@rule("A1", "C1")
async def test_two_hosts_on_one_state_directory_do_not_hurt_each_other(server: HostileServer, state: Path) -> None:
    """Both approve and load the same skills at once; every yes is there once, every line in the log."""
    for number in range(5):
        server.add(f"s{number}", {"SKILL.md": skill_md(f"s{number}"), "notes.md": b"notes"})
    server.entries.pop(0)
    async with (
        server.serving() as target,
        child(MANY, state, target) as one,
        child(MANY, state, target) as two,
    ):
        for each in (one, two):
            assert await each.line() == "ready"
        for each in (one, two):
            await each.tell()
        for each in (one, two):
            assert await each.line() == "done"
            await each.end()
    async with hosting(state, {"one": server}) as host:
        assert len(await host.store.approvals()) == 5
        happened = await host.happened()
        assert (happened.count("loaded"), happened.count("read")) == (10, 10)
        assert 5 <= happened.count("approved") <= 10
        assert host.cache is not None
        assert (host.cache.usage().files, host.cache.verify()) == (10, [])


REVOKE = """
async def main(host):
    assert await host.revoke("flat", by="another program")
    say("done")

anyio.run(lambda: run(main))
"""


@rule("A2", "A5", "W1")
async def test_an_approval_that_another_process_takes_back_is_taken_back_here(
    server: HostileServer, state: Path
) -> None:
    """A skill that is acted on reads and runs nothing more, in every host of that state."""
    person = Person(Answer(yes=True, grants=frozenset({EXECUTE})))
    async with hosting(state, {"one": server}, ask=person) as host:
        await host.load("flat")
        assert await host.gate("Bash") is None
        async with child(REVOKE, state, f"http://127.0.0.1:{server.port}/mcp") as other:
            assert await other.line() == "done"
            await other.end()
        declined = await host.gate("Bash")
        assert declined is not None
        assert (declined.reference, declined.rule) == ("skill-changed", "A2")
        assert reference(await host.read("flat", "notes.md")) == ("skill-changed", "A2")
        assert host.granted() == frozenset()
        person.answers[:] = [NO]
        assert reference(await host.load("flat")) == ("not-approved", "A1")
