"""``skillwire token``: a new bearer token, and the lines that let it in."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from skillwire.cli.exits import Exit
from skillwire.cli.parsing import add_verb

if TYPE_CHECKING:
    import argparse

    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer

_EXAMPLES = """\
examples:
  skillwire token billing-agents --see acme/billing >> access.toml
"""


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "token",
        "make a bearer token for 'serve --access'",
        "Make a bearer token. The token goes to stderr, once; what the access file needs goes to stdout.",
        _EXAMPLES,
    )
    parser.add_argument("subject", metavar="SUBJECT", help="who will hold it")
    parser.add_argument("--see", action="append", metavar="PREFIX", help="a path it may see (default: everything)")


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """Make one."""
    from skillwire.server.access import EVERYTHING, new_token  # late: the SDK is behind it

    token, digest = new_token()
    subject = json.dumps(arguments.subject, ensure_ascii=False)
    see = json.dumps(arguments.see or [EVERYTHING], ensure_ascii=False)
    printer.data(f'[[token]]\nsubject = {subject}\nsha256 = "{digest}"\nsee = {see}\n')
    printer.talk(f"the token, shown only now: {token}")
    return Exit.OK
