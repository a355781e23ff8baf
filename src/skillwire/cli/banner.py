"""What ``skillwire serve`` says when it starts: what is served, and how a host reaches it."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from skillwire.catalog.contract import Catalog
    from skillwire.cli.printer import Printer

_SHOWN = 20
_ALL = sys.maxsize
_WARNED = ("over-limit", "settings-invalid", "settings-unmatched")  # E6, R4: a server warns of these
_CURL_META = {
    "protocolVersion": "2026-07-28",
    "clientInfo": {"name": "curl", "version": "1"},
    "clientCapabilities": {},
}


async def say_what_is_served(catalog: Catalog, printer: Printer) -> None:
    """The skills, what was left out, and why."""
    from skillwire.cli.printer import counted, said_ignored, visible

    count = len(await catalog.suggest("", _ALL))  # their paths are at hand; the entries of all are not needed
    printer.talk(f"serving {counted(count, 'skill')}:")
    for entry in (await catalog.list_skills(limit=_SHOWN)).items:
        printer.talk(f"  {visible(entry.uri)}")
    if count > _SHOWN:
        printer.talk(f"  … and {count - _SHOWN} more")
    for problem in await catalog.problems():
        if problem.refuses:
            printer.talk(f"left out {visible(problem.file)}: {visible(problem.message)} [{problem.reference}]")
        elif problem.reference in _WARNED:
            printer.talk(f"warning: {visible(problem.file)}: {visible(problem.message)} [{problem.reference}]")
        elif problem.reference == "catalog-collision":
            printer.talk(f"note: {visible(problem.message)}")
    ignored = await catalog.ignored()
    if ignored:
        printer.talk(said_ignored(ignored))


def say_how_to_start(arguments: argparse.Namespace, printer: Printer) -> None:
    """On stdio: what a host has to know to start this process."""
    command = str(Path(sys.argv[0]).absolute())
    files = [*arguments.paths, str(arguments.instructions), str(arguments.activation_key)]
    words = [_absolute(word, files) for word in sys.argv[1:]]
    entry = {"mcpServers": {arguments.name: {"command": command, "args": words}}}
    printer.talk("speaking MCP on stdin and stdout; a host starts it with this entry:")
    printer.talk(json.dumps(entry, indent=2))
    name, start = shlex.quote(arguments.name), shlex.join([command, *words])
    printer.talk("or with one line:")
    for line in (
        f"claude mcp add {name} -- {start}",
        f"codex mcp add {name} -- {start}",
        f"gemini mcp add {name} {start}",
        shlex.join(["code", "--add-mcp", json.dumps({"name": arguments.name, "command": command, "args": words})]),
    ):
        printer.talk(f"  {line}")


def say_how_to_connect(
    arguments: argparse.Namespace, url: str, printer: Printer, *, is_open: bool, page: str | None
) -> None:
    """Over HTTP: what a host has to know to connect, what to try, and where the page for people is."""
    from skillwire.install.host_configs import http_commands, http_entry

    url, token = arguments.public_url or url, arguments.access is not None
    entry = http_entry(url, token=token)
    printer.talk("a host connects with this entry:")
    printer.talk(json.dumps({"mcpServers": {arguments.name: entry}}, indent=2))
    printer.talk("or with one line:")
    for line in http_commands(arguments.name, url, token=token).values():
        printer.talk(f"  {line}")
    printer.talk(f"clients of older proposals: {url}/sep-2076 and {url}/native (docs/dialects.md)")
    printer.talk("try next, in another terminal:")
    printer.talk(f"  npx @modelcontextprotocol/inspector --cli {url} --method skills/list --verify")
    printer.talk(f"  {_curl(url)}")
    if is_open:
        printer.talk("note: whoever can reach this address can read every skill; --access decides who may")
    if page is not None:
        printer.talk(f"to look at the skills in a browser, open {page}")
    printer.talk(f"listening at {url} (Ctrl-C ends)")


def _curl(url: str) -> str:
    """The same question without Node: one self-contained request of the stateless era."""
    meta = {f"io.modelcontextprotocol/{key}": value for key, value in _CURL_META.items()}
    body = {"jsonrpc": "2.0", "id": 1, "method": "skills/list", "params": {"_meta": meta}}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": _CURL_META["protocolVersion"],
        "Mcp-Method": "skills/list",
    }
    words = [word for name, value in headers.items() for word in ("-H", f"{name}: {value}")]
    return shlex.join(["curl", "-s", url, *words, "-d", json.dumps(body, separators=(",", ":"))])


def _absolute(word: str, paths: list[str]) -> str:
    return str(Path(word).absolute()) if word in paths else word
