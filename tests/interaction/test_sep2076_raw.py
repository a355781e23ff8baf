"""The very bytes of the ``sep-2076`` endpoint over HTTP: what the SDK's models would drop (P1, P5)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest

from http_server import serving_http
from skillwire.server.skills import Skills, build_server
from trees import replace_file, skill_md

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.anyio
MODERN = "2026-07-28"
HEADERS = {"Accept": "application/json, text/event-stream"}
SKILLS, RESOURCES = "notifications/skills/list_changed", "notifications/resources/list_changed"


def message(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "one", "method": method, "params": params}


def modern(method: str, **params: Any) -> dict[str, Any]:
    said = {"protocolVersion": MODERN, "clientInfo": {"name": "raw", "version": "1"}, "clientCapabilities": {}}
    meta = {f"io.modelcontextprotocol/{key}": value for key, value in said.items()}
    return message(method, _meta=meta, **params)


async def test_p1_the_capability_stands_at_its_place_in_the_handshake(root: Path) -> None:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    async with serving_http(build_server(Skills(root))) as url, httpx2.AsyncClient(headers=HEADERS) as web:
        for path, there in (("/sep-2076", True), ("", False)):
            answer = (await web.post(f"{url}{path}", json=message("initialize", **hello))).json()
            assert ("skills" in answer["result"]["capabilities"]) is there


@pytest.mark.parametrize(
    ("endpoint", "wanted", "told"),
    [
        pytest.param("sep-2076", {"skillsListChanged": True}, [SKILLS], id="skills"),
        pytest.param(
            "native", {"skillsListChanged": True, "resourcesListChanged": True}, [SKILLS, RESOURCES], id="both"
        ),
        pytest.param(
            "sep-2076", {"skillsListChanged": False, "resourcesListChanged": True}, [RESOURCES], id="not-skills"
        ),
        pytest.param("native", {"resourcesListChanged": True}, [RESOURCES], id="resources"),
    ],
)
async def test_p5_m4_a_stream_tells_what_was_asked_for_and_nothing_else(
    root: Path, endpoint: str, wanted: dict[str, bool], told: list[str]
) -> None:
    skills = Skills(root)
    await skills.catalog.list_skills()  # what is on disk before it was read is no change
    headers = {**HEADERS, "MCP-Protocol-Version": MODERN, "Mcp-Method": "subscriptions/listen"}
    with anyio.fail_after(20):
        async with (
            serving_http(build_server(skills)) as url,
            httpx2.AsyncClient(headers=headers) as web,
            web.stream(
                "POST", f"{url}/{endpoint}", json=modern("subscriptions/listen", notifications=wanted)
            ) as got,
        ):
            frames = _frames(got)
            ready = await anext(frames)
            assert ready["params"]["notifications"] == {name: True for name, value in wanted.items() if value}
            replace_file(root / "flat/SKILL.md", skill_md("flat", "Changed."))
            for method in told:
                frame = await anext(frames)
                assert frame["method"] == method
                assert frame["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "one"
            replace_file(root / "flat/SKILL.md", skill_md("flat", "Changed again."))
            assert (await anext(frames))["method"] == told[0]  # nothing stood between the two


async def _frames(response: httpx2.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in response.aiter_lines():
        if line.startswith("data:") and line[5:].strip():
            yield json.loads(line[5:])
