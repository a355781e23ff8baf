"""E1–E4, E2b, E6, U1, U3, U7: entries of strangers, of both generations; what is not known is kept, not lost."""

from __future__ import annotations

import copy
import json
from typing import Any, TypeAlias

import pytest

from rules import rule
from skillwire.errors import FormatError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.entry import digest_of, parse_entry

ROOT = "skill://acme/refunds"


def resource(path: str, size: int | None = 1) -> dict[str, Any]:
    fields: dict[str, Any] = {"uri": f"{ROOT}/{path}", "digest": digest_of(path.encode()), "size": size}
    return {key: value for key, value in fields.items() if value is not None}


def entry(**changes: Any) -> dict[str, Any]:
    return {
        "uri": f"{ROOT}/SKILL.md",
        "frontmatter": {"name": "refunds", "description": "Refund an order."},
        "resources": [resource("SKILL.md"), resource("a%20b.md"), resource("inner/SKILL.md")],
    } | changes


def older(**changes: Any) -> dict[str, Any]:
    """E2b: no sizes."""
    files = [resource(path, None) for path in ("SKILL.md", "a%20b.md", "inner/SKILL.md")]
    return entry(resources=files) | changes


def refusal(value: object, **options: Any) -> FormatError:
    with pytest.raises(FormatError) as caught:
        parse_entry(value, **options)
    return caught.value


@rule("E2b")
def test_the_generation_before_sizes_is_read_where_it_is_asked_for() -> None:
    """And what was not promised is said."""
    read = parse_entry(older(), sized=False)
    assert [file.size for file in read.files] == [None, None, None]
    assert [file.digest for file in read.files] == [item["digest"] for item in older()["resources"]]
    assert read.gaps == {"size"}
    assert read.is_complete
    assert read.size == 0


@rule("E2", "E3")
def test_the_generation_before_sizes_is_refused_where_sizes_are_asked_for() -> None:
    """A missing size is not taken for a promise."""
    assert refusal(older()).rule == "E3"
    assert refusal({key: value for key, value in entry().items() if key != "resources"}).rule == "E2"


@rule("E2b", "E2")
def test_an_older_entry_without_resources_is_refused() -> None:
    """Nothing tells a generated skill of that generation from a broken entry."""
    value = older()
    del value["resources"]
    assert refusal(value, sized=False).rule == "E2"


@rule("E2b", "E2")
@pytest.mark.parametrize(
    "resources", [None, [], "Dynamic", [None]], ids=["null", "no-files", "another-word", "not-a-file"]
)
def test_an_older_entry_with_resources_of_another_kind_is_refused(resources: object) -> None:
    """Left out is one thing, wrong another."""
    assert refusal(older(resources=resources), sized=False).rule in ("E1", "E2")


@rule("E2b", "E3")
@pytest.mark.parametrize("size", [-1, "1"], ids=["negative", "text"])
def test_an_older_entry_with_a_wrong_size_is_refused(size: object) -> None:
    """A size that is there is a promise."""
    value = older()
    value["resources"][1]["size"] = size
    assert refusal(value, sized=False).rule == "E3"


@rule("E2b")
def test_an_older_entry_may_mix_files_with_and_without_sizes() -> None:
    read = parse_entry(older(resources=[resource("SKILL.md", 7), resource("x", None)]), sized=False)
    assert [file.size for file in read.files] == [7, None]
    assert read.gaps == {"size"}


@rule("E2", "E2b")
def test_an_entry_of_today_is_the_same_read_either_way() -> None:
    assert parse_entry(entry(), sized=False) == parse_entry(entry())
    assert parse_entry(entry()).gaps == frozenset()


@rule("E1")
@pytest.mark.parametrize(
    "value",
    [
        entry(_meta={"com.example/x": [1, {"y": None}]}),
        entry(resources=[resource("SKILL.md") | {"mimeType": "text/markdown", "_meta": {}}, resource("x")]),
        entry(resources="dynamic", version="2"),
        entry(resources="dynamic"),
        entry(),
    ],
    ids=["on-the-entry", "on-a-file", "on-a-dynamic-one", "dynamic", "none"],
)
def test_unknown_fields_are_ignored(value: dict[str, Any]) -> None:
    """A newer server may send them. What we send on has the known fields only."""
    read = parse_entry(copy.deepcopy(value))
    assert read.to_json().keys() == {"uri", "frontmatter", "resources"}
    assert read == parse_entry(read.to_json())


@rule("E2b")
@pytest.mark.parametrize("size", ["left-out", None], ids=["left-out", "null"])
def test_an_older_entry_keeps_its_digests(size: object) -> None:
    """The current form of the extension has no entry without sizes, so it is sent on as dynamic."""
    value = older()
    if size is None:
        value["resources"][0]["size"] = None
    read = parse_entry(copy.deepcopy(value), sized=False)
    assert [file.digest for file in read.files] == [each["digest"] for each in value["resources"]]
    assert read.to_json()["resources"] == "dynamic"


@rule("E6")
def test_an_entry_may_list_so_many_files_and_no_more() -> None:
    """Hosts accept 512, this one up to its limit, and says so."""
    files = [resource("SKILL.md"), *(resource(f"f/{number}") for number in range(4))]
    limits = Limits(max_resources=5)
    assert len(parse_entry(entry(resources=files), limits=limits).files) == 5
    assert refusal(entry(resources=[*files, resource("more")]), limits=limits).rule == "E6"
    assert DEFAULT_LIMITS.max_resources >= DEFAULT_LIMITS.skill_resources


@rule("E6", "B1")
def test_too_many_files_are_refused_before_they_are_looked_at() -> None:
    """None of these is a file."""
    assert refusal(entry(resources=[0] * 6), limits=Limits(max_resources=5)).rule == "E6"


def changed(index: int, **fields: Any) -> dict[str, Any]:
    value = entry()
    value["resources"][index] |= fields
    return value


def without(field: str) -> dict[str, Any]:
    return {key: value for key, value in entry().items() if key != field}


def with_file(item: object) -> dict[str, Any]:
    return entry(resources=[*entry()["resources"], item])


def labelled(**labels: Any) -> dict[str, Any]:
    """An entry with these labels; those that are ``...`` are left out."""
    fields = {"name": "refunds", "description": "x"} | labels
    return entry(frontmatter={key: value for key, value in fields.items() if value is not ...})


# What is wrong with an entry: the entry, the reference of the refusal, its rule.
Refused: TypeAlias = dict[str, tuple[object, str, str]]
WRONG_SHAPES: Refused = {
    "null": (None, "entry-invalid", "E1"),
    "list": ([], "entry-invalid", "E1"),
    "no-uri": (without("uri"), "entry-invalid", "E1"),
    "uri-not-text": (entry(uri=5), "entry-invalid", "E1"),
    "no-frontmatter": (without("frontmatter"), "entry-invalid", "E1"),
    "frontmatter-not-an-object": (entry(frontmatter=[]), "entry-invalid", "E1"),
    "no-name": (labelled(name=...), "entry-invalid", "E1"),
    "name-not-text": (labelled(name=["refunds"]), "entry-invalid", "E1"),
    "no-description": (labelled(description=...), "entry-invalid", "E1"),
    "description-not-text": (labelled(description=None), "entry-invalid", "E1"),
    "no-resources": (without("resources"), "entry-invalid", "E2"),
    "resources-null": (entry(resources=None), "entry-invalid", "E2"),
    "resources-an-object": (entry(resources={"SKILL.md": 1}), "entry-invalid", "E2"),
    "resources-another-word": (entry(resources="Dynamic"), "entry-invalid", "E2"),
    "resources-a-list-of-the-word": (entry(resources=["dynamic"]), "entry-invalid", "E1"),
}
WRONG_ADDRESSES: Refused = {
    "uri-empty": (entry(uri=""), "uri-invalid", "U1"),
    "uri-relative": (entry(uri="acme/refunds/SKILL.md"), "uri-invalid", "U1"),
    "uri-of-the-folder": (entry(uri=ROOT), "uri-invalid", "U1"),
    "uri-in-another-case": (entry(uri=f"{ROOT}/skill.md"), "uri-invalid", "U1"),
    "uri-without-a-name": (entry(uri="skill://SKILL.md"), "uri-invalid", "U1"),
    "uri-with-a-way-out": (entry(uri="skill://acme/x/%2e%2e/refunds/SKILL.md"), "uri-invalid", "U1"),
    "uri-with-a-query": (entry(uri=f"{ROOT}/SKILL.md?x"), "uri-invalid", "U1"),
    "uri-of-a-file-on-disk": (entry(uri="file:///refunds/SKILL.md"), "uri-invalid", "O3"),
    "another-name": (labelled(name="refund"), "entry-invalid", "U3"),
    "name-in-another-case": (labelled(name="Refunds"), "entry-invalid", "U3"),
    "name-is-the-path": (labelled(name="acme/refunds"), "entry-invalid", "U3"),
}
WRONG_FILES: Refused = {
    "no-files": (entry(resources=[]), "entry-invalid", "E2"),
    "skill-md-not-listed": (entry(resources=[resource("x")]), "entry-invalid", "E2"),
    "file-twice": (with_file(resource("inner/SKILL.md")), "entry-invalid", "E2"),
    "file-twice-in-another-spelling": (with_file(resource("%61%20b.md")), "entry-invalid", "E2"),
    "file-twice-once-plain": (with_file(resource("%69nner/SKILL.md")), "entry-invalid", "E2"),
    "file-not-an-object": (with_file(f"{ROOT}/x"), "entry-invalid", "E1"),
    "file-without-uri": (with_file({}), "entry-invalid", "E1"),
    "file-uri-not-text": (changed(1, uri=7), "entry-invalid", "E1"),
    "file-is-the-root": (changed(1, uri=ROOT), "entry-invalid", "E4"),
    "file-of-a-neighbour": (changed(1, uri=f"{ROOT}-2/x.md"), "entry-invalid", "E4"),
    "file-above": (changed(1, uri="skill://acme/SKILL.md"), "entry-invalid", "E4"),
    "file-of-another-scheme": (changed(1, uri="repo://acme/refunds/x.md"), "entry-invalid", "E4"),
    "file-of-another-authority": (changed(1, uri="skill://Acme/refunds/x.md"), "entry-invalid", "E4"),
    "file-in-another-case": (changed(1, uri="skill://acme/Refunds/x.md"), "entry-invalid", "E4"),
    "file-upwards": (changed(1, uri=f"{ROOT}/../x"), "uri-invalid", "U7"),
    "file-upwards-at-the-end": (changed(1, uri=f"{ROOT}/x/.."), "uri-invalid", "U7"),
    "file-with-a-dot": (changed(1, uri=f"{ROOT}/./x"), "uri-invalid", "U7"),
    "file-upwards-encoded": (changed(1, uri=f"{ROOT}/%2e%2e/x"), "uri-invalid", "U7"),
    "file-with-an-encoded-slash": (changed(1, uri=f"{ROOT}/a%2F..%2F..%2Fx"), "uri-invalid", "U7"),
    "file-with-an-empty-segment": (changed(1, uri=f"{ROOT}//x"), "uri-invalid", "U7"),
    "file-with-broken-text": (changed(1, uri=f"{ROOT}/\ud800"), "uri-invalid", "U7"),
    "file-relative": (changed(1, uri="x.md"), "uri-invalid", "U7"),
    "file-on-disk": (changed(1, uri="file:///etc/passwd"), "uri-invalid", "O3"),
}
WRONG_PROMISES: Refused = {
    "no-digest": (changed(1, digest=None), "digest-invalid", "E3"),
    "another-digest": (changed(1, digest="md5:0"), "digest-invalid", "E3"),
    "no-size": (changed(1, size=None), "entry-invalid", "E3"),
    "size-negative": (changed(1, size=-1), "entry-invalid", "E3"),
    "size-a-float": (changed(1, size=1.0), "entry-invalid", "E3"),
    "size-text": (changed(1, size="5"), "entry-invalid", "E3"),
    "size-a-boolean": (changed(1, size=True), "entry-invalid", "E3"),
}


def assert_refused(value: object, reference: str, rule: str) -> None:
    error = refusal(value)
    assert (error.reference, error.rule) == (reference, rule)
    assert error.message
    assert error.hint


@rule("E1", "E2", "F2", "F3")
@pytest.mark.parametrize("case", WRONG_SHAPES)
def test_an_entry_of_another_shape_is_refused(case: str) -> None:
    """As the error says. An entry without ``resources`` must not be loaded."""
    assert_refused(*WRONG_SHAPES[case])


@rule("E1", "U1", "U3", "U7", "O3")
@pytest.mark.parametrize("case", WRONG_ADDRESSES)
def test_an_entry_at_another_address_than_that_of_a_skill_md_of_its_name_is_refused(case: str) -> None:
    assert_refused(*WRONG_ADDRESSES[case])


@rule("E1", "E2", "E4", "U7", "O3")
@pytest.mark.parametrize("case", WRONG_FILES)
def test_an_entry_that_lists_its_files_wrongly_is_refused(case: str) -> None:
    """Each file once, in any spelling, inside the skill; the ``SKILL.md`` among them."""
    assert_refused(*WRONG_FILES[case])


@rule("E2", "E3")
@pytest.mark.parametrize("case", WRONG_PROMISES)
def test_an_entry_that_promises_no_digest_or_size_of_a_file_is_refused(case: str) -> None:
    assert_refused(*WRONG_PROMISES[case])


@rule("E3")
def test_an_empty_file_and_a_huge_one_are_files() -> None:
    for size in (0, 2**63):
        assert parse_entry(changed(1, size=size)).files[1].size == size


@rule("E4")
def test_files_of_a_nested_skill_are_listed_too() -> None:
    assert f"{ROOT}/inner/SKILL.md" in [file.uri for file in parse_entry(entry()).files]


@rule("B1")
def test_a_refusal_of_something_long_is_short() -> None:
    """Whatever a server wrote."""
    for value in (
        entry(frontmatter={"name": "n" * 100_000, "description": ""}),
        changed(0, uri=f"skill://x/{'y' * 3000}"),
        changed(0, uri="skill://" + "y" * 100_000),
        changed(0, digest="0" * 100_000),
    ):
        assert len(refusal(value).message) < 400


@rule("U7", "B1")
def test_a_file_too_long_for_a_uri_is_too_long_for_an_entry() -> None:
    longest = "x" * (DEFAULT_LIMITS.max_uri_length - len(f"{ROOT}/"))
    assert parse_entry(entry(resources=[resource("SKILL.md"), resource(longest)])).is_complete
    assert refusal(entry(resources=[resource("SKILL.md"), resource(f"{longest}x")])).rule == "U7"


@rule("U7", "B1")
@pytest.mark.parametrize("more", [0, 1], ids=["as-deep-as-allowed", "one-deeper"])
def test_a_file_too_deep_for_a_uri_is_too_deep_for_an_entry(more: int) -> None:
    """Plain text is compared quickly, and refused where reading it properly would be."""
    path = "/".join(["p"] * 62 + ["refunds"])
    tail = "a/" * (DEFAULT_LIMITS.max_uri_segments - 64 + more) + "x"
    value = json.loads(json.dumps(entry(resources=[resource("SKILL.md"), resource(tail)])))
    value = json.loads(json.dumps(value).replace("acme/refunds", path))
    if more:
        assert refusal(value).rule == "U7"
    else:
        read = parse_entry(value)
        assert read.resource(f"skill://{path}/{tail}") is not None
        assert read.resource(f"SKILL://{path}/{tail}") is not None
