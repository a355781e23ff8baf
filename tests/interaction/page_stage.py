"""A server for a folder or a catalog, its page, and a client of that page."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import httpx2

from http_server import serving_app
from pages import Page, dangers
from skillwire.catalog.archive import local_catalog
from skillwire.catalog.contract import Catalog
from skillwire.server.access import Access, digest_token, new_token
from skillwire.server.http import HttpOptions, HttpServer, listen
from skillwire.server.skills import Skills
from skillwire.web.catalog.site import catalog_page
from skillwire.web.theme import PAGE_HEADERS
from trees import skill_md, small_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc000000301010018dd8db0"
    "0000000049454e44ae426082"
)
TREE = {
    **small_tree(),
    "guide/SKILL.md": skill_md(
        "guide",
        "Shows everything.",
        "# Guide\n\nSee [notes](notes.md), [out](../flat/SKILL.md), [gone](gone.md) and ![logo](logo.png).\n",
        extra="license: MIT\nallowed-tools: Read Bash\nmetadata:\n  owner: docs\n",
    ),
    "guide/notes.md": b"# Notes\n\nMore *here*.\n",
    "guide/tool.py": b"import os\n\nprint(os.name)\n",
    "guide/logo.png": PNG,
    "guide/drawing.svg": b"<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>",
    "guide/data.bin": bytes(range(256)),
    "guide/empty.txt": b"",
    "guide/large.txt": b"line\n" * 300_000,
    "broken/SKILL.md": b"---\nname: Broken Name\ndescription: x\n---\n",
    "guide/.git/config": b"secret\n",
}

TOKENS = {"billing": new_token()[0], "all": new_token()[0], "nobody": new_token()[0]}
ACCESS = Access(
    tokens={digest_token(token): subject for subject, token in TOKENS.items()},
    see={"billing": ("acme/billing", "flat"), "all": ("*",)},
)


@asynccontextmanager
async def serving(
    source: Path | Catalog,
    access: Access | None = None,
    public_url: str | None = None,
    *,
    watch: bool = True,
    unlisted: Sequence[str] = (),
) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of the page of a server that really serves ``source``."""
    listener = listen("127.0.0.1", 0)
    catalog = source if isinstance(source, Catalog) else local_catalog(source)
    page = partial(catalog_page, unlisted=unlisted)
    app = Skills(catalog, watch=watch).web_app(HttpOptions(access, public_url), name="the <skills>", page=page)
    async with serving_app(HttpServer(app, listener).app, listener) as address:
        async with httpx2.AsyncClient(base_url=address, timeout=20) as client:
            yield client
        app.drain()


async def call(web: httpx2.AsyncClient, method: str, **params: Any) -> dict[str, Any]:
    """What the protocol answers, beside the page, to a client that knows nothing of skills."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    named = {"Mcp-Name": params["name"]} if "name" in params else {}
    answer = await web.post(
        "/mcp",
        json={"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta, **params}},
        headers={
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": method,
            **named,
        },
    )
    return answer.json()["result"]


def shown_skills(page: Page) -> list[str]:
    """The paths of the skills that a page leads to, in its order."""
    links = [link for link in page.links if link.startswith("/skill/") and "?" not in link]
    return [link.removeprefix("/skill/") for link in links]


def is_empty(page: Page) -> bool:
    """Whether a page says, where its content would be, that there is nothing to show."""
    return any("empty" in tag.attributes.get("class", "").split() for tag in page.tags)


async def got(web: httpx2.AsyncClient, address: str, status: int = 200) -> Page:
    """A page of ours, with everything that each of them must have."""
    answer = await web.get(address)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    wanted = {name.lower(): value for name, value in PAGE_HEADERS.items()}
    assert answer.headers["cache-control"] in (wanted.pop("cache-control"), "no-store")
    assert wanted.items() <= dict(answer.headers).items()
    assert dangers(answer.text) == []
    return Page(answer.text)


async def got_when(web: httpx2.AsyncClient, address: str, is_ready: Callable[[Page], bool]) -> Page:
    """A page as soon as it has what the server finds in the background. It hears of that by events."""
    with anyio.fail_after(20):
        async with web.stream("GET", "/events") as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data:") and is_ready(page := await got(web, address)):
                    return page
    raise AssertionError("the stream ended")
