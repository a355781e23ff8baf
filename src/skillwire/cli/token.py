"""``skillwire token``: makes a bearer token, and the lines for the access file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from skillwire.cli.command import Arguments, Exit, Verbs, add_verb

if TYPE_CHECKING:
    from skillwire.cli.printer import Printer

_EXAMPLES = """\
examples:
  skillwire token billing-agents --see acme/billing >> access.toml
"""


def add_arguments(verbs: Verbs) -> None:
    """Add the parser of the verb."""
    parser = add_verb(
        verbs,
        "token",
        run,
        "make a bearer token for 'serve --access'",
        "Make a bearer token. The token is printed once, to stderr; the lines for the access file go to stdout.",
        _EXAMPLES,
    )
    parser.add_argument("subject", metavar="SUBJECT", help="the owner of the token")
    parser.add_argument(
        "--see", action="append", metavar="PREFIX", help="a path that the owner may see (default: everything)"
    )


def run(arguments: Arguments, printer: Printer) -> int:
    """Make a token."""
    from skillwire.catalog.visibility import EVERYTHING
    from skillwire.server.access import new_token  # late: it imports the SDK

    token, digest = new_token()
    subject = json.dumps(arguments.subject, ensure_ascii=False)
    see = json.dumps(arguments.see or [EVERYTHING], ensure_ascii=False)
    printer.data(f'[[token]]\nsubject = {subject}\nsha256 = "{digest}"\nsee = {see}\n')
    printer.talk(f"the token, which is not shown again: {token}")
    return Exit.OK
