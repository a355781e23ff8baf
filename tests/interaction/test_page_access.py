"""Permissions on the catalog page: the same view as in the protocol, and sign-in with a token."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from interaction.page_stage import ACCESS, TOKENS, TREE, got, is_empty, serving, shown_skills
from rules import rule
from skillwire import CombinedCatalog, MemoryCatalog, Mount, Skill
from skillwire.server import page
from skillwire.server.access import digest_token
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from pathlib import Path

    import httpx2

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "skills", TREE)


async def test_each_caller_sees_on_the_page_what_the_protocol_shows_them(root: Path) -> None:
    async with serving(root, ACCESS) as web:
        seen: dict[str, list[str]] = {}
        for subject, token in TOKENS.items():
            web.headers["Authorization"] = f"Bearer {token}"
            page = await got(web, "/")
            seen[subject] = shown_skills(page)
        assert seen["billing"] == ["acme/billing/refunds", "flat"]
        assert len(seen["all"]) == 7
        assert seen["nobody"] == []


async def test_what_one_may_not_see_is_on_no_page(root: Path) -> None:
    async with serving(root, ACCESS) as web:
        web.headers["Authorization"] = f"Bearer {TOKENS['billing']}"
        pairs = [
            (f"/{kind}/{pattern}", f"/{kind}/{pattern.replace('guide', 'gyide')}")
            for kind, pattern in (
                ("skill", "guide"), ("entry", "guide"), ("file", "guide/notes.md"), ("raw", "guide/notes.md"),
            )
        ]  # fmt: skip
        for hidden, missing in pairs:
            shown = (await got(web, hidden, 404)).html
            assert shown.replace("guide", "gyide") == (await got(web, missing, 404)).html
        assert "guide" not in (await got(web, "/")).text
        assert is_empty(await got(web, "/search?q=guide+shows+everything"))
        left_out = await got(web, "/problems")
        assert "broken" not in left_out.text
        assert ".git" not in left_out.text


@rule("N1")
async def test_a_collision_is_told_to_whoever_may_see_both_sides() -> None:
    skill = Skill("acme/billing/x", {"SKILL.md": skill_md("x")})
    sources = [Mount(MemoryCatalog([skill]), label) for label in ("acme", "flat", "hidden")]
    async with serving(CombinedCatalog(sources), ACCESS) as web:
        told: dict[str, set[str]] = {}
        for subject, token in TOKENS.items():
            web.headers["Authorization"] = f"Bearer {token}"
            text = (await got(web, "/problems")).text
            told[subject] = {label for label in ("acme", "flat", "hidden") if f"{label}/acme/billing/x" in text}
        assert told == {"billing": {"flat"}, "all": {"acme", "flat", "hidden"}, "nobody": set()}


async def test_a_stranger_is_told_how_to_come_in(root: Path) -> None:
    async with serving(root, ACCESS) as web:
        for address in ("/", "/skill/guide", "/file/guide/notes.md", "/raw/guide/notes.md", "/search?q=x",
                        "/problems", "/entry/guide", "/connect"):  # fmt: skip
            page = await got(web, address, 401)
            assert "Authorization: Bearer" in page.text
            assert "Shows everything" not in page.text
            assert page.all("input")[1]["value"] == address
        assert (await web.get("/")).headers["www-authenticate"] == "Bearer"
        assert (await web.get("/static/style.css")).status_code == 200
        web.headers["Authorization"] = "Bearer wrong"
        await got(web, "/", 401)


async def sign_in(web: httpx2.AsyncClient, token: str, to: str = "/", **headers: str) -> httpx2.Response:
    own = {"Origin": str(web.base_url).rstrip("/"), **headers}
    return await web.post("/sign-in", data={"token": token, "to": to}, headers=own)


async def test_a_person_pastes_a_token_once_and_the_cookie_does_not_hold_it(root: Path) -> None:
    async with serving(root, ACCESS) as web:
        answer = await sign_in(web, TOKENS["billing"], "/skill/flat?all=1")
        assert (answer.status_code, answer.headers["location"]) == (303, "/skill/flat?all=1")
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=lax" in cookie
        assert TOKENS["billing"] not in cookie
        assert digest_token(TOKENS["billing"]) not in cookie
        page = await got(web, "/")
        assert shown_skills(page) == ["acme/billing/refunds", "flat"]
        await web.post("/sign-out", headers={"Origin": str(web.base_url).rstrip("/")})
        await got(web, "/", 401)
        web.cookies.clear()
        web.headers["Cookie"] = cookie.partition(";")[0]
        await got(web, "/", 401)


async def test_a_session_that_was_idle_for_too_long_is_over(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(root, ACCESS) as web:
        await sign_in(web, TOKENS["billing"], "/")
        await got(web, "/")
        monkeypatch.setattr(page, "_IDLE_SECONDS", -1)
        await got(web, "/", 401)
        monkeypatch.undo()
        await got(web, "/", 401)  # it does not come back


async def test_a_cookie_of_somebody_else_does_not_hide_ours(root: Path) -> None:
    """Servers on one host share their cookies, and nobody agreed on what may be in one."""
    async with serving(root, ACCESS) as web:
        cookie = (await sign_in(web, TOKENS["all"])).headers["set-cookie"].partition(";")[0]
        web.cookies.clear()
        for others in ('foo={"x": 1}; ', "a b=c; ", "=; ;x; ", 'q="; '):
            assert (await web.get("/", headers={"Cookie": f"{others}{cookie}"})).status_code == 200
            assert (await web.get("/", headers={"Cookie": f"{cookie}; {others}".strip()})).status_code == 200


async def test_nothing_that_a_link_leads_to_changes_anything(root: Path) -> None:
    """A browser sends the cookie with links from other sites; what signs out is a form, with its origin."""
    async with serving(root, ACCESS) as web:
        await sign_in(web, TOKENS["all"])
        for address in ("/sign-out", "/sign-in", "/sign-in?token=x", "/", "/search?q=x", "/problems"):
            await web.get(address, headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})
        for headers in ({}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
            assert (await web.post("/sign-out", headers=headers)).status_code == 403
        await got(web, "/skill/guide")


async def test_what_a_person_with_a_token_was_shown_stays_in_no_cache(root: Path) -> None:
    async with serving(root, ACCESS) as web:
        await sign_in(web, TOKENS["all"])
        for address in (
            "/",
            "/skill/guide",
            "/raw/guide/notes.md",
            "/entry/guide",
            "/skill/gone",
            "/search?q=flat",
        ):
            assert (await web.get(address)).headers["cache-control"] == "no-store"
        assert "no-store" not in (await web.get("/static/style.css")).headers["cache-control"]
    async with serving(root) as web:
        assert "no-store" not in (await web.get("/")).headers["cache-control"]


async def test_the_cookie_opens_the_page_and_not_the_protocol(root: Path) -> None:
    async with serving(root, ACCESS) as web:
        await sign_in(web, TOKENS["all"])
        await got(web, "/skill/guide")
        assert (await web.post("/mcp", json={})).status_code == 401


async def test_a_wrong_token_is_said_to_be_wrong(root: Path) -> None:
    async with serving(root, ACCESS) as web:
        for token in ("wrong", "", "x" * 100_000):
            answer = await sign_in(web, token)
            assert answer.status_code == 401
            assert 'role="alert"' in answer.text
            assert "set-cookie" not in answer.headers


async def test_a_form_of_another_page_signs_nobody_in(root: Path) -> None:
    origins = ("http://evil.example", "null", "http://127.0.0.1:1", "")
    async with serving(root, ACCESS) as web:
        for headers in (*({"Origin": origin} for origin in origins), {"Sec-Fetch-Site": "cross-site"}):
            answer = await sign_in(web, TOKENS["all"], **headers)
            assert answer.status_code == 403, headers
            assert "set-cookie" not in answer.headers


async def test_signing_in_leads_to_no_other_site(root: Path) -> None:
    async with serving(root, ACCESS) as web:
        for to in ("https://evil.example/", "//evil.example/", "/\\evil.example", "/x\r\nA: b", "evil", ""):
            answer = await sign_in(web, TOKENS["all"], to)
            assert (answer.status_code, answer.headers["location"]) == (303, "/"), to


async def test_a_public_address_makes_the_cookie_secure_and_its_forms_ours(root: Path) -> None:
    async with serving(root, ACCESS, public_url="https://skills.example.com/below/mcp") as web:
        answer = await sign_in(web, TOKENS["all"], "/below/", Origin="https://skills.example.com")
        assert answer.status_code == 303
        assert "Secure" in answer.headers["set-cookie"]
        assert "Path=/below" in answer.headers["set-cookie"]
