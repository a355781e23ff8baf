"""``skillwire ui``: the review desk, in a browser on this machine."""

from __future__ import annotations

import os
import sys
import threading
from argparse import ArgumentTypeError
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from skillwire.cli.exits import Exit
from skillwire.cli.hosting import run_with_host
from skillwire.cli.parsing import add_verb
from skillwire.errors import FormatError

if TYPE_CHECKING:
    import argparse

    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer
    from skillwire.host.host import Host
    from skillwire.server.signals import StopSignals

_EXAMPLES = """\
examples:
  skillwire ui                                   the origins that were added
  skillwire ui --config .mcp.json --as anna
  skillwire ui --no-open --port 8765             print the link only

The link works once. Whoever opened it decides until the desk ends; Ctrl-C ends it.

exit codes: 0 ended, 2 usage, or the port or the memory cannot be used
"""
_LOOPBACK = "127.0.0.1"


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "ui",
        "review, approve and answer in a browser",
        "Open the review desk: what waits for an answer, all origins and skills, what to know before saying yes,"
        " what changed, and the log. On this machine only, for whoever opens the link that is printed, once.",
        _EXAMPLES,
    )
    add = parser.add_argument
    add(
        "--state",
        type=Path,
        metavar="DIR",
        help="what the host remembers (default: $XDG_STATE_HOME/skillwire, or ~/.local/state/skillwire)",
    )
    add("--config", type=Path, metavar="FILE", help="an mcpServers file, beside the origins that were added")
    add(
        "--folder", type=Path, action="append", default=[], metavar="DIR", help="a folder of your own (repeatable)"
    )
    add("--port", type=_port, default=0, metavar="N", help="where to listen on 127.0.0.1 (default: a free one)")
    add("--no-open", action="store_true", help="print the link, and do not open a browser")
    add("--as", dest="by", default="user", metavar="NAME", help="who decides, for the log (default: user)")


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """Serve the desk until the process is told to stop."""
    if not arguments.by.strip() or not arguments.by.isprintable():
        raise FormatError("argument-invalid", "--as takes a line of text", "leave it out, or name somebody")
    if arguments.by == "policy":
        raise FormatError("argument-invalid", "a policy is nobody who decides", "say who you are with --as")
    arguments.wait = 0.0  # the page shows who has not answered yet
    from skillwire.server.signals import StopSignals

    signals = StopSignals()
    signals.install()
    code = run_with_host(arguments, printer, partial(_serve, signals))
    printer.talk("stopped")
    return code


async def _serve(signals: StopSignals, host: Host, arguments: argparse.Namespace, printer: Printer) -> int:
    from skillwire.server.http import listen
    from skillwire.web.desk.app import DeskServer

    server = DeskServer(host, listen(_LOOPBACK, arguments.port), by=arguments.by)
    printer.talk(f"open the desk, once: {server.link}")
    printer.talk(f"listening at {server.url} for this machine only (Ctrl-C ends)")
    if not arguments.no_open and _has_display():
        # Beside the desk, and nothing waits for its end: some browsers stay in front of whoever starts them.
        threading.Thread(target=_open, args=(server.link, printer), daemon=True).start()
    await server.run(signals)
    return Exit.OK


def _open(link: str, printer: Printer) -> None:
    import webbrowser

    try:
        is_open = webbrowser.open(link)
    except (webbrowser.Error, OSError):
        is_open = False
    if not is_open:
        printer.talk("no browser could be opened: open the link above yourself")


def _has_display() -> bool:
    """Whether there is a browser with windows; one in the terminal would hide what is said there."""
    return sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    )


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise ArgumentTypeError(
            f"{text!r} is not a port: a whole number from 0 to 65535; the address is 127.0.0.1"
        )
    return int(text)
