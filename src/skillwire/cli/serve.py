"""``skillwire serve``: a folder of skills as an MCP server, on stdio or over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.cli.exits import Exit
from skillwire.cli.parsing import add_verb
from skillwire.errors import FormatError

if TYPE_CHECKING:
    import argparse

    from skillwire.catalog.contract import Catalog
    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer

_EXAMPLES = """\
examples:
  skillwire serve ./skills                       on stdio, for a host that starts it
  skillwire serve ./skills --http 8000           at http://127.0.0.1:8000/mcp
  skillwire serve ./skills ./more --http 0.0.0.0:8000
"""
_LOOPBACK = "127.0.0.1"


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "serve",
        "make folders of skills an MCP server",
        "Serve the skills in one or more folders over MCP. What is said to you goes to stderr.",
        _EXAMPLES,
    )
    parser.add_argument("paths", metavar="PATH", nargs="+", help="a folder of skills, or the folder of one")
    parser.add_argument("--http", metavar="[HOST:]PORT", help=f"serve over HTTP (default host: {_LOOPBACK})")


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """Serve until stdin closes or the process is told to stop."""
    address = None if arguments.http is None else parse_address(arguments.http)
    import anyio  # late: only once the words are understood

    from skillwire.bootstrap import open_folders
    from skillwire.server.run import build_server, listen, serve_http, serve_stdio
    from skillwire.server.skills import Skills

    listener = None if address is None else listen(*address)
    with printer.progress("Reading", "skills") as count:
        catalog = open_folders(arguments.paths, count)
    anyio.run(_introduce, catalog, printer)
    server = build_server(Skills(catalog))
    try:
        if listener is None:
            anyio.run(serve_stdio, server)
        else:
            host, port = listener.getsockname()[:2]
            _say_how_to_connect(f"http://{host}:{port}/mcp", printer)
            anyio.run(serve_http, server, listener)
    except KeyboardInterrupt:
        return Exit.OK
    return Exit.OK


def parse_address(text: str) -> tuple[str, int]:
    """``8000``, ``0.0.0.0:8000`` or ``[::1]:8000``."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise FormatError(
            "address-invalid", f"{text!r} is not [HOST:]PORT", "write --http 8000 or --http 0.0.0.0:8000"
        )
    return host.strip("[]") or _LOOPBACK, int(port)


async def _introduce(catalog: Catalog, printer: Printer) -> None:
    from skillwire.cli.printer import counted, visible

    entries = [entry async for entry in catalog.entries()]
    printer.talk(f"serving {counted(len(entries), 'skill')}:")
    for entry in entries[:20]:
        printer.talk(f"  {visible(entry.uri)}")
    if len(entries) > 20:
        printer.talk(f"  … and {len(entries) - 20} more")
    for problem in await catalog.problems():
        if problem.refuses:
            printer.talk(f"left out {visible(problem.file)}: {visible(problem.message)} [{problem.reference}]")


def _say_how_to_connect(url: str, printer: Printer) -> None:
    printer.talk(f"listening at {url} (Ctrl-C ends)")
    printer.talk("try next, in another terminal:")
    printer.talk(
        f"  curl -s {url} -H 'content-type: application/json'"
        " -H 'accept: application/json, text/event-stream' -H 'mcp-protocol-version: 2026-07-28'"
        " -H 'mcp-method: skills/list'"
        ' -d \'{"jsonrpc":"2.0","id":1,"method":"skills/list","params":{"_meta":'
        '{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        '"io.modelcontextprotocol/clientInfo":{"name":"curl","version":"1"},'
        '"io.modelcontextprotocol/clientCapabilities":{}}}}\''
    )
