"""A skill full of attacks, on every page: nothing runs, nothing is loaded, and no link leaves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from interaction.page_stage import got, serving
from pages import dangers
from rules import rule
from trees import write_tree

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

XSS = [
    "<script>pwned()</script>", "\"><img src=x onerror=pwned()>", "'-pwned()-'", "javascript:pwned()",
    "</title><script>pwned()</script>", "{{7*7}}", "\u202e</p><svg onload=pwned()>", "&lt;script&gt;",
]  # fmt: skip


def hostile() -> dict[str, bytes]:
    """A skill with an attack in every field and in every kind of file."""
    attack = " ".join(XSS)
    fields = {
        "name": "hostile",
        "description": attack,
        "license": attack,
        "compatibility": attack[:300],
        "allowed-tools": attack,
        "metadata": {attack: attack},
        attack: [attack, {attack: attack}],
    }
    head = "".join(f"{json.dumps(key)}: {json.dumps(value)}\n" for key, value in fields.items())
    body = "\n\n".join((attack, f"# {attack}", f"[{attack}](x.html)", f"![{attack}](https://evil.example/x.png)",
                        f"```{attack}\n{attack}\n```", f"> {attack}", f"[//]: # ({attack})"))  # fmt: skip
    tree = {"hostile/SKILL.md": f"---\n{head}---\n\n{body}\n".encode()}
    for suffix in (
        "html",
        "svg",
        "js",
        "md",
        "css",
        "xml",
        "json",
        "txt",
        "py",
        "sh",
        "yaml",
        "csv",
        "xhtml",
        "pdf",
        "",
    ):
        tree[f"hostile/x.{suffix}" if suffix else "hostile/x"] = attack.encode()
    tree["hostile/x.png"] = b"<script>pwned()</script>"
    tree["hostile/<img src=x onerror=pwned()>.md"] = attack.encode()
    tree["hostile/'\"><script>.txt"] = attack.encode()
    tree["<script>pwned()<script>/x.md"] = b"no skill"
    tree["bad/SKILL.md"] = f"---\nname: {json.dumps(attack)}\n{json.dumps(attack)}: 1\n---\n".encode()
    return tree


@rule("B6")
async def test_a_hostile_skill_runs_on_no_page(tmp_path: Path) -> None:
    """In every field, in every kind of file, on every page."""
    root = write_tree(tmp_path / "skills", hostile())
    async with serving(root) as web:
        start = await got(web, "/")
        assert "/skill/hostile" in start.links
        page = await got(web, "/skill/hostile")
        files = [link for link in page.links if link.startswith("/file/")]
        assert len(files) >= 18
        for address in (
            *files,
            "/problems",
            "/connect",
            f"/search?q={quote(XSS[0])}",
            f"/search?q={quote(XSS[1])}&part=1",
        ):
            await got(web, address)
        for address in files:
            answer = await web.get(address.replace("/file/", "/raw/", 1))
            assert answer.status_code == 200
            kind = answer.headers["content-type"]
            assert kind in ("application/octet-stream", "image/png")
            assert answer.headers["content-security-policy"].startswith("sandbox")
        for address in (f"/skill/{quote(XSS[0])}", f"/?under={quote(XSS[0])}", f"/?after={quote(XSS[1])}"):
            answer = await web.get(address)
            assert dangers(answer.text) == []
        assert "U+202E" in page.text
