"""``skillwire decline``: disable a skill exactly as it is now (A1, A2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.cli.deciding import add_decision_options, check_decision, say_answered, waiting_for
from skillwire.cli.exits import Exit
from skillwire.cli.hosting import NAME_HELP, add_host_options, find_skill, line, run_with_host, system_user
from skillwire.cli.parsing import add_verb

if TYPE_CHECKING:
    import argparse

    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer
    from skillwire.host.host import Host

_EXAMPLES = """\
examples:
  skillwire decline refunds --note 'sends mail to everybody'
  skillwire decline acme:refunds --fingerprint sha256:…   only what was looked at

A model is not told of the skill, cannot load it, and nobody is asked about it. An approval of this content ends.
This lasts until the skill changes, or until you run 'skillwire enable' or 'skillwire approve'.

exit codes: 0 declined, 1 refused: it has another fingerprint, 2 usage, or unknown
"""


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "decline",
        "disable a skill until it changes",
        "Disable a skill with exactly the content it has now, one of your own folders too. Models are not told of"
        " it, and nobody is asked about it, until it changes.",
        _EXAMPLES,
    )
    parser.add_argument("name", metavar="NAME", help=NAME_HELP)
    add_decision_options(parser, "says no", "the content that was reviewed; any other is refused")
    add_host_options(parser)


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """Decline."""
    check_decision(arguments)
    return run_with_host(arguments, printer, _decline)


async def _decline(host: Host, arguments: argparse.Namespace, printer: Printer) -> int:
    from skillwire.skill.approval import fingerprint_of

    found = await find_skill(host, arguments.name, printer, whole=False)  # V5: nothing is fetched for a no
    label, uri = found.origin.label, found.entry.uri
    askers = await waiting_for(host.store, label, uri, fingerprint_of(found.entry))
    fingerprint = await host.decline(
        f"{label}:{uri}",
        by=arguments.by,
        note=arguments.note,
        fingerprint=arguments.fingerprint,
        user=system_user(),
    )
    if arguments.json:
        printer.json({"origin": label, "uri": uri, "fingerprint": fingerprint})
    else:
        printer.data(f"declined {line(uri)} from {line(label)}")
        printer.data(f"fingerprint: {fingerprint}")
    say_answered(askers, printer)
    return Exit.OK
