"""``skillwire approve``: a person's yes to a skill exactly as it is now (A1, A4, A5, Z4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.cli.deciding import (
    add_decision_options,
    check_decision,
    demand_person,
    demand_review,
    say_answered,
    waiting_for,
)
from skillwire.cli.exits import Exit
from skillwire.cli.hosting import (
    NAME_HELP,
    add_host_options,
    find_skill,
    line,
    listed,
    run_with_host,
    system_user,
)
from skillwire.cli.parsing import add_verb

if TYPE_CHECKING:
    import argparse

    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer
    from skillwire.host.host import Host
    from skillwire.host.names import NamedEntry

_EXAMPLES = """\
examples:
  skillwire approve refunds                         shows the review, then asks
  skillwire approve refunds --grant execute --grant 'Bash(git:*)'
  skillwire approve refunds --by anna --note 'read it whole'
  skillwire approve refunds --fingerprint sha256:…  without a terminal: the one that 'review' showed

An approval is for exactly the content that was shown. Any change needs a new approval. Programs that wait for an
answer about it (skillwire questions) get one.

exit codes: 0 approved, 1 refused: by you, or it promises no content (V7), or has another fingerprint, 2 usage
"""


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "approve",
        "review a skill and say yes to it as it is now",
        "Show the review of a skill, ask, and approve it with exactly the files it has now. That grants nothing:"
        " not the tools it asks for, and not running code. Without a terminal, --fingerprint is required.",
        _EXAMPLES,
    )
    parser.add_argument("name", metavar="NAME", help=NAME_HELP)
    parser.add_argument(
        "--grant",
        action="append",
        default=[],
        metavar="TOOL",
        help="also grant this tool, or 'execute' to let code run when the model acts on this content (repeatable)",
    )
    add_decision_options(parser, "says yes", "the content that was reviewed; any other is refused")
    add_host_options(parser)


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """Approve."""
    check_decision(arguments, arguments.grant)
    return run_with_host(arguments, printer, _approve)


async def _approve(host: Host, arguments: argparse.Namespace, printer: Printer) -> int:
    from skillwire.skill.approval import contents_of, fingerprint

    found = await find_skill(host, arguments.name, printer, whole=False)
    if found.origin.is_local:
        printer.talk(f"{line(found.name)} is in a folder of yours and needs no approval")
        return Exit.OK
    label, uri, grants = found.origin.label, found.entry.uri, frozenset(arguments.grant)
    if not found.entry.is_short:
        contents_of(found.entry)  # refused at once if nothing can be approved
    demand_person(found, arguments)  # before anything is fetched (V5)
    found = await host.complete(found)
    shown = fingerprint(contents_of(found.entry))
    granting = f", and grant {listed(sorted(grants))}" if grants else ""
    await demand_review(host, found, shown, f"Approve exactly this{granting}?", arguments, printer)
    askers = await waiting_for(host.store, label, uri, shown)
    await host.approve(
        f"{label}:{uri}",
        by=arguments.by,
        grants=grants,
        note=arguments.note,
        fingerprint=shown,
        user=system_user(),
    )
    if arguments.json:
        printer.json({"origin": label, "uri": uri, "fingerprint": shown, "grants": sorted(grants)})
    else:
        printer.data(f"approved {line(uri)} from {line(label)}")
        printer.data(f"fingerprint: {shown}")
        printer.data(f"granted: {listed(sorted(grants)) or 'nothing'}")
    _say_more(found, grants, printer)
    say_answered(askers, printer)
    return Exit.OK


def _say_more(found: NamedEntry, grants: frozenset[str], printer: Printer) -> None:
    """What the entry alone tells about what was said yes to."""
    from skillwire.skill.approval import EXECUTE
    from skillwire.skill.review import review_entry

    review = review_entry(found.entry)
    refused = [tool for tool in review.tools if tool not in grants]
    if refused:
        printer.talk(f"not granted, although it asks for it: {listed(refused)}")
    unasked = sorted(grants - {EXECUTE, *review.tools})
    if unasked:
        printer.talk(f"granted, although it does not ask for it: {listed(unasked)}")
    if review.scripts and EXECUTE not in grants:
        printer.talk(f"may not run: {listed(review.scripts)}")
    if review.nested:
        printer.talk(f"need approvals of their own: {listed(review.nested)}")
    for find in review.hidden:
        printer.talk(f"hidden text: {line(str(find))}")
