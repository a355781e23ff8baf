"""``skillwire ui``: the review desk in a browser on this machine."""

from __future__ import annotations

import os
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING

import click

from skillwire.cli.command import Arguments, Exit, UserName, flag, option, verb
from skillwire.cli.host_session import CONFIG, FOLDER, STATE, run_with_host

if TYPE_CHECKING:
    from skillwire.cli.printer import Printer
    from skillwire.host.host import SkillHost
    from skillwire.server.signals import StopSignals

_LOOPBACK = "127.0.0.1"


@verb(
    "Open the review desk: open questions, all origins and skills, reviews, changes, and the log. It is reachable"
    " from this machine only, with the printed link, which works once.",
    STATE,
    CONFIG,
    FOLDER,
    option(
        "--port",
        type=click.IntRange(0, 65535),
        default=0,
        metavar="N",
        help="the port on 127.0.0.1 (default: any)",
    ),
    flag("--no-open", help="print the link without opening a browser"),
    option(
        "--as",
        "by",
        type=UserName(),
        default="user",
        metavar="NAME",
        help="who decides, for the log (default: user)",
    ),
    flag("--json", help="print the address and the link as a JSON document"),
    examples="""\
  skillwire ui                                   with the stored origins
  skillwire ui --config .mcp.json --as anna
  skillwire ui --no-open --port 8765             print the link only

The link works once. The browser that opened it can decide until the desk ends; Ctrl-C stops it.

exit codes: 0 ended, 2 usage, or the port or the state folder cannot be used
""",
)
def command(arguments: Arguments, printer: Printer) -> int | None:
    """Serve the desk until the process is stopped."""
    arguments.timeout = 0.0  # the page shows which origins have not responded yet
    from skillwire.server.signals import StopSignals

    signals = StopSignals()
    signals.install()
    code = run_with_host(arguments, printer, partial(_serve, signals))
    printer.talk("stopped")
    return code


async def _serve(signals: StopSignals, host: SkillHost, arguments: Arguments, printer: Printer) -> int:
    from skillwire.server.http import listen
    from skillwire.web.desk.app import DeskServer

    server = DeskServer(host, listen(_LOOPBACK, arguments.port), by=arguments.by)
    printer.json({"url": server.url, "link": server.link})
    printer.talk(f"open the desk (the link works once): {server.link}")
    printer.talk(f"listening at {server.url} for this machine only (Ctrl-C stops)")
    if not arguments.no_open and _has_display():
        # In a thread that is never joined, because some browsers block the process that starts them.
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
        printer.talk("no browser could be opened; open the link above yourself")


def _has_display() -> bool:
    """Return whether a graphical browser is likely. One in the terminal would hide our messages."""
    return sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    )
