"""What every store guarantees, wherever it keeps things."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model_store import ModelStore
from rules import rule
from skillwire.skill.approval import EXECUTE, Approval, contents_of, covers
from skillwire.skill.entry import DYNAMIC, Partial, Resource, SkillEntry, build_entry
from skillwire.store.records import Answered, LogLine, Question, SeenEntries, StoredOrigin
from skillwire.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence


pytestmark = pytest.mark.anyio

DIGEST = "sha256:" + "a" * 64
OTHER_DIGEST = "sha256:" + "b" * 64
REFUNDS = "skill://refunds/SKILL.md"
ODD_TEXTS = [
    "",
    "Résumé 日本語",
    "null\0inside",
    "'; DROP TABLE log; --",
    "no unicode \udc80",
    "%_?*",
    "ends in \ud800",
]


def entry(name: str = "refunds", digest: str = DIGEST) -> SkillEntry:
    files = [("SKILL.md", digest, 10), ("a b/ä.md", OTHER_DIGEST, 0)]
    return build_entry(name, {"name": name, "description": "Pays back.", "metadata": {"owner": "x"}}, files)


def approval(origin: str = "acme", uri: str = REFUNDS, **changes: Any) -> Approval:
    return replace(Approval(origin, uri, contents_of(entry()), "ada", 1000.5), **changes)


def line(what: Any = "approved", origin: str = "acme", uri: str = REFUNDS, **changes: Any) -> LogLine:
    return replace(LogLine(what, origin, uri, "ada", 1000.5), **changes)


async def said(store: Store, **filters: Any) -> list[str]:
    """Who did what, newest first, with the facts that tests put there."""
    return [str(each.facts.get("n", each.what)) for each in await store.lines(**filters)]


# Origins


async def test_a_new_store_is_empty(store: Store) -> None:
    assert list(await store.origins()) == []
    assert await store.entries("acme") is None
    assert await store.approval("acme", REFUNDS) is None
    assert list(await store.approvals()) == []
    assert list(await store.lines()) == []


@rule("O1")
async def test_origins_come_back_by_label_with_their_settings(store: Store) -> None:
    """A label is text that a person chose; it is compared exactly."""
    added = [
        StoredOrigin("zeta", {"folder": "/srv/skills"}, 3.0),
        StoredOrigin(
            "acme", {"command": "npx", "args": ["-y", "@acme/skills"], "env": {"A": "ü", "N": None}}, 1.25
        ),
        StoredOrigin("Acme", {}, 2.0),
    ]
    for origin in added:
        await store.put_origin(origin)
    assert list(await store.origins()) == [added[2], added[1], added[0]]


async def test_putting_an_origin_again_replaces_its_settings_and_keeps_what_belongs_to_it(store: Store) -> None:
    await store.put_origin(StoredOrigin("acme", {"url": "https://old"}, 1.0))
    await store.put_entries("acme", SeenEntries((entry(),), 2.0))
    await store.put_approval(approval(), line())
    await store.put_origin(StoredOrigin("acme", {"url": "https://new"}, 3.0))
    assert list(await store.origins()) == [StoredOrigin("acme", {"url": "https://new"}, 3.0)]
    assert await store.entries("acme") == SeenEntries((entry(),), 2.0)
    assert await store.approval("acme", REFUNDS) == approval()


async def test_removing_an_origin_forgets_its_listing_and_approvals_and_keeps_the_log(store: Store) -> None:
    for label in ("acme", "acme2"):
        await store.put_origin(StoredOrigin(label, {}, 1.0))
        await store.put_entries(label, SeenEntries((entry(),), 2.0))
        await store.put_approval(approval(label), line(origin=label))
    assert await store.remove_origin("acme") is True
    assert [origin.label for origin in await store.origins()] == ["acme2"]
    assert await store.entries("acme") is None
    assert list(await store.approvals()) == [approval("acme2")]
    assert [each.origin for each in await store.lines()] == ["acme2", "acme"]
    assert await store.remove_origin("acme") is False


async def test_removing_an_origin_that_was_never_put_forgets_its_listing_and_approvals(store: Store) -> None:
    """A host may use an origin for one run; nothing asks that it was added first."""
    await store.put_entries("once", SeenEntries((), 1.0))
    await store.put_approval(approval("once"), line(origin="once"))
    assert await store.remove_origin("once") is False
    assert await store.entries("once") is None
    assert await store.approval("once", REFUNDS) is None


@rule("C3")
async def test_removing_an_origin_removes_listings_kept_beside_it(store: Store) -> None:
    """No label has a ``#``; such as a gateway's snapshots."""
    for label in ("acme", "acme#snapshots", "acme2#snapshots", "acm"):
        await store.put_entries(label, SeenEntries((), 1.0))
    await store.remove_origin("acme")
    left = [label for label in ("acme", "acme#snapshots", "acme2#snapshots", "acm") if await store.entries(label)]
    assert left == ["acme2#snapshots", "acm"]


# Entries


@rule("E2", "E2b")
async def test_an_entry_comes_back_with_its_gaps(store: Store) -> None:
    """What a server did not promise is absent afterwards too, and a URI keeps its spelling."""
    fields = {"name": "gaps", "description": "x\ud800", "n": [1, 2.5, None, True, {"ü": "\0"}]}
    uri = "Skill://%67aps/SKILL.md"
    entries = (
        entry(),
        SkillEntry(uri, fields, DYNAMIC),
        SkillEntry(uri, fields, DYNAMIC, whole_frontmatter=False),
        SkillEntry(uri, fields, Partial()),
        SkillEntry(uri, fields, Partial((Resource(uri, None, None),)), whole_frontmatter=False),
        SkillEntry(uri, fields, (Resource(uri, DIGEST, None), Resource("skill://gaps/x", None, 0))),
        SkillEntry(uri, fields, ()),
        SkillEntry("named://not the last segment", {}, (Resource("anything", DIGEST, 5),)),
    )
    await store.put_entries("acme", SeenEntries(entries, 7.5, is_complete=False))
    assert await store.entries("acme") == SeenEntries(entries, 7.5, is_complete=False)


async def test_a_listing_replaces_the_one_before_and_belongs_to_one_origin(store: Store) -> None:
    await store.put_entries("acme", SeenEntries((entry("one"), entry("two")), 1.0))
    await store.put_entries("zeta", SeenEntries((), 2.0))
    await store.put_entries("acme", SeenEntries((entry("three"),), 3.0))
    assert await store.entries("acme") == SeenEntries((entry("three"),), 3.0)
    assert await store.entries("zeta") == SeenEntries((), 2.0)
    assert await store.entries("other") is None


# Approvals


@rule("A1")
async def test_an_approval_comes_back_bound_to_the_same_content(store: Store) -> None:
    """The full set of (URI, digest), for this origin and URI, and nothing else."""
    await store.put_approval(approval(), line())
    found = await store.approval("acme", REFUNDS)
    assert found == approval()
    assert found is not None
    assert found.fingerprint == approval().fingerprint
    assert covers(found, "acme", entry())
    assert not covers(found, "acme", entry(digest=OTHER_DIGEST))
    assert await store.approval("other", REFUNDS) is None
    assert await store.approval("acme", "skill://Refunds/SKILL.md") is None


@rule("A4", "A5")
async def test_grants_stay_with_their_approval(store: Store) -> None:
    """Approving grants nothing; a grant is there only if it was put."""
    await store.put_approval(approval(), line())
    assert (await store.approvals())[0].grants == frozenset()
    granted = approval(grants=frozenset({EXECUTE, "Bash(git:*)", "ü"}))
    await store.put_approval(granted, line("granted"))
    assert await store.approval("acme", REFUNDS) == granted
    assert await said(store) == ["granted", "approved"]


@rule("A2")
async def test_approving_again_takes_the_place_of_the_earlier_approval_and_of_its_grants(store: Store) -> None:
    """Another content is another approval, and the tools of the old one are not the new one's."""
    await store.put_approval(approval(grants=frozenset({EXECUTE})), line())
    renewed = approval(contents=contents_of(entry(digest=OTHER_DIGEST)), by="bob", at=2000.0)
    await store.put_approval(renewed, line(by="bob"))
    assert list(await store.approvals()) == [renewed]
    assert len(await store.lines()) == 2


@rule("A2")
async def test_a_revoked_approval_is_gone_with_its_grants_and_logged_once(store: Store) -> None:
    """Revoking what is not approved changes nothing, so there is nothing to log."""
    await store.put_approval(approval(grants=frozenset({EXECUTE})), line())
    await store.put_approval(approval("zeta"), line(origin="zeta"))
    assert await store.remove_approval("acme", REFUNDS, line("revoked")) is True
    assert await store.remove_approval("acme", REFUNDS, line("revoked")) is False
    assert await store.remove_approval("acme", "skill://nested/SKILL.md", line("revoked")) is False
    assert await store.approval("acme", REFUNDS) is None
    assert list(await store.approvals()) == [approval("zeta")]
    assert await said(store) == ["revoked", "approved", "approved"]


@rule("A4", "A5")
async def test_grants_are_given_to_exactly_the_approval_that_was_seen(store: Store) -> None:
    """One that was revoked or renewed meanwhile is not brought back."""
    await store.put_approval(approval(), line())
    both = frozenset({EXECUTE, "Read"})
    assert await store.change_grants(approval(), both, line("granted")) is True
    assert await store.approval("acme", REFUNDS) == approval(grants=both)
    assert await store.change_grants(approval(), frozenset(), line("granted")) is False
    await store.remove_approval("acme", REFUNDS, line("revoked"))
    assert await store.change_grants(approval(grants=both), both, line("granted")) is False
    assert await store.approval("acme", REFUNDS) is None
    assert await said(store) == ["revoked", "granted", "approved"]


@rule("A2")
async def test_a_newer_approval_survives_the_revocation_of_an_older_one(store: Store) -> None:
    """Whoever revokes what they saw does not revoke what they did not see."""
    newer = approval(at=2000.0)
    await store.put_approval(newer, line())
    assert await store.remove_approval("acme", REFUNDS, line("revoked"), only=approval()) is False
    assert await store.approval("acme", REFUNDS) == newer
    assert await store.remove_approval("acme", REFUNDS, line("revoked"), only=newer) is True
    assert await said(store) == ["revoked", "approved"]


@rule("A3")
async def test_approvals_are_listed_by_origin_and_uri(store: Store) -> None:
    """Each skill has its own, a nested one too."""
    keys = [
        ("b", "skill://x/y/SKILL.md"),
        ("b", "skill://x/SKILL.md"),
        ("a", "skill://z/SKILL.md"),
        ("B", REFUNDS),
    ]
    for origin, uri in keys:
        await store.put_approval(approval(origin, uri), line(origin=origin, uri=uri))
    assert [(each.origin, each.uri) for each in await store.approvals()] == sorted(keys)
    assert [each.uri for each in await store.approvals("b")] == ["skill://x/SKILL.md", "skill://x/y/SKILL.md"]
    assert list(await store.approvals("c")) == []


async def test_an_approval_that_cannot_be_logged_is_not_given(store: Store) -> None:
    """One step: facts that are no JSON stop both."""
    with pytest.raises(TypeError):
        await store.put_approval(approval(), line(facts={"when": object()}))
    assert await store.approval("acme", REFUNDS) is None
    await store.put_approval(approval(), line())
    with pytest.raises(TypeError):
        await store.remove_approval("acme", REFUNDS, line("revoked", facts={"why": object()}))
    assert await store.approval("acme", REFUNDS) == approval()
    assert await said(store) == ["approved"]


# The log


async def test_lines_come_newest_first_numbered_in_the_order_they_were_written(store: Store) -> None:
    """The order is that of writing, whatever the clock said."""
    for n, at in enumerate([30.0, 10.0, 20.0]):
        await store.log(line("read", at=at, facts={"n": n, "deep": {"a": [1, None]}}, number=99))
    lines = await store.lines()
    assert [each.facts["n"] for each in lines] == [2, 1, 0]
    assert [each.at for each in lines] == [20.0, 10.0, 30.0]
    assert [each.number for each in lines] == [3, 2, 1]
    assert lines[0] == line("read", at=20.0, facts={"n": 2, "deep": {"a": [1, None]}}, number=3)


async def test_a_line_that_repeats_the_newest_one_is_not_added(store: Store) -> None:
    """Another fact, another kind, another skill or origin is news; the same again is not, also among them."""
    first = line("served", facts={"n": 1})
    assert await store.log_news([first, first]) == 1
    await store.log(line("approved", facts={"n": 2}))  # of another kind: says nothing about what was served
    assert await store.log_news([first]) == 0
    other = [line("served", facts={"n": 3}), line("served", uri="skill://x/SKILL.md", facts={"n": 1})]
    assert await store.log_news([*other, line("served", "beta", facts={"n": 1})]) == 3
    assert await store.log_news([first]) == 1  # it is again as it was once
    assert await store.log_news([]) == 0
    assert await said(store, origin="acme", uri=REFUNDS) == ["1", "3", "2", "1"]


async def test_news_with_unusual_text_is_recognised(store: Store) -> None:
    odd = [line("served", origin=text, uri=text, facts={"n": text}) for text in ODD_TEXTS]
    assert [await store.log_news(odd), await store.log_news(odd)] == [len(odd), 0]


async def test_a_repeated_line_does_not_change_the_version(store: Store) -> None:
    await store.log_news([line("served")])
    before = await store.version()
    await store.log_news([line("served")])
    assert await store.version() == before


async def test_lines_can_be_limited_and_filtered(store: Store) -> None:
    for n in range(12):
        await store.log(line("read", "ab"[n % 2], f"skill://{n % 3}/SKILL.md", facts={"n": n}))
    assert await said(store, limit=3) == ["11", "10", "9"]
    assert await said(store, origin="a") == ["10", "8", "6", "4", "2", "0"]
    assert await said(store, uri="skill://1/SKILL.md") == ["10", "7", "4", "1"]
    assert await said(store, origin="a", uri="skill://1/SKILL.md") == ["10", "4"]
    assert await said(store, origin="a", uri="skill://1/SKILL.md", limit=1) == ["10"]
    assert await said(store, origin="nobody") == []
    assert await said(store, origin="") == []


async def test_any_number_limits_the_lines_and_the_default_is_a_hundred(store: Store) -> None:
    assert await store.log_news([line(facts={"n": n}) for n in range(101)]) == 101
    assert len(await store.lines()) == 100
    for limit, count in [(-1, 0), (0, 0), (1, 1), (2**70, 101)]:
        assert len(await store.lines(limit=limit)) == count


async def test_lines_are_filtered_by_kind_person_skill_and_number(store: Store) -> None:
    """Wherever they are in the log: nothing of it is out of reach."""
    await store.log(line("approved", facts={"n": 1}))
    await store.log(line("denied", uri="skill://b", by="Bär", facts={"n": 2}))
    await store.log(line("read", uri="skill://\udc80", by="anna", facts={"n": 3}))
    await store.log(line("revoked", by="Anna", facts={"n": 4}))
    expected: list[tuple[dict[str, Any], list[str]]] = [
        ({"what": ["denied", "revoked"]}, ["4", "2"]),
        ({"what": ["read"]}, ["3"]),
        ({"what": ["nothing"]}, []),
        ({"what": []}, []),
        ({"by": "ANN"}, ["4", "3"]),
        ({"by": "ÄR"}, ["2"]),
        ({"about": "REF"}, ["4", "1"]),
        ({"about": "%"}, []),
        ({"about": "\udc80"}, ["3"]),
        ({"before": 3}, ["2", "1"]),
        ({"before": 0}, []),
        ({"what": ["denied", "read"], "by": "anna", "about": "skill", "origin": "acme", "before": 4}, ["3"]),
        ({"origin": "acme", "uri": REFUNDS, "what": ["approved", "revoked"], "limit": 1}, ["4"]),
    ]
    assert [(filters, await said(store, **filters)) for filters, _ in expected] == expected


# Values


async def test_any_text_can_be_a_key_and_is_found_again(store: Store) -> None:
    """A hostile name is refused by others and logged here; it must not get lost, nor stand for another."""
    for text in ODD_TEXTS:
        await check_key(store, text)


async def check_key(store: Store, text: str) -> None:
    await store.put_origin(StoredOrigin(text, {text: [text]}, 1.0))
    await store.put_approval(approval(text, text, by=text, grants=frozenset({text})), line(origin=text, uri=text))
    await store.put_entries(text, SeenEntries((), 1.0))
    await store.log(line("refused", "plain", "plain", by=text, facts={text: text}))
    assert list(await store.origins()) == [StoredOrigin(text, {text: [text]}, 1.0)]
    assert await store.approval(text, text) == approval(text, text, by=text, grants=frozenset({text}))
    assert await store.entries(text) == SeenEntries((), 1.0)
    assert [each.uri for each in await store.lines(origin=text, uri=text)] == [text]
    assert (await store.lines(limit=1))[0].facts == {text: text}
    assert await store.approval(text + "x", text) is None
    assert await store.remove_origin(text) is True
    assert list(await store.approvals()) == []


async def test_later_changes_of_a_value_do_not_reach_the_store(store: Store) -> None:
    values = {"list": [1]}
    await store.put_origin(StoredOrigin("acme", values, 1.0))
    await store.log(line(facts=values))
    values["list"].append(2)
    (await store.origins())[0].settings["list"].append(3)
    (await store.lines())[0].facts["list"].append(3)
    assert (await store.origins())[0].settings == {"list": [1]}
    assert (await store.lines())[0].facts == {"list": [1]}


# Many at once


async def test_tasks_that_write_at_once_lose_nothing(store: Store) -> None:
    async def work(worker: int) -> None:
        for n in range(3):
            uri = f"skill://{worker}-{n}/SKILL.md"
            await store.put_approval(approval(uri=uri), line(uri=uri))
            assert await store.approval("acme", uri) == approval(uri=uri)

    async with anyio.create_task_group() as group:
        for worker in range(5):
            group.start_soon(work, worker)
    assert len(await store.approvals()) == 15
    lines = await store.lines()
    assert [each.number for each in lines] == list(range(15, 0, -1))
    assert {each.uri for each in lines} == {each.uri for each in await store.approvals()}


async def test_a_cancelled_call_happened_as_a_whole_or_not_at_all(store: Store) -> None:
    async def put(n: int) -> None:
        await store.put_approval(approval(uri=str(n)), line(uri=str(n)))

    async with anyio.create_task_group() as group:
        for n in range(20):
            group.start_soon(put, n)
        await store.put_approval(approval(uri="first"), line(uri="first"))
        group.cancel_scope.cancel()
    assert sorted(each.uri for each in await store.lines()) == [each.uri for each in await store.approvals()]
    await put(99)  # and the store still works
    assert await store.approval("acme", "99") is not None


async def test_a_store_can_be_closed_twice(store: Store) -> None:
    await store.close()
    await store.close()


# Any history

labels = st.sampled_from(["a", "b", "\udc80", ""])
uris = st.sampled_from(["x", "y", "ü"])
contents = st.frozensets(st.tuples(st.sampled_from(["f", "g"]), st.sampled_from([DIGEST, OTHER_DIGEST])))
steps = st.one_of(
    st.tuples(st.just("put_origin"), labels),
    st.tuples(st.just("remove_origin"), labels),
    st.tuples(st.just("put_entries"), labels, st.integers(0, 2)),
    st.tuples(st.just("put_approval"), labels, uris, contents),
    st.tuples(st.just("remove_approval"), labels, uris),
    st.tuples(st.just("put_denial"), labels, uris, contents),
    st.tuples(st.just("put_question"), labels, uris, st.integers(0, 3)),
    st.tuples(st.just("answer_question"), st.integers(0, 3), st.integers(0, 9)),
    st.tuples(st.just("withdraw_question"), st.integers(0, 3)),
)


async def take(store: Store, step: tuple[Any, ...]) -> object:
    match step:
        case ("put_origin", label):
            return await store.put_origin(StoredOrigin(label, {"of": label}, 1.0))
        case ("remove_origin", label):
            return await store.remove_origin(label)
        case ("put_entries", label, count):
            return await store.put_entries(label, SeenEntries((entry(),) * count, 1.0))
        case ("put_approval", label, uri, pairs):
            return await store.put_approval(approval(label, uri, contents=pairs), line(origin=label, uri=uri))
        case ("put_denial", label, uri, pairs):
            return await store.put_denial(pairs, line("denied", label, uri))
        case ("put_question", label, uri, number):
            asked = SkillEntry(uri, {}, (Resource("f", DIGEST, None),))
            return await store.put_question(
                Question(str(number), "load", label, asked, "x", number, 2.0 * number + 1)
            )
        case ("answer_question", number, at):
            return await store.answer_question(str(number), Answered(at % 2 == 0, "y", at))
        case ("withdraw_question", number):
            return await store.withdraw_question(str(number))
        case (_, label, uri):
            return await store.remove_approval(label, uri, line("revoked", label, uri))


async def all_of(store: Store) -> list[object]:
    """Whatever can be asked of a store."""
    asked: list[Sequence[object]] = [await store.origins(), await store.approvals(), await store.lines()]
    asked += [await store.decisions(), await store.questions(0.0), await store.questions(4.0)]
    asked.append([await store.answer_to(str(number)) for number in range(4)])
    for label in ("a", "b", "\udc80", ""):
        asked.append(
            [await store.entries(label), await store.approval(label, "x"), await store.approval(label, "ü")]
        )
        asked += [await store.approvals(label), await store.lines(origin=label, uri="y", limit=2)]
        asked += [await store.decisions(label), await store.decisions(label, "x")]
    return [list(each) for each in asked]


@settings(max_examples=10)
@given(history=st.lists(steps, max_size=12))
def test_a_store_agrees_with_the_model_after_any_history(
    history: list[tuple[Any, ...]], empty_store: Path
) -> None:
    async def live() -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = shutil.copy(empty_store, Path(folder) / "store.db")
            model, disk = ModelStore(), await Store.open(path, patience=60)
            try:
                for step in history:
                    assert await take(model, step) == await take(disk, step)
                assert await all_of(model) == await all_of(disk)
            finally:
                await disk.close()

    anyio.run(live)
