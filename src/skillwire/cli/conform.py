"""``skillwire conform``: is a server, or a host, what the protocol's rules say? Rule by rule, with evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.cli.conform_host import add_host, run_host
from skillwire.cli.conform_server import add_server, run_server
from skillwire.cli.parsing import add_verb

if TYPE_CHECKING:
    import argparse

    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer

TARGETS = 2  # a command after -- stands last
_EXAMPLES = """\
examples:
  skillwire conform server https://skills.example.com/mcp
  skillwire conform server --junit report.xml -- npx some-mcp-server ./skills
  skillwire conform server --rule R2 --rule D1 my-server
  skillwire conform host -- my-agent --mcp-config {config} "which skills are there?"
  skillwire conform server --list-rules

exit codes: 0 no rule is broken, 1 some are (with --strict: or warnings), 2 usage, or nothing to look at
"""


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "conform",
        "check a server or a host against the protocol's rules",
        "Check somebody's server, or watch somebody's host, and say which rules it keeps, with what proves it.",
        _EXAMPLES,
    )
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
    add_server(kinds)
    add_host(kinds)


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """Check a server, or watch a host."""
    return (run_server if arguments.kind == "server" else run_host)(arguments, printer)
