"""``skillwire approvals``: all decisions except approving: list, show, decline, enable, revoke, import.

``approvals questions`` is in ``questions.py``.
"""

from __future__ import annotations

import json
import shlex
import sys
import time
from typing import TYPE_CHECKING, Any

from skillwire.cli.approve import (
    FINGERPRINT,
    NOTE,
    file_hint,
    print_answered,
    require_review,
    require_terminal,
    review_request,
    waiting_for,
)
from skillwire.cli.command import FILE, Arguments, Exit, Noun, argument, flag, option, verb
from skillwire.cli.host_session import (
    BY,
    HOST_OPTIONS,
    NAME,
    STORE_OPTIONS,
    find_skill,
    host_command,
    run_with_host,
    run_with_store,
    system_user,
)
from skillwire.cli.printer import Printer, counted, line, listed, moment, utc_text
from skillwire.cli.prompts import can_ask, confirm, no_terminal, page, source_rows
from skillwire.cli.questions import questions
from skillwire.errors import ApprovalError, FormatError, NotFoundError, OriginError
from skillwire.skill.uri import SKILL_MD

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from skillwire.host.approvals import ApprovalRequest
    from skillwire.host.host import SkillHost
    from skillwire.host.origins import NamedEntry
    from skillwire.skill.approval import Approval
    from skillwire.store.records import LogLine
    from skillwire.store.store import Store


@verb(
    "List the approvals with user, time and grants. With --json, print an export.",
    *STORE_OPTIONS,
    within=run_with_store,
    examples="""\
  skillwire approvals
  skillwire approvals list --json > approvals.json
""",
)
async def _list(store: Store, arguments: Arguments, printer: Printer) -> None:
    from skillwire.host.approval_export import approvals_as_document

    found = await store.approvals()
    if arguments.json:
        export = approvals_as_document(found)
        sys.stdout.write(json.dumps(export, indent=2) + "\n")  # ASCII survives any file encoding
        return
    rows = [
        (
            line(approval.origin),
            line(approval.uri.removesuffix("/SKILL.md")),
            moment(approval.at),
            line(approval.by),
            printer.digest(approval.fingerprint),
            listed(sorted(approval.grants)) or "nothing",
        )
        for approval in found
    ]
    printer.table(("origin", "skill", "when", "by", "fingerprint", "granted"), rows)
    waiting = await store.questions(time.time())
    more = f"; {counted(len(waiting), 'question')} waiting: skillwire approvals questions" if waiting else ""
    printer.talk(counted(len(found), "approval") + more)


@verb(
    "Read and verify every file of a skill, and show what to know before you approve it: the source of its"
    " SKILL.md, files, scripts, requested tools, external links, hidden text, and changes since an approval.",
    NAME,
    option("--file", metavar="PATH", help="show the source of this file of the skill instead"),
    *HOST_OPTIONS,
    within=run_with_host,
    examples="""\
  skillwire approvals show refunds
  skillwire approvals show refunds --file scripts/pay.py
  skillwire approvals show acme:billing/refunds --json

exit codes: 0 shown, 1 the files do not match the entry, 2 usage, or unknown skill
""",
)
async def _show(host: SkillHost, arguments: Arguments, printer: Printer) -> None:
    from skillwire.host.approvals import declines
    from skillwire.skill.approval import claimed_contents, fingerprint, fingerprint_of

    found = await find_skill(host, arguments, printer)
    if arguments.file is not None:
        await _show_file(host, found, arguments, printer)
        return
    approval = await host.store.approval(found.origin.label, found.entry.uri)
    decision = await host.approvals.decided(found.origin.label, found.entry.uri)
    request = await review_request(host, found, approval, printer)
    printer.json(_document(found, request, approval, decision))
    address, is_local = found.origin.address, found.origin.is_own
    for row in page(request, approval, decision, is_local=is_local, address=address):
        printer.data(row)
    for row in file_hint(found, arguments):
        printer.talk(row)
    content = fingerprint_of(request.entry)
    if content and not found.origin.is_own:
        words = host_command(arguments, "approve", line(found.name), "--fingerprint", content)
        printer.talk(f"to approve exactly this: {shlex.join(words)}")
    if decision is not None and declines(decision, request.entry):
        content = fingerprint(claimed_contents(request.entry))
        words = host_command(arguments, "approvals", "enable", line(found.name), "--fingerprint", content)
        printer.talk(f"to enable exactly this: {shlex.join(words)}")


async def _show_file(host: SkillHost, found: NamedEntry, arguments: Arguments, printer: Printer) -> None:
    uris = {SKILL_MD: found.entry.uri, **{file.path or file.uri: file.uri for file in found.entry.files}}
    if arguments.file not in uris:
        known = ", ".join(map(line, uris))
        raise FormatError(
            "argument-invalid", f"the skill has no file {arguments.file!r:.200}", f"its files: {known:.300}"
        )
    data = (await host.read_for_review(found, uris[arguments.file])).data
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        hint = "copy the skill with 'skillwire add TARGET SKILL --to DIR', and open the file there"
        raise FormatError("not-text", f"{arguments.file!r:.200} is not text ({len(data)} bytes)", hint) from error
    printer.result({"uri": uris[arguments.file], "text": text}, *source_rows(text))


def _document(
    found: NamedEntry, request: ApprovalRequest, approval: Approval | None, decision: LogLine | None
) -> dict[str, Any]:
    from dataclasses import asdict

    from skillwire.host.results import status_of
    from skillwire.skill.approval import fingerprint_of

    entry, facts = request.entry, asdict(request.summary)
    given = approval and {
        "by": approval.by,
        "at": utc_text(approval.at),
        "fingerprint": approval.fingerprint,
        "grants": sorted(approval.grants),
    }
    return {
        **facts,
        "hidden": [find._asdict() for find in request.summary.hidden],
        "name": found.name,
        "origin": request.origin,
        "uri": entry.uri,
        "status": status_of(found, approval, decision).status,
        "fingerprint": fingerprint_of(request.entry) or None,
        "approval": given,
        "risk": request.summary.risk.to_json(),
        "files": [{**file._asdict(), "path": file.path or file.uri} for file in entry.files],
        "change": None if request.change is None else asdict(request.change),
        "diff": list(request.diff),
    }


@verb(
    "Disable a skill, including one of your own folders, with exactly its current content. Models do not see it,"
    " and you are not asked about it, until it changes.",
    NAME,
    BY,
    NOTE,
    FINGERPRINT,
    *HOST_OPTIONS,
    within=run_with_host,
    examples="""\
  skillwire approvals decline refunds --note 'sends mail to all customers'
  skillwire approvals decline acme:refunds --fingerprint sha256:…   only the content that you reviewed

Models cannot load a declined skill. An approval of this content ends. The skill stays declined until it changes,
or until 'skillwire approvals enable' or 'skillwire approve'.

exit codes: 0 declined, 1 refused: another fingerprint, 2 usage, or unknown skill
""",
)
async def _decline(host: SkillHost, arguments: Arguments, printer: Printer) -> None:
    from skillwire.skill.approval import fingerprint_of

    found = await find_skill(host, arguments, printer, whole=False)  # V5: declining fetches nothing
    label, uri = found.origin.label, found.entry.uri
    waiting = await waiting_for(host.store, label, uri, fingerprint_of(found.entry))
    fingerprint = await host.decline(
        f"{label}:{uri}",
        by=arguments.by,
        note=arguments.note,
        fingerprint=arguments.fingerprint,
        user=system_user(),
    )
    printer.result(
        {"origin": label, "uri": uri, "fingerprint": fingerprint},
        f"declined {line(uri)} from {line(label)}",
        f"fingerprint: {printer.digest(fingerprint)}",
    )
    print_answered(waiting, printer)


@verb(
    "Undo 'decline': show the review of a declined skill, ask, and enable it. Models see it again, and it can be"
    " approved and loaded. Without a terminal, --fingerprint is required.",
    NAME,
    BY,
    NOTE,
    FINGERPRINT,
    *HOST_OPTIONS,
    within=run_with_host,
    examples="""\
  skillwire approvals enable refunds                         show the review, then ask
  skillwire approvals enable acme:refunds --note 'read again'
  skillwire approvals enable refunds --fingerprint sha256:…  without a terminal: from 'approvals show'

This approves nothing: a skill of a server still needs an approval.

exit codes: 0 enabled, or not declined, 1 refused: not confirmed, or another fingerprint, 2 usage
""",
)
async def _enable(host: SkillHost, arguments: Arguments, printer: Printer) -> None:
    from skillwire.host.approvals import declines
    from skillwire.skill.approval import claimed_contents, fingerprint

    found, enabled = await find_skill(host, arguments, printer, whole=False), False
    label, uri = found.origin.label, found.entry.uri
    is_declined = any(declines(decision, found.entry) for decision in await host.store.decisions(label, uri))
    if is_declined and require_terminal(found, arguments):
        found = await host.complete(found)  # for the review
    shown = fingerprint(claimed_contents(found.entry))
    if is_declined:
        await require_review(host, found, shown, "Enable exactly this?", arguments, printer)
        enabled = await host.enable(
            f"{label}:{uri}", by=arguments.by, note=arguments.note, fingerprint=shown, user=system_user()
        )
    text = f"enabled {line(uri)} from {line(label)}" if enabled else f"{line(found.name)} was not declined"
    printer.result({"origin": label, "uri": uri, "enabled": enabled}, text)


@verb(
    "Withdraw an approval and its grants. This works without a connection to the server.",
    argument("name", "NAME", "a name, origin:name, origin:path, a URI or origin:URI"),
    BY,
    NOTE,
    *STORE_OPTIONS,
    within=run_with_store,
    examples="""\
  skillwire approvals revoke refunds
  skillwire approvals revoke acme:billing/refunds --by anna --note 'asks for too much'
""",
)
async def _revoke(store: Store, arguments: Arguments, printer: Printer) -> None:
    from skillwire.host.approvals import ASKED_TO, Approvals, Policy, cannot_ask

    found = _find_approval(await store.approvals(), arguments)
    approvals = Approvals(store, Policy(), cannot_ask)
    await approvals.revoke(
        found.origin, found.uri, by=arguments.by, why=ASKED_TO, note=arguments.note, user=system_user()
    )
    printer.result(
        {"origin": found.origin, "uri": found.uri, "fingerprint": found.fingerprint},
        f"revoked {line(found.uri)} from {line(found.origin)}",
        *([f"also revoked: {listed(sorted(found.grants))}"] if found.grants else []),
    )


def _find_approval(approvals: Sequence[Approval], arguments: Arguments) -> Approval:
    name = arguments.name
    found = [approval for approval in approvals if name in _names_of(approval)]
    if len(found) == 1:
        return found[0]
    if found:
        candidates = ", ".join(f"{approval.origin}:{approval.uri}" for approval in found)
        raise OriginError(
            "name-ambiguous", f"{name!r:.100} could be {candidates:.500}", "use one of these", rule="N1"
        )
    command = shlex.join(host_command(arguments, "approvals", "list"))
    raise NotFoundError(
        "approval-unknown", f"no approved skill has the name {name!r:.100}", f"list them: {command}"
    )


def _names_of(approval: Approval) -> set[str]:
    """Return every name of the approved skill; the short one is the last part of its path (U3)."""
    from skillwire.skill.uri import root_of

    path, label = root_of(approval.uri).path, approval.origin
    name = path.rpartition("/")[2]
    return {name, f"{label}:{name}", f"{label}:{path}", approval.uri, f"{label}:{approval.uri}"}


@verb(
    "Import the approvals of an export, each for the same origin, skill and content.",
    argument("file", "FILE", "an export: skillwire approvals list --json", type=FILE),
    flag("--yes", help="do not ask; the approvals are still shown"),
    BY,
    NOTE,
    *STORE_OPTIONS,
    within=run_with_store,
    examples="""\
  skillwire approvals import approvals.json       on another machine with the same origins: show, then ask
  skillwire approvals import approvals.json --yes in a script

An import does not override local decisions: content that was declined or revoked here is skipped.

exit codes: 0 done, 1 some approvals were skipped, 2 usage, or an invalid file
""",
)
async def _import(store: Store, arguments: Arguments, printer: Printer) -> int:
    from skillwire.host.approval_export import LARGEST_EXPORT, import_approvals, parse_approvals

    path: Path = arguments.file
    try:
        with path.open("rb") as file:
            wanted = parse_approvals(file.read(LARGEST_EXPORT + 1))
    except OSError as error:
        message = f"{path.name!r:.200} cannot be read: {error.strerror}"
        raise FormatError("export-unreadable", message, "check the path") from error
    await _require_consent(wanted, arguments, printer)
    skipped = await import_approvals(store, wanted, by=arguments.by, note=arguments.note, user=system_user())
    stored = len(wanted) - len(skipped)
    printer.result(
        {
            "imported": stored,
            "skipped": [{"origin": each.origin, "uri": each.uri, "reason": reason} for each, reason in skipped],
        },
        *(f"skipped {line(each.uri)} from {line(each.origin)}: {reason}" for each, reason in skipped),
    )
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
        raise no_terminal("run the command on a terminal, or add --yes", "Z4")
    granting = sum(1 for approval in wanted if approval.grants)
    question = f"Import {counted(len(wanted), 'approval')}, {granting} of them with grants?"
    if not await confirm(question, printer):
        raise ApprovalError("not-approved", "not confirmed", "nothing was imported", rule="A4")


command = Noun(
    "Decisions about skills: list, show, decline, enable, revoke, answer. To approve: skillwire approve NAME",
    {
        "list": _list,
        "show": _show,
        "decline": _decline,
        "enable": _enable,
        "revoke": _revoke,
        "questions": questions,
        "import": _import,
    },
    default="list",
)
