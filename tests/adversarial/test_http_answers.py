"""What answers over HTTP and is not, or is no longer, the server that was meant."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

from adversarial.adversary import SMALL, HostileServer
from adversarial.expecting import hasty, listed, only, refused
from adversarial.speaking import EVENTS, Raw, drip, once
from rules import rule
from skillwire import connect
from skillwire.errors import FormatError, ProtocolError, UpstreamError

if TYPE_CHECKING:
    from adversarial.speaking import Asked

pytestmark = pytest.mark.anyio

OPENING = ("server/discover", "initialize")


@rule("B4")
@pytest.mark.parametrize("status", [401, 403])
async def test_a_server_that_does_not_let_us_in_says_so(web: HostileServer, status: int) -> None:
    """While connecting."""
    web.answers |= dict.fromkeys(OPENING, Raw(once(b"{}"), status=status))
    with refused(UpstreamError, "not-allowed") as caught:
        async with web.connect():
            pytest.fail("it let us in")
    assert str(status) in caught.value.message


@rule("B4")
async def test_a_server_that_stops_letting_us_in_says_so(web: HostileServer) -> None:
    """Later on, and it is not tried again and again."""
    web.answers["resources/read"] = Raw(once(b""), status=401, kind="text/plain")
    async with web.connect() as client:
        entry = await only(client)
        with refused(UpstreamError, "not-allowed"):
            await client.read_skill(entry)
    assert web.methods().count("resources/read") == 1


@rule("B4")
async def test_what_we_know_ourselves_by_is_sent(web: HostileServer) -> None:
    """The hint of the refusal works."""
    async with web.connect(headers={"Authorization": "Bearer letmein"}) as client:
        await listed(client)
    assert {ask.headers["authorization"] for ask in web.asked} == {"Bearer letmein"}


NOT_MCP = {
    "a page": Raw(once(b"<!doctype html>"), kind="text/html"),
    "an error": Raw(once(b"oops"), status=500, kind="text/plain"),
    "accepted": Raw(once(b""), status=202),
    "other JSON": Raw(once(b'{"hello": "world"}')),
    "a list": Raw(once(b"[]")),
    "events of other things": Raw(once(b"data: hello\n\n"), kind=EVENTS),
}


@rule("B1")
@pytest.mark.parametrize("lie", NOT_MCP)
async def test_what_does_not_speak_mcp_is_told_apart(web: HostileServer, lie: str) -> None:
    """Whatever answers there."""
    web.answers |= dict.fromkeys(OPENING, NOT_MCP[lie])
    with pytest.raises((UpstreamError, ProtocolError)) as caught:
        async with web.connect():
            pytest.fail("that is no server")
    assert caught.value.reference in ("not-mcp", "message-invalid", "connection-lost", "server-failed")
    assert caught.value.hint


@rule("B1")
async def test_a_wrong_path_is_no_server(web: HostileServer) -> None:
    """The hint names the usual path."""
    async with web.serving() as url:
        with refused(UpstreamError, "not-mcp") as caught:
            async with connect(str(url).replace("/mcp", "/other"), limits=SMALL):
                pytest.fail("there is nothing at that path")
    assert "/mcp" in caught.value.hint
    assert "404" in caught.value.message


async def test_a_port_where_nobody_listens_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with refused(UpstreamError, "connection-lost"):
        async with connect(f"http://127.0.0.1:{port}/mcp", limits=SMALL):
            pytest.fail("nobody listens")


@rule("O3")
@pytest.mark.parametrize("url", ["ftp://example.org/mcp", "http://"], ids=["scheme", "no-host"])
async def test_a_url_that_is_none_is_refused(url: str) -> None:
    with refused(FormatError, "url-invalid"):
        async with connect(url):
            pytest.fail("that is no URL of a server")


@rule("O3")
@pytest.mark.parametrize("status", [302, 307])  # the method changes, or stays
async def test_a_redirect_to_another_origin_is_not_followed(web: HostileServer, status: int) -> None:
    """A server cannot make us ask another one, least of all with our headers."""
    other = HostileServer("http", web.era)
    async with other.serving() as elsewhere:
        moved = Raw(once(b""), status=status, headers=(("Location", str(elsewhere)),))
        web.answers["skills/list"] = moved
        async with web.connect(headers={"Authorization": "Bearer secret"}) as client:
            with pytest.raises(UpstreamError) as caught:
                await listed(client)
        assert caught.value.reference == "server-failed"
        web.answers |= dict.fromkeys(OPENING, moved)
        with refused(UpstreamError, "not-mcp"):
            async with web.connect(headers={"Authorization": "Bearer secret"}):
                pytest.fail("that is another server")
    assert other.asked == []


@rule("B1")
async def test_a_version_that_nobody_speaks_is_refused(web: HostileServer) -> None:
    """The server insists on a protocol of its own."""
    info = {"capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
    web.answers["server/discover"] = {"supportedVersions": ["1999-01-01"], **info}
    web.answers["initialize"] = {"protocolVersion": "1999-01-01", **info}
    with refused(UpstreamError, "not-mcp") as caught:
        async with web.connect():
            pytest.fail("nobody speaks that")
    assert "1999-01-01" in caught.value.message


async def test_a_session_that_the_server_forgot_is_opened_again() -> None:
    """The handshake era has sessions; a server that restarts forgets them."""
    web = HostileServer("http", "legacy")
    sessions = iter(["one", "two"])
    current = ""

    def opened(_: dict[str, Any]) -> Raw:
        nonlocal current
        current = next(sessions)
        info = {"capabilities": web.capabilities, "serverInfo": {"name": "x", "version": "1"}}
        return web.raw({"protocolVersion": "2025-11-25", **info}, headers=(("Mcp-Session-Id", current),))

    def held(ask: Asked) -> bool:
        return ask.headers.get("mcp-session-id") == current

    web.answers["initialize"] = opened
    web.answers["skills/list"] = lambda _: (
        {"skills": []} if held(web.asked[-1]) else Raw(once(b"{}"), status=404, kind="text/plain")
    )
    async with web.connect(dialect="extension") as client:
        assert await listed(client) == []
        current = "forgotten"
        assert await listed(client) == []
        assert client.connection.opened == 2


@rule("B4")
async def test_a_failure_of_the_past_is_not_blamed_on_a_lost_connection() -> None:
    """A drip that was given up, then a server that restarts: the second call is made again."""
    web = HostileServer("http", "legacy")
    web.answers["skills/list"] = Raw(drip)
    async with web.connect(dialect="extension") as client:
        with hasty(client):
            with refused(UpstreamError, "timed-out", "B4"):
                await listed(client)
            # no call: the transport notices that the drip lasts too long
            await web.until(lambda: "skills/list" in web.hung_up or "skills/list" not in web.methods())
        del web.answers["skills/list"]
        deaths = iter([True])
        web.answers["skills/list"] = lambda _: Raw(once(b""), status=0) if next(deaths, False) else None
        assert await listed(client) == []
