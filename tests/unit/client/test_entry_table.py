"""A2: what changed between two listings is told by what they claim; nothing is read for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rules import rule
from skillwire.client.entry_table import EntryTable
from skillwire.skill.entry import DYNAMIC, Partial, Resource, SkillEntry, SkillMeta, build_entry, digest_of
from skillwire.skill.verify import is_same

if TYPE_CHECKING:
    from skillwire.catalog.contract import Change

FILES = [("SKILL.md", digest_of(b"x"), 1), ("a.md", digest_of(b"y"), 2)]


def entry(name: str, version: bytes = b"1", **fields: Any) -> SkillEntry:
    files = [*FILES, ("v", digest_of(version), len(version))]
    return build_entry(f"acme/{name}", {"name": name, "description": "x", **fields}, files)


def change(before: list[SkillEntry], now: list[SkillEntry]) -> Change:
    table = EntryTable()
    table.replace(before)
    return table.replace(now)


def names(uris: frozenset[str]) -> list[str]:
    return sorted(uri.split("/")[-2] for uri in uris)


@rule("A2")
def test_each_skill_is_added_changed_removed_or_the_same() -> None:
    found = change(
        [entry("a"), entry("b"), entry("c"), entry("d")], [entry("e"), entry("d"), entry("c", b"2"), entry("a")]
    )
    assert (names(found.added), names(found.changed), names(found.removed)) == (["e"], ["c"], ["b"])


@rule("A2")
@pytest.mark.parametrize("entries", [[], [entry("a"), entry("b")]], ids=["empty", "two"])
def test_an_equal_listing_is_no_change(entries: list[SkillEntry]) -> None:
    assert not change(entries, entries)


@rule("A2")
def test_a_requested_entry_stays_until_its_listed_entry_changes() -> None:
    short, whole = changed(resources=Partial()), entry("a")
    table = EntryTable()
    table.replace([short])
    table.put(whole)
    table.replace([changed(resources=Partial())])
    assert table.known == (whole,)
    other = changed(resources=Partial(), frontmatter={"name": "a", "description": "new"})
    table.replace([other])
    assert table.known == (other,)


def changed(**changes: Any) -> SkillEntry:
    return replace(entry("a"), **changes)


@rule("A2")
@pytest.mark.parametrize(
    "other",
    [
        entry("a", b"2"),
        entry("a", description="y"),
        entry("a", extra=None),
        changed(frontmatter={"name": "a"}),
        changed(resources=entry("a").files[:-1]),
        changed(resources=(*entry("a").files, Resource("skill://acme/a/new", digest_of(b""), 0))),
        changed(resources=tuple(file._replace(size=None) for file in entry("a").files)),
        changed(resources=tuple(file._replace(digest=None) for file in entry("a").files)),
        changed(resources=tuple(file._replace(uri=f"{file.uri}x") for file in entry("a").files)),
        changed(resources=Partial(entry("a").files)),
        changed(resources=DYNAMIC),
        changed(uri="skill://acme/b/SKILL.md"),
    ],
    ids=[
        "rotated",
        "field-changed",
        "field-added",
        "field-removed",
        "file-removed",
        "file-added",
        "no-size",
        "no-digest",
        "files-renamed",
        "list-not-complete",
        "dynamic",
        "other-uri",
    ],
)
def test_any_other_claim_is_a_change(other: SkillEntry) -> None:
    """Rotated, added, removed, renamed, or no longer promised."""
    assert not is_same(entry("a"), other)
    assert not is_same(other, entry("a"))


@rule("A2", "E1")
@pytest.mark.parametrize(
    "other",
    [
        entry("a"),
        changed(resources=tuple(reversed(entry("a").files))),
        changed(frontmatter=dict(reversed(entry("a").frontmatter.items()))),
        changed(meta=SkillMeta(listed=False), modified=5.0),
    ],
    ids=["itself", "files in another order", "fields in another order", "what is no part of the claim"],
)
def test_the_same_claim_is_no_change(other: SkillEntry) -> None:
    assert is_same(entry("a"), other)
    assert not change([entry("a")], [other])


@rule("A2", "V4")
@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param(True, 1, False, id="boolean-and-number"),
        pytest.param([True], [1], False, id="in-a-list"),
        pytest.param(1, 1.0, True, id="same-number"),
        pytest.param(None, "", False, id="null-and-empty"),
    ],
)
def test_fields_are_compared_as_json_compares(one: Any, other: Any, same: bool) -> None:
    """A boolean that became a number is another claim; a number written otherwise is not."""
    assert is_same(entry("a", extra=one), entry("a", extra=other)) is same


@rule("V7")
def test_a_skill_without_digests_changes_only_in_what_it_says() -> None:
    one = changed(resources=DYNAMIC)
    assert is_same(one, changed(resources=DYNAMIC))
    assert not is_same(one, changed(resources=DYNAMIC, frontmatter={"name": "a", "description": "new"}))


@rule("E5")
def test_a_name_that_moved_is_another_skill() -> None:
    """Identity is the URI."""
    moved = build_entry("other/a", {"name": "a", "description": "x"}, FILES)
    found = change([entry("a")], [moved])
    assert (found.added, found.removed) == ({moved.uri}, {entry("a").uri})
