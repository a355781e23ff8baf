"""``skillwire approvals questions``: what is listed, shown and answered, and what is a wrong word."""

from __future__ import annotations

import json
import shlex
import time
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from host.stage import entry_of
from rules import rule
from skillwire.cli.main import run
from skillwire.host.state import open_store
from skillwire.skill.approval import fingerprint_of
from skillwire.skill.hidden import HiddenFind, HiddenKind
from skillwire.store.records import Question
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from skillwire.store.store import Store

FILES = {"SKILL.md": skill_md("flat", extra="allowed-tools: Read\n"), "scripts/x.sh": b"x"}
FLAT = entry_of("flat", FILES)
URI = "skill://flat/SKILL.md"
YES = ("--yes", "--fingerprint", fingerprint_of(FLAT))


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def with_store(state: Path, work: Callable[[Store], Awaitable[Any]]) -> Any:
    async def go() -> Any:
        store = await open_store(state)
        try:
            return await work(store)
        finally:
            await store.close()

    return anyio.run(go)


def ask(state: Path, *questions: Question) -> None:
    async def put(store: Store) -> None:
        for question in questions:
            await store.put_question(question)

    with_store(state, put)


def question(key: str = "abc1", kind: str = "load", **words: Any) -> Question:
    now = time.time()
    return Question(key, kind, "acme", FLAT, "an agent\x1b[2J", now, now + 600, **words)


def answers(state: Path, *keys: str) -> list[Any]:
    async def look(store: Store) -> list[Any]:
        return [await store.answer_to(key) for key in keys]

    return with_store(state, look)


def run_questions(state: Path, *words: str) -> int:
    return run(["approvals", "questions", *words, "--state", str(state)])


def test_without_questions_nothing_is_listed(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_questions(state) == 0
    assert capsys.readouterr().out == ""


def test_questions_are_listed_for_people_and_for_programs(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask(state, question(), question("def2", "execute", target="Bash"))
    assert run_questions(state) == 0
    out, err = capsys.readouterr()
    rows = [row.split("\t")[:6] for row in out.splitlines()]
    by = "an agent<U+001B>[2J"
    assert rows == [
        ["abc1", "load", "acme", "skill://flat", "", by],
        ["def2", "execute", "acme", "skill://flat", "Bash", by],
    ]
    assert "2" in err
    assert run_questions(state, "--json") == 0
    first, second = json.loads(capsys.readouterr().out)["questions"]
    assert (first["id"], first["fingerprint"]) == ("abc1", fingerprint_of(FLAT))
    assert second["target"] == "Bash"


@rule("B6")
def test_one_is_shown_with_everything_there_is_to_know(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first letters of its id are enough."""
    ask(state, question(hidden=(HiddenFind(HiddenKind.COMMENT, "SKILL.md:3", "psst"),)))
    assert run_questions(state, "ab") == 0
    out = capsys.readouterr().out
    assert "an agent<U+001B>[2J" in out
    assert "SKILL.md:3: " in out
    assert "psst" in out
    assert "scripts/x.sh" in out


@rule("A1", "A4")
def test_a_yes_to_a_skill_is_an_approval_of_its_content(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It answers all who ask about it, whether or not their server is known here."""
    ask(state, question(), question("def2"))
    words = ["abc", *YES, "--grant", "Read", "--by", "ada", "--note", "fine"]
    assert run_questions(state, *words) == 0
    assert "Read" in capsys.readouterr().out
    for given in answers(state, "abc1", "def2"):
        assert (given.yes, given.by, given.grants, given.note) == (True, "ada", {"Read"}, "fine")
    assert run(["approvals", "--json", "--state", str(state)]) == 0
    [approval] = json.loads(capsys.readouterr().out)["approvals"]
    assert (approval["origin"], approval["fingerprint"]) == ("acme", fingerprint_of(FLAT))
    assert run(["log", "--json", "--state", str(state)]) == 0
    assert json.loads(capsys.readouterr().out)["facts"]["note"] == "fine"


@rule("Z4")
@pytest.mark.parametrize(
    ("words", "reference"),
    [
        pytest.param([], "fingerprint-missing", id="no fingerprint"),
        pytest.param(["--fingerprint", "sha256:" + "0" * 64], "fingerprint-other", id="another content"),
    ],
)
@pytest.mark.parametrize("kind", ["load", "execute"])
def test_without_a_terminal_a_yes_names_what_was_shown(
    state: Path, capsys: pytest.CaptureFixture[str], kind: str, words: list[str], reference: str
) -> None:
    """A program that asks cannot answer itself by following a hint: the hint shows the question."""
    ask(state, question(kind=kind))
    assert run_questions(state, "abc", "--yes", "--once", *words) == 1
    error = capsys.readouterr().err
    assert f"[{reference}]" in error
    assert answers(state, "abc1") == [None]
    hint = shlex.split(error.partition("skillwire approvals questions ")[2].splitlines()[0])
    assert run(["approvals", "questions", *hint]) == 0
    command = capsys.readouterr().err.partition("skillwire approvals questions ")[2]
    assert run(["approvals", "questions", *shlex.split(command), "--once"]) == 0
    assert answers(state, "abc1")[0].yes


def test_a_no_to_a_skill_is_a_no_to_its_content(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask(state, question(), question("def2"))
    assert run_questions(state, "abc", "--no", "--note", "not here") == 0
    assert [(given.yes, given.note) for given in answers(state, "abc1", "def2")] == [(False, "not here")] * 2
    assert run(["log", "--state", str(state)]) == 0
    assert "note=not here" in capsys.readouterr().out


@rule("A5", "V7")
@pytest.mark.parametrize(
    ("kind", "words"),
    [("execute", []), ("load", ["--once"]), ("dynamic", ["--once"])],
    ids=["execute", "load", "dynamic"],
)
def test_other_answers_are_for_the_one_who_asked(state: Path, kind: str, words: list[str]) -> None:
    """Nothing is remembered here."""
    ask(state, question(kind=kind), question("def2", kind))
    assert run_questions(state, "abc", *YES, *words) == 0
    first, second = answers(state, "abc1", "def2")
    assert (first.yes, first.remember) == (True, not words)
    assert second is None
    assert with_store(state, lambda store: store.approvals()) == []


def test_an_answer_that_comes_too_late_is_an_error(
    state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question is open when it is looked for, and answered when the answer comes."""
    ask(state, question(kind="execute"))

    async def late(*given: Any) -> bool:
        return False

    monkeypatch.setattr("skillwire.store.store.Store.answer_question", late)
    assert run_questions(state, "abc", *YES) == 1
    assert "[question-gone]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reference"),
    [
        pytest.param(["--yes"], "argument-invalid", id="no-question"),
        pytest.param(["abc", "--once"], "argument-invalid", id="no-answer"),
        pytest.param(["abc", "--no", "--grant", "Read"], "argument-invalid", id="grant-with-a-no"),
        pytest.param(["def", "--yes", "--grant", "Read"], "argument-invalid", id="grant-of-another-kind"),
        pytest.param(["abc", "--yes", "--by", " "], "argument-invalid", id="by-is-empty"),
        pytest.param(["abc", "--yes", "--by", "policy"], "argument-invalid", id="by-is-reserved"),
        pytest.param(["abc", "--yes", "--note", "two\nlines"], "argument-invalid", id="note-of-two-lines"),
        pytest.param(["xyz", "--yes"], "question-unknown", id="unknown"),
        pytest.param(["", "--no"], "name-ambiguous", id="ambiguous"),
    ],
)
def test_invalid_arguments_answer_nothing(
    state: Path, capsys: pytest.CaptureFixture[str], words: list[str], reference: str
) -> None:
    ask(state, question(), question("def2", "execute"))
    assert run_questions(state, *words) == 2
    assert f"[{reference}" in capsys.readouterr().err
    assert answers(state, "abc1", "def2") == [None, None]
