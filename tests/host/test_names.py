"""What a model may call a skill: nothing is shadowed, dropped or preferred in silence (N1, E5)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adversarial.expecting import refused
from host.stage import known_origin
from rules import rule
from skillwire.errors import NotFoundError, OriginError
from skillwire.host.origins import Names, OriginRegistry
from skillwire.limits import DEFAULT_LIMITS
from skillwire.skill import digest_of, format_uri
from skillwire.skill.entry import Resource, SkillEntry
from skillwire.store.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from skillwire.host.origins import Origin


def skill(path: str, scheme: str = "skill") -> SkillEntry:
    uri = format_uri(f"{path}/SKILL.md", scheme)
    fields = {"name": path.rpartition("/")[2], "description": "x"}
    return SkillEntry(uri, fields, (Resource(uri, digest_of(b""), 0),))


def server(label: str, *skills: SkillEntry | str) -> Origin:
    return known_origin(label, *(each if isinstance(each, SkillEntry) else skill(each) for each in skills))


def shown(*origins: Origin) -> list[str]:
    return [each.name for each in Names(origins).skills]


def assert_every_name_means_its_skill(*origins: Origin) -> None:
    names = Names(origins)
    assert len(names.skills) == sum(len(origin.known) for origin in origins)
    assert len({each.name for each in names.skills}) == len(names.skills)
    for each in names.skills:
        assert names.find(each.name) is each
        assert names.find(f"{each.origin.label}:{each.entry.uri}") is each


@rule("N1", "E5")
def test_a_name_that_one_skill_has_is_enough() -> None:
    assert shown(server("a", "x/refunds", "weather"), server("b", "billing")) == ["refunds", "weather", "billing"]


@rule("N1")
def test_a_name_in_two_origins_is_qualified_in_both() -> None:
    """Neither keeps the bare name, whoever came first."""
    origins = server("a", "refunds"), server("b", "x/refunds")
    assert shown(*origins) == ["a:refunds", "b:refunds"]
    assert_every_name_means_its_skill(*origins)
    with refused(OriginError, "name-ambiguous", "N1") as caught:
        Names(origins).find("refunds")
    assert "a:refunds" in caught.value.message
    assert "b:refunds" in caught.value.message


@rule("N1")
def test_a_folder_is_not_preferred_to_a_server() -> None:
    """Nor the other way round."""
    origins = known_origin("local", skill("refunds"), is_own=True), server("a", "refunds")
    assert shown(*origins) == ["local:refunds", "a:refunds"]
    with refused(OriginError, "name-ambiguous", "N1"):
        Names(origins).find("refunds")


@rule("N1")
def test_a_name_twice_in_one_origin_is_qualified_by_its_path() -> None:
    """Within a server too."""
    origins = (server("a", "billing/refunds", "travel/refunds"),)
    assert shown(*origins) == ["a:billing/refunds", "a:travel/refunds"]
    assert_every_name_means_its_skill(*origins)
    with refused(OriginError, "name-ambiguous", "N1"):
        Names(origins).find("a:refunds")


@rule("N1")
def test_a_skill_whose_path_is_the_name_of_another_can_still_be_called() -> None:
    """``a:refunds`` would be a path and a name at once, so it is neither's."""
    origins = (server("a", "refunds", "travel/refunds"),)
    assert_every_name_means_its_skill(*origins)
    with refused(OriginError, "name-ambiguous", "N1"):
        Names(origins).find("a:refunds")


@rule("N1", "U5")
def test_a_path_under_two_schemes_is_told_apart() -> None:
    """An origin may serve both."""
    origins = (server("a", skill("x/refunds"), skill("x/refunds", "github")),)
    assert_every_name_means_its_skill(*origins)


@rule("E5", "N1")
def test_one_uri_in_two_origins_is_two_skills() -> None:
    """Identity is the origin and the URI."""
    origins = server("a", "refunds"), server("b", "refunds")
    with refused(OriginError, "name-ambiguous", "N1"):
        Names(origins).find("skill://refunds/SKILL.md")
    assert Names(origins).find("skill://refunds/SKILL.md", "b").origin.label == "b"
    assert Names(origins).find("b:skill://refunds/SKILL.md").origin.label == "b"


@rule("N1", "O2")
@pytest.mark.parametrize("posing", ["local:refunds", "a:refunds"], ids=["another-origin", "its-own"])
def test_a_name_that_poses_as_another_origins_is_qualified(posing: str) -> None:
    """A server may call its skill whatever it likes; what it is called here is ours to say."""
    origins = known_origin("local", skill("refunds"), is_own=True), server("a", posing, "refunds")
    assert_every_name_means_its_skill(*origins)
    names = Names(origins)
    assert names.find("local:refunds").origin.label == "local"
    assert names.find(f"a:{posing}").origin.label == "a"
    for each in names.skills:
        assert each.name.startswith(f"{each.origin.label}:")


@rule("N1")
@pytest.mark.parametrize("other", ["REFUNDS", "refund\u017f"], ids=["capitals", "long-s"])
def test_names_that_differ_in_case_only_are_both_qualified(other: str) -> None:
    """People and models do not tell them apart."""
    origins = server("a", "refunds"), server("b", other)
    assert shown(*origins) == ["a:refunds", f"b:{other}"]
    assert_every_name_means_its_skill(*origins)


@rule("N1")
def test_names_that_differ_in_unicode_form_only_are_both_qualified() -> None:
    """Composed and decomposed look the same."""
    origins = server("a", "caf\u00e9"), server("b", "cafe\u0301")
    assert shown(*origins) == ["a:caf\u00e9", "b:cafe\u0301"]
    assert_every_name_means_its_skill(*origins)


@rule("N1")
def test_a_name_that_looks_like_another_is_never_bare() -> None:
    """The Cyrillic letters of it look like the Latin ones; its origin is shown with it."""
    origins = server("a", "refunds"), server("b", "r\u0435funds")
    assert shown(*origins) == ["refunds", "b:r\u0435funds"]
    assert_every_name_means_its_skill(*origins)


@rule("N1", "B6")
@pytest.mark.parametrize(
    "hidden", ["\U000e0061\U000e0062", "\u202e", "\u3164", "\ufe0f"], ids=["tags", "bidi", "filler", "selector"]
)
@pytest.mark.parametrize("encode", [True, False], ids=["encoded", "raw"])
def test_a_name_with_characters_that_nobody_sees_is_shown_encoded(hidden: str, encode: bool) -> None:
    """A list of names is no place to hide words in; the skill can be called all the same."""
    hiding = skill(f"refunds{hidden}")
    if not encode:
        hiding = replace(hiding, uri=f"skill://refunds{hidden}/SKILL.md")
    origins = server("a", "refunds"), server("b", hiding)
    assert shown(*origins)[0] == "refunds"
    assert shown(*origins)[1].startswith("b:skill://refunds%")
    assert shown(*origins)[1].isascii()
    assert_every_name_means_its_skill(*origins)


@rule("N1")
def test_an_origin_that_comes_later_takes_no_name_away() -> None:
    """What it is called changes, and the old name says so instead of meaning something else."""
    first = server("a", "refunds")
    assert Names([first]).find("refunds").origin is first
    with refused(OriginError, "name-ambiguous", "N1"):
        Names([first, server("b", "refunds")]).find("refunds")


@rule("N1")
def test_a_name_that_nobody_has_is_unknown() -> None:
    """No skill that is called almost so is taken for it."""
    for text in ("refund", "b:refunds", "a:", ":refunds", "", "a:refunds/", "refunds ", "skill://refunds"):
        with pytest.raises(NotFoundError) as caught:
            Names([server("a", "refunds")]).find(text)
        assert (caught.value.reference, bool(caught.value.hint)) == ("skill-unknown", True)


labels = st.sampled_from(["a", "b", "local", "skill"])
segments = st.sampled_from(
    ["a", "b", "x", "refunds", "Refunds", "local:refunds", "a:x", "skill:", "caf\u00e9", "b:b:x"]
)
paths = st.lists(segments, min_size=1, max_size=3).map("/".join)
catalogs = st.dictionaries(
    labels, st.lists(st.tuples(paths, st.sampled_from(["skill", "github"])), unique=True, max_size=6), max_size=4
)


@rule("N1", "E5")
@given(catalogs)
def test_every_skill_has_a_name_that_means_it_and_nothing_else(
    catalog: dict[str, list[tuple[str, str]]],
) -> None:
    """Whatever servers call their skills."""
    origins = [server(label, *(skill(*each) for each in found)) for label, found in catalog.items()]
    assert_every_name_means_its_skill(*origins)


@rule("N1")
@given(catalogs, st.one_of(paths, segments, st.builds("{}:{}".format, labels, paths)))
def test_a_text_means_one_skill_or_is_refused(catalog: dict[str, list[tuple[str, str]]], text: str) -> None:
    """A text with the label of an origin before it never means a skill of another."""
    origins = [server(label, *(skill(*each) for each in found)) for label, found in catalog.items()]
    try:
        found = Names(origins).find(text)
    except (OriginError, NotFoundError):
        return
    label, colon, _ = text.partition(":")
    if colon and any(origin.label == label for origin in origins):
        assert found.origin.label == label


@rule("O1", "N1")
@pytest.mark.parametrize(
    "label",
    ["", "a:b", "a/b", "a#b", "a\nb", "x" * 65],
    ids=["empty", "colon", "slash", "hash", "break", "long"],
)
def test_a_label_that_could_be_mistaken_is_refused(label: str, tmp_path: Path) -> None:
    """It stands before names, in paths and in the model's context."""
    origins = OriginRegistry(Store.memory(), None, DEFAULT_LIMITS, lambda: None)
    with pytest.raises(OriginError) as caught:
        origins.add_folder(label, tmp_path)
    assert (caught.value.reference, bool(caught.value.hint)) == ("origin-invalid", True)


@rule("O1", "N1")
def test_two_origins_cannot_have_one_label(tmp_path: Path) -> None:
    """The second does not replace the first."""
    origins = OriginRegistry(Store.memory(), None, DEFAULT_LIMITS, lambda: None)
    first = origins.add_folder("mine", tmp_path)
    with refused(OriginError, "origin-taken", "O1"):
        origins.add_folder("mine", tmp_path)
    assert origins.get("mine") is first
