"""``skillwire token``: makes a bearer token, and the lines for the access file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from skillwire.cli.command import JSON, Arguments, argument, repeated, verb

if TYPE_CHECKING:
    from skillwire.cli.printer import Printer


@verb(
    "Make a bearer token. The token is printed once, to stderr; the lines for the access file go to stdout.",
    argument("subject", "SUBJECT", "the owner of the token"),
    repeated("--see", metavar="PREFIX", help="a path that the owner may see (repeatable; default: everything)"),
    JSON,
    examples="""\
  skillwire token billing-agents --see acme/billing >> access.toml
""",
)
def command(arguments: Arguments, printer: Printer) -> None:
    """Make a token."""
    from skillwire.catalog.visibility import EVERYTHING
    from skillwire.server.access import new_token  # late: it imports the SDK

    token, digest = new_token()
    see = arguments.see or [EVERYTHING]
    subject, prefixes = (json.dumps(each, ensure_ascii=False) for each in (arguments.subject, see))
    printer.result(
        {"token": token, "subject": arguments.subject, "sha256": digest, "see": see},
        f'[[token]]\nsubject = {subject}\nsha256 = "{digest}"\nsee = {prefixes}\n',
    )
    if not arguments.json:
        printer.talk(f"token (shown only once): {token}")
