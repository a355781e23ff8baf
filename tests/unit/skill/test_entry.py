"""E1–E5, U3, B5: what a server claims about a skill, and which claims are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rules import rule
from skillwire.errors import FormatError
from skillwire.skill.digest import digest_of
from skillwire.skill.entry import DYNAMIC, Partial, Resource, SkillEntry, SkillMeta, build_entry, fold
from skillwire.skill.received import parse_entry

SKILL_MD = b"---\nname: refunds\ndescription: Refund an order.\n---\nDo it.\n"
FRONTMATTER = {"name": "refunds", "description": "Refund an order.", "x": [1, None, {"y": True}]}
FILES = {"SKILL.md": SKILL_MD, "templates/reply.md": b"Hello", "a b.md": b"", "inner/SKILL.md": b"nested"}


def facts() -> list[tuple[str, str, int]]:
    return [(path, digest_of(data), len(data)) for path, data in FILES.items()]


def good() -> dict[str, Any]:
    return build_entry("acme/refunds", FRONTMATTER, facts()).to_json()


def refusal(value: object) -> FormatError:
    with pytest.raises(FormatError) as caught:
        parse_entry(value)
    return caught.value


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


@rule("E1")
def test_fields_a_server_adds_are_left_out() -> None:
    """Reading is lenient about what it does not use."""
    value = good()
    value["_meta"] = {"com.example/x": 1}
    value["resources"][0]["mimeType"] = "text/markdown"
    assert parse_entry(value).to_json() == good()


@rule("E1")
@pytest.mark.parametrize("value", [None, 5, "x", [], [("uri", "x")], True])
def test_an_entry_is_an_object(value: object) -> None:
    assert refusal(value).reference == "entry-invalid"


@rule("E1", "E2")
@pytest.mark.parametrize("field", ["uri", "frontmatter", "resources"])
@pytest.mark.parametrize("wrong", ["left out", None, 5, True, [], {}])
def test_each_field_of_an_entry_is_needed_with_its_type(field: str, wrong: object) -> None:
    """An entry without ``resources`` must not be loaded."""
    value = good()
    if wrong == "left out":
        del value[field]
    else:
        value[field] = wrong
    assert refusal(value).reference == "entry-invalid"


@rule("E2")
@pytest.mark.parametrize("resources", ["Dynamic", "static", "", {"SKILL.md": 1}, ["dynamic"], ("dynamic",), 0])
def test_resources_are_a_list_or_the_word_dynamic(resources: object) -> None:
    assert refusal(good() | {"resources": resources}).reference == "entry-invalid"


@rule("E1", "U1", "U7")
@pytest.mark.parametrize(
    "uri",
    ["", "acme/refunds/SKILL.md", "skill://acme/refunds", "skill://acme/refunds/", "skill://acme/refunds/skill.md",
     "skill://SKILL.md", "skill://acme/x/%2e%2e/refunds/SKILL.md", "skill://acme/refunds/SKILL.md?x",
     "skill://acme%2Frefunds/SKILL.md"],
)  # fmt: skip
def test_the_uri_of_an_entry_is_that_of_a_skill_md(uri: str) -> None:
    assert refusal(good() | {"uri": uri}).reference == "uri-invalid"


@rule("E1", "F2", "F3")
@pytest.mark.parametrize("field", ["name", "description"])
@pytest.mark.parametrize("wrong", ["left out", None, 5, ["refunds"]])
def test_name_and_description_are_text(field: str, wrong: object) -> None:
    value = good()
    frontmatter = {key: item for key, item in FRONTMATTER.items() if key != field}
    value["frontmatter"] = frontmatter if wrong == "left out" else frontmatter | {field: wrong}
    error = refusal(value)
    assert error.reference == "entry-invalid"
    assert field in error.message


@rule("U3")
@pytest.mark.parametrize("name", ["refund", "Refunds", "acme", "acme/refunds", "refunds ", ""])
def test_the_name_equals_the_last_segment_of_the_skill_path(name: str) -> None:
    error = refusal(good() | {"frontmatter": {"name": name, "description": "x"}})
    assert error.reference == "entry-invalid"
    assert error.rule == "U3"


@rule("U3", "U7")
def test_the_last_segment_is_compared_decoded() -> None:
    value = json.loads(json.dumps(good()).replace("acme/refunds", "acme/%72efunds"))
    assert parse_entry(value).path == "acme/refunds"


@rule("E2")
def test_a_skill_md_must_be_listed() -> None:
    value = good()
    value["resources"] = [item for item in value["resources"] if item["uri"] != value["uri"]]
    assert "SKILL.md" in refusal(value).message


@rule("E2", "U7")
@pytest.mark.parametrize("spelling", ["templates/reply.md", "templates/%72eply.md", "%74emplates/reply%2Emd"])
def test_a_file_listed_twice_is_refused_in_any_spelling(spelling: str) -> None:
    value = good()
    value["resources"].append({"uri": f"skill://acme/refunds/{spelling}", "digest": digest_of(b"x"), "size": 1})
    error = refusal(value)
    assert error.reference == "entry-invalid"
    assert "twice" in error.message


@rule("E4")
@pytest.mark.parametrize(
    "uri",
    ["skill://acme/refunds", "skill://acme/other/x.md", "skill://acme/refunds-2/x.md", "skill://acme/SKILL.md",
     "repo://acme/refunds/x.md", "skill://Acme/refunds/x.md", "skill://acme/Refunds/x.md", "https://acme/refunds/x.md"],
)  # fmt: skip
def test_a_resource_outside_the_skill_is_refused(uri: str) -> None:
    value = good()
    value["resources"].append({"uri": uri, "digest": digest_of(b"x"), "size": 1})
    error = refusal(value)
    assert error.reference == "entry-invalid"
    assert error.rule == "E4"


@rule("E4", "U7", "O3")
@pytest.mark.parametrize(
    "uri",
    ["skill://acme/refunds/../other/x", "skill://acme/refunds/%2e%2e/other/x", "skill://acme/refunds/a%2F..%2F..%2Fx",
     "skill://acme/refunds/a%5Cb", "skill://acme/refunds/x%00", "skill://acme/refunds//x", "file:///etc/passwd",
     "file:/etc/passwd", "templates/reply.md", "/etc/passwd", "skill://acme/refunds/\ud800"],
)  # fmt: skip
def test_a_resource_whose_uri_is_a_way_out_is_refused(uri: str) -> None:
    value = good()
    value["resources"].append({"uri": uri, "digest": digest_of(b"x"), "size": 1})
    assert refusal(value).reference == "uri-invalid"


@rule("E4")
def test_files_of_a_nested_skill_are_listed_too() -> None:
    uris = [resource.uri for resource in parse_entry(good()).files]
    assert "skill://acme/refunds/inner/SKILL.md" in uris


@rule("E3")
@pytest.mark.parametrize("size", ["left out", None, -1, 1.0, 5.5, "5", True, False, [], {}])
def test_a_size_is_a_whole_number_of_bytes(size: object) -> None:
    """The generation before (E2b) sent none; this reader does not take it for a promise."""
    value = good()
    if size == "left out":
        del value["resources"][0]["size"]
    else:
        value["resources"][0]["size"] = size
    error = refusal(value)
    assert error.reference == "entry-invalid"
    assert "size" in error.message


@rule("E3")
@pytest.mark.parametrize(
    "digest", ["left out", None, "", "0" * 64, "sha256:" + "A" * 64, "sha256:" + "0" * 63, 5, []]
)
def test_a_digest_is_spelled_as_the_rule_says(digest: object) -> None:
    value = good()
    if digest == "left out":
        del value["resources"][0]["digest"]
    else:
        value["resources"][0]["digest"] = digest
    assert refusal(value).reference == "digest-invalid"


@rule("E2")
@pytest.mark.parametrize(
    "item", [None, "skill://acme/refunds/x", 5, [], ["skill://acme/refunds/x", "sha256:", 1], {}]
)
def test_a_resource_is_an_object_with_a_uri(item: object) -> None:
    value = good()
    value["resources"].append(item)
    assert refusal(value).reference == "entry-invalid"


@rule("E3")
def test_an_empty_file_and_a_huge_one_are_files() -> None:
    for size in (0, 2**63):
        value = good()
        value["resources"][1]["size"] = size
        assert parse_entry(value).files[1].size == size


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


WHOLE = Resource("skill://acme/refunds/SKILL.md", digest_of(SKILL_MD), len(SKILL_MD))
MORE = Resource("skill://acme/refunds/a%20b.md", digest_of(b""), 0)


def claim(resources: Any, **fields: Any) -> SkillEntry:
    return SkillEntry("skill://acme/refunds/SKILL.md", FRONTMATTER, resources, **fields)


@rule("E2", "E2b", "V7")
@pytest.mark.parametrize(
    ("resources", "gaps"),
    [
        ((WHOLE, MORE), set()),
        ((WHOLE, MORE._replace(size=None)), {"size"}),
        ((WHOLE._replace(digest=None), MORE), {"digest"}),
        ((Resource(WHOLE.uri, None, None),), {"digest", "size"}),
        (Partial((WHOLE, MORE)), {"manifest"}),
        (Partial((WHOLE, MORE._replace(digest=None))), {"manifest", "digest"}),
        (Partial((WHOLE._replace(size=None),)), {"manifest", "size"}),
        (Partial(), {"manifest", "digest", "size"}),
        (DYNAMIC, {"manifest", "digest", "size"}),
    ],
)
def test_what_was_not_promised_is_said(resources: Any, gaps: set[str]) -> None:
    """One file without a promise is enough."""
    assert claim(resources).gaps == gaps
    assert claim(resources, whole_frontmatter=False).gaps == gaps | {"frontmatter"}


@rule("E2")
@pytest.mark.parametrize(
    ("resources", "fields"),
    [
        (DYNAMIC, {}),
        (Partial((WHOLE, MORE)), {}),
        (Partial(), {}),
        ((WHOLE._replace(size=None), MORE), {}),
        ((WHOLE, MORE._replace(digest=None)), {}),
        ((WHOLE, MORE), {"whole_frontmatter": False}),
    ],
)
def test_an_entry_with_a_gap_goes_out_as_dynamic(resources: Any, fields: dict[str, Any]) -> None:
    """A server never sends less than the extension asks; so it does not promise at all."""
    sent = claim(resources, **fields).to_json()
    assert sent == {"uri": WHOLE.uri, "frontmatter": FRONTMATTER, "resources": "dynamic"}
    assert parse_entry(sent).is_dynamic


@rule("E2")
def test_an_entry_without_gaps_goes_out_whole() -> None:
    assert claim((WHOLE, MORE)).to_json()["resources"] == [WHOLE._asdict(), MORE._asdict()]


@rule("E2")
@pytest.mark.parametrize(
    ("resources", "complete", "dynamic", "files"),
    [
        ((WHOLE, MORE), True, False, (WHOLE, MORE)),
        ((WHOLE._replace(size=None),), True, False, (WHOLE._replace(size=None),)),
        (Partial((WHOLE,)), False, False, (WHOLE,)),
        (Partial(), False, False, ()),
        (DYNAMIC, False, True, ()),
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
    ["skill://acme/refunds/a%20b.md", "skill://acme/refunds/a b.md", "SKILL://acme/refunds/%61%20%62.md",
     "skill://%61cme/refunds/a%20b%2Emd"],
)  # fmt: skip
def test_a_file_is_found_in_any_spelling_of_its_uri(uri: str) -> None:
    assert claim((WHOLE, MORE)).resource(uri) == MORE
    assert claim(Partial((WHOLE, MORE))).resource(uri) == MORE


@rule("U4", "U7", "V2")
@pytest.mark.parametrize(
    "uri",
    ["skill://acme/refunds/A%20b.md", "skill://acme/refunds/a%2520b.md", "skill://ACME/refunds/a%20b.md",
     "skill://acme/refunds", "skill://acme/refunds/a%20b.md/x", "repo://acme/refunds/a%20b.md"],
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
        ("\u1e9e", "ss"),
        ("\ufb01le", "file"),
        ("\u212b", "a\u030a"),
        ("\u212a", "k"),
        ("\uac00", "\u1100\u1161"),
        ("a\u0323\u0307", "A\u0307\u0323"),
        ("\u0390", "\u03b9\u0308\u0301"),
    ],
)
def test_names_that_collide_on_some_disk_fold_to_one(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@rule("B5")
@pytest.mark.parametrize(
    ("one", "other"), [("a", "b"), ("a/b", "a-b"), ("é", "e"), ("ab", "a/b"), ("ö", "o"), ("1", "١")]
)
def test_names_that_differ_on_every_disk_do_not_fold_together(one: str, other: str) -> None:
    assert fold(one) != fold(other)
