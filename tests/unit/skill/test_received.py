"""E1–E4, E2b, E6, U1, U3, U7: entries of strangers, of both generations; what is not known is kept, not lost."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from rules import rule
from skillwire.errors import FormatError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.digest import digest_of
from skillwire.skill.received import parse_entry

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


@rule("E2b", "V7")
def test_an_older_entry_without_resources_is_a_generated_skill() -> None:
    value = older()
    del value["resources"]
    read = parse_entry(value, sized=False)
    assert read.is_dynamic
    assert read.gaps == {"manifest", "digest", "size"}
    assert read.as_received() == value


@rule("E2b", "E2")
@pytest.mark.parametrize("resources", [None, [], {}, 0, "static", "Dynamic", [None]])
def test_an_older_entry_with_resources_of_another_kind_is_refused(resources: object) -> None:
    """Left out is one thing, wrong another."""
    assert refusal(older(resources=resources), sized=False).rule in ("E1", "E2")


@rule("E2b", "E3")
@pytest.mark.parametrize("size", [-1, 1.0, "1", True, []])
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
    ids=["on the entry", "on a file", "on a dynamic one", "dynamic", "none"],
)
def test_fields_that_we_do_not_know_survive_as_received(value: dict[str, Any]) -> None:
    """What a newer server says is not lost on the way; what we send on has the known fields only."""
    read = parse_entry(copy.deepcopy(value))
    assert read.as_received() == value
    assert read.to_json().keys() == {"uri", "frontmatter", "resources"}
    assert read == parse_entry(read.to_json())


@rule("E2b")
@pytest.mark.parametrize("size", ["left out", None])
def test_an_older_entry_is_kept_as_it_came(size: object) -> None:
    """The extension of today would call it dynamic; what came had digests."""
    value = older()
    if size is None:
        value["resources"][0]["size"] = None
    read = parse_entry(copy.deepcopy(value), sized=False)
    assert read.to_json()["resources"] == "dynamic"
    assert read.as_received() == value


@rule("E1")
def test_a_change_to_what_was_given_out_does_not_change_the_entry() -> None:
    read = parse_entry(entry(extra=1))
    read.as_received()["uri"] = "skill://other/SKILL.md"
    assert read.as_received()["uri"] == f"{ROOT}/SKILL.md"


@rule("E6")
def test_an_entry_may_list_so_many_files_and_no_more() -> None:
    """Hosts accept 512, this one up to its limit, and says so."""
    files = [resource("SKILL.md"), *(resource(f"f/{number}") for number in range(4))]
    limits = Limits(max_resources=5)
    assert len(parse_entry(entry(resources=files), limits=limits).files) == 5
    error = refusal(entry(resources=[*files, resource("more")]), limits=limits)
    assert error.rule == "E6"
    assert "5" in error.message
    assert DEFAULT_LIMITS.max_resources >= DEFAULT_LIMITS.skill_resources


@rule("E6", "B1")
def test_too_many_files_are_refused_before_they_are_looked_at() -> None:
    """None of these is a file."""
    assert refusal(entry(resources=[0] * 6), limits=Limits(max_resources=5)).rule == "E6"


def changed(index: int, **fields: Any) -> dict[str, Any]:
    value = entry()
    value["resources"][index] |= fields
    return value


@rule("E1", "E2", "E3", "E4", "U1", "U3", "U7")
@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (None, "E1"),
        ([], "E1"),
        (entry(uri=None), "E1"),
        (entry(uri="refunds/SKILL.md"), "U1 U7"),
        (entry(uri=ROOT), "U1 U7"),
        (entry(uri="file:///refunds/SKILL.md"), "O3"),
        (entry(frontmatter=[]), "E1"),
        (entry(frontmatter={"name": "refunds"}), "E1"),
        (entry(frontmatter={"name": "other", "description": "x"}), "U3"),
        (entry(resources=None), "E2"),
        (entry(resources="Dynamic"), "E2"),
        (entry(resources=[]), "E2"),
        (entry(resources=[resource("x")]), "E2"),
        (entry(resources=[*entry()["resources"], resource("%61%20b.md")]), "E2"),
        (entry(resources=[*entry()["resources"], "x"]), "E1"),
        (changed(1, uri=7), "E1"),
        (changed(1, uri="skill://acme/refunds-2/x"), "E4"),
        (changed(1, uri=ROOT), "E4"),
        (changed(1, uri=f"{ROOT}/../x"), "U7"),
        (changed(1, uri=f"{ROOT}/%2e%2e/x"), "U7"),
        (changed(1, uri="x.md"), "U7"),
        (changed(1, digest="md5:0"), "E3"),
        (changed(1, digest=None), "E3"),
        (changed(1, size=-1), "E3"),
    ],
)
def test_each_refusal_names_the_rule_it_is_about(value: object, rule: str) -> None:
    """As the error says."""
    error = refusal(value)
    assert error.rule in rule.split()
    assert error.message
    assert error.hint
    assert error.reference in ("entry-invalid", "uri-invalid", "digest-invalid")


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
@pytest.mark.parametrize("tail", ["a/" * 64 + "x", "a/" * 62 + "x"])
@pytest.mark.parametrize("depth", [2, 62, 70, 126])
def test_a_file_too_deep_for_a_uri_is_too_deep_for_an_entry(depth: int, tail: str) -> None:
    """Plain text is compared quickly, and refused where reading it properly would be."""
    path = "/".join(["p"] * (depth - 1) + ["refunds"])
    value = json.loads(json.dumps(entry(resources=[resource("SKILL.md"), resource(tail)])))
    value = json.loads(json.dumps(value).replace("acme/refunds", path))
    if depth + tail.count("/") + 1 > DEFAULT_LIMITS.max_uri_segments:
        assert refusal(value).rule == "U7"
    else:
        read = parse_entry(value)
        assert read.resource(f"skill://{path}/{tail}") is not None
        assert read.resource(f"SKILL://{path}/{tail}") is not None
