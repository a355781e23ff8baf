"""E1–E4, U3, U7: an entry built from files is complete and survives the wire; a tampered one is refused."""

from __future__ import annotations

import copy
import json
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from property.budget import FEWER
from rules import rule
from skillwire.errors import FormatError
from skillwire.skill.entry import DYNAMIC, SkillEntry, SkillMeta, build_entry, digest_of, is_digest, parse_entry
from skillwire.skill.uri import fold, is_within, parse_uri, skill_root

SEGMENT = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="/\\"), min_size=1, max_size=8
).filter(lambda segment: segment not in (".", ".."))
NAME = st.from_regex(r"[a-z0-9]{1,8}(-[a-z0-9]{1,8}){0,2}", fullmatch=True)
FILES = st.dictionaries(
    st.lists(SEGMENT, min_size=1, max_size=4).map("/".join), st.binary(max_size=40), max_size=8
).map(lambda files: {"SKILL.md": b"---\n", **files})
TEXT = st.text(max_size=10)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def skills(draw: st.DrawFn) -> tuple[str, dict[str, Any], dict[str, bytes]]:
    """A path, fields and files; the name is the last segment of the path (U3)."""
    name = draw(NAME)
    path = "/".join([*draw(st.lists(SEGMENT, max_size=3)), name])
    fields = draw(st.dictionaries(TEXT, JSON, max_size=3)) | {"name": name, "description": draw(TEXT)}
    return path, fields, draw(FILES)


def entry_of(path: str, fields: dict[str, Any], files: dict[str, bytes], **options: Any) -> SkillEntry:
    return build_entry(
        path, fields, ((file, digest_of(data), len(data)) for file, data in files.items()), **options
    )


@rule("E2", "E3", "E4")
@FEWER
@given(skills())
def test_an_entry_lists_every_file_once_in_order_inside_the_skill(
    skill: tuple[str, dict[str, Any], dict[str, bytes]],
) -> None:
    path, _, files = skill
    entry = entry_of(*skill)
    root = skill_root(parse_uri(entry.uri))
    assert root.path == entry.path == path
    uris = [resource.uri for resource in entry.files]
    assert uris == sorted(set(uris))
    assert entry.uri in uris
    listed = {parse_uri(item.uri).path.removeprefix(f"{path}/"): (item.digest, item.size) for item in entry.files}
    assert listed == {file: (digest_of(data), len(data)) for file, data in files.items()}
    assert all(is_within(root, parse_uri(uri)) for uri in uris)
    assert all(is_digest(resource.digest) for resource in entry.files)
    assert entry.size == sum(map(len, files.values()))


@rule("E2")
@FEWER
@given(skills(), st.randoms(use_true_random=False))
def test_the_order_in_which_files_are_found_does_not_matter(
    skill: tuple[str, dict[str, Any], dict[str, bytes]], random: Any
) -> None:
    """One tree, one entry, on every disk."""
    path, fields, files = skill
    shuffled = list(files.items())
    random.shuffle(shuffled)
    assert entry_of(path, fields, dict(shuffled)) == entry_of(path, fields, files)


@rule("E1", "E2")
@FEWER
@given(skills(), st.sampled_from(["skill", "repo"]), st.booleans(), st.booleans())
def test_an_entry_comes_back_from_the_wire(
    skill: tuple[str, dict[str, Any], dict[str, bytes]], scheme: str, listed: bool, dynamic: bool
) -> None:
    path, fields, files = skill
    entry = entry_of(path, fields, files, scheme=scheme, meta=SkillMeta(listed=listed))
    if dynamic:
        entry = build_entry(path, fields, DYNAMIC, scheme=scheme, meta=SkillMeta(listed=listed))
    value = entry.to_json()
    assert set(value) == {"uri", "frontmatter", "resources"}
    assert parse_entry(value) == entry
    assert parse_entry(json.loads(json.dumps(value, allow_nan=False))) == entry


@rule("E3")
@FEWER
@given(skills(), FILES)
def test_entries_are_equal_exactly_when_the_files_are(
    skill: tuple[str, dict[str, Any], dict[str, bytes]], other: dict[str, bytes]
) -> None:
    """Every name and every byte counts."""
    path, fields, files = skill
    entry = entry_of(path, fields, files)
    assert (entry == entry_of(path, fields, other)) is (files == other)
    changed = files | {"SKILL.md": files["SKILL.md"] + b"\n"}
    assert entry != entry_of(path, fields, changed)
    assert entry != entry_of(path, fields, files | {"one/more/file": b""})


Tamper = Callable[[st.DrawFn, dict[str, Any]], None]


def pick(draw: st.DrawFn, value: dict[str, Any]) -> dict[str, Any]:
    item: dict[str, Any] = draw(st.sampled_from(value["resources"]))
    return item


def drop_resources(draw: st.DrawFn, value: dict[str, Any]) -> None:
    del value["resources"]


def replace_resources(draw: st.DrawFn, value: dict[str, Any]) -> None:
    value["resources"] = draw(JSON.filter(lambda item: item != "dynamic"))


def drop_skill_md(draw: st.DrawFn, value: dict[str, Any]) -> None:
    value["resources"] = [item for item in value["resources"] if item["uri"] != value["uri"]]


def list_twice(draw: st.DrawFn, value: dict[str, Any]) -> None:
    value["resources"].append(dict(pick(draw, value)))


def list_twice_spelled_otherwise(draw: st.DrawFn, value: dict[str, Any]) -> None:
    item = dict(pick(draw, value))
    head, _, last = item["uri"].rpartition("/")
    decoded = parse_uri(item["uri"]).segments[-1]
    item["uri"] = f"{head}/" + "".join(f"%{byte:02x}" for byte in decoded.encode())
    item["digest"] = digest_of(last.encode())
    value["resources"].append(item)


def point_outside(draw: st.DrawFn, value: dict[str, Any]) -> None:
    root = value["uri"].removesuffix("/SKILL.md")
    outside = [f"{root}-x/a", f"{root}x/a", root, f"{root}/../a", f"{root}/%2e%2e/a", f"{root}/a%2F..%2F..%2Fb",
               "file:///etc/passwd", "skill://zz/a", f"other{root[root.index(':'):]}/a", "a.md", "",
               f"{root}/a%00",
               f"{root}/a%5Cb", f"{root}//a", f"{root}/a?b", f"{root}/"]  # fmt: skip
    pick(draw, value)["uri"] = draw(st.sampled_from(outside))


def break_digest(draw: st.DrawFn, value: dict[str, Any]) -> None:
    item = pick(draw, value)
    digest = item["digest"]
    wrong = [
        digest[:-1],
        digest + "0",
        digest.replace("sha256", "sha1"),
        digest[7:],
        digest + "\n",
        "sha256:",
        None,
        5,
    ]
    item["digest"] = draw(st.sampled_from(wrong) | JSON.filter(lambda other: not is_digest(other)))


def break_size(draw: st.DrawFn, value: dict[str, Any]) -> None:
    wrong = JSON.filter(lambda other: type(other) is not int) | st.integers(max_value=-1)
    pick(draw, value)["size"] = draw(wrong)


def drop_a_field_of_a_resource(draw: st.DrawFn, value: dict[str, Any]) -> None:
    del pick(draw, value)[draw(st.sampled_from(["uri", "digest", "size"]))]


def replace_a_resource(draw: st.DrawFn, value: dict[str, Any]) -> None:
    value["resources"][draw(st.integers(0, len(value["resources"]) - 1))] = draw(JSON)


def rename(draw: st.DrawFn, value: dict[str, Any]) -> None:
    name = value["frontmatter"]["name"]
    value["frontmatter"]["name"] = draw(JSON.filter(lambda other: other != name))


def break_the_uri(draw: st.DrawFn, value: dict[str, Any]) -> None:
    uri = value["uri"]
    wrong = [
        uri.removesuffix("/SKILL.md"),
        uri.replace("SKILL.md", "skill.md"),
        f"{uri}/",
        f"{uri}#x",
        uri[8:],
        f"{uri}%",
    ]
    value["uri"] = draw(st.sampled_from(wrong) | JSON.filter(lambda other: not isinstance(other, str)))


def replace_the_frontmatter(draw: st.DrawFn, value: dict[str, Any]) -> None:
    value["frontmatter"] = draw(JSON.filter(lambda other: not isinstance(other, dict) or "name" not in other))


TAMPERS: list[Tamper] = [
    drop_resources, replace_resources, drop_skill_md, list_twice, list_twice_spelled_otherwise, point_outside,
    break_digest, break_size, drop_a_field_of_a_resource, replace_a_resource, rename, break_the_uri,
    replace_the_frontmatter,
]  # fmt: skip


@rule("E1", "E2", "E3", "E4", "U3", "U7")
@FEWER
@given(skill=skills(), data=st.data())
def test_a_tampered_entry_is_refused(
    skill: tuple[str, dict[str, Any], dict[str, bytes]], data: st.DataObject
) -> None:
    """With a ``FormatError`` and nothing else."""
    entry = entry_of(*skill).to_json()
    for tamper in TAMPERS:
        value = copy.deepcopy(entry)
        tamper(data.draw, value)
        with pytest.raises(FormatError) as caught:
            parse_entry(value)
        assert caught.value.reference in {"entry-invalid", "uri-invalid", "digest-invalid"}, tamper.__name__


@rule("E1", "E2")
@given(
    JSON
    | st.fixed_dictionaries(
        {}, optional={"uri": JSON, "frontmatter": JSON, "resources": JSON | st.just("dynamic")}
    )
)
def test_any_json_is_an_entry_or_is_refused(value: Any) -> None:
    try:
        entry = parse_entry(value)
    except FormatError:
        return
    assert parse_entry(entry.to_json()) == entry


@rule("B5")
@given(st.text(max_size=12))
def test_folding_twice_is_folding_once_and_ignores_ascii_case(name: str) -> None:
    swapped = "".join(character.swapcase() if character.isascii() else character for character in name)
    assert fold(fold(name)) == fold(name)
    assert fold(swapped) == fold(name)


@rule("B5")
@given(st.text(st.characters(codec="utf-8", categories=("Lu", "Ll", "Lo", "Mn")), max_size=8))
def test_composed_and_decomposed_names_fold_to_one(name: str) -> None:
    assert fold(unicodedata.normalize("NFD", name)) == fold(unicodedata.normalize("NFC", name)) == fold(name)
