"""Instructions that name skills, or claim to: I5, V5, O3, B1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from adversarial.expecting import listed
from adversarial.speaking import Refusal
from rules import rule
from skillwire.skill import digest_of
from trees import skill_md

if TYPE_CHECKING:
    from adversarial.adversary import HostileServer

pytestmark = pytest.mark.anyio

UNLISTED = "skill://acme/hidden/SKILL.md"


def hide(server: HostileServer) -> None:
    """A skill that the server gives and does not list, and instructions that name it."""
    entry = server.add("acme/hidden", {"SKILL.md": skill_md("hidden")}, listed=False)
    given = [*server.entries, entry]
    server.answers["skills/get"] = lambda params: next(
        ({"skill": entry} for entry in given if entry["uri"] == params["uri"]), Refusal()
    )
    server.instructions = f"Load <{UNLISTED}> first. See also (skill://flat/SKILL.md)."


def gets(server: HostileServer) -> list[str]:
    """What was asked for by name, beside what detection asks."""
    uris = [ask.params["uri"] for ask in server.asked if ask.method == "skills/get"]
    return [uri for uri in uris if uri != "skill://index.json"]


@rule("I5", "V5")
async def test_instructions_are_not_mined_unless_asked(server: HostileServer) -> None:
    hide(server)
    async with server.connect() as client:
        assert [entry.name for entry in await listed(client)] == ["flat"]
    assert gets(server) == []


@rule("I5")
async def test_instructions_are_mined_when_asked(server: HostileServer) -> None:
    """After the listing; what is listed is not asked for again; no file is read."""
    hide(server)
    async with server.connect(instructions=True) as client:
        assert [entry.name for entry in await listed(client)] == ["flat", "hidden"]
    assert gets(server) == [UNLISTED]
    assert server.read_uris() == []


@rule("I5")
async def test_the_extractor_can_be_replaced(server: HostileServer) -> None:
    """It is given the instructions, and what it gives is asked for once."""
    hide(server)
    texts: list[str] = []

    def extract(text: str) -> list[str]:
        texts.append(text)
        return [UNLISTED, UNLISTED]

    async with server.connect(instructions=extract) as client:
        assert [entry.name for entry in await listed(client)] == ["flat", "hidden"]
    assert texts == [server.instructions]
    assert gets(server) == [UNLISTED]


ANSWERS: dict[str, Any] = {
    "unknown": Refusal(-32602),
    "a failure": Refusal(-32603),
    "an invalid entry": {"skill": {"uri": UNLISTED}},
    "another skill": {
        "skill": {
            "uri": "skill://acme/other/SKILL.md",
            "frontmatter": {"name": "other", "description": "D"},
            "resources": [{"uri": "skill://acme/other/SKILL.md", "digest": digest_of(b""), "size": 0}],
        }
    },
}


@rule("I5", "G1")
@pytest.mark.parametrize("answer", ANSWERS)
async def test_a_uri_that_the_server_does_not_confirm_is_no_skill(server: HostileServer, answer: str) -> None:
    """Whatever it says instead, the listing is whole."""
    hide(server)
    server.answers["skills/get"] = ANSWERS[answer]
    async with server.connect(instructions=True, dialect="extension") as client:
        assert [entry.name for entry in await listed(client)] == ["flat"]
    assert gets(server) == [UNLISTED]


@rule("I5", "O3", "U7")
@pytest.mark.parametrize("uri", ["FILE://x/SKILL.md", "skill://a/../b/SKILL.md"], ids=["file", "way-up"])
async def test_a_way_out_in_the_instructions_is_not_even_asked_for(server: HostileServer, uri: str) -> None:
    server.instructions = f"Load {uri} now."
    async with server.connect(instructions=True) as client:
        assert [entry.name for entry in await listed(client)] == ["flat"]
    assert gets(server) == []


@rule("I5", "E5", "U7")
async def test_a_skill_in_another_spelling_is_not_listed_twice(server: HostileServer) -> None:
    server.instructions = "Load skill://fl%61t/SKILL.md and skill://flat/%53KILL.md and skill://flat/SKILL.md."
    server.answers["skills/get"] = {"skill": server.entries[0]}
    async with server.connect(instructions=True) as client:
        assert [entry.name for entry in await listed(client)] == ["flat"]
    assert gets(server) == []


@rule("I5", "B3")
async def test_instructions_cannot_cause_endless_requests(server: HostileServer) -> None:
    server.instructions = " ".join(f"skill://x/{number}/SKILL.md" for number in range(105))
    async with server.connect(instructions=True, dialect="extension") as client:
        assert [entry.name for entry in await listed(client)] == ["flat"]
    assert len(gets(server)) == 100


TEXTS = {
    "letters": "a" * 400_000,
    "schemes": "a://" * 100_000,
    "paths": "a://" + "/SKILL.m" * 50_000,
}


@rule("I5", "B4")
@pytest.mark.parametrize("text", TEXTS)
async def test_any_instructions_are_mined_in_bounded_time(server: HostileServer, text: str) -> None:
    """400 KB of nothing in the shape of something take no minutes (the test's own time limit is two)."""
    server.instructions = TEXTS[text] + f" {UNLISTED}"
    hidden = server.add("acme/hidden", {"SKILL.md": skill_md("hidden")}, listed=False)
    server.answers["skills/get"] = lambda params: {"skill": hidden} if params["uri"] == UNLISTED else Refusal()
    async with server.connect(instructions=True, dialect="extension") as client:
        assert [entry.name for entry in await listed(client)] == ["flat", "hidden"]
