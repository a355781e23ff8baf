"""The page of a gateway: what it reveals of upstreams, of this machine, and of other callers' skills."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from gateway.stage import flat_skill, gateway_of, source, until_state
from interaction.page_stage import got, serving
from rules import rule
from skillwire import MemoryCatalog
from skillwire.server.access import Access, digest_token, new_token

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

DIES = "import sys; sys.exit('cannot start: token=SECRET123 of /srv/private')"
ADMIT = 'mode = "admit"'
TOKENS = {subject: new_token()[0] for subject in ("all", "acme")}
ACCESS = Access(
    tokens={digest_token(token): subject for subject, token in TOKENS.items()},
    see={"all": ("*",), "acme": ("acme",)},
)


@rule("L2")
async def test_what_an_upstream_printed_last_is_not_on_the_page(state: Path) -> None:
    """The page has the reference only; the operator sees the message."""
    servers = {"acme": {"command": sys.executable, "args": ["-I", "-S", "-c", DIES]}}
    async with gateway_of(state, servers) as gateway:
        acme = source(gateway, "acme")
        await until_state(acme, "unreachable")
        assert acme.error is not None
        assert "SECRET123" in acme.error.message
        async with serving(gateway.catalog, watch=False) as web:
            page = await got(web, "/problems")
            assert f"[{acme.error.reference}]" in page.text
            for address in ("/problems", "/", "/skill/acme/flat", "/file/acme/flat/SKILL.md", "/search?q=flat"):
                html = (await web.get(address)).text
                assert "SECRET123" not in html
                assert "/srv/private" not in html


@rule("A1")
async def test_how_to_approve_names_files_and_not_where_they_are(state: Path, tmp_path: Path) -> None:
    """Only the operator sees it."""
    config = tmp_path / "servers.json"
    async with gateway_of(state, {"acme": MemoryCatalog([flat_skill()])}, ADMIT, config=config) as gateway:
        async with serving(gateway.catalog, watch=False) as web:
            page = await got(web, "/problems")
        command = "skillwire approvals show acme:skill://flat/SKILL.md --config servers.json --state state"
        assert command in page.text
        assert str(tmp_path) not in page.html
        [problem] = await gateway.upstreams["acme"].gate.problems(for_operator=True)
        assert problem.hint.endswith(f"--config {config} --state {state}")


async def test_a_token_shows_only_its_own_upstreams(state: Path) -> None:
    """Waiting skills, unavailable upstreams and served skills: for callers that may see them."""
    servers = {
        "acme": MemoryCatalog([flat_skill("one")]),
        "other": MemoryCatalog([flat_skill("two")]),
        "gone": {"url": "http://127.0.0.1:1/mcp"},
    }
    async with gateway_of(state, servers, ADMIT) as gateway:
        await until_state(source(gateway, "gone"), "unreachable")
        async with serving(gateway.catalog, ACCESS, watch=False) as web:
            seen: dict[str, set[str]] = {}
            for subject, token in TOKENS.items():
                web.headers["Authorization"] = f"Bearer {token}"
                text = (await got(web, "/problems")).text
                seen[subject] = {word for word in ("acme", "other", "gone") if word in text}
            assert seen == {"all": {"acme", "other", "gone"}, "acme": {"acme"}}
            await got(web, "/skill/other/two", 404)
