"""An approval is for one content of one skill of one origin, and for nothing else (A1, A2, V7)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adversarial.expecting import refused
from rules import rule
from skillwire.errors import VerificationError
from skillwire.skill import digest_of
from skillwire.skill.approval import Approval, agrees, change_since, contents_of, covers, fingerprint
from skillwire.skill.entry import DYNAMIC, Partial, Resource, SkillEntry

ROOT = "skill://acme/refunds"
FRONTMATTER = {"name": "refunds", "description": "Pays back."}

names = st.sampled_from([f"{ROOT}/{name}.md" for name in "abcde"])
digests = st.sampled_from([digest_of(b"%d" % number) for number in range(4)])
files = st.dictionaries(names, digests, max_size=4)


def entry(content: dict[str, str], skill_md: str = digest_of(b"skill")) -> SkillEntry:
    resources = [Resource(f"{ROOT}/SKILL.md", skill_md, 5), *(Resource(uri, d, 1) for uri, d in content.items())]
    return SkillEntry(f"{ROOT}/SKILL.md", FRONTMATTER, tuple(resources))


def approval(of: SkillEntry) -> Approval:
    return Approval("acme", of.uri, contents_of(of), "ada", 1000.0)


@rule("A1")
@given(files)
def test_an_approval_covers_what_was_approved(content: dict[str, str]) -> None:
    """The whole set, whatever the order in which a server lists it."""
    given_yes = approval(entry(content))
    backwards = replace(entry(content), resources=tuple(reversed(entry(content).files)))
    assert covers(given_yes, "acme", entry(content))
    assert covers(given_yes, "acme", backwards)
    assert not change_since(given_yes, backwards)


@rule("A2")
@given(files, names, digests)
def test_a_file_that_was_added_revokes(content: dict[str, str], uri: str, digest: str) -> None:
    before = {name: each for name, each in content.items() if name != uri}
    given_yes = approval(entry(before))
    later = entry({**before, uri: digest})
    assert not covers(given_yes, "acme", later)
    change = change_since(given_yes, later)
    assert (change.added, change.removed, change.rotated) == ((uri,), (), ())


@rule("A2")
@given(files, names, digests)
def test_a_file_that_was_removed_revokes(content: dict[str, str], uri: str, digest: str) -> None:
    given_yes = approval(entry({**content, uri: digest}))
    later = entry({name: each for name, each in content.items() if name != uri})
    assert not covers(given_yes, "acme", later)
    change = change_since(given_yes, later)
    assert (change.added, change.removed, change.rotated) == ((), (uri,), ())


@rule("A2")
@given(files, names, digests, digests)
def test_a_file_whose_bytes_were_rotated_revokes(content: dict[str, str], uri: str, old: str, new: str) -> None:
    """Unless they are the same bytes again."""
    given_yes = approval(entry({**content, uri: old}))
    later = entry({**content, uri: new})
    assert covers(given_yes, "acme", later) == (old == new)
    change = change_since(given_yes, later)
    assert (change.added, change.removed) == ((), ())
    assert change.rotated == (() if old == new else (uri,))


@rule("A2")
@given(files, digests)
def test_another_skill_md_alone_revokes(content: dict[str, str], digest: str) -> None:
    """The instructions are a file like the others."""
    given_yes = approval(entry(content))
    assert not covers(given_yes, "acme", entry(content, digest))


@rule("A1", "A2", "E5")
@given(files, files, st.sampled_from(["acme", "other"]))
def test_exactly_the_same_set_of_the_same_origin_is_covered(
    then: dict[str, str], now: dict[str, str], origin: str
) -> None:
    """In general; and the change is empty exactly when nothing changed."""
    given_yes = approval(entry(then))
    assert covers(given_yes, origin, entry(now)) == (then == now and origin == "acme")
    assert bool(change_since(given_yes, entry(now))) == (then != now)


@rule("A1")
@given(files, files)
def test_a_fingerprint_names_one_content(one: dict[str, str], other: dict[str, str]) -> None:
    """What a person compares and a log keeps."""
    first, second = contents_of(entry(one)), contents_of(entry(other))
    assert (fingerprint(first) == fingerprint(second)) == (one == other)
    assert approval(entry(one)).fingerprint == fingerprint(first)


@rule("A1", "E5")
def test_an_approval_is_for_one_uri() -> None:
    """The same files under another address are another skill."""
    uri = "skill://Acme/refunds/SKILL.md"
    given_yes = approval(entry({}))
    assert not covers(given_yes, "acme", replace(entry({}), uri=uri))
    assert not covers(replace(given_yes, uri=uri), "acme", entry({}))


UNBOUND = {
    "dynamic": DYNAMIC,
    "perhaps more files": Partial(entry({}).files),
    "a file without a digest": (*entry({}).files, Resource(f"{ROOT}/more.md", None, 1)),
    "no digest at all": (Resource(f"{ROOT}/SKILL.md", None, 5),),
}


@rule("V7", "A1")
@pytest.mark.parametrize("resources", UNBOUND.values(), ids=UNBOUND.keys())
def test_what_promises_no_content_cannot_be_approved_for_ever(resources: object) -> None:
    """There is nothing to bind to."""
    skill = replace(entry({}), resources=resources)
    with refused(VerificationError, "approval-unbound", "V7"):
        contents_of(skill)


@rule("V7")
@pytest.mark.parametrize("resources", UNBOUND.values(), ids=UNBOUND.keys())
def test_what_promises_no_content_is_covered_by_no_approval(resources: object) -> None:
    """Also if another content of it was approved when it still promised one."""
    skill = replace(entry({}), resources=resources)
    assert not covers(approval(entry({})), "acme", skill)
    assert not covers(Approval("acme", skill.uri, frozenset(), "ada", 0.0), "acme", skill)


@rule("A2", "L2")
@given(files)
def test_a_listing_that_says_less_agrees_unless_it_says_otherwise(content: dict[str, str]) -> None:
    """Only what it says counts, in whatever spelling; one that says all, or is dynamic, is another."""
    whole = entry(content)
    approved = contents_of(whole)
    for known in ((), whole.files[:1], tuple(Resource(file.uri, None, None) for file in whole.files)):
        assert agrees(approved, replace(whole, resources=Partial(known)))
    manual = Resource(f"{ROOT}/%53KILL.md", dict(approved)[f"{ROOT}/SKILL.md"], None)
    assert agrees(approved, replace(whole, resources=Partial((manual,))))
    for other in (manual._replace(digest=digest_of(b"other")), Resource(f"{ROOT}/new/x", digest_of(b""), 0)):
        assert not agrees(approved, replace(whole, resources=Partial((other,))))
    assert not agrees(approved, whole)
    assert not agrees(approved, replace(whole, resources=DYNAMIC))


@rule("A1")
@given(files, st.integers(0, 10**12))
def test_a_size_is_no_part_of_what_is_approved(content: dict[str, str], size: int) -> None:
    """A digest fixes the bytes; a size that lies is refused when they are read (V1)."""
    skill = entry(content)
    lying = replace(skill, resources=tuple(file._replace(size=size) for file in skill.files))
    assert covers(approval(skill), "acme", lying)


@rule("A4", "A5")
@given(files)
def test_approving_grants_nothing(content: dict[str, str]) -> None:
    """A grant is a decision of its own, and is no part of what is covered."""
    given_yes = approval(entry(content))
    assert given_yes.grants == frozenset()
    assert covers(replace(given_yes, grants=frozenset({"execute"})), "acme", entry(content))
