"""V1, V2, V4, V7, B1: what bytes and fields must be to count as what an entry says, and what is said if not."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rules import rule
from skillwire.errors import FormatError, LimitError, SkillwireError, VerificationError
from skillwire.limits import Limits
from skillwire.skill.entry import DYNAMIC, Partial, Resource, SkillEntry, build_entry, digest_of
from skillwire.skill.frontmatter import parse_skill_md
from skillwire.skill.verify import (
    VerifiedFile,
    differing_fields,
    expect_file,
    verify_file,
    verify_frontmatter,
    verify_skill_md,
)
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import Callable

SKILL_MD = skill_md("refunds", "Refund an order.", "Do it.\n", "version: 2\nmetadata:\n  owner: billing\n")
REPLY = b"Dear customer,\r\n\xef\xbb\xbf"
FILES = {"SKILL.md": SKILL_MD, "templates/reply.md": REPLY, "a b.bin": b"\xff\x00", "empty": b""}
ROOT = "skill://acme/refunds"
REPLY_URI = f"{ROOT}/templates/reply.md"


def entry_of(data: bytes = SKILL_MD, **changes: Any) -> SkillEntry:
    files = FILES | {"SKILL.md": data}
    facts = ((path, digest_of(file), len(file)) for path, file in files.items())
    return replace(build_entry("acme/refunds", parse_skill_md(data).frontmatter, facts), **changes)


def without_sizes() -> SkillEntry:
    """E2b: the generation before ``size``."""
    entry = entry_of()
    return replace(entry, resources=tuple(file._replace(size=None) for file in entry.files))


def refusal(act: Callable[[], object]) -> SkillwireError:
    with pytest.raises(SkillwireError) as caught:
        act()
    return caught.value


def fields_in(error: SkillwireError) -> set[str]:
    """The fields that an error names."""
    fields = {"name", "description", "license", "version", "metadata", "hooks", "x-field"}
    return fields & set(re.findall(r"[\w-]+", error.message))


@rule("V1")
def test_bytes_that_match_the_entry_become_a_verified_file() -> None:
    """Text, binary, empty."""
    for data in FILES.values():
        uri = next(file.uri for file in entry_of().files if file.digest == digest_of(data))
        assert verify_file(entry_of(), uri, data) == VerifiedFile(uri, data, digest_of(data))


@rule("V1", "U7")
def test_a_file_is_verified_in_any_spelling_and_named_in_the_entrys() -> None:
    assert verify_file(entry_of(), "SKILL://acme/refunds/templates/%72eply.md", REPLY).uri == REPLY_URI


@rule("V1", "V4")
def test_a_skill_md_that_matches_becomes_a_verified_file() -> None:
    file = verify_skill_md(entry_of(), SKILL_MD)
    assert (file.data, file.text) == (SKILL_MD, SKILL_MD.decode())
    document = verify_frontmatter(entry_of(), SKILL_MD)
    assert document.body == "\nDo it.\n"
    assert document.frontmatter["metadata"] == {"owner": "billing"}


@rule("F6")
def test_the_text_of_a_verified_file_is_its_bytes_to_the_last_mark() -> None:
    assert verify_file(entry_of(), REPLY_URI, REPLY).text.encode() == REPLY


@rule("R1")
def test_bytes_that_are_no_text_say_so() -> None:
    file = verify_file(entry_of(), f"{ROOT}/a%20b.bin", FILES["a b.bin"])
    error = refusal(lambda: file.text)
    assert isinstance(error, FormatError)
    assert error.reference == "not-text"
    assert error.hint


# Every way in which something is not what its entry says: (what is done, reference, rule, what the message names).
REFUSALS: dict[str, tuple[Callable[[], object], str, str, str]] = {
    "one byte is missing": (
        lambda: verify_file(entry_of(), REPLY_URI, REPLY[:-1]), "size-mismatch", "V1", REPLY_URI,
    ),
    "one byte is too much": (
        lambda: verify_file(entry_of(), REPLY_URI, REPLY + b" "), "size-mismatch", "V1", "20",
    ),
    "one byte is another": (
        lambda: verify_file(entry_of(), REPLY_URI, REPLY[:-1] + b"\xbe"), "digest-mismatch", "V1", REPLY_URI,
    ),
    "the bytes of another file": (
        lambda: verify_file(without_sizes(), REPLY_URI, SKILL_MD), "digest-mismatch", "V1", digest_of(SKILL_MD),
    ),
    "the SKILL.md is another": (
        lambda: verify_skill_md(entry_of(), SKILL_MD[:-1] + b"!"), "digest-mismatch", "V1", f"{ROOT}/SKILL.md",
    ),
    "the file is not listed": (
        lambda: verify_file(entry_of(), f"{ROOT}/more.md", b""), "file-unlisted", "V2", f"{ROOT}/more.md",
    ),
    "the file is listed in another case": (
        lambda: verify_file(entry_of(), f"{ROOT}/Templates/reply.md", REPLY), "file-unlisted", "V2", "Templates",
    ),
    "the folder is no file": (lambda: expect_file(entry_of(), f"{ROOT}/templates"), "file-unlisted", "V2", ROOT),
    "the file is of a neighbour": (
        lambda: verify_file(entry_of(), "skill://acme/refunds-2/x.md", b""), "file-outside", "V2", "refunds-2",
    ),
    "the file is of another scheme": (
        lambda: verify_file(entry_of(), "repo://acme/refunds/SKILL.md", SKILL_MD), "file-outside", "V2", "repo://",
    ),
    "the root is no file": (lambda: expect_file(entry_of(), ROOT), "file-outside", "V2", ROOT),
    "nothing is promised": (
        lambda: verify_skill_md(entry_of(resources=DYNAMIC), SKILL_MD), "skill-dynamic", "V7", f"{ROOT}/SKILL.md",
    ),
    "the file has no digest": (
        lambda: verify_file(
            entry_of(resources=Partial((Resource(REPLY_URI, None, len(REPLY)),))), REPLY_URI, REPLY
        ),
        "digest-unpromised", "V1", REPLY_URI,
    ),
    "the fields differ": (
        lambda: verify_skill_md(entry_of(frontmatter={"name": "refunds", "description": "x"}), SKILL_MD),
        "frontmatter-mismatch", "V4", "version",
    ),
    "there is no frontmatter": (
        lambda: verify_frontmatter(entry_of(), b"# Refunds\n"), "frontmatter-mismatch", "V4", f"{ROOT}/SKILL.md",
    ),
}  # fmt: skip


@rule("V1", "V2", "V4", "V7")
@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_not_as_the_entry_says_is_refused_with_its_rule_and_a_way_out(name: str) -> None:
    """As the error says."""
    act, reference, rule, named = REFUSALS[name]
    error = refusal(act)
    assert isinstance(error, VerificationError)
    assert (error.reference, error.rule) == (reference, rule)
    assert named in error.message
    assert error.hint


@rule("V1", "V2", "V4", "V7")
def test_every_reference_of_a_mismatch_has_its_test() -> None:
    """The whole list."""
    assert {reference for _, reference, _, _ in REFUSALS.values()} == {
        "size-mismatch", "digest-mismatch", "file-unlisted", "file-outside", "skill-dynamic", "digest-unpromised",
        "frontmatter-mismatch",
    }  # fmt: skip


@rule("V1")
def test_a_mismatch_says_what_came_and_what_was_claimed() -> None:
    """A person can compare."""
    error = refusal(lambda: verify_file(without_sizes(), REPLY_URI, b"other"))
    assert digest_of(b"other") in error.message
    assert digest_of(REPLY) in error.message
    sized = refusal(lambda: verify_file(entry_of(), REPLY_URI, REPLY + b"!"))
    assert "20" in sized.message
    assert "19" in sized.message


@rule("B1")
def test_a_message_about_something_long_is_short() -> None:
    entry = entry_of(uri=f"{ROOT}/{'x' * 3000}/SKILL.md")
    assert len(refusal(lambda: expect_file(entry, f"{ROOT}/{'y' * 3000}")).message) < 700


@rule("U7", "V2")
def test_a_spelling_that_could_lead_elsewhere_is_no_file_at_all() -> None:
    for uri in (f"{ROOT}/templates/../SKILL.md", f"{ROOT}/%2e%2e/x", "file:///etc/passwd", "SKILL.md", ""):
        error = refusal(lambda uri=uri: verify_file(entry_of(), uri, b""))  # type: ignore[misc]
        assert isinstance(error, FormatError)
        assert error.reference == "uri-invalid"


@rule("B1")
def test_a_file_that_claims_too_much_is_not_asked_for() -> None:
    """The claim alone is enough, and the bound itself is allowed."""
    limits = Limits(max_file_bytes=len(REPLY) - 1)
    error = refusal(lambda: expect_file(entry_of(), REPLY_URI, limits))
    assert isinstance(error, LimitError)
    assert (error.reference, error.rule) == ("file-too-large", "B1")
    assert "Limits.max_file_bytes" in error.hint
    assert expect_file(entry_of(), REPLY_URI, Limits(max_file_bytes=len(REPLY))).size == len(REPLY)


@rule("V2")
def test_what_is_promised_is_told_before_anything_is_read() -> None:
    assert expect_file(entry_of(), REPLY_URI) == Resource(
        REPLY_URI, digest_of(REPLY), len(REPLY), "templates/reply.md"
    )


@rule("E2b", "V1")
def test_an_entry_without_sizes_is_held_to_its_digests() -> None:
    entry = without_sizes()
    assert verify_file(entry, REPLY_URI, REPLY).data == REPLY
    assert verify_skill_md(entry, SKILL_MD).data == SKILL_MD
    assert expect_file(entry, REPLY_URI, Limits(max_file_bytes=0)).size is None
    error = refusal(lambda: verify_file(entry, REPLY_URI, REPLY + b" "))
    assert error.reference == "digest-mismatch"


@rule("V1", "V2")
def test_a_list_that_may_not_be_all_still_promises_what_it_names() -> None:
    """A partial entry of an older dialect."""
    entry = entry_of(resources=Partial((Resource(f"{ROOT}/SKILL.md", digest_of(SKILL_MD), None),)))
    assert verify_skill_md(entry, SKILL_MD).digest == digest_of(SKILL_MD)
    assert refusal(lambda: verify_file(entry, REPLY_URI, REPLY)).reference == "file-unlisted"


@rule("V4", "F4")
@pytest.mark.parametrize(
    ("claimed", "written"),
    [
        (2.0, "2"), (0, "-0.0"), (9007199254740993, "9007199254740992"), (True, "true"), (None, "null"),
        ("2", "'2'"), ([1, 2.0], "[1.0, 2]"), ({"a": {"b": 1}}, "{a: {b: 1.0}}"), ("yes", "yes"),
    ],
    ids=ascii,
)  # fmt: skip
def test_fields_are_compared_as_json_compares(claimed: Any, written: str) -> None:
    """Numbers are doubles wherever they were written; a peer in another language sends them its way."""
    data = skill_md("refunds", "x", extra=f"field: {written}\n")
    entry = entry_of(data, frontmatter={"name": "refunds", "description": "x", "field": claimed})
    assert verify_frontmatter(entry, data).frontmatter.keys() == {"name", "description", "field"}


@rule("V4")
@pytest.mark.parametrize(
    ("claimed", "written"),
    [
        (True, "1"), (0, "false"), ("true", "true"), (None, "''"), (None, "false"), (0, "null"), (2, "'2'"),
        (2, "3"), ([1, 2], "[2, 1]"), ([1], "[1, 1]"), ([True], "[1]"), ({"a": 1}, "{a: true}"),
        ({"a": 1}, "{a: 1, b: 2}"), ({"a": 1, "b": 2}, "{a: 1}"), ({}, "[]"), ("x ", "'x'"),
    ],
    ids=ascii,
)  # fmt: skip
def test_fields_that_json_tells_apart_are_a_mismatch(claimed: Any, written: str) -> None:
    """A boolean is no number, text is neither, and nothing is trimmed."""
    data = skill_md("refunds", "x", extra=f"x-field: {written}\n")
    entry = entry_of(data, frontmatter={"name": "refunds", "description": "x", "x-field": claimed})
    error = refusal(lambda: verify_frontmatter(entry, data))
    assert error.reference == "frontmatter-mismatch"
    assert fields_in(error) == {"x-field"}


@rule("V4")
def test_a_field_more_or_less_is_a_mismatch_even_if_it_is_null() -> None:
    """Field by field, on both sides."""
    data = skill_md("refunds", "x", extra="license: null\n")
    less = entry_of(data, frontmatter={"name": "refunds", "description": "x"})
    more = entry_of(data, frontmatter={**less.frontmatter, "license": None, "hooks": None})
    assert fields_in(refusal(lambda: verify_frontmatter(less, data))) == {"license"}
    assert fields_in(refusal(lambda: verify_frontmatter(more, data))) == {"hooks"}


@rule("V4")
def test_an_entry_with_some_fields_is_held_to_those() -> None:
    """Older dialects send name and description, trimmed and on one line."""
    data = skill_md("refunds", "|\n  Refund an order.\n\n  Slowly.", extra="license: MIT\n")
    some = entry_of(
        data, frontmatter={"name": "refunds", "description": "Refund an order. Slowly."}, whole_frontmatter=False
    )
    assert verify_frontmatter(some, data).frontmatter["license"] == "MIT"
    assert verify_skill_md(some, data).data == data
    whole = replace(some, whole_frontmatter=True)
    assert fields_in(refusal(lambda: verify_frontmatter(whole, data))) == {"description", "license"}


@rule("V4")
@pytest.mark.parametrize(
    "fields",
    [
        {"description": "Refund orders."}, {"name": "refund"}, {"license": "MIT"}, {"version": True},
        {"metadata": {"owner": "billing", "x": ""}},
    ],
    ids=lambda fields: next(iter(fields)),
)  # fmt: skip
def test_a_field_that_was_sent_counts_however_few_were(fields: dict[str, Any]) -> None:
    error = refusal(lambda: verify_frontmatter(entry_of(frontmatter=fields, whole_frontmatter=False), SKILL_MD))
    assert error.reference == "frontmatter-mismatch"
    assert fields_in(error) == fields.keys()


@rule("V4", "I1")
def test_a_field_that_was_left_blank_claims_nothing() -> None:
    """Some older listings have no description; a whole frontmatter has exactly what it has."""
    some = entry_of(frontmatter={"name": "refunds", "description": ""}, whole_frontmatter=False)
    assert verify_frontmatter(some, SKILL_MD).frontmatter["description"] == "Refund an order."
    whole = entry_of(frontmatter={**parse_skill_md(SKILL_MD).frontmatter, "description": ""})
    assert fields_in(refusal(lambda: verify_skill_md(whole, SKILL_MD))) == {"description"}


@rule("V4")
def test_a_skill_md_that_cannot_be_read_says_why_and_keeps_the_cause() -> None:
    """Bytes that match a digest may still be no skill."""
    data = b"---\nname: refunds\n"
    entry = SkillEntry(f"{ROOT}/SKILL.md", {}, (Resource(f"{ROOT}/SKILL.md", digest_of(data), len(data)),))
    error = refusal(lambda: verify_skill_md(entry, data))
    assert isinstance(error, VerificationError)
    assert isinstance(error.__cause__, FormatError)
    assert error.__cause__.reference == "frontmatter-unclosed"


@rule("V4")
def test_fields_differ_whatever_kind_of_collection_names_them() -> None:
    """Names that can be gone through only once are no way around a comparison."""
    one, other = {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 3}
    for names in (["c", "b", "a"], {"a", "b", "c"}, dict.fromkeys("abc"), iter("abc"), (name for name in "abc")):
        assert differing_fields(one, other, names) == ["b", "c"]
    assert differing_fields(one, other, []) == []
    assert differing_fields({}, {}, ["a"]) == ["a"]


@rule("V4")
def test_numbers_beyond_every_double_are_the_same_only_if_they_are_equal() -> None:
    assert differing_fields({"a": 10**400}, {"a": 10**401}, "a") == ["a"]
    assert differing_fields({"a": 10**400}, {"a": 10**400}, "a") == []
    assert differing_fields({"a": 10**400}, {"a": 1.5}, "a") == ["a"]
