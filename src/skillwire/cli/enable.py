"""``skillwire enable``: undo ``skillwire decline``, after a review (Z4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.cli.deciding import add_decision_options, check_decision, demand_person, demand_review
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
  skillwire enable refunds                         shows the review, then asks
  skillwire enable acme:refunds --note 'read it again'
  skillwire enable refunds --fingerprint sha256:…  without a terminal: the one that 'review' showed

This approves nothing: a skill of a server is asked about again.

exit codes: 0 enabled, or it was not declined, 1 refused: by you, or it has another fingerprint, 2 usage
"""


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "enable",
        "undo 'decline'",
        "Show the review of a declined skill, ask, and enable it: models are told of it again, and it can be"
        " approved and loaded. Without a terminal, --fingerprint is required.",
        _EXAMPLES,
    )
    parser.add_argument("name", metavar="NAME", help=NAME_HELP)
    add_decision_options(parser, "enables it", "the content that was reviewed; any other is refused")
    add_host_options(parser)


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """Enable."""
    check_decision(arguments)
    return run_with_host(arguments, printer, _enable)


async def _enable(host: Host, arguments: argparse.Namespace, printer: Printer) -> int:
    from skillwire.host.approvals import declines
    from skillwire.skill.approval import claimed_contents, fingerprint

    found, enabled = await find_skill(host, arguments.name, printer, whole=False), False
    label, uri = found.origin.label, found.entry.uri
    is_declined = any(declines(decision, found.entry) for decision in await host.store.decisions(label, uri))
    if is_declined and demand_person(found, arguments):
        found = await host.complete(found)  # to be shown
    shown = fingerprint(claimed_contents(found.entry))
    if is_declined:
        await demand_review(host, found, shown, "Enable exactly this?", arguments, printer)
        enabled = await host.enable(
            f"{label}:{uri}", by=arguments.by, note=arguments.note, fingerprint=shown, user=system_user()
        )
    if arguments.json:
        printer.json({"origin": label, "uri": uri, "enabled": enabled})
    elif enabled:
        printer.data(f"enabled {line(uri)} from {line(label)}")
        printer.data(f"fingerprint: {shown}")
    else:
        printer.talk(f"{line(found.name)} was not declined")
    return Exit.OK
