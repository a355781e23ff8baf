from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules import rule
from skillwire import MemoryCatalog, Skill
from skillwire.catalog.uri_map import UriMap
from skillwire.skill.entry import Partial, Resource
from skillwire.skill.uri import SkillUri, parse_uri
from trees import skill_md

pytestmark = pytest.mark.anyio

SEGMENT = st.text("abc:%é. ", min_size=1, max_size=4).filter(lambda text: text not in (".", ".."))
URIS = st.builds(
    SkillUri,
    st.sampled_from(["skill", "github", "named", "a", "b+c.d-e"]),
    st.lists(SEGMENT, min_size=1, max_size=4).map(tuple),
)
MAPS = st.builds(UriMap, st.sampled_from(["", "team", "a:/é"]), st.sampled_from(["skill", "named", None]))


@rule("U5")
@pytest.mark.parametrize(
    ("inner", "outer"),
    [
        ("skill://acme/refunds/SKILL.md", "skill://acme/refunds/SKILL.md"),
        ("github://acme/refunds/SKILL.md", "skill://github%3A/acme/refunds/SKILL.md"),
        ("skill://github%3A/acme/SKILL.md", "skill://skill%3A/github:/acme/SKILL.md"),
    ],
)
def test_another_scheme_stands_before_the_path(inner: str, outer: str) -> None:
    uri_map = UriMap(home="skill")
    assert uri_map.outer(inner) == outer
    assert uri_map.inner(outer) == inner


@rule("U5")
def test_a_scheme_stands_below_the_prefix() -> None:
    uri_map = UriMap("team", "skill")
    assert uri_map.outer("github://acme/refunds/SKILL.md") == "skill://team/github:/acme/refunds/SKILL.md"
    assert uri_map.path("github://acme/refunds/SKILL.md") == "github:/acme/refunds"
    assert uri_map.inner("skill://team/github:/acme/refunds/SKILL.md") == "github://acme/refunds/SKILL.md"


@rule("P1", "E5")
def test_the_home_scheme_is_not_part_of_the_path() -> None:
    assert UriMap(home="named").outer("named://refunds/SKILL.md") == "skill://refunds/SKILL.md"


@rule("N1", "U5")
@settings(max_examples=settings().max_examples // 2)  # half of the profile's
@given(URIS, URIS, MAPS)
def test_two_uris_are_never_mapped_to_one_and_each_is_mapped_back(
    one: SkillUri, other: SkillUri, uri_map: UriMap
) -> None:
    outer = uri_map.outer(str(one))
    inner = uri_map.inner(outer)
    assert inner is not None
    assert parse_uri(inner) == one
    if one != other:
        assert parse_uri(outer) != parse_uri(uri_map.outer(str(other)))
    assert parse_uri(outer).segments[-1] == one.segments[-1]


@rule("N1")
@pytest.mark.parametrize(
    "uri",
    [
        "skill://other/refunds/SKILL.md",
        "skill://team",
        "github://team/refunds/SKILL.md",
        "skill://team/skill:/refunds/SKILL.md",  # a second form of skill://team/refunds/SKILL.md
        "skill://team/%20:/refunds/SKILL.md",
    ],
)
def test_other_uris_are_not_mapped_back(uri: str) -> None:
    assert UriMap("team", "skill").inner(uri) is None


@rule("O3")
async def test_known_files_outside_an_incomplete_skill_are_not_mapped() -> None:
    inner = MemoryCatalog([Skill("flat", {"SKILL.md": skill_md("flat"), "notes.md": b"notes\n"})])
    entry = await inner.get_skill("skill://flat/SKILL.md")
    elsewhere = Resource("wiki://pages/17", None, None)
    mapped = UriMap("team").entry(replace(entry, resources=Partial((*entry.files, elsewhere))))
    assert [file.uri for file in mapped.files] == ["skill://team/flat/SKILL.md", "skill://team/flat/notes.md"]
