"""The lock's text: the same for the same values, and nothing that is not one passes for one."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules import rule
from skillwire.errors import FormatError
from skillwire.install.lock import Installed, Lock, Server, format_lock, parse_lock

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
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b"<<<<<<< HEAD\n{}",
        b"[]",
        b"{}",
        b'{"version": true, "skills": {}}',
        b'{"version": 1, "skills": []}',
        b'{"version": 1, "version": 1, "skills": {}}',
        b'{"version": 1, "skills": {"a": {}, "a": {}}}',
        changed(uri="skill://acme/other/SKILL.md"),
        changed(uri="file:///etc/passwd"),
        changed(uri=1),
        changed(files={}),
        changed(files={"SKILL.md": "sha256:short"}),
        changed(files={"SKILL.md": DIGEST, "../../out.md": DIGEST}),
        changed(files={"SKILL.md": DIGEST, "/etc/passwd": DIGEST}),
        changed(agents={}),
        changed(agents={"codex": "move"}),
        changed(agents=["codex"]),
        changed(server={}),
        changed(server={"url": "https://a", "command": ["b"]}),
        changed(server={"command": []}),
        changed(server={"command": ["a", 1]}),
        changed(server={"command": ["", "a"]}),
        changed(server={"url": ""}),
        changed(server={"label": "https://a.example/mcp"}),
        changed(server={"url": "https://a", "dialect": "zzz"}),
        changed(server={"url": "https://a", "era": "zzz"}),
        changed(at=0).replace(b" 0", b" " + b"1" * 5000),
        changed(at="yesterday"),
        changed(by="two\nlines"),
        changed(by=""),
    ],
)
def test_what_was_edited_into_nonsense_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError) as caught:
        parse_lock(data)
    assert caught.value.reference == "lock-invalid"
    assert caught.value.hint


@rule("A5")
@pytest.mark.parametrize(
    "url", ["docs", "./skills", "http:docs", "file:///etc", "a://b", " https://a", "https:///"]
)
def test_a_url_that_is_none_is_refused(url: str) -> None:
    """A label there would start a program without being asked about."""
    with pytest.raises(FormatError) as caught:
        parse_lock(changed(server={"url": url}))
    assert caught.value.reference == "lock-invalid"


def test_where_it_is_no_json_is_said() -> None:
    with pytest.raises(FormatError) as caught:
        parse_lock(b'{\n  "skills": {\n    "a')
    assert "line 3, column 5" in caught.value.message
    with pytest.raises(FormatError) as caught:
        parse_lock(b"{\n<<<<<<< HEAD\n}")
    assert "line 2" in caught.value.message
    assert "merge" in caught.value.hint


def test_words_of_a_command_may_be_empty_but_not_the_first() -> None:
    lock = Lock({"refunds": skill(server=Server("command", ("sh", "-c", "it", "")))})
    assert parse_lock(format_lock(lock)) == lock


@pytest.mark.parametrize(
    "changes",
    [
        {"agents": {"./My\u00a0Skills": "copy"}},
        {"server": Server("folder", ("sk\udcff",))},
        {"server": Server("url", ("ftp://a",))},
        {"by": "two\nlines"},
    ],
)
def test_what_could_not_be_read_again_is_not_written(changes: dict[str, Any]) -> None:
    with pytest.raises(FormatError) as caught:
        format_lock(Lock({"refunds": skill(**changes)}))
    assert caught.value.reference == "lock-unrecordable"


@pytest.mark.parametrize("name", ["../out", ".hidden", "a/b", "", "x" * 300])
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


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_nothing_but_a_format_error_comes_of_any_json(value: Any) -> None:
    for text in (value, document(skills=value), {**document(), "skills": {"refunds": value}}):
        with suppress(FormatError):
            parse_lock(json.dumps(text).encode())
