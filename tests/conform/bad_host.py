"""A host that breaks every rule: it declares nothing, asks every server for skills, and reads every file."""

from __future__ import annotations

import json
import os
import re
import urllib.request
from typing import Any

GUIDE = "skill://guide/SKILL.md"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bad-host", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def ask(url: str, method: str, **params: Any) -> dict[str, Any]:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": ENVELOPE}}
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        **({"mcp-name": params["uri"]} if method == "resources/read" else {}),
    }
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer).get("result", {})
    except urllib.error.HTTPError as refused:
        refused.close()
        return {}


def listed(url: str) -> list[dict[str, Any]]:
    """Every page, as long as there is a cursor."""
    page = ask(url, "skills/list")
    found = list(page.get("skills", []))
    while "nextCursor" in page:
        page = ask(url, "skills/list", cursor=page["nextCursor"])
        found += page.get("skills", [])
    return found


def main() -> None:
    with open(os.environ["SKILLWIRE_MCP_CONFIG"]) as file:
        urls = {label: server["url"] for label, server in json.load(file)["mcpServers"].items()}
    first, second = urls["watched"], urls["watched-second"]
    ask(first, "resources/read", uri="skill://guide/references/background.md")  # before anything is known
    for url in urls.values():
        for skill in listed(url):
            files = skill["resources"] if isinstance(skill["resources"], list) else [skill]
            for file in [files[0], *files] if "wrong-size" in skill["uri"] else files:
                ask(url, "resources/read", uri=file["uri"])
    ask(first, "skills/list", cursor="made up")
    ask(urls["watched-plain"], "skills/get", uri=GUIDE)
    children = ask(first, "resources/directory/read", uri="skill://guide/references").get("resources", [])
    for child in children:
        ask(first, "resources/read", uri=child["uri"])
    text = ask(first, "resources/read", uri=GUIDE)["contents"][0]["text"]
    for uri in re.findall(r"(?:skill|file)://[^\s)]*[a-zA-Z]", text):
        ask(second, "resources/read", uri=uri)


main()
