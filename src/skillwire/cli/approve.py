"""``skillwire approve``: shows the review of a skill, asks, and approves it (A1, A2, A4, A5, Z4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.cli.command import Arguments, Exit, repeated, verb
from skillwire.cli.decisions import (
    BY,
    FINGERPRINT,
    NOTE,
    check_decision,
    print_answered,
    require_review,
    require_terminal,
    waiting_for,
)
from skillwire.cli.host_session import HOST_OPTIONS, NAME, find_skill, run_with_host, system_user
from skillwire.cli.printer import Printer, line, listed

if TYPE_CHECKING:
    from skillwire.host.host import SkillHost
    from skillwire.host.names import NamedEntry


@verb(
    "Show the review of a skill, ask, and approve it with exactly its current files. An approval alone grants"
    " nothing: no tools, and no running of code. Without a terminal, --fingerprint is required.",
    NAME,
    repeated(
        "--grant",
        metavar="TOOL",
        help="also grant this tool, or 'execute' to let code run when the model acts on this content (repeatable)",
    ),
    BY,
    NOTE,
    FINGERPRINT,
    *HOST_OPTIONS,
    examples="""\
  skillwire approve refunds                         show the review, then ask
  skillwire approve refunds --grant execute --grant 'Bash(git:*)'
  skillwire approve refunds --by anna --note 'read completely'
  skillwire approve refunds --fingerprint sha256:…  without a terminal: from 'skillwire approvals show'

An approval covers exactly the content that was shown. Any change needs a new approval. Programs that wait for this
decision (see 'skillwire approvals questions') get their answer. To look only, or to decide otherwise: skillwire
approvals --help

exit codes: 0 approved, 1 refused: not confirmed, nothing to verify, or another fingerprint, 2 usage
""",
)
def command(arguments: Arguments, printer: Printer) -> int:
    """Approve a skill."""
    check_decision(arguments, arguments.grant)
    return run_with_host(arguments, printer, _approve)


async def _approve(host: SkillHost, arguments: Arguments, printer: Printer) -> int:
    from skillwire.skill.approval import contents_of, fingerprint

    found = await find_skill(host, arguments, printer, whole=False)
    if found.origin.is_own:
        printer.talk(f"{line(found.name)} is in a folder of yours and needs no approval")
        return Exit.OK
    label, uri, grants = found.origin.label, found.entry.uri, frozenset[str](arguments.grant)
    if not found.entry.is_short:
        contents_of(found.entry)  # refuse at once if nothing can be approved
    require_terminal(found, arguments)  # before anything is fetched (V5)
    found = await host.complete(found)
    shown = fingerprint(contents_of(found.entry))
    granting = f", and grant {listed(sorted(grants))}" if grants else ""
    await require_review(host, found, shown, f"Approve exactly this{granting}?", arguments, printer)
    waiting = await waiting_for(host.store, label, uri, shown)
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
    _print_consequences(found, grants, printer)
    print_answered(waiting, printer)
    return Exit.OK


def _print_consequences(found: NamedEntry, grants: frozenset[str], printer: Printer) -> None:
    """Print what the approval allows and what it does not, according to the entry."""
    from skillwire.skill.approval import EXECUTE
    from skillwire.skill.review import review_entry

    review = review_entry(found.entry)
    if refused := [tool for tool in review.tools if tool not in grants]:
        printer.talk(f"requested, but not granted: {listed(refused)}")
    if unasked := sorted(grants - {EXECUTE, *review.tools}):
        printer.talk(f"granted, but not requested: {listed(unasked)}")
    if review.scripts and EXECUTE not in grants:
        printer.talk(f"may not run: {listed(review.scripts)}")
    if review.nested:
        printer.talk(f"need their own approval: {listed(review.nested)}")
    for find in review.hidden:
        printer.talk(f"hidden text: {line(str(find))}")
