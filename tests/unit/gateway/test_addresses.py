from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules import rule
from skillwire.gateway.addresses import Addresses, addresses_for
from skillwire.skill.uri import SkillUri, parse_uri

SEGMENT = st.text("abc:%é. ", min_size=1, max_size=4).filter(lambda text: text not in (".", ".."))
URIS = st.builds(
    SkillUri,
    st.sampled_from(["skill", "github", "named", "a", "b+c.d-e"]),
    st.lists(SEGMENT, min_size=1, max_size=4).map(tuple),
)


@rule("U5")
@pytest.mark.parametrize(
    ("theirs", "inside"),
    [
        ("skill://acme/refunds/SKILL.md", "skill://acme/refunds/SKILL.md"),
        ("github://acme/refunds/SKILL.md", "skill://github%3A/acme/refunds/SKILL.md"),
        ("skill://github%3A/acme/SKILL.md", "skill://skill%3A/github:/acme/SKILL.md"),
    ],
)
def test_another_scheme_stands_before_the_path(theirs: str, inside: str) -> None:
    assert str(Addresses().inside(parse_uri(theirs))) == inside
    assert Addresses().theirs(parse_uri(inside)) == parse_uri(theirs)


@rule("P1", "E5")
def test_skills_that_have_only_names_have_plain_addresses() -> None:
    names = addresses_for(["named", "named"])
    assert str(names.inside(parse_uri("named://refunds/SKILL.md"))) == "skill://refunds/SKILL.md"
    assert addresses_for([]) == addresses_for(["named", "skill"]) == Addresses()


@rule("N1", "U5")
@settings(max_examples=settings().max_examples // 2)  # half of the profile's
@given(URIS, URIS, st.sampled_from(["skill", "named"]))
def test_two_addresses_never_become_one_and_each_reads_back(one: SkillUri, other: SkillUri, home: str) -> None:
    addresses = Addresses(home)
    assert addresses.theirs(addresses.inside(one)) == one
    if one != other:
        assert addresses.inside(one) != addresses.inside(other)
    assert addresses.inside(one).segments[-1] == one.segments[-1]
