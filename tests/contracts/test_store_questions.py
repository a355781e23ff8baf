"""What every store guarantees about questions: who asks, who is alive, and that the first answer counts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

import model_store
from rules import rule
from skillwire.errors import LimitError
from skillwire.skill.approval import EXECUTE, Approval, contents_of
from skillwire.skill.entry import DYNAMIC, Partial, SkillEntry, build_entry
from skillwire.skill.hidden import HiddenFind, HiddenKind
from skillwire.store import store as database_store
from skillwire.store.records import (
    KEPT_SECONDS,
    LARGEST_QUESTION,
    Answered,
    LogLine,
    Question,
    SeenEntries,
    StoredOrigin,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from skillwire.store.store import Store

pytestmark = pytest.mark.anyio

DIGEST, OTHER = "sha256:" + "a" * 64, "sha256:" + "b" * 64
REFUNDS = "skill://refunds/SKILL.md"
NOW = 1000.0
HIDDEN = (HiddenFind(HiddenKind.COMMENT, "SKILL.md:3", "psst"),)
YES, NO = Answered(yes=True, by="ada", at=NOW + 1), Answered(yes=False, by="bob", at=NOW + 1, note="not here")


UNREAD = SkillEntry(REFUNDS, {"name": "refunds"}, Partial(()))


def entry(digest: str = DIGEST) -> SkillEntry:
    return build_entry("refunds", {"name": "refunds", "description": "x\ud800"}, [("SKILL.md", digest, 10)])


def question(key: str = "q", **changes: Any) -> Question:
    return replace(Question(key, "load", "acme", entry(), "an agent", NOW, NOW + 15), **changes)


def approval(**changes: Any) -> Approval:
    return replace(Approval("acme", REFUNDS, contents_of(entry()), "ada", NOW), **changes)


def line(what: Any = "approved", **facts: Any) -> LogLine:
    return LogLine(what, "acme", REFUNDS, "ada", NOW, facts)


async def open_at(store: Store, now: float = NOW) -> list[str]:
    return [each.id for each in await store.questions(now)]


# Asking


@rule("A1", "B6")
async def test_a_question_comes_back_as_it_was_asked(store: Store) -> None:
    """With the entry and its gaps, and with what the asker found in it."""
    asked = question(kind="execute", target="Bash\ud800", hidden=HIDDEN, lasts=False, diff=("-old", "+new\0"))
    await store.put_question(asked)
    dynamic = question("d", kind="dynamic", entry=SkillEntry("x://y", {"n": [1, None]}, DYNAMIC), asked_at=NOW + 1)
    await store.put_question(dynamic)
    assert list(await store.questions(NOW)) == [asked, dynamic]
    assert [each.content for each in await store.questions(NOW)] == [approval().fingerprint, ""]


async def test_questions_come_in_the_order_of_asking(store: Store) -> None:
    for key, asked_at in [("c", 3.0), ("a", 1.0), ("b", 1.0)]:
        await store.put_question(question(key, asked_at=NOW + asked_at))
    assert await open_at(store) == ["a", "b", "c"]


async def test_a_question_expires_unless_it_is_renewed(store: Store) -> None:
    await store.put_question(question())
    assert await open_at(store, NOW + 14.9) == ["q"]
    assert await open_at(store, NOW + 15) == []
    assert await store.renew_question("q", NOW + 30) is True
    assert await open_at(store, NOW + 29) == ["q"]
    assert await store.answer_question("q", replace(YES, at=NOW + 31)) is False
    assert await store.renew_question("nobody's", NOW + 30) is False


async def test_asking_again_keeps_the_question_and_its_answer(store: Store) -> None:
    """An asker who was asleep asks again, and may have an answer already."""
    await store.put_question(question())
    assert await store.answer_question("q", YES) is True
    await store.put_question(question(by="another"))
    assert await store.answer_to("q") == YES
    assert await open_at(store) == []


@rule("B3")
async def test_only_so_many_questions_are_open_and_expired_ones_do_not_count(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An asker that runs wild locks nobody out for long."""
    for module in (model_store, database_store):
        monkeypatch.setattr(module, "MOST_QUESTIONS", 8)
    for number in range(8):
        await store.put_question(question(str(number)))
    with pytest.raises(LimitError) as caught:
        await store.put_question(question("one more"))
    assert caught.value.reference == "questions-too-many"
    assert len(await store.questions(NOW)) == 8
    assert await store.answer_question("7", YES) is True
    await store.put_question(question("one more"))
    later = question("later", asked_at=NOW + 15, waits_until=NOW + 30)
    await store.put_question(later)
    assert await open_at(store) == ["later"]
    assert await store.answer_to("7") == YES  # it was given, and its asker may only be slow


async def test_an_answer_that_is_not_fetched_expires(store: Store) -> None:
    await store.put_question(question())
    await store.answer_question("q", YES)
    await store.put_question(question("later", asked_at=NOW + 15 + KEPT_SECONDS, waits_until=NOW + 10_000))
    assert await store.answer_to("q") is None


@rule("B1")
async def test_a_question_that_is_too_large_is_refused(store: Store) -> None:
    """A server chooses how much there is to an entry."""
    with pytest.raises(LimitError) as caught:
        await store.put_question(question(hidden=(HIDDEN[0]._replace(text="x" * LARGEST_QUESTION),)))
    assert caught.value.reference == "question-too-large"
    assert await open_at(store) == []


# Answering


async def test_the_first_answer_counts(store: Store) -> None:
    await store.put_question(question())
    assert await store.answer_to("q") is None
    assert await store.answer_question("q", NO) is True
    assert await store.answer_question("q", YES) is False
    assert await store.answer_to("q") == NO
    assert await open_at(store) == []
    assert await store.answer_question("nobody's", YES) is False
    assert list(await store.lines()) == []  # the asker knows what it means, and logs it


async def test_of_many_concurrent_answers_one_counts(store: Store) -> None:
    said: list[str] = []

    async def answer(who: str) -> None:
        if await store.answer_question("q", replace(YES, by=who)):
            said.append(who)

    await store.put_question(question())
    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(answer, str(number))
    given = await store.answer_to("q")
    assert given is not None
    assert said == [given.by]


@rule("A4", "A5")
async def test_an_answer_comes_back_with_its_grants_and_its_note(store: Store) -> None:
    given = replace(YES, grants=frozenset({EXECUTE, "ü\ud800"}), remember=False, note="\0", by="\udc80")
    await store.put_question(question())
    await store.answer_question("q", given)
    assert await store.answer_to("q") == given


async def test_a_withdrawn_question_cannot_be_answered(store: Store) -> None:
    await store.put_question(question())
    assert await store.withdraw_question("q") is None
    assert await store.answer_question("q", YES) is False
    assert await store.withdraw_question("q") is None


async def test_withdrawing_a_question_returns_its_answer(store: Store) -> None:
    await store.put_question(question())
    await store.answer_question("q", YES)
    assert await store.withdraw_question("q") == YES
    assert await store.answer_to("q") is None


# Decisions answer


def others() -> list[Question]:
    """Questions that a decision about the refunds of acme, as they are, is not about."""
    return [
        question("other content", entry=entry(OTHER)),
        question("other origin", origin="zeta"),
        question("other skill", entry=replace(entry(), uri="skill://other/SKILL.md")),
        question("other kind", kind="execute", target="Bash"),
        question("no content", kind="dynamic", entry=SkillEntry(REFUNDS, {}, DYNAMIC)),
        question("unread, of another origin", origin="zeta", entry=UNREAD),
    ]


@rule("A1")
async def test_an_approval_answers_all_questions_about_its_content(store: Store) -> None:
    """By whatever way it is given; in the same step."""
    for each in [question("one"), question("two", by="a gateway"), question("unread", entry=UNREAD), *others()]:
        await store.put_question(each)
    granted = approval(grants=frozenset({EXECUTE}))
    await store.put_approval(granted, line(note="fine"))
    expected = Answered(yes=True, by="ada", at=NOW, grants=granted.grants, note="fine", recorded=True)
    assert {await store.answer_to(key) for key in ("one", "two", "unread")} == {expected}
    assert sorted(await open_at(store)) == sorted(each.id for each in others())


@rule("A1", "A2")
async def test_a_denial_answers_all_questions_about_its_content_and_ends_its_approval(store: Store) -> None:
    await store.put_approval(approval(), line())
    for each in [question("one"), question("two"), question("unread", entry=UNREAD), *others()]:
        await store.put_question(each)
    await store.put_denial(contents_of(entry()), line("denied", note="no"))
    expected = Answered(yes=False, by="ada", at=NOW, note="no", recorded=True)
    assert {await store.answer_to(key) for key in ("one", "two", "unread")} == {expected}
    assert sorted(await open_at(store)) == sorted(each.id for each in others())
    assert await store.approval("acme", REFUNDS) is None
    assert [each.what for each in await store.lines()] == ["denied", "approved"]


async def test_a_denial_of_another_content_leaves_an_approval_alone(store: Store) -> None:
    await store.put_approval(approval(), line())
    await store.put_denial(contents_of(entry(OTHER)), line("denied"))
    assert await store.approval("acme", REFUNDS) == approval()


async def test_a_decision_does_not_change_an_answer_that_was_given(store: Store) -> None:
    await store.put_question(question())
    await store.answer_question("q", NO)
    await store.put_approval(approval(), line())
    assert await store.answer_to("q") == NO


async def test_a_denial_that_cannot_be_logged_is_not_given(store: Store) -> None:
    """One step: facts that are no JSON stop all of it."""
    await store.put_approval(approval(), line())
    await store.put_question(question())
    with pytest.raises(TypeError):
        await store.put_denial(contents_of(entry()), line("denied", why=object()))
    assert await store.approval("acme", REFUNDS) == approval()
    assert await open_at(store) == ["q"]


# The newest decision


@rule("A2")
async def test_the_newest_decision_about_each_skill_is_found(store: Store) -> None:
    """However much happened since, and only what was decided about reading it, by somebody."""
    await store.put_approval(approval(), line(kind="load", n=1))
    await store.remove_approval("acme", REFUNDS, line("revoked", n=2))
    await store.log(LogLine("denied", "zeta", REFUNDS, "bob", NOW, {"n": 3}))
    await store.log(LogLine("approved", "acme", "skill://a/SKILL.md", "bob", NOW, {"kind": "import", "n": 4}))
    for what, by, kind in [
        ("denied", "policy", "load"),
        ("denied", "ada", "execute"),
        ("denied", "client:x", "elicitation"),
        ("granted", "ada", "load"),
        ("read", "model", "load"),
    ]:
        await store.log(LogLine(what, "acme", REFUNDS, by, NOW, {"kind": kind}))  # type: ignore[arg-type]
    assert [each.facts["n"] for each in await store.decisions()] == [4, 2, 3]
    assert [each.facts["n"] for each in await store.decisions("acme")] == [4, 2]
    assert [each.facts["n"] for each in await store.decisions("acme", REFUNDS)] == [2]
    assert list(await store.decisions("nobody")) == []
    assert list(await store.decisions("")) == []


# Two people


async def decide(store: Store, word: str, after: int | None) -> bool:
    if word == "yes":
        return await store.put_approval(approval(), line(), after=after)
    return await store.put_denial(contents_of(entry()), line("denied"), after=after)


@rule("A1")
@pytest.mark.parametrize(("first", "second"), [("yes", "no"), ("no", "yes")])
async def test_a_decision_based_on_an_older_one_is_refused(store: Store, first: str, second: str) -> None:
    """And nothing is logged, and nobody answered."""
    await store.log(LogLine("denied", "acme", REFUNDS, "policy", NOW, {"kind": "load"}))  # nobody's decision
    assert await decide(store, first, 0) is True
    await store.put_question(question())
    known, lines = await store.approval("acme", REFUNDS), await store.lines()
    assert await decide(store, second, 0) is False
    assert await decide(store, second, lines[0].number + 1) is False
    assert (await store.approval("acme", REFUNDS), await store.lines()) == (known, lines)
    assert await store.answer_to("q") is None
    assert await decide(store, second, lines[0].number) is True
    assert await store.answer_to("q") is not None


async def test_of_two_concurrent_decisions_one_is_refused(store: Store) -> None:
    done = dict[str, bool]()

    async def say(word: str) -> None:
        done[word] = await decide(store, word, 0)

    async with anyio.create_task_group() as group:
        group.start_soon(say, "yes")
        group.start_soon(say, "no")
    assert sorted(done.values()) == [False, True]
    assert ((await store.approval("acme", REFUNDS)) is not None) is done["yes"]
    assert len(await store.lines()) == 1


# Noticing


# In this order each of them has something to change.
CHANGES: dict[str, Callable[[Store], Awaitable[object]]] = {
    "an origin": lambda store: store.put_origin(StoredOrigin("acme", {}, 1.0)),
    "a listing": lambda store: store.put_entries("acme", SeenEntries((), 1.0)),
    "a line": lambda store: store.log(line("read")),
    "a question": lambda store: store.put_question(question("another")),
    "an answer": lambda store: store.answer_question("another", YES),
    "a withdrawal": lambda store: store.withdraw_question("another"),
    "a denial": lambda store: store.put_denial(contents_of(entry(OTHER)), line("denied")),
    "other grants": lambda store: store.change_grants(approval(), frozenset("x"), line("granted")),
    "no approval": lambda store: store.remove_approval("acme", REFUNDS, line("revoked")),
    "no origin": lambda store: store.remove_origin("acme"),
}


async def test_every_change_changes_the_version(store: Store) -> None:
    await store.put_approval(approval(), line())
    for name, change in CHANGES.items():
        before = await store.version()
        await store.questions(NOW)
        assert await store.version() == before, name
        await change(store)
        assert await store.version() != before, name


async def test_renewing_a_question_does_not_change_the_version(store: Store) -> None:
    """Pages that are open are not asked for anew every few seconds while an agent waits."""
    await store.put_question(question())
    before = await store.version()
    assert await store.renew_question("q", NOW + 60) is True
    assert await store.remove_approval("acme", REFUNDS, line("revoked")) is False
    assert await store.version() == before
    assert await open_at(store, NOW + 59) == ["q"]
