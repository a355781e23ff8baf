"""``skillwire serve``: serves folders of skills as an MCP server, on stdio or over HTTP."""

from __future__ import annotations

import gc
import os
import re
import signal
from functools import partial
from typing import TYPE_CHECKING, NoReturn

from skillwire.cli.command import Arguments, Exit, TargetPlace, argument, flag, option, repeated, verb
from skillwire.cli.server_session import (
    SERVING_OPTIONS,
    check_serving,
    enable_access_log,
    page_of,
    print_connect_help,
    print_served,
    print_start_help,
    settings_of,
)
from skillwire.errors import FormatError

if TYPE_CHECKING:
    from skillwire.bootstrap import ServerSettings
    from skillwire.catalog.contract import Catalog
    from skillwire.cli.printer import Printer


@verb(
    "Serve the skills in folders and Git repositories over MCP. Messages go to stderr.",
    argument(
        "paths",
        "[PATH]…",
        "a folder of skills, the folder of one, an archive, or a Git repository (default: the current folder)",
        nargs=-1,
        type=TargetPlace(),
    ),
    option("--prefix", default="", metavar="PATH", help="serve every skill under this path"),
    repeated("--unlisted", metavar="GLOB", help="serve these without listing them (repeatable)"),
    option("--scheme", default="skill", help="the scheme of the URIs (default: skill)"),
    flag(
        "--keep-listed",
        help="native: list the tools, prompts and resources of skills also while the skills are inactive",
    ),
    flag("--no-watch", help="do not watch for changes; reads are still correct"),
    *SERVING_OPTIONS,
    examples="""\
  skillwire serve ./skills                              on stdio, for an agent that starts it
  skillwire serve ./skills --http 8000                  at http://127.0.0.1:8000/mcp
  skillwire serve acme/skills@main                      fetched now, and every five minutes
  skillwire serve ./skills ./more --prefix acme --unlisted 'acme/drafts/*'
  skillwire serve ./skills --http 0.0.0.0:8000 --access access.toml --access-log
""",
)
def command(arguments: Arguments, printer: Printer) -> int:
    """Serve until stdin closes or the process is stopped."""
    arguments.paths = arguments.paths or ["."]
    if not re.fullmatch(r"[a-z][a-z0-9+.-]*", arguments.scheme):
        raise FormatError("scheme-invalid", f"{arguments.scheme!r} is not a URI scheme", "write --scheme skill")
    address = check_serving(arguments)
    gc.disable()  # objects made at the start are permanent; collecting garbage among them takes 10 % of the start
    try:
        if address is None:
            for each in (signal.SIGINT, signal.SIGTERM):
                signal.signal(each, _exit_now)
            _serve_stdio(arguments, printer)
        else:
            signal.signal(signal.SIGTERM, _interrupt)
            _serve_http(arguments, printer, *address)
    except KeyboardInterrupt:
        printer.talk("stopped")
    finally:
        gc.enable()
    return Exit.OK


def _serve_stdio(arguments: Arguments, printer: Printer) -> None:
    import anyio  # late, like the imports below: invalid options need none of them

    from skillwire.bootstrap import build_stdio_server
    from skillwire.server.skills import serve_stdio

    settings, catalog = _settings(arguments), _read(arguments, printer)
    anyio.run(partial(print_served, catalog, printer, verbose=arguments.verbose))
    server = build_stdio_server(catalog, settings)
    print_start_help(arguments, printer)
    _collect_garbage_again()
    anyio.run(serve_stdio, server)


def _serve_http(arguments: Arguments, printer: Printer, host: str, port: int) -> None:
    import anyio

    from skillwire.bootstrap import build_http_server, is_open
    from skillwire.server.http import listen
    from skillwire.server.signals import StopSignals

    settings = _settings(arguments)
    with listen(host, port) as listener:
        catalog = _read(arguments, printer)
        signals = StopSignals()
        signals.install()
        anyio.run(partial(print_served, catalog, printer, verbose=arguments.verbose))
        http = build_http_server(catalog, listener, settings, page=page_of(arguments))
        enable_access_log(arguments)
        print_connect_help(arguments, http.url, printer, is_open=is_open(listener, settings.access))
        _collect_garbage_again()
        anyio.run(http.run, signals)
    printer.talk("stopped")


def _settings(arguments: Arguments) -> ServerSettings:
    return settings_of(
        arguments, scheme=arguments.scheme, watch=not arguments.no_watch, keep_listed=arguments.keep_listed
    )


def _read(arguments: Arguments, printer: Printer) -> Catalog:
    from skillwire.bootstrap import read_folders

    return read_folders(
        arguments.paths,
        lambda: printer.progress("Reading", "skills"),
        prefix=arguments.prefix.strip("/"),
        unlisted=arguments.unlisted,
        scheme=arguments.scheme,
    )


def _collect_garbage_again() -> None:
    """Collect garbage, except among the permanent objects of the start."""
    gc.freeze()
    gc.enable()


def _interrupt(number: int, frame: object) -> None:  # noqa: ARG001 - the signature of a signal handler
    raise KeyboardInterrupt


def _exit_now(number: int, frame: object) -> NoReturn:  # noqa: ARG001
    """Exit without cleaning up: a thread waits in a read of stdin that cannot be interrupted."""
    os._exit(Exit.OK)
