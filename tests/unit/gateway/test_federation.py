"""Upstreams below their labels: URIs, errors, changes, and the identity of entries."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from rules import rule
from skillwire import MemoryCatalog, Skill
from skillwire.errors import NotFoundError
from skillwire.gateway.federation import FederatedCatalog, Upstream
from skillwire.skill.uri import NAMED_SCHEME
from trees import skill_md

pytestmark = pytest.mark.anyio


def catalog(remote: object = None) -> tuple[MemoryCatalog, FederatedCatalog]:
    inner = MemoryCatalog([Skill("flat", {"SKILL.md": skill_md("flat"), "notes.md": b"notes\n"})])
    return inner, FederatedCatalog({"team": Upstream("team", cast("Any", remote), cast("Any", inner))})


async def test_an_entry_is_mapped_to_the_same_object_until_it_changes() -> None:
    inner, mapped = catalog()
    uri = "skill://team/flat/SKILL.md"
    first = await mapped.get_skill(uri)
    assert await mapped.peek_skill(uri) is first
    inner.put(Skill("flat", {"SKILL.md": skill_md("flat", body="New.\n")}))
    assert await mapped.get_skill(uri) is not first


async def test_errors_name_the_uri_that_was_asked_for() -> None:
    _, mapped = catalog()
    for uri in ("skill://team/flat/missing.md", "skill://flat/SKILL.md"):
        with pytest.raises(NotFoundError) as raised:
            await mapped.read_file(uri)
        assert raised.value.reference == "file-unknown"
        assert repr(uri) in raised.value.message


@rule("S1")
async def test_changes_have_mapped_uris() -> None:
    inner, mapped = catalog()
    assert await mapped.suggest("team/") == ["team/flat"]
    with mapped.changes() as changes:
        inner.remove("flat")
        assert (await anext(changes)).removed == {"skill://team/flat/SKILL.md"}
    assert await mapped.suggest("team/") == []


async def test_a_changed_map_ends_what_was_unchanged() -> None:
    """An upstream that knows its skills by name has another map."""
    remote = SimpleNamespace(schemes=frozenset({"skill"}))
    _, mapped = catalog(remote)
    is_same = await mapped.unchanged("skill://team/flat/SKILL.md")
    assert is_same is not None
    assert is_same()
    remote.schemes = frozenset({NAMED_SCHEME})
    assert not is_same()
