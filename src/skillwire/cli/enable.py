"""``skillwire enable``: undo ``skillwire decline``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.cli.deciding import add_decision_options, check_decision
from skillwire.cli.exits import Exit
from skillwire.cli.hosting import NAME_HELP, add_host_options, find_skill, line, run_with_host
from skillwire.cli.parsing import add_verb

if TYPE_CHECKING:
    import argparse

    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer
    from skillwire.host.runtime import Host

_EXAMPLES = """\
examples:
  skillwire enable refunds
  skillwire enable acme:refunds --note 'fixed upstream'

This approves nothing: a skill of a server is asked about again.

exit codes: 0 enabled, or it was not declined, 2 usage, or unknown
"""


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "enable",
        "undo 'decline'",
        "Enable a skill that was declined: models are told of it again, and it can be approved and loaded.",
        _EXAMPLES,
    )
    parser.add_argument("name", metavar="NAME", help=NAME_HELP)
    add_decision_options(parser, "enables it")
    add_host_options(parser)


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """Enable."""
    check_decision(arguments)
    return run_with_host(arguments, printer, _enable)


async def _enable(host: Host, arguments: argparse.Namespace, printer: Printer) -> int:
    found = await find_skill(host, arguments.name, printer)
    label, uri = found.origin.label, found.entry.uri
    enabled = await host.enable(f"{label}:{uri}", by=arguments.by, note=arguments.note)
    if arguments.json:
        printer.json({"origin": label, "uri": uri, "enabled": enabled})
    elif enabled:
        printer.data(f"enabled {line(uri)} from {line(label)}")
    else:
        printer.talk(f"{line(found.name)} was not declined")
    return Exit.OK
