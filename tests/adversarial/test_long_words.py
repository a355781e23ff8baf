"""Entries whose words are larger than any skill's: refused when listed, cut before a model sees them (B1, F3)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from adversarial.adversary import KIB, SMALL
from adversarial.expecting import listed
from rules import rule
from skillwire.lowlevel import build_catalog, build_summary
from skillwire.skill.entry import DYNAMIC, SkillEntry
from skillwire.wire.fallback import prompt_definition, prompt_result, skill_line
from trees import skill_md

if TYPE_CHECKING:
    from adversarial.adversary import HostileServer

pytestmark = pytest.mark.anyio

LIMITS = replace(SMALL, max_frontmatter_bytes=4 * KIB)
LARGE: dict[str, Any] = {
    "a description": {"description": "d" * 5 * KIB},
    "letters of three bytes": {"description": "\u4e2d" * 2 * KIB},
    "another field": {"description": "d", "metadata": {"note": "n" * 5 * KIB}},
    "many fields": {"description": "d", **{f"x{number}": "" for number in range(1000)}},
}


@rule("B1", "E1")
@pytest.mark.parametrize("fields", LARGE.values(), ids=LARGE)
async def test_an_entry_with_a_large_frontmatter_is_left_out(server: HostileServer, fields: Any) -> None:
    """The others are listed."""
    server.add("large", {"SKILL.md": skill_md("large")})["frontmatter"] |= fields
    async with server.connect(dialect="extension", limits=LIMITS) as client:
        assert [entry.name for entry in await listed(client)] == ["flat"]
        assert [(p.reference, p.rule) for p in client.problems] == [("entry-invalid", "B1")]


@rule("B1", "P1", "M1")
@pytest.mark.parametrize("dialect", ["sep-2076", "native"])
@pytest.mark.parametrize("fields", LARGE.values(), ids=LARGE)
async def test_a_named_skill_with_many_words_is_left_out(server: HostileServer, dialect: Any, fields: Any) -> None:
    server.entries[:] = [{"name": "flat"}, {"name": "large", **fields}]
    async with server.connect(dialect=dialect, limits=LIMITS) as client:
        assert [entry.name for entry in await listed(client)] == ["flat"]
        assert [(p.reference, p.rule) for p in client.problems] == [("entry-invalid", "B1")]


@rule("B1", "I1")
@pytest.mark.parametrize("fields", LARGE.values(), ids=LARGE)
async def test_an_index_entry_with_many_words_is_left_out(server: HostileServer, fields: Any) -> None:
    url = "skill://{}/SKILL.md".format
    flat = {"frontmatter": {"name": "flat", "description": "d"}, "url": url("flat")}
    server.add_index(flat, {"frontmatter": {"name": "large", **fields}, "url": url("large")})
    async with server.connect(limits=LIMITS) as client:
        assert [entry.name for entry in await listed(client)] == ["flat"]
        assert [(p.reference, p.rule) for p in client.problems] == [("entry-invalid", "B1")]


@rule("B1", "I4")
async def test_a_resource_with_many_words_is_no_skill(server: HostileServer) -> None:
    resources = [
        {"uri": "skill://flat/SKILL.md", "name": "flat", "description": "d"},
        {"uri": "skill://large/SKILL.md", "name": "large", "description": "d" * 5 * KIB},
    ]
    server.answers["resources/list"] = {"resources": resources}
    async with server.connect(dialect="fallback", limits=LIMITS) as client:
        assert [entry.name for entry in await listed(client)] == ["flat"]
        assert [(p.reference, p.rule) for p in client.problems] == [("entry-invalid", "B1")]


@rule("F3", "X1", "X2")
def test_a_model_is_told_no_more_than_a_description_may_have() -> None:
    """A server may send 256 KiB of it; nobody has approved these."""
    entry = SkillEntry("skill://flat/SKILL.md", {"name": "flat", "description": "d" * 5000}, DYNAMIC)
    texts = [
        build_catalog([entry]),
        build_summary([entry]),
        skill_line("flat", entry),
        prompt_definition("flat", entry)["description"],
        prompt_result(entry, [], "")["description"],
    ]
    assert [text.count("d" * 1024) for text in texts] == [1] * len(texts)
    assert not any("d" * 1025 in text for text in texts)
