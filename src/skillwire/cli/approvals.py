"""``skillwire approvals``: what was approved, as a table, as an export, and from one (A1)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from skillwire.cli.deciding import add_decision_options, check_decision
from skillwire.cli.exits import Exit
from skillwire.cli.hosting import add_state_options, line, listed, moment, run_with_store, system_user
from skillwire.cli.parsing import add_verb
from skillwire.cli.prompts import can_ask, confirm
from skillwire.errors import ApprovalError, FormatError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer
    from skillwire.skill.approval import Approval
    from skillwire.store.contract import Store

_EXAMPLES = """\
examples:
  skillwire approvals
  skillwire approvals --json > approvals.json
  skillwire approvals --import approvals.json       on another machine that knows these origins: shown, then asked
  skillwire approvals --import approvals.json --yes in a script

What was decided here is not overruled: a content that was declined or revoked here is left out.

exit codes: 0 done, 1 some of the import was left out, 2 usage, or a file that is no export
"""


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "approvals",
        "list, export or import what was approved",
        "List what was approved, by whom and when, and what was granted with it. With --json, an export.",
        _EXAMPLES,
    )
    parser.add_argument(
        "--import",
        dest="file",
        type=Path,
        metavar="FILE",
        help="store the approvals of an export, each for the same origin, skill and content",
    )
    parser.add_argument("--yes", action="store_true", help="import without asking; the approvals are still shown")
    add_decision_options(parser, "imports them")
    add_state_options(parser)


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """List, export or import."""
    check_decision(arguments)
    return run_with_store(arguments, printer, _list if arguments.file is None else _import)


async def _list(store: Store, arguments: argparse.Namespace, printer: Printer) -> int:
    from skillwire.cli.printer import counted
    from skillwire.host.approval_export import approvals_as_document

    found = await store.approvals()
    if arguments.json:
        export = approvals_as_document(found)
        sys.stdout.write(json.dumps(export, indent=2) + "\n")  # ASCII, whatever files it goes through
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


async def _import(store: Store, arguments: argparse.Namespace, printer: Printer) -> int:
    from skillwire.cli.printer import counted
    from skillwire.host.approval_export import import_approvals, parse_approvals

    wanted = parse_approvals(_read(arguments.file))
    await _demand_consent(wanted, arguments, printer)
    left_out = await import_approvals(store, wanted, by=arguments.by, note=arguments.note, user=system_user())
    stored = len(wanted) - len(left_out)
    if arguments.json:
        reasons = [{"origin": each.origin, "uri": each.uri, "reason": reason} for each, reason in left_out]
        printer.json({"imported": stored, "leftOut": reasons})
    else:
        for approval, reason in left_out:
            printer.data(f"left out {line(approval.uri)} from {line(approval.origin)}: {reason}")
        printer.talk(f"{counted(stored, 'approval')} imported, {len(left_out)} left out")
    return Exit.PROBLEMS if left_out else Exit.OK


async def _demand_consent(wanted: Sequence[Approval], arguments: argparse.Namespace, printer: Printer) -> None:
    """A4, A5: show what would be approved and granted, and ask; ``ApprovalError`` without a yes."""
    from skillwire.cli.printer import counted

    for approval in wanted:
        grants = listed(sorted(approval.grants)) or "nothing"
        printer.talk(f"{line(approval.uri)} from {line(approval.origin)}, approved by {line(approval.by)}")
        printer.talk(f"  grants {grants}, {approval.fingerprint}")
    if arguments.yes:
        return
    if not can_ask():
        raise FormatError(
            "no-terminal", "there is no terminal to ask on", "run the same command on a terminal", rule="Z4"
        )
    granting = sum(1 for approval in wanted if approval.grants)
    question = f"Import {counted(len(wanted), 'approval')}, {granting} of them with grants?"
    if not await confirm(question, printer):
        raise ApprovalError("not-approved", "you did not approve the import", "nothing was imported", rule="A4")


def _read(path: Path) -> bytes:
    """As much of a file as an export may have, and one byte more."""
    from skillwire.host.approval_export import LARGEST_EXPORT

    try:
        with path.open("rb") as file:
            return file.read(LARGEST_EXPORT + 1)
    except OSError as error:
        raise FormatError(
            "export-unreadable", f"{path.name!r:.200} cannot be read: {error.strerror}", "check --import"
        ) from error
