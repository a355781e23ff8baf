"""Which dialect a server speaks, and what was asked to find out (K1, K2, I1, I4, P1, M1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from adversarial.adversary import EXTENSION, HostileServer
from adversarial.expecting import hasty, listed, refused
from adversarial.named_servers import speak_native, speak_sep2076
from adversarial.speaking import Refusal, silence
from rotation import every_setting
from rules import rule
from skillwire.errors import ProtocolError, UpstreamError

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio

SKILL = "skill://flat/SKILL.md"
READ, LIST = "resources/read", "resources/list"
SKILLS, GET = "skills/list", "skills/get"


def speak_extension(server: HostileServer) -> None:
    """As it is."""


def speak_index(server: HostileServer) -> None:
    server.add_index({"url": SKILL, "frontmatter": {"name": "flat", "description": "D"}})
    _forget_skills(server)


def speak_draft(server: HostileServer) -> None:
    """The extension is declared, its methods are not there, an index is."""
    speak_index(server)
    server.capabilities = {"resources": {}, "extensions": {EXTENSION: {}}}


def speak_nothing_but_resources(server: HostileServer) -> None:
    server.capabilities = {"resources": {}}
    server.answers[LIST] = {"resources": [{"uri": "docs://x", "name": "x"}, {"uri": SKILL, "name": "flat"}]}
    _forget_skills(server)


def speak_of_no_skills(server: HostileServer) -> None:
    server.capabilities = {"resources": {}, "tools": {}}
    _forget_skills(server)


def _forget_skills(server: HostileServer) -> None:
    server.answers |= dict.fromkeys((SKILLS, GET), Refusal(-32601, "unknown method"))


SERVERS: dict[str, tuple[Callable[[HostileServer], object], str | None, list[str], list[str]]] = {
    # how it speaks, what that is, and what finding out asks in the handshake era and in the stateless one
    "the extension": (speak_extension, "extension", [GET], []),
    "an index": (speak_index, "index", [READ], [READ]),
    "resources": (speak_nothing_but_resources, "fallback", [READ, LIST], [READ, LIST]),
    "sep-2076": (speak_sep2076, "sep-2076", [READ, LIST, SKILLS, GET], [SKILLS, GET]),
    "native": (speak_native, "native", [READ, LIST, SKILLS, GET], [SKILLS, GET]),
    "nothing": (speak_of_no_skills, None, [READ, LIST, SKILLS], [READ, LIST]),
}


@rule("K1", "K2", "I1", "I4", "P1", "M1", "V5")
@every_setting
@pytest.mark.parametrize("kind", SERVERS)
async def test_a_dialect_is_found_out_once_by_the_fewest_questions(web: HostileServer, kind: str) -> None:
    """Nothing is asked on connecting, and nothing twice."""
    speak, name, handshake, stateless = SERVERS[kind]
    speak(web)
    async with web.connect() as client:
        assert web.methods() == []
        assert await client.dialect() == name
        assert web.methods() == (handshake if web.era == "legacy" else stateless)
        assert SKILL not in web.read_uris()
        assert not any(ask.params.get("name") for ask in web.asked if ask.method == GET)
        web.asked.clear()
        assert await client.dialect() == name
        assert web.asked == []


@rule("K2")
@pytest.mark.parametrize("kind", [kind for kind in SERVERS if kind != "nothing"])
async def test_a_dialect_that_is_named_is_not_looked_for(server: HostileServer, kind: str) -> None:
    """The first request is the listing itself."""
    speak, name, _, _ = SERVERS[kind]
    speak(server)
    async with server.connect(dialect=name) as client:
        assert await client.dialect() == name
        assert server.methods() == []
        assert await listed(client)
        assert server.methods()[0] == {"index": READ, "fallback": LIST}.get(str(name), SKILLS)


@rule("K1", "I1")
async def test_a_server_of_the_drafts_is_known_by_what_it_lacks() -> None:
    """In the handshake era they declared the extension too."""
    server = HostileServer("http", "legacy")
    speak_draft(server)
    async with server.connect() as client:
        assert await client.dialect() == "index"
        assert [entry.name for entry in await listed(client)] == ["flat"]
    assert server.methods() == [GET, SKILLS, READ, READ]


UNDECLARED: dict[str, Callable[[HostileServer], object]] = {
    "extension": speak_extension,
    "sep-2076": speak_sep2076,
    "native": speak_native,
}


@rule("K2")
@every_setting
@pytest.mark.parametrize("kind", UNDECLARED)
async def test_skills_that_are_not_declared_are_looked_for_in_the_handshake_era_only(
    web: HostileServer, kind: str
) -> None:
    """There, a declaration may be lost on its way; in the stateless era it is whole, and nothing is asked."""
    UNDECLARED[kind](web)
    web.capabilities = {"resources": {}}
    async with web.connect() as client:
        assert await client.dialect() == (kind if web.era == "legacy" else None)
        assert ("skills/list" in web.methods()) == (web.era == "legacy")
        assert bool(await listed(client)) == (web.era == "legacy")


@rule("K2", "L2")
async def test_a_server_without_a_sign_of_skills_says_so(server: HostileServer) -> None:
    """The listing is empty, which proves nothing; the rest is refused."""
    speak_of_no_skills(server)
    async with server.connect() as client:
        assert await listed(client) == []
        assert not client.supports_skills
        for ask in (client.get_skill(SKILL), client.read_unverified(SKILL), client.read_skill_uri(SKILL)):
            with refused(ProtocolError, "no-skills", "K2"):
                await ask


@rule("I4")
async def test_skills_on_a_later_page_of_resources_are_found(server: HostileServer) -> None:
    """The first page says nothing, so the listing is read to its end."""
    speak_nothing_but_resources(server)
    other = {"uri": "notes://other", "name": "other"}
    pages = {None: {"resources": [other], "nextCursor": "2"}, "2": {"resources": [{"uri": SKILL, "name": "flat"}]}}
    server.answers[LIST] = lambda params: pages[params.get("cursor")]
    async with server.connect() as client:
        assert await client.dialect() == "fallback"
        assert [entry.uri for entry in await listed(client)] == [SKILL]


@rule("I4", "L1")
@every_setting  # the SDK refuses some in one era
@pytest.mark.parametrize("resources", [7, [{"uri": 7}, {"uri": "x/SKILL.md"}]], ids=["no-list", "no-uris"])
async def test_resources_of_any_shape_are_survived(web: HostileServer, resources: Any) -> None:
    """The SDK refuses some of them, skillwire the others."""
    speak_of_no_skills(web)
    web.answers[LIST] = {"resources": resources}
    async with web.connect() as client:
        assert await client.dialect() in (None, "fallback")
        assert await listed(client) == []


@rule("P1", "M1")
async def test_skills_of_any_shape_are_survived(server: HostileServer) -> None:
    speak_of_no_skills(server)
    server.answers[SKILLS] = {"skills": "many"}
    async with server.connect() as client:
        assert await client.dialect() is None


@rule("I1", "I4", "L2")
async def test_a_server_that_answers_everything_with_prose_has_no_skills(server: HostileServer) -> None:
    speak_of_no_skills(server)
    server.answers[READ] = lambda params: {"contents": [{"uri": params["uri"], "text": "I am a poet."}]}
    async with server.connect() as client:
        assert await client.dialect() is None


@rule("B4")
async def test_detection_that_fails_is_not_remembered(server: HostileServer) -> None:
    """A server that was out of reach is asked again, not taken for one without skills."""
    speak_index(server)
    server.answers[READ] = silence
    async with server.connect() as client:
        with hasty(client), refused(UpstreamError, "timed-out", "B4"):
            await client.dialect()
        del server.answers[READ]
        assert await client.dialect() == "index"
