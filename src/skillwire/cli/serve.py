"""``skillwire serve``: folders of skills as an MCP server, on stdio or over HTTP."""

from __future__ import annotations

import gc
import os
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from skillwire.cli.banner import say_how_to_connect, say_how_to_start, say_what_is_served
from skillwire.cli.exits import Exit
from skillwire.cli.parsing import add_verb
from skillwire.cli.serving import (
    add_serving_options,
    check_serving,
    is_open,
    log_access,
    page_address_of,
    page_of,
    parse_address,
    read_instructions,
    skills_of,
)
from skillwire.errors import FormatError
from skillwire.limits import MIB

if TYPE_CHECKING:
    import argparse

    from skillwire.catalog.contract import Catalog
    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer
    from skillwire.server.access import Access
    from skillwire.server.skills import Skills

_EXAMPLES = """\
examples:
  skillwire serve ./skills                              on stdio, for a host that starts it
  skillwire serve ./skills --http 8000                  at http://127.0.0.1:8000/mcp
  skillwire serve ./skills ./more --prefix acme --unlisted 'acme/drafts/*'
  skillwire serve ./skills --http 0.0.0.0:8000 --access access.toml --access-log
"""


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
    add("paths", metavar="PATH", nargs="+", help="a folder of skills, the folder of one, or an archive")
    add("--prefix", default="", metavar="PATH", help="serve every skill under this path")
    add("--unlisted", action="append", default=[], metavar="GLOB", help="serve these, but do not list them")
    add("--scheme", default="skill", help="the scheme of the URIs (default: skill)")
    add(
        "--keep-listed",
        action="store_true",
        help="native: leave what skills bring listed and callable at any time",
    )
    add("--no-watch", action="store_true", help="do not watch for changes; reads stay correct all the same")
    add("--no-remember", action="store_true", help="read everything at each start, and remember nothing of it")
    add_serving_options(parser)


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """Serve until stdin closes or the process is told to stop."""
    address = None if arguments.http is None else parse_address(arguments.http)
    if not re.fullmatch(r"[a-z][a-z0-9+.-]*", arguments.scheme):
        raise FormatError("scheme-invalid", f"{arguments.scheme!r} is not a URI scheme", "write --scheme skill")
    check_serving(arguments)
    gc.disable()  # what is made at the start is made to stay; looking for garbage in it takes a tenth of the time
    try:
        if address is None:
            for each in (signal.SIGINT, signal.SIGTERM):
                signal.signal(each, _leave)
            _serve_stdio(arguments, printer)
        else:
            signal.signal(signal.SIGTERM, _interrupt)
            _serve_http(arguments, printer, *address)
    except KeyboardInterrupt:
        printer.talk("stopped")
    finally:
        gc.enable()
    return Exit.OK


def _serve_stdio(arguments: argparse.Namespace, printer: Printer) -> None:
    import anyio  # late, like the imports below: not needed to refuse wrong options

    from skillwire.server.skills import build_server, serve_stdio

    skills = _skills(_read(arguments, printer), arguments, printer, None)
    say_how_to_start(arguments, printer)
    server = build_server(skills, name=arguments.name, instructions=read_instructions(arguments.instructions))
    _keep_what_is_there()
    anyio.run(serve_stdio, server)


def _serve_http(arguments: argparse.Namespace, printer: Printer, host: str, port: int) -> None:
    import anyio

    from skillwire.server.access import read_access
    from skillwire.server.http import HttpOptions, HttpServer, listen, url_of
    from skillwire.server.signals import StopSignals
    from skillwire.server.skills import build_server

    access = None if arguments.access is None else read_access(arguments.access)
    listener = listen(host, port)
    catalog = _read(arguments, printer)
    signals = StopSignals()
    signals.install()
    skills = _skills(catalog, arguments, printer, access)
    server = build_server(skills, name=arguments.name, instructions=read_instructions(arguments.instructions))
    options = HttpOptions(access, arguments.public_url, replay_bytes=arguments.replay * MIB)
    page = page_of(skills, arguments, access, url_of(listener))
    http = HttpServer(server, listener, options, catalog=lambda: skills.catalog, page=page)
    log_access(arguments)
    page_address = page_address_of(arguments, http.url)
    say_how_to_connect(arguments, http.url, printer, is_open=is_open(listener, access), page=page_address)
    _keep_what_is_there()
    anyio.run(http.run, signals)
    printer.talk("stopped")


def _read(arguments: argparse.Namespace, printer: Printer) -> Catalog:
    """Scan the folders, with the help of the cached scan."""
    from skillwire.bootstrap import read_folders

    base = os.environ.get("XDG_CACHE_HOME", "")
    caches = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    return read_folders(
        arguments.paths,
        lambda: printer.progress("Reading", "skills"),
        prefix=arguments.prefix.strip("/"),
        unlisted=arguments.unlisted,
        scheme=arguments.scheme,
        cache=None if arguments.no_remember else caches / "skillwire" / "folders",
    )


def _keep_what_is_there() -> None:
    """Collect garbage again, but never look through what serves as long as the process lives."""
    gc.freeze()
    gc.enable()


def _skills(catalog: Catalog, arguments: argparse.Namespace, printer: Printer, access: Access | None) -> Skills:
    import anyio

    anyio.run(say_what_is_served, catalog, printer)
    return skills_of(
        catalog,
        arguments,
        access,
        scheme=arguments.scheme,
        watch=not arguments.no_watch,
        keep_listed=arguments.keep_listed,
    )


def _interrupt(number: int, frame: object) -> None:  # noqa: ARG001 - the shape of a signal handler
    raise KeyboardInterrupt


def _leave(number: int, frame: object) -> NoReturn:  # noqa: ARG001
    """A thread waits in a read of stdin that nothing can interrupt; there is nothing to tidy up, so just go."""
    os._exit(Exit.OK)
