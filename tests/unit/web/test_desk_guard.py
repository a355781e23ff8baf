"""Access to the desk: one browser, by a link that works once, at its own address, with its own forms."""

from __future__ import annotations

import socket
from contextlib import closing
from typing import TYPE_CHECKING

import anyio
import httpx2
import pytest

from desks import FLAT, at_desk
from skillwire.errors import OriginError
from skillwire.host.host import SkillHost
from skillwire.server.http import listen
from skillwire.store.store import Store
from skillwire.web.desk.app import DeskServer
from skillwire.web.desk.guard import REFUSALS

if TYPE_CHECKING:
    from pathlib import Path

    from adversarial.adversary import HostileServer
    from desks import AtDesk

pytestmark = pytest.mark.anyio
PAGES = ["/", "/waiting", "/approvals", "/approvals.json", "/log", "/log.csv", "/log.jsonl", "/origins", "/events"]
SKILL_PAGES = ["/skill/acme/flat", "/file/acme/flat?path=notes.md", "/raw/acme/flat?path=notes.md"]
FORMS = [
    "/approve/acme/flat",
    "/decline/acme/flat",
    "/enable/acme/flat",
    "/revoke/acme/flat",
    "/grants/acme/flat",
    "/question/x",
    "/approvals/import",
]


def stranger(at: AtDesk) -> httpx2.AsyncClient:
    """Another browser, without the cookie."""
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(at.server.app()), base_url=at.server.url)


def is_refusal(answer: httpx2.Response, kind: str) -> bool:
    """Whether the page is the refusal of this kind."""
    return answer.status_code == REFUSALS[kind].status and f"<h1>{REFUSALS[kind].title}</h1>" in answer.text


async def test_the_link_works_once_and_is_refused_the_second_time(
    state: Path, server: HostileServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with at_desk(state, {"acme": server}) as at, stranger(at) as other:
        answer = await other.get(at.server.link)
        assert answer.status_code == 410
        assert is_refusal(answer, "link-used")
        assert "set-cookie" not in answer.headers
        assert [record.name for record in caplog.records if record.levelname == "WARNING"] == ["skillwire.desk"]
        assert (await other.get("/")).status_code == 401
        again = await at.browser.get(at.server.link)  # the same browser, reloaded
        assert (again.status_code, again.headers["location"]) == (303, "/")


async def test_a_wrong_key_opens_nothing_and_does_not_use_the_link_up() -> None:
    listener = listen("127.0.0.1", 0)
    with closing(listener):
        desk = DeskServer(SkillHost(Store.memory()), listener)
        transport = httpx2.ASGITransport(desk.app())
        async with httpx2.AsyncClient(transport=transport, base_url=desk.url) as browser:
            for link in (
                f"{desk.url}/enter",
                f"{desk.url}/enter?key=x",
                f"{desk.link}x",
                f"{desk.url}/enter?key=%FF",
            ):
                answer = await browser.get(link)
                assert is_refusal(answer, "link-unknown")
            assert (await browser.head(desk.link)).status_code == 403  # looking whether it is there
            assert (await browser.get(desk.link)).status_code == 303


async def test_the_cookie_is_kept_from_scripts_and_other_sites() -> None:
    listener = listen("127.0.0.1", 0)
    with closing(listener):
        desk = DeskServer(SkillHost(Store.memory()), listener)
        transport = httpx2.ASGITransport(desk.app())
        async with httpx2.AsyncClient(transport=transport, base_url=desk.url) as browser:
            cookie = (await browser.get(desk.link)).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "max-age" not in cookie.lower()


async def test_without_the_cookie_no_page_is_shown(state: Path, server: HostileServer) -> None:
    async with at_desk(state, {"acme": server}) as at, stranger(at) as other:
        for place in (*PAGES, *SKILL_PAGES, "/question/x", "/nothing", "/skill/acme/none"):
            answer = await other.get(place)
            assert is_refusal(answer, "no-session"), place
            assert "flat" not in answer.text
        assert server.read_uris() == []


async def test_without_the_cookie_no_form_does_anything(state: Path, server: HostileServer) -> None:
    async with at_desk(state, {"acme": server}) as at, stranger(at) as other:
        for place in FORMS:
            answer = await other.post(place, headers={"Origin": at.server.url}, content="csrf=x")
            assert is_refusal(answer, "no-session"), place
        assert await at.host.happened() == []


async def test_another_host_name_is_refused(state: Path, server: HostileServer) -> None:
    """DNS rebinding: a stranger's name that leads to this machine is not the desk's."""
    async with at_desk(state, {"acme": server}) as at:
        port = at.server.url.rpartition(":")[2]
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "", f"0.0.0.0:{port}"):
            for place in ("/", "/enter", "/static/style.css", "/events"):
                answer = await at.browser.get(place, headers={"Host": host})
                assert answer.status_code == 421, (host, place)
                assert "flat" not in answer.text


async def test_localhost_is_the_desk_too(state: Path, server: HostileServer) -> None:
    async with at_desk(state, {"acme": server}) as at:
        port = at.server.url.rpartition(":")[2]
        link = httpx2.URL(f"http://localhost:{port}/")
        cookie = "; ".join(f"{name}={value}" for name, value in at.browser.cookies.items())
        answer = await at.browser.get(link, headers={"Cookie": cookie})
        assert answer.status_code == 200


async def test_another_origin_is_refused(state: Path, server: HostileServer) -> None:
    async with at_desk(state, {"acme": server}) as at:
        own = at.server.url
        fields = await at.form("/skill/acme/flat", "/approve/acme/flat")
        for origin in ("null", "http://evil.example", own.replace("http", "https"), f"{own}.evil.example", ""):
            answer = await at.send("/approve/acme/flat", fields, Origin=origin)
            assert is_refusal(answer, "wrong-origin"), origin
            assert is_refusal(await at.browser.get("/", headers={"Origin": origin}), "wrong-origin"), origin
        assert await at.host.happened() == []


async def test_a_change_without_any_origin_is_refused(state: Path, server: HostileServer) -> None:
    async with at_desk(state, {"acme": server}) as at:
        fields = await at.form("/skill/acme/flat", "/approve/acme/flat")
        answer = await at.browser.post("/approve/acme/flat", data=fields)
        assert is_refusal(answer, "wrong-origin")
        assert await at.host.happened() == []


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_a_request_that_another_site_caused_is_refused(
    site: str, state: Path, server: HostileServer
) -> None:
    async with at_desk(state, {"acme": server}) as at:
        fields = await at.form("/skill/acme/flat", "/approve/acme/flat")
        sent = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}
        assert (await at.send("/approve/acme/flat", fields, **sent)).status_code == 403
        await at.get("/", 403, **{"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"})
        await at.get("/", 200, **sent)  # a link that was followed shows what it shows
        assert await at.host.happened() == []


async def test_a_form_without_the_sessions_token_does_nothing(state: Path, server: HostileServer) -> None:
    async with at_desk(state, {"acme": server}) as at:
        fields = await at.form("/skill/acme/flat", "/approve/acme/flat")
        del fields["csrf"]
        for place in FORMS:
            assert is_refusal(await at.send(place, fields), "wrong-token"), place
        for token in ("", "x", "é"):
            answer = await at.send("/approve/acme/flat", {**fields, "csrf": token})
            assert is_refusal(answer, "wrong-token"), token
        assert await at.host.happened() == []


async def test_a_form_of_another_session_does_nothing(state: Path, server: HostileServer, tmp_path: Path) -> None:
    async with at_desk(state, {"acme": server}) as at, at_desk(tmp_path / "other", {"acme": server}) as other:
        theirs = await other.form("/skill/acme/flat", "/approve/acme/flat")
        assert (await at.send("/approve/acme/flat", theirs)).status_code == 403
        assert await at.host.happened() == []


async def test_looking_never_changes_anything(state: Path, server: HostileServer) -> None:
    """Every address but those of forms, asked with GET and HEAD; and forms asked with GET."""
    async with at_desk(state, {"acme": server}) as at:
        await at.decide("approve")
        before, version = await at.host.happened(), await at.host.store.approvals()
        for place in (*PAGES[:-1], *SKILL_PAGES):
            await at.get(place)
            assert (await at.browser.head(place)).status_code == 200
        for place in FORMS:
            answer = await at.browser.get(f"{place}?answer=yes&grant=execute")
            assert answer.status_code in (404, 405)
        assert (await at.host.happened(), await at.host.store.approvals()) == (before, version)


async def test_other_methods_are_refused(state: Path, server: HostileServer) -> None:
    async with at_desk(state, {"acme": server}) as at:
        for method in ("PUT", "DELETE", "OPTIONS"):
            assert (await at.browser.request(method, "/")).status_code == 405


async def test_a_form_that_never_ends_is_not_read_to_its_end(state: Path, server: HostileServer) -> None:
    async with at_desk(state, {"acme": server}) as at:
        sent = 0

        async def endless():  # type: ignore[no-untyped-def]
            nonlocal sent
            while sent < 10_000_000:
                sent += 10_000
                yield b"x" * 10_000

        answer = await at.browser.post("/approve/acme/flat", content=endless(), headers={"Origin": at.server.url})
        assert is_refusal(answer, "form-too-large")
        assert sent < 10_000_000


async def test_every_answer_states_what_it_may_load(state: Path, server: HostileServer) -> None:
    async with at_desk(state, {"acme": server}) as at:
        for place in (*PAGES[:-1], *SKILL_PAGES, "/nothing", "/skill/none/none", "/question/x"):
            answer = await at.browser.get(place)
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy, place
            assert "unsafe" not in policy, place
            assert answer.headers["x-content-type-options"] == "nosniff", place
            assert answer.headers["cache-control"] == "no-store", place
            assert answer.headers["referrer-policy"] in ("same-origin", "no-referrer"), place
            assert "<script>" not in answer.text, place


async def test_only_loopback_is_listened_on() -> None:
    with socket.socket() as listener:
        listener.bind(("0.0.0.0", 0))
        with pytest.raises(OriginError) as refused:
            DeskServer(SkillHost(Store.memory()), listener)
    assert refused.value.reference == "desk-exposed"


async def test_too_many_streams_are_refused(
    state: Path, server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skillwire.web.events._MAX_STREAMS", 0)
    async with at_desk(state, {"acme": server}) as at:
        with anyio.fail_after(20):
            assert is_refusal(await at.browser.get("/events"), "too-many-streams")


async def test_an_unknown_skill_has_no_page(state: Path, server: HostileServer) -> None:
    async with at_desk(state, {"acme": server}) as at:
        for place in (
            "/skill/none/flat",
            "/skill/acme/none",
            "/skill/acme/..%2f..%2fetc",
            "/skill/acme/file:%2f%2f%2fetc",
        ):
            assert 'class="error"' in await at.get(place, 400 if "etc" in place else 404)
        assert FLAT in await at.get("/skill/acme/skill%3A%2F%2Fflat%2FSKILL.md")
