"""The names, versions and references of a registry."""

from __future__ import annotations

import pytest

from skillwire.errors import FormatError
from skillwire.registry.model import (
    SkillRef,
    parse_channel,
    parse_namespace,
    parse_reference,
    parse_served_path,
    parse_skill_path,
    parse_version,
    skeleton,
)

ORDERED = "1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1 1.0.0 1.0.1 1.10.0"


def test_versions_are_ordered_as_semantic_versioning_requires() -> None:
    texts = ORDERED.split()
    shuffled = [texts[index] for index in (4, 8, 1, 0, 7, 3, 6, 2, 5)]
    assert [str(version) for version in sorted(map(parse_version, shuffled))] == texts


@pytest.mark.parametrize(
    "text", ["1.2", "1.2.3.4", "v1.2.3", "01.2.3", "1.2.3-", "1.2.3-01", "1.2.3+5", "١.2.3", ""]
)
def test_other_numbers_are_not_versions(text: str) -> None:
    with pytest.raises(FormatError) as raised:
        parse_version(text)
    assert raised.value.reference == "version-invalid"


def test_the_next_patch_of_a_prerelease_is_its_release() -> None:
    assert str(parse_version("1.2.3").next_patch()) == "1.2.4"
    assert str(parse_version("1.2.3-rc.1").next_patch()) == "1.2.3"


@pytest.mark.parametrize(
    ("text", "served"),
    [
        ("acme/refunds", "acme/refunds"),
        ("acme/refunds@stable", "acme/refunds"),
        ("acme/billing/refunds@1.2.0", "acme/@1.2.0/billing/refunds"),
        ("acme/refunds@beta", "acme/@beta/refunds"),
    ],
)
def test_a_reference_has_the_path_of_its_uri(text: str, served: str) -> None:
    reference = parse_reference(text)
    assert reference.served_path == served
    found = parse_served_path(served)
    assert found is not None
    assert (found.path, found.served_path) == (reference.path, served)


def test_a_version_and_a_channel_are_told_apart() -> None:
    assert parse_served_path("acme/@1.2.0/refunds") == SkillRef("acme/refunds", version="1.2.0")
    assert parse_served_path("acme/@beta/refunds") == SkillRef("acme/refunds", channel="beta")


@pytest.mark.parametrize(
    "path", ["acme", "@1.2.0/refunds", "acme/refunds/@1.2.0", "acme/@/refunds", "acme/@1.2/refunds"]
)
def test_other_paths_are_no_references(path: str) -> None:
    assert parse_served_path(path) is None


@pytest.mark.parametrize("text", ["Acme", "-acme", "acme-", "a--b", "@acme", "a" * 41, "", "acme\n", "ácme"])
def test_invalid_namespaces_are_refused(text: str) -> None:
    with pytest.raises(FormatError):
        parse_namespace(text)


@pytest.mark.parametrize(
    "text", ["acme", "acme/Refunds", "acme//refunds", "acme/@beta/refunds", "acme/" + "a/" * 16 + "b"]
)
def test_invalid_skill_paths_are_refused(text: str) -> None:
    with pytest.raises(FormatError):
        parse_skill_path(text)


@pytest.mark.parametrize("text", ["1beta", "Beta", "", "beta/x"])
def test_invalid_channels_are_refused(text: str) -> None:
    with pytest.raises(FormatError):
        parse_channel(text)


def test_namespaces_that_look_alike_have_one_skeleton() -> None:
    assert skeleton("acme-tools") == skeleton("acmetoo1s") == skeleton("acme-t00ls")
    assert skeleton("acme") != skeleton("acne")
