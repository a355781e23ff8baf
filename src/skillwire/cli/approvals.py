"""``skillwire approvals``: lists, exports and imports approvals (A1)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from skillwire.cli.command import Arguments, Exit, Verbs, add_verb
from skillwire.cli.decisions import add_decision_options, check_decision
from skillwire.cli.host_session import add_state_options, run_with_store, system_user
from skillwire.cli.printer import Printer, counted, line, listed, moment
from skillwire.cli.prompts import can_ask, confirm
from skillwire.errors import ApprovalError, FormatError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire.skill.approval import Approval
    from skillwire.store.contract import Store

_EXAMPLES = """\
examples:
  skillwire approvals
  skillwire approvals --json > approvals.json
  skillwire approvals --import approvals.json       on another machine with the same origins: show, then ask
  skillwire approvals --import approvals.json --yes in a script

An import does not override local decisions: content that was declined or revoked here is skipped.

exit codes: 0 done, 1 some approvals were skipped, 2 usage, or an invalid file
"""


def add_arguments(verbs: Verbs) -> None:
    """Add the parser of the verb."""
    parser = add_verb(
        verbs,
        "approvals",
        run,
        "list, export or import approvals",
        "List the approvals with user, time and grants. With --json, print an export.",
        _EXAMPLES,
    )
    parser.add_argument(
        "--import",
        dest="file",
        type=Path,
        metavar="FILE",
        help="import the approvals of an export, each for the same origin, skill and content",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask; the approvals are still shown")
    add_decision_options(parser, "imports them")
    add_state_options(parser)


def run(arguments: Arguments, printer: Printer) -> int:
    """List, export or import approvals."""
    check_decision(arguments)
    return run_with_store(arguments, printer, _list if arguments.file is None else _import)


async def _list(store: Store, arguments: Arguments, printer: Printer) -> int:
    from skillwire.host.approval_export import approvals_as_document

    found = await store.approvals()
    if arguments.json:
        export = approvals_as_document(found)
        sys.stdout.write(json.dumps(export, indent=2) + "\n")  # ASCII survives any file encoding
        return Exit.OK
    rows = [
        (
            line(approval.origin),
            line(approval.uri.removesuffix("/SKILL.md")),
            moment(approval.at),
            line(approval.by),
            approval.fingerprint,
            listed(sorted(approval.grants)) or "nothing",
        )
        for approval in found
    ]
    printer.table(("origin", "skill", "when", "by", "fingerprint", "granted"), rows)
    printer.talk(counted(len(found), "approval"))
    return Exit.OK


async def _import(store: Store, arguments: Arguments, printer: Printer) -> int:
    from skillwire.host.approval_export import import_approvals, parse_approvals

    wanted = parse_approvals(_read(arguments.file))
    await _require_consent(wanted, arguments, printer)
    skipped = await import_approvals(store, wanted, by=arguments.by, note=arguments.note, user=system_user())
    stored = len(wanted) - len(skipped)
    if arguments.json:
        reasons = [{"origin": each.origin, "uri": each.uri, "reason": reason} for each, reason in skipped]
        printer.json({"imported": stored, "leftOut": reasons})
    else:
        for approval, reason in skipped:
            printer.data(f"skipped {line(approval.uri)} from {line(approval.origin)}: {reason}")
        printer.talk(f"{counted(stored, 'approval')} imported, {len(skipped)} skipped")
    return Exit.PROBLEMS if skipped else Exit.OK


async def _require_consent(wanted: Sequence[Approval], arguments: Arguments, printer: Printer) -> None:
    """A4, A5: show the approvals and their grants, and ask for confirmation."""
    for approval in wanted:
        grants = listed(sorted(approval.grants)) or "nothing"
        printer.talk(f"{line(approval.uri)} from {line(approval.origin)}, approved by {line(approval.by)}")
        printer.talk(f"  grants {grants}, {approval.fingerprint}")
    if arguments.yes:
        return
    if not can_ask():
        raise FormatError(
            "no-terminal",
            "no terminal is available to ask",
            "run the command on a terminal, or add --yes",
            rule="Z4",
        )
    granting = sum(1 for approval in wanted if approval.grants)
    question = f"Import {counted(len(wanted), 'approval')}, {granting} of them with grants?"
    if not await confirm(question, printer):
        raise ApprovalError("not-approved", "not confirmed", "nothing was imported", rule="A4")


def _read(path: Path) -> bytes:
    """Read at most one byte more than an export may have."""
    from skillwire.host.approval_export import LARGEST_EXPORT

    try:
        with path.open("rb") as file:
            return file.read(LARGEST_EXPORT + 1)
    except OSError as error:
        raise FormatError(
            "export-unreadable",
            f"{path.name!r:.200} cannot be read: {error.strerror}",
            "check the path after --import",
        ) from error
