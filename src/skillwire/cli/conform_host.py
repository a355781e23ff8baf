"""``skillwire conform host``: servers with bait, a host that is run against them, and what it did."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from skillwire.cli.conforming import add_report_options, after_dashes, list_rules, write_report
from skillwire.cli.targets import COMMAND
from skillwire.errors import FormatError

if TYPE_CHECKING:
    import argparse

    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer
    from skillwire.conform.report import Report


def add_host(kinds: Verbs) -> None:
    """Describe it to the parser."""
    parser = kinds.add_parser("host", help="run a host against servers that watch it")
    add = parser.add_argument
    add("command", metavar="-- COMMAND", nargs="*", help="the host (default: wait for whoever connects)")
    add("--stdio", action="store_true", help="servers that the host starts, instead of ones it reaches by HTTP")
    add("--seconds", type=float, default=300.0, metavar="N", help="end the command after so long (default: 300)")
    add_report_options(parser)


def run_host(arguments: argparse.Namespace, printer: Printer) -> int:
    """Watch."""
    from skillwire.conform.host_probe.verdicts import HOST_RULES  # late: the SDK is behind what follows

    if arguments.list_rules:
        return list_rules(HOST_RULES.values(), arguments, printer)
    if arguments.command and COMMAND not in arguments.command:
        raise FormatError("command-missing", "a host's command stands after --", "write: conform host -- COMMAND")
    if not arguments.seconds > 0:
        raise FormatError("seconds-invalid", "--seconds is no time to see anything", "give a positive number")
    import anyio

    for name in ("mcp", "httpx2", "uvicorn"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters is in the report
    return write_report(anyio.run(_watch, arguments, printer), arguments, printer)


async def _watch(arguments: argparse.Namespace, printer: Printer) -> Report:
    from skillwire.conform.host_probe.run import environment, probe_host

    def say(words: dict[str, str]) -> None:
        if not arguments.command:
            for name, value in environment(words).items():
                printer.talk(f"{name}={value}")
            printer.talk("connect a host to these; Ctrl-C ends the watch")

    return await probe_host(
        after_dashes(arguments) if arguments.command else [],
        rules=tuple(arguments.rule),
        seconds=arguments.seconds,
        stdio=arguments.stdio,
        on_serving=say,
    )
