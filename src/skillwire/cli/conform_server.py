"""``skillwire conform server``: every rule of a server that can be seen from outside."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from skillwire.cli.conforming import add_report_options, after_dashes, list_rules, write_report
from skillwire.cli.targets import COMMAND, parse_headers
from skillwire.errors import FormatError

if TYPE_CHECKING:
    import argparse

    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer
    from skillwire.conform.report import Report

_OFFERED = ("extension", "index", "sep-2076", "native")


def add_server(kinds: Verbs) -> None:
    """Describe it to the parser."""
    parser = kinds.add_parser("server", help="ask a server, and compare its raw answers with the rules")
    add = parser.add_argument
    add(
        "target", metavar="TARGET", nargs="*", help="a URL, a label from an mcpServers file, or a command after --"
    )
    add("--config", type=Path, metavar="FILE", help="the mcpServers file that the label is in (default: found)")
    add("--yes", action="store_true", help="use a server that a project's file names without asking")
    add("--header", action="append", default=[], metavar="'NAME: VALUE'", help="sent with every request to a URL")
    add("--era", choices=("both", "modern", "legacy"), default="both", help="the protocol's era (default: both)")
    add("--require", choices=_OFFERED, help="a server that does not offer this dialect fails")
    add("--seconds", type=float, default=120.0, metavar="N", help="at most so long in each era (default: 120)")
    add_report_options(parser)


def run_server(arguments: argparse.Namespace, printer: Printer) -> int:
    """Check."""
    from skillwire.conform.checks.rules import RULES  # late: the SDK is behind what follows

    if arguments.list_rules:
        return list_rules(RULES.values(), arguments, printer)
    if not arguments.target:
        raise FormatError("target-missing", "there is no server to look at", "give a URL, a label, or -- COMMAND")
    if COMMAND not in arguments.target and len(arguments.target) > 1:
        raise FormatError("target-several", "one server is looked at at a time", "give one TARGET")
    if not arguments.seconds > 0:
        raise FormatError("seconds-invalid", "--seconds is no time to look at anything", "give a positive number")
    import anyio

    for name in ("mcp", "httpx2"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters of it comes as a finding
    report = anyio.run(_check, arguments, printer)
    return write_report(report, arguments, printer)


async def _check(arguments: argparse.Namespace, printer: Printer) -> Report:
    from skillwire.bootstrap import TargetOptions, server_place
    from skillwire.cli.consent import ask_for_servers
    from skillwire.conform.checks.run import check_server
    from skillwire.conform.session import ERAS, Bounds

    consent = ask_for_servers(printer, "--yes", is_given=arguments.yes)
    options = TargetOptions(arguments.config, parse_headers(arguments.header), consent=consent)
    target = after_dashes(arguments) if COMMAND in arguments.target else arguments.target[0]
    place = await server_place(target, options, Path.cwd(), Path.home())
    eras = ERAS if arguments.era == "both" else (arguments.era,)

    with printer.progress("Asking", "requests") as count:
        return await check_server(
            place,
            rules=tuple(arguments.rule),
            eras=eras,
            required=arguments.require,
            bounds=Bounds(seconds=arguments.seconds, call_seconds=min(15.0, arguments.seconds)),
            on_request=count,
        )
