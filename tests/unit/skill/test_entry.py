"""E1–E5, U3, B5: what a server claims about a skill, and which claims are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rules import rule
from skillwire.errors import FormatError
from skillwire.skill.entry import (
    DYNAMIC,
    Partial,
    Resource,
    SkillEntry,
    SkillMeta,
    build_entry,
    digest_of,
    parse_entry,
)
from skillwire.skill.uri import fold

SKILL_MD = b"---\nname: refunds\ndescription: Refund an order.\n---\nDo it.\n"
FRONTMATTER = {"name": "refunds", "description": "Refund an order.", "x": [1, None, {"y": True}]}
FILES = {"SKILL.md": SKILL_MD, "templates/reply.md": b"Hello", "a b.md": b"", "inner/SKILL.md": b"nested"}


def facts() -> list[tuple[str, str, int]]:
    return [(path, digest_of(data), len(data)) for path, data in FILES.items()]


def good() -> dict[str, Any]:
    return build_entry("acme/refunds", FRONTMATTER, facts()).to_json()


@rule("E1", "E2", "E3")
def test_an_entry_says_where_the_skill_is_all_its_fields_and_all_its_files() -> None:
    """And nothing else, since strict clients refuse extra fields."""
    assert good() == {
        "uri": "skill://acme/refunds/SKILL.md",
        "frontmatter": FRONTMATTER,
        "resources": [
            {"uri": f"skill://acme/refunds/{path}", "digest": digest_of(FILES[name]), "size": len(FILES[name])}
            for path, name in [
                ("SKILL.md", "SKILL.md"),
                ("a%20b.md", "a b.md"),
                ("inner/SKILL.md", "inner/SKILL.md"),
                ("templates/reply.md", "templates/reply.md"),
            ]
        ],
    }


@rule("E1", "E2")
def test_an_entry_survives_the_wire() -> None:
    entry = build_entry("acme/refunds", FRONTMATTER, facts())
    assert parse_entry(json.loads(json.dumps(entry.to_json()))) == entry


@rule("E1", "U2")
def test_an_entry_knows_its_parts() -> None:
    entry = build_entry("acme/bill ing/refunds", FRONTMATTER, facts(), scheme="repo")
    assert entry.uri == "repo://acme/bill%20ing/refunds/SKILL.md"
    assert (entry.path, entry.name, entry.description) == ("acme/bill ing/refunds", "refunds", "Refund an order.")
    assert entry.size == sum(len(data) for data in FILES.values())
    assert len(entry.files) == len(FILES)
    assert not entry.is_dynamic
    assert {resource.uri.partition(":")[0] for resource in entry.files} == {"repo"}


@rule("E2")
def test_a_dynamic_skill_claims_nothing_about_bytes() -> None:
    entry = build_entry("refunds", FRONTMATTER, DYNAMIC)
    assert entry.to_json() == {
        "uri": "skill://refunds/SKILL.md",
        "frontmatter": FRONTMATTER,
        "resources": "dynamic",
    }
    assert (entry.is_dynamic, entry.files, entry.size) == (True, (), 0)
    assert parse_entry(entry.to_json()) == entry


@rule("E1", "G1")
def test_whether_a_skill_is_listed_is_no_part_of_the_claim() -> None:
    listed, unlisted = (
        build_entry("refunds", FRONTMATTER, facts(), meta=SkillMeta(listed=listed)) for listed in (True, False)
    )
    assert (listed.listed, unlisted.listed) == (True, False)
    assert listed == unlisted
    assert listed.to_json() == unlisted.to_json()


@rule("E3", "V4")
def test_another_digest_size_or_field_is_another_entry() -> None:
    entry = build_entry("refunds", FRONTMATTER, facts())
    changed = facts()
    changed[1] = (changed[1][0], digest_of(b"other"), changed[1][2])
    assert build_entry("refunds", FRONTMATTER, changed) != entry
    assert build_entry("refunds", {**FRONTMATTER, "x": 1}, facts()) != entry
    assert build_entry("refunds", FRONTMATTER, facts()[:-1]) != entry


@rule("U3", "U7")
def test_the_last_segment_is_compared_decoded() -> None:
    value = json.loads(json.dumps(good()).replace("acme/refunds", "acme/%72efunds"))
    assert parse_entry(value).path == "acme/refunds"


@rule("E5")
def test_entries_with_one_name_are_different_skills() -> None:
    """Names are labels."""
    one, other = (build_entry(f"{team}/refunds", FRONTMATTER, DYNAMIC) for team in ("a", "b"))
    assert one.name == other.name
    assert one != other


@rule("E5")
def test_an_entry_of_someone_else_may_lack_labels() -> None:
    entry = SkillEntry("skill://a/SKILL.md", {}, (Resource("skill://a/SKILL.md", digest_of(b""), 0),))
    assert (entry.name, entry.description) == ("", "")


WHOLE = Resource("skill://acme/refunds/SKILL.md", digest_of(SKILL_MD), len(SKILL_MD), "SKILL.md")
MORE = Resource("skill://acme/refunds/a%20b.md", digest_of(b""), 0, "a b.md")


def claim(resources: Any, **fields: Any) -> SkillEntry:
    return SkillEntry("skill://acme/refunds/SKILL.md", FRONTMATTER, resources, **fields)


GAPS: dict[str, tuple[Any, set[str]]] = {
    "everything-promised": ((WHOLE, MORE), set()),
    "a-file-without-size": ((WHOLE, MORE._replace(size=None)), {"size"}),
    "a-file-without-digest": ((WHOLE._replace(digest=None), MORE), {"digest"}),
    "some-files": (Partial((WHOLE, MORE)), {"manifest"}),
    "some-files-without-size": (Partial((WHOLE._replace(size=None),)), {"manifest", "size"}),
    "no-files": (Partial(), {"manifest", "digest", "size"}),
    "dynamic": (DYNAMIC, {"manifest", "digest", "size"}),
}


@rule("E2", "E2b", "V7")
@pytest.mark.parametrize("case", GAPS)
def test_what_was_not_promised_is_said(case: str) -> None:
    """One file without a promise is enough."""
    resources, gaps = GAPS[case]
    assert claim(resources).gaps == gaps
    assert claim(resources, whole_frontmatter=False).gaps == gaps | {"frontmatter"}


@rule("E2")
@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(claim(Partial((WHOLE, MORE))), id="some-files"),
        pytest.param(claim((WHOLE._replace(size=None), MORE)), id="a-file-without-size"),
        pytest.param(claim((WHOLE, MORE._replace(digest=None))), id="a-file-without-digest"),
        pytest.param(claim((WHOLE, MORE), whole_frontmatter=False), id="some-fields"),
    ],
)
def test_an_entry_with_a_gap_goes_out_as_dynamic(entry: SkillEntry) -> None:
    """A server never sends less than the extension asks; so it does not promise at all."""
    sent = entry.to_json()
    assert sent == {"uri": WHOLE.uri, "frontmatter": FRONTMATTER, "resources": "dynamic"}
    assert parse_entry(sent).is_dynamic


@rule("E2")
def test_an_entry_without_gaps_goes_out_whole() -> None:
    whole, more = ({"uri": file.uri, "digest": file.digest, "size": file.size} for file in (WHOLE, MORE))
    assert claim((WHOLE, MORE)).to_json()["resources"] == [whole, more]


def test_a_file_has_its_path_inside_the_skill() -> None:
    elsewhere = Resource("wiki://pages/17", None, None)
    files = (WHOLE, Resource("skill://acme/refunds/deep/%61.md", None, None), elsewhere)
    plain = tuple(file._replace(path="") for file in files)
    assert [file.path for file in claim(Partial(plain)).files] == ["SKILL.md", "deep/a.md", ""]
    assert [file.path for file in parse_entry(claim((WHOLE, MORE)).to_json()).files] == ["SKILL.md", "a b.md"]


@rule("E2")
@pytest.mark.parametrize(
    ("resources", "complete", "dynamic", "files"),
    [
        pytest.param((WHOLE, MORE._replace(size=None)), True, False, (WHOLE, MORE._replace(size=None)), id="all"),
        pytest.param(Partial((WHOLE,)), False, False, (WHOLE,), id="some"),
        pytest.param(DYNAMIC, False, True, (), id="dynamic"),
    ],
)
def test_a_list_of_all_files_some_files_and_none_are_told_apart(
    resources: Any, complete: bool, dynamic: bool, files: tuple[Resource, ...]
) -> None:
    entry = claim(resources)
    assert (entry.is_complete, entry.is_dynamic, entry.files) == (complete, dynamic, files)
    assert entry.size == sum(file.size or 0 for file in files)


@rule("E2")
def test_some_files_are_another_claim_than_the_same_files_as_all() -> None:
    assert claim(Partial((WHOLE, MORE))) != claim((WHOLE, MORE))
    assert claim(Partial()) != claim(DYNAMIC)
    assert claim((WHOLE,)) != claim((WHOLE,), whole_frontmatter=False)


@rule("U7")
@pytest.mark.parametrize(
    "uri",
    ["skill://acme/refunds/a%20b.md", "skill://acme/refunds/a b.md", "SKILL://%61cme/refunds/%61%20b%2Emd"],
)
def test_a_file_is_found_in_any_spelling_of_its_uri(uri: str) -> None:
    assert claim((WHOLE, MORE)).resource(uri) == MORE
    assert claim(Partial((WHOLE, MORE))).resource(uri) == MORE


@rule("U4", "U7", "V2")
@pytest.mark.parametrize(
    "uri",
    ["skill://acme/refunds/A%20b.md", "skill://acme/refunds/a%2520b.md", "skill://ACME/refunds/a%20b.md",
     "skill://acme/refunds", "repo://acme/refunds/a%20b.md"],
)  # fmt: skip
def test_a_uri_of_something_else_finds_nothing(uri: str) -> None:
    assert claim((WHOLE, MORE)).resource(uri) is None
    assert claim(DYNAMIC).resource(WHOLE.uri) is None


@rule("U7")
def test_a_spelling_that_is_no_uri_is_refused_rather_than_not_found() -> None:
    for uri in ("a b.md", "skill://acme/refunds/../x", ""):
        with pytest.raises(FormatError):
            claim((WHOLE, MORE)).resource(uri)


@rule("B5")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("README.md", "readme.MD"),
        ("caf\u00e9.md", "cafe\u0301.md"),
        ("CAF\u00c9.md", "cafe\u0301.md"),
        ("stra\u00dfe", "STRASSE"),
        ("\u03a3\u03b1\u03c2", "\u03c3\u03b1\u03c3"),
        ("\u212a", "k"),
        ("a\u0323\u0307", "A\u0307\u0323"),
        ("\u0390", "\u03b9\u0308\u0301"),
    ],
    ids=["case", "unicode-form", "both", "sharp-s", "final-sigma", "kelvin-sign", "order-of-marks", "two-marks"],
)
def test_names_that_collide_on_some_disk_fold_to_one(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@rule("B5")
def test_names_that_differ_on_every_disk_do_not_fold_together() -> None:
    for one, other in (("a", "b"), ("ab", "a/b"), ("\u00e9", "e"), ("1", "\u0661")):
        assert fold(one) != fold(other)
