"""The lock: equal values give equal text, an invalid text is refused, and one process writes it at a time."""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules import rule
from skillwire.errors import FormatError, NotFoundError, StoreError
from skillwire.install.lock import (
    Installed,
    Lock,
    Server,
    format_lock,
    held_lock,
    parse_lock,
    read_lock,
    require_lock,
)
from skillwire.install.transaction import replace_file

if TYPE_CHECKING:
    from pathlib import Path

DIGEST = "sha256:" + "a" * 64
SERVERS = [
    Server("url", ("https://skills.example.com/mcp",), dialect="index", era="legacy"),
    Server("command", ("npx", "some-server")),
    Server("folder", ("../skills",)),
    Server("label", ("acme",), config="mcp.json"),
]


def skill(name: str = "refunds", server: Server = SERVERS[0], **changes: Any) -> Installed:
    values: dict[str, Any] = {
        "name": name,
        "uri": f"skill://acme/{name}/SKILL.md",
        "server": server,
        "files": {"SKILL.md": DIGEST, "a/b.md": DIGEST},
        "agents": {"claude-code": "copy", "./tools/skills": "link"},
        "by": "ada",
        "at": "2026-11-03T10:00:00Z",
        "tool": "skillwire 0.1.0",
    }
    return Installed(**{**values, **changes})


def document(**changes: Any) -> dict[str, Any]:
    return {**json.loads(format_lock(Lock({"refunds": skill()}))), **changes}


def changed(**changes: Any) -> bytes:
    """A lock with one skill that somebody edited."""
    value = document()
    value["skills"]["refunds"] |= changes
    return json.dumps(value).encode()


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.kind)
def test_a_lock_comes_back_as_it_was(server: Server) -> None:
    lock = Lock({"refunds": skill(server=server)})
    assert parse_lock(format_lock(lock)) == lock


def test_the_text_is_sorted_and_ends_with_a_line_break() -> None:
    """One digest to a line, so that one changed file is one changed line."""
    one = format_lock(Lock({"b": skill("b"), "a": skill("a")}))
    other = format_lock(Lock({"a": skill("a", files={"a/b.md": DIGEST, "SKILL.md": DIGEST}), "b": skill("b")}))
    assert one == other
    assert one.endswith(b"}\n")
    moved = format_lock(
        Lock({"b": skill("b"), "a": skill("a", files={"SKILL.md": DIGEST, "a/b.md": DIGEST[:-1] + "b"})})
    )
    assert sum(x != y for x, y in zip(one.splitlines(), moved.splitlines(), strict=True)) == 1


def test_fields_of_others_are_kept() -> None:
    value = document(theirs={"a": 1})
    value["skills"]["refunds"]["note"] = "mine"
    value["skills"]["refunds"]["server"]["region"] = "eu"
    lock = parse_lock(json.dumps(value).encode()).having(skill("other"))
    written = json.loads(format_lock(lock))
    assert written["theirs"] == {"a": 1}
    assert written["skills"]["refunds"]["note"] == "mine"
    assert written["skills"]["refunds"]["server"]["region"] == "eu"


def test_a_newer_lock_is_not_guessed_at() -> None:
    with pytest.raises(FormatError) as caught:
        parse_lock(json.dumps({"version": 2, "skills": "who knows"}).encode())
    assert caught.value.reference == "lock-newer"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\xff\xfe", id="not-text"),
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(changed(at=0).replace(b" 0", b" " + b"1" * 5000), id="long-number"),
        pytest.param(b"[]", id="list"),
        pytest.param(b'{"version": true, "skills": {}}', id="version-is-true"),
        pytest.param(b'{"version": 1, "skills": []}', id="skills-are-a-list"),
        pytest.param(b'{"version": 1, "skills": {"a": {}, "a": {}}}', id="a-name-twice"),
        pytest.param(changed(uri="skill://acme/other/SKILL.md"), id="uri-of-another"),
        pytest.param(changed(uri="file:///etc/passwd"), id="uri-of-no-skill"),
        pytest.param(changed(uri=1), id="uri-is-a-number"),
        pytest.param(changed(files={}), id="no-files"),
        pytest.param(changed(files={"SKILL.md": "sha256:short"}), id="digest"),
        pytest.param(changed(files={"SKILL.md": DIGEST, "../../out.md": DIGEST}), id="file-outside"),
        pytest.param(changed(agents={}), id="no-agents"),
        pytest.param(changed(agents={"codex": "move"}), id="mode"),
        pytest.param(changed(agents=["codex"]), id="agents-are-a-list"),
        pytest.param(changed(server={}), id="no-server"),
        pytest.param(changed(server={"url": "https://a", "command": ["b"]}), id="two-servers"),
        pytest.param(changed(server={"command": []}), id="empty-command"),
        pytest.param(changed(server={"command": ["a", 1]}), id="word-is-a-number"),
        pytest.param(changed(server={"command": ["", "a"]}), id="no-program"),
        pytest.param(changed(server={"label": "https://a.example/mcp"}), id="label-is-a-url"),
        pytest.param(changed(server={"url": "https://a", "dialect": "zzz"}), id="dialect"),
        pytest.param(changed(server={"url": "https://a", "era": "zzz"}), id="era"),
        pytest.param(changed(at="yesterday"), id="time"),
        pytest.param(changed(by="two\nlines"), id="two-lines"),
        pytest.param(changed(by=""), id="by-nobody"),
    ],
)
def test_an_invalid_lock_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError) as caught:
        parse_lock(data)
    assert caught.value.reference == "lock-invalid"
    assert caught.value.hint


@rule("A5")
@pytest.mark.parametrize(
    "url",
    ["", "docs", "http:docs", "file:///etc", " https://a"],
    ids=["empty", "label", "no-host", "scheme", "space"],
)
def test_an_invalid_url_is_refused(url: str) -> None:
    """A label there would start a program without being asked about."""
    with pytest.raises(FormatError) as caught:
        parse_lock(changed(server={"url": url}))
    assert caught.value.reference == "lock-invalid"


def test_text_that_is_not_json_is_refused_with_its_place() -> None:
    with pytest.raises(FormatError) as caught:
        parse_lock(b'{\n  "skills": {\n    "a')
    assert (caught.value.line, caught.value.column) == (3, 5)
    with pytest.raises(FormatError) as conflict:
        parse_lock(b"{\n<<<<<<< HEAD\n}")
    assert conflict.value.line == 2
    assert conflict.value.hint != caught.value.hint


def test_words_of_a_command_may_be_empty_but_not_the_first() -> None:
    lock = Lock({"refunds": skill(server=Server("command", ("sh", "-c", "it", "")))})
    assert parse_lock(format_lock(lock)) == lock


@pytest.mark.parametrize(
    "changes",
    [
        {"agents": {"./My\u00a0Skills": "copy"}},
        {"server": Server("folder", ("sk\udcff",))},
    ],
    ids=["invalid", "not-unicode"],
)
def test_a_lock_that_could_not_be_read_again_is_not_written(changes: dict[str, Any]) -> None:
    with pytest.raises(FormatError) as caught:
        format_lock(Lock({"refunds": skill(**changes)}))
    assert caught.value.reference == "lock-unrecordable"


@pytest.mark.parametrize(
    "name", ["..", ".hidden", "a/b", "", "x" * 256], ids=["up", "hidden", "slash", "empty", "long"]
)
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    value = document()
    value["skills"] = {name: {**value["skills"]["refunds"], "uri": f"skill://{name}/SKILL.md"}}
    with pytest.raises(FormatError):
        parse_lock(json.dumps(value).encode())


@rule("B5")
def test_names_that_differ_by_case_only_are_refused() -> None:
    with pytest.raises(FormatError) as caught:
        parse_lock(format_lock(Lock({"flat": skill("flat"), "Flat": skill("Flat")})))
    assert caught.value.rule == "B5"


@rule("E5")
def test_how_a_server_is_spoken_to_does_not_change_who_it_is() -> None:
    plain, spoken = Server("url", ("https://a",)), Server("url", ("https://a",), dialect="index")
    assert plain.origin == spoken.origin
    assert plain.origin != Server("label", ("https://a",)).origin
    assert Server("label", ("a",)).origin != Server("label", ("a",), config="b").origin


@settings(max_examples=settings().max_examples // 2)  # half of the profile's
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=10,
    )
)
def test_nothing_but_a_format_error_comes_of_any_json(value: Any) -> None:
    for text in (value, document(skills=value), {**document(), "skills": {"refunds": value}}):
        with suppress(FormatError):
            parse_lock(json.dumps(text).encode())


def test_a_lock_is_made_when_it_is_first_written(tmp_path: Path) -> None:
    path = tmp_path / "config/skillwire/skills.lock.json"
    assert read_lock(path) is None
    with pytest.raises(NotFoundError):
        require_lock(path)
    with held_lock(path) as lock:
        lock.write(Lock())
    assert path.read_text() == '{\n  "skills": {},\n  "version": 1\n}\n'
    assert os.listdir(path.parent) == [path.name]


def test_one_that_is_held_is_waited_for_but_not_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "skills.lock.json"
    with held_lock(path), pytest.raises(StoreError) as caught, held_lock(path, patience=0.05):
        pass
    assert caught.value.reference == "lock-busy"
    with held_lock(path):
        pass


def test_a_link_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "theirs.json").write_text("{}")
    os.symlink("theirs.json", tmp_path / "skills.lock.json")
    with pytest.raises(StoreError) as caught, held_lock(tmp_path / "skills.lock.json"):
        pass
    assert caught.value.reference == "lock-linked"


def test_a_folder_in_its_place_is_said(tmp_path: Path) -> None:
    (tmp_path / "skills.lock.json").mkdir()
    with pytest.raises(StoreError) as caught:
        read_lock(tmp_path / "skills.lock.json")
    assert caught.value.reference == "lock-unreadable"


def test_a_file_keeps_its_mode_and_a_failure_leaves_it_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o604)
    replace_file(path, b"new", mode=0o600)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o604)
    (tmp_path / "folder/inner").mkdir(parents=True)
    with pytest.raises(StoreError):
        replace_file(tmp_path / "folder", b"new")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]
