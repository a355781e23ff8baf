"""``skillwire serve``: folders of skills as an MCP server, on stdio or over HTTP."""

from __future__ import annotations

import argparse
import logging
import os
import re
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from skillwire.cli.exits import Exit
from skillwire.cli.introducing import say_how_to_connect, say_how_to_start, say_what_is_served
from skillwire.cli.parsing import add_verb
from skillwire.errors import FormatError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer
    from skillwire.server.access import Access

_EXAMPLES = """\
examples:
  skillwire serve ./skills                              on stdio, for a host that starts it
  skillwire serve ./skills --http 8000                  at http://127.0.0.1:8000/mcp
  skillwire serve ./skills ./more --prefix acme --unlisted 'acme/drafts/*'
  skillwire serve ./skills --http 0.0.0.0:8000 --access access.toml --access-log
"""
_LOOPBACK = "127.0.0.1"
_DIALECT_HELP = "what skills/list means on stdio (default: extension); over HTTP each has its path below /mcp"
_FALLBACK_HELP = "who sees the plain tools and prompts: who lacks the extension (auto), everybody, or nobody"
_MAX_INSTRUCTIONS = 64 * 1024


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "serve",
        "make folders of skills an MCP server",
        "Serve the skills in one or more folders over MCP. What is said to you goes to stderr.",
        _EXAMPLES,
    )
    add = parser.add_argument
    add("paths", metavar="PATH", nargs="+", help="a folder of skills, or the folder of one")
    add("--http", metavar="[HOST:]PORT", help=f"serve over HTTP at /mcp (default host: {_LOOPBACK})")
    add("--prefix", default="", metavar="PATH", help="serve every skill under this path")
    add("--unlisted", action="append", default=[], metavar="GLOB", help="serve these, but do not list them")
    add("--scheme", default="skill", help="the scheme of the URIs (default: skill)")
    add("--name", default="skillwire", help="the name the server gives itself")
    add("--instructions", type=Path, metavar="FILE", help="text for the model about this server")
    add("--page-size", type=_number(1, 1000), default=100, metavar="N", help="entries per page (default: 100)")
    add("--ttl", type=_number(0, 86_400), default=0, metavar="SECONDS", help="how long answers keep (default: 0)")
    add("--cache-scope", choices=("private", "public"), default="private", help="who may share a cached answer")
    add("--dialect", choices=("extension", "sep-2076", "native"), default="extension", help=_DIALECT_HELP)
    add("--fallback", choices=("auto", "always", "never"), default="auto", help=_FALLBACK_HELP)
    add("--no-watch", action="store_true", help="do not watch for changes; reads stay correct all the same")
    add("--access", type=Path, metavar="FILE", help="who may come in and see what (HTTP); see docs/serve.md")
    add("--public-url", metavar="URL", help="how clients reach the server, if not by its address (HTTP)")
    add("--access-log", action="store_true", help="a line of JSON on stderr for each request (HTTP)")


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """Serve until stdin closes or the process is told to stop."""
    address = None if arguments.http is None else parse_address(arguments.http)
    _check_words(arguments)
    if address is None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _leave)
        _serve_stdio(arguments, printer)
        return Exit.OK
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        _serve_http(arguments, printer, *address)
    except KeyboardInterrupt:
        printer.talk("stopped")
    return Exit.OK


def _serve_stdio(arguments: argparse.Namespace, printer: Printer) -> None:
    import anyio  # late, like the imports below: only once the words are understood

    from skillwire.server.run import build_server, serve_stdio

    skills = _skills(arguments, printer, None)
    say_how_to_start(arguments, printer)
    server = build_server(skills, name=arguments.name, instructions=_instructions(arguments.instructions))
    anyio.run(serve_stdio, server)


def _serve_http(arguments: argparse.Namespace, printer: Printer, host: str, port: int) -> None:
    import anyio

    from skillwire.server.access import read_access
    from skillwire.server.http import HttpOptions, HttpServer, listen
    from skillwire.server.run import build_server

    access = None if arguments.access is None else read_access(arguments.access)
    listener = listen(host, port)
    skills = _skills(arguments, printer, access)
    server = build_server(skills, name=arguments.name, instructions=_instructions(arguments.instructions))
    http = HttpServer(server, listener, HttpOptions(access, arguments.public_url))
    if arguments.access_log:
        logging.basicConfig(stream=sys.stderr, format="%(message)s")
        logging.getLogger("skillwire.access").setLevel(logging.INFO)
    say_how_to_connect(arguments, http.url, printer, is_open=access is None and host != _LOOPBACK)
    anyio.run(http.run)


def _skills(arguments: argparse.Namespace, printer: Printer, access: Access | None):
    import anyio

    from skillwire.bootstrap import open_folders
    from skillwire.server.access import Policy
    from skillwire.server.endpoints import Dialects
    from skillwire.server.skills import Skills
    from skillwire.wire.extension import Freshness

    with printer.progress("Reading", "skills") as count:
        catalog = open_folders(
            arguments.paths,
            prefix=arguments.prefix.strip("/"),
            unlisted=arguments.unlisted,
            scheme=arguments.scheme,
            on_skill=count,
        )
    anyio.run(say_what_is_served, catalog, printer)
    return Skills(
        catalog,
        scheme=arguments.scheme,
        page_size=arguments.page_size,
        freshness=Freshness(arguments.ttl * 1000, arguments.cache_scope),
        watch=not arguments.no_watch,
        viewer=None if access is None else Policy(access),
        dialects=Dialects(arguments.dialect, arguments.fallback),
    )


def parse_address(text: str) -> tuple[str, int]:
    """``8000``, ``0.0.0.0:8000`` or ``[::1]:8000``."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and len(port) < 6 and int(port) < 65536):
        raise FormatError(
            "address-invalid", f"{text!r} is not [HOST:]PORT", "write --http 8000 or --http 0.0.0.0:8000"
        )
    return host.strip("[]") or _LOOPBACK, int(port)


def _check_words(arguments: argparse.Namespace) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9+.-]*", arguments.scheme):
        raise FormatError("scheme-invalid", f"{arguments.scheme!r} is not a URI scheme", "write --scheme skill")
    if arguments.public_url is not None and not re.fullmatch(
        r"https?://[A-Za-z0-9.:\[\]-]+(/\S*)?", arguments.public_url
    ):
        raise FormatError("url-invalid", f"{arguments.public_url!r} is not a URL", "write --public-url https://…")
    if arguments.http is not None and arguments.dialect != "extension":
        raise FormatError(
            "option-needs-stdio", "--dialect is for stdio", f"over HTTP, connect to /mcp/{arguments.dialect}"
        )
    if arguments.http is None:
        for option in ("access", "public_url", "access_log"):
            if getattr(arguments, option):
                name = option.replace("_", "-")
                raise FormatError("option-needs-http", f"--{name} is for HTTP", "add --http 8000")
    if arguments.access is not None and arguments.cache_scope == "public":
        raise FormatError(
            "cache-not-public", "what differs from caller to caller is never public", "drop --cache-scope public"
        )


def _instructions(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        data = path.read_bytes()
        if len(data) <= _MAX_INSTRUCTIONS:
            return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(
            "instructions-unreadable", f"{path.name!r} cannot be read as text", "give a UTF-8 text file"
        ) from error
    raise FormatError("instructions-too-long", f"{path.name!r} is longer than 64 KiB", "shorten it")


def _interrupt(number: int, frame: object) -> None:  # noqa: ARG001 - the shape of a signal handler
    raise KeyboardInterrupt


def _leave(number: int, frame: object) -> NoReturn:  # noqa: ARG001
    """A thread waits in a read of stdin that nothing can interrupt; there is nothing to tidy up, so just go."""
    os._exit(Exit.OK)


def _number(low: int, high: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low} to {high}")
        return int(text)

    return parse
