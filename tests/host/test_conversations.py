"""Conversations share a host, and each has its own acting windows; a host uses only what it is given."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

import pytest
from anyio import from_thread

from host.stage import NO, YES, Person, hosting, make_dynamic, reference, rotate
from rules import rule
from skillwire import Answer, ApprovalRequest, MemoryCatalog, Policy, Rule, Skill, SkillHost
from skillwire.host.state import open_store
from skillwire.store.place import state_folder
from skillwire.store.records import StoredOrigin
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adversarial.adversary import HostileServer

pytestmark = pytest.mark.anyio
SKILL_MD = "skill://flat/SKILL.md"
CATALOG = {"acme": MemoryCatalog([Skill("flat", {"SKILL.md": skill_md("flat")})])}


@rule("W1", "V2")
async def test_a_skill_loaded_in_one_conversation_is_not_loaded_in_another(
    state: Path, person: Person, server: HostileServer
) -> None:
    async with hosting(state, {"one": server}, ask=person) as host:
        one, other = host.conversation(), host.conversation()
        assert not (await one.call("load_skill", {"name": "flat"})).is_error
        read = {"name": "flat", "path": "notes.md"}
        assert "notes" in (await one.call("read_skill_file", read)).text
        for not_loaded in (other, host):
            assert reference(await not_loaded.call("read_skill_file", read)) == ("skill-not-loaded", "W2")
        assert person.kinds == ["load"]
        await other.call("load_skill", {"name": "flat"})
        assert person.kinds == ["load"]  # the approval is the host's


@rule("A5")
async def test_the_gate_asks_only_about_skills_of_its_own_conversation(
    state: Path, person: Person, server: HostileServer
) -> None:
    person.answers = [YES, NO]
    async with hosting(state, {"one": server}, ask=person) as host:
        one, other = host.conversation(), host.conversation()
        await one.call("load_skill", {"name": "flat"})
        assert (await other.gate("shell"), await host.gate("shell")) == (None, None)
        refusal = await one.gate("shell")
        assert refusal is not None
        assert '"shell"' in refusal.for_model
        assert '"flat"' in refusal.for_model
        one.leave("flat")
        assert await one.gate("shell") is None


@rule("A2")
@pytest.mark.parametrize("how", ["revoke", "decline", "change"])
async def test_a_revocation_closes_the_window_in_every_conversation(
    how: str, state: Path, person: Person, server: HostileServer
) -> None:
    async with hosting(state, {"one": server}, ask=person) as host:
        conversations = [host.conversation(), host.conversation()]
        for each in conversations:
            await each.call("load_skill", {"name": "flat"})
        if how == "change":
            rotate(server, SKILL_MD, skill_md("flat", body="Something else.\n"))
            await host.relist("one")
        else:
            await getattr(host, how)("flat")
        for each in conversations:
            result = await each.call("read_skill_file", {"name": "flat", "path": "notes.md"})
            assert reference(result) == ("skill-changed", "A2")


async def test_the_state_of_an_origin_has_its_address_its_error_and_a_hint(
    state: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    mine = write_tree(tmp_path / "mine", {"own/SKILL.md": skill_md("own")})
    servers = {
        **CATALOG,
        "dead": "http://user:secret@127.0.0.1:9/mcp?key=secret",
        "none": ["no-such-program", "--token", "secret"],
    }
    with caplog.at_level(logging.WARNING, "skillwire.host"):
        async with SkillHost.open(servers=servers, folders={"mine": mine}, state=state) as host:
            await host.settle()
            found = {origin.label: origin for origin in host.origins()}
    assert (found["acme"].state, found["acme"].skills, found["acme"].error) == ("complete", 1, None)
    assert (found["acme"].address, found["acme"].dialect) == ("in memory: MemoryCatalog", "extension")
    assert (found["mine"].address, found["mine"].dialect) == (str(mine), "folder")
    assert (found["dead"].state, found["dead"].address) == ("unreachable", "http://…@127.0.0.1:9/mcp")
    assert (found["none"].state, found["none"].address) == ("unreachable", "no-such-program --token …")
    for label in ("dead", "none"):
        error = found[label].error
        assert error is not None
        assert found[label].hint == error.hint != ""
        [line] = [record for record in caplog.records if f"'{label}'" in record.getMessage()]
        assert (line.levelname, line.name) == ("WARNING", "skillwire.host")
        assert error.message in line.getMessage()
        assert "secret" not in line.getMessage()


async def test_a_host_uses_only_the_origins_that_it_is_given(
    state: Path, monkeypatch: Any, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert state_folder() == tmp_path / "skillwire"
    for place in (state, state_folder()):
        store = await open_store(place)
        folder = write_tree(tmp_path / "stored", {"own/SKILL.md": skill_md("own")})
        await store.put_origin(StoredOrigin("stored", {"folder": str(folder)}, 0))
        await store.close()

    async def labels(**options: Any) -> list[str]:
        async with SkillHost.open(servers=CATALOG, **options) as host:
            return sorted(origin.label for origin in host.origins())

    assert await labels() == await labels(state=state) == ["acme"]
    assert await labels(state="user") == await labels(state=state, stored_origins=True) == ["acme", "stored"]


async def test_without_a_state_nothing_is_written(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    async with SkillHost.open(servers=CATALOG, ask=lambda _: True) as host:
        await host.settle()
        assert not (await host.call("load_skill", {"name": "flat"})).is_error
        assert [skill.status for skill in await host.skills()] == ["approved"]
    assert list(tmp_path.iterdir()) == []  # noqa: ASYNC240


async def asynchronous(_: ApprovalRequest) -> Answer:
    return Answer(yes=True)


def blocking(request: ApprovalRequest) -> bool:
    """A plain function may block, and may still read the skill."""
    assert threading.current_thread() is not threading.main_thread()
    return from_thread.run(request.review).text is not None


WAYS: dict[str, Callable[[ApprovalRequest], Any]] = {
    "async": asynchronous,
    "sync": blocking,
    "a bool": lambda _: True,
    "a lambda around a coroutine": lambda request: asynchronous(request),
    "an object": Person(),
}


@rule("A1")
@pytest.mark.parametrize("way", WAYS)
async def test_an_answer_may_come_from_any_kind_of_function(way: str) -> None:
    async with SkillHost.open(servers=CATALOG, ask=WAYS[way]) as host:
        await host.settle()
        assert not (await host.call("load_skill", {"name": "flat"})).is_error


async def failing(_: ApprovalRequest) -> bool:
    raise RuntimeError("the window is closed")


@rule("A1")
@pytest.mark.parametrize("ask", [failing, lambda _: 1 / 0, lambda _: None, lambda _: "yes"])
async def test_a_function_that_fails_refuses_the_skill(ask: Any) -> None:
    async with SkillHost.open(servers=CATALOG, ask=ask) as host:
        await host.settle()
        assert reference(await host.call("load_skill", {"name": "flat"})) == ("ask-failed", "A1")


@rule("A1")
async def test_no_is_an_answer_too() -> None:
    async with SkillHost.open(servers=CATALOG, ask=lambda _: False) as host:
        await host.settle()
        assert reference(await host.call("load_skill", {"name": "flat"})) == ("not-approved", "A1")
        assert [skill.status for skill in await host.skills()] == ["declined"]


CALLS: dict[str, tuple[str, dict[str, Any], str]] = {
    "skill": ("load_skill", {"name": "nothing"}, 'the skill "nothing"'),
    "file": ("read_skill_file", {"name": "flat", "path": "a.md"}, 'the file "a.md" of the skill "flat"'),
    "directory": ("list_skill_directory", {"name": "flat", "path": "a"}, 'the directory "a" of the skill "flat"'),
    "resource": ("read_resource", {"server": "x", "uri": "skill://a/b"}, '"skill://a/b" of the server "x"'),
    "tool": ("destroy", {}, 'the tool "destroy"'),
    "argument": ("load_skill", {"name": 3}, 'the argument "name"'),
    "arguments": ("load_skill", {"name": "flat", "arguments": {"a": 1}}, 'the argument "arguments"'),
}


@pytest.mark.parametrize("kind", CALLS)
async def test_a_refusal_tells_the_model_what_was_refused(kind: str) -> None:
    tool, arguments, subject = CALLS[kind]
    async with SkillHost.open(servers=CATALOG) as host:
        await host.settle()
        result = await host.call(tool, arguments)
    assert result.is_error
    assert subject in result.text


@rule("O2")
async def test_what_the_model_is_told_was_refused_is_short_and_visible() -> None:
    async with SkillHost.open(servers=CATALOG) as host:
        result = await host.call("load_skill", {"name": 'a\n"</skill>\u202e' + "x" * 500})
    assert "\n" not in result.text
    assert "\u202e" not in result.text
    assert "</skill>" not in result.text
    assert len(result.text) < 300


@rule("V7")
async def test_a_policy_still_decides_before_anyone_is_asked(state: Path, server: HostileServer) -> None:
    make_dynamic(server)
    policy = Policy([Rule("deny", kind="dynamic")])
    async with hosting(state, {"one": server}, policy=policy, ask=lambda _: True) as host:
        assert reference(await host.load("flat"))[0] == "not-approved"


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"folders": "skills"}, id="a-folder-as-text"),
        pytest.param({"servers": ["https://example.com/mcp"]}, id="servers-without-labels"),
        pytest.param({"servers": {"acme": 3}}, id="a-target-of-no-kind"),
    ],
)
async def test_a_host_of_the_wrong_things_is_a_type_error_at_once(given: dict[str, Any]) -> None:
    """The letters of a text would be folders, such as ``/``."""
    with pytest.raises(TypeError):
        async with SkillHost.open(**given):
            pass


async def test_a_host_that_asks_nobody_says_how_to_ask() -> None:
    """No command can approve a skill of a host whose state is in memory."""
    async with SkillHost.open(servers=CATALOG) as host:
        await host.settle()
        result = await host.call("load_skill", {"name": "flat"})
    assert result.refusal is not None
    assert result.refusal.reference == "cannot-ask"
    assert "ask=" in result.refusal.hint
