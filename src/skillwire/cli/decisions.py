"""``skillwire approve``, ``decline``, ``enable`` and ``revoke``: decisions about a skill (A1, A2, A4, A5, Z4).

Every decision is about the content that the skill has now. Before an approval the user sees the review on a
terminal and confirms it; without a terminal, ``--fingerprint`` has to name the reviewed content.
"""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING

from skillwire.cli.command import Arguments, Exit, Parser, Run, Verbs, add_verb, check_name
from skillwire.cli.host_session import (
    NAME_HELP,
    add_host_options,
    add_state_options,
    find_skill,
    host_words,
    run_with_host,
    run_with_store,
    system_user,
)
from skillwire.cli.printer import Printer, line, listed
from skillwire.cli.prompts import can_ask, confirm, page
from skillwire.errors import ApprovalError, FormatError, NotFoundError, OriginError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from skillwire.host.host import SkillHost
    from skillwire.host.names import NamedEntry
    from skillwire.skill.approval import Approval
    from skillwire.store.contract import Store

_FINGERPRINT_HELP = "the content that you reviewed; any other is refused"
_APPROVE = """\
examples:
  skillwire approve refunds                         show the review, then ask
  skillwire approve refunds --grant execute --grant 'Bash(git:*)'
  skillwire approve refunds --by anna --note 'read completely'
  skillwire approve refunds --fingerprint sha256:…  without a terminal: the fingerprint from 'skillwire review'

An approval covers exactly the content that was shown. Any change needs a new approval. Programs that wait for this
decision (see 'skillwire questions') get their answer.

exit codes: 0 approved, 1 refused: not confirmed, nothing to verify (V7), or another fingerprint, 2 usage
"""
_DECLINE = """\
examples:
  skillwire decline refunds --note 'sends mail to all customers'
  skillwire decline acme:refunds --fingerprint sha256:…   only the content that you reviewed

Models do not see a declined skill and cannot load it, and no question about it is asked. An approval of this
content ends. This lasts until the skill changes, or until 'skillwire enable' or 'skillwire approve'.

exit codes: 0 declined, 1 refused: another fingerprint, 2 usage, or unknown skill
"""
_ENABLE = """\
examples:
  skillwire enable refunds                         show the review, then ask
  skillwire enable acme:refunds --note 'read again'
  skillwire enable refunds --fingerprint sha256:…  without a terminal: the fingerprint from 'skillwire review'

This approves nothing: a skill of a server still needs an approval.

exit codes: 0 enabled, or not declined, 1 refused: not confirmed, or another fingerprint, 2 usage
"""
_REVOKE = """\
examples:
  skillwire revoke refunds
  skillwire revoke acme:billing/refunds --by anna --note 'asks for too much'
"""


def add_arguments(verbs: Verbs) -> None:
    """Add the parsers of the four verbs."""
    approve = add_verb(
        verbs,
        "approve",
        _on_host(_approve),
        "review a skill and approve its current content",
        "Show the review of a skill, ask, and approve it with exactly its current files. An approval alone grants"
        " nothing: no tools, and no running of code. Without a terminal, --fingerprint is required.",
        _APPROVE,
    )
    approve.add_argument("name", metavar="NAME", help=NAME_HELP)
    approve.add_argument(
        "--grant",
        action="append",
        default=[],
        metavar="TOOL",
        help="also grant this tool, or 'execute' to let code run when the model acts on this content (repeatable)",
    )
    add_decision_options(approve, "approves it", _FINGERPRINT_HELP)
    add_host_options(approve)
    decline = add_verb(
        verbs,
        "decline",
        _on_host(_decline),
        "disable a skill until it changes",
        "Disable a skill with exactly its current content, also one of your own folders. Models do not see it, and"
        " no question about it is asked, until it changes.",
        _DECLINE,
    )
    decline.add_argument("name", metavar="NAME", help=NAME_HELP)
    add_decision_options(decline, "declines it", _FINGERPRINT_HELP)
    add_host_options(decline)
    enable = add_verb(
        verbs,
        "enable",
        _on_host(_enable),
        "undo 'decline'",
        "Show the review of a declined skill, ask, and enable it: models see it again, and it can be approved and"
        " loaded. Without a terminal, --fingerprint is required.",
        _ENABLE,
    )
    enable.add_argument("name", metavar="NAME", help=NAME_HELP)
    add_decision_options(enable, "enables it", _FINGERPRINT_HELP)
    add_host_options(enable)
    revoke = add_verb(
        verbs,
        "revoke",
        _run_revoke,
        "withdraw an approval",
        "Withdraw an approval and its grants. This works without a connection to the server.",
        _REVOKE,
    )
    revoke.add_argument("name", metavar="NAME", help="a name, origin:name, origin:path, a URI or origin:URI")
    add_decision_options(revoke, "revokes it")
    add_state_options(revoke)


def add_decision_options(parser: Parser, action: str, fingerprint: str = "") -> None:
    """Add ``--by``, ``--note``, and ``--fingerprint`` if it has a help text."""
    parser.add_argument(
        "--by", default=system_user(), metavar="WHO", help=f"who {action}, for the log (default: your user name)"
    )
    parser.add_argument("--note", default="", metavar="TEXT", help="the reason, for the log")
    if fingerprint:
        parser.add_argument("--fingerprint", metavar="SHA256", help=fingerprint)


def check_decision(arguments: Arguments, grants: Iterable[str] = ()) -> None:
    """Check that everything for the log is one line of text."""
    check_name(arguments.by, "--by")
    for grant in grants:
        if not grant.strip() or not grant.isprintable():
            raise FormatError("argument-invalid", "--grant needs one line of text", "write: --grant execute")
    if not arguments.note.isprintable():
        raise FormatError(
            "argument-invalid", "--note needs one line of text", "remove line breaks and control characters"
        )


def _on_host(work: Callable[[SkillHost, Arguments, Printer], Awaitable[int]]) -> Run:
    """Return the function that checks the arguments, opens a host and runs ``work`` with it."""

    def run(arguments: Arguments, printer: Printer) -> int:
        check_decision(arguments, getattr(arguments, "grant", ()))
        return run_with_host(arguments, printer, work)

    return run


async def _approve(host: SkillHost, arguments: Arguments, printer: Printer) -> int:
    from skillwire.skill.approval import contents_of, fingerprint

    found = await find_skill(host, arguments, printer, whole=False)
    if found.origin.is_own:
        printer.talk(f"{line(found.name)} is in a folder of yours and needs no approval")
        return Exit.OK
    label, uri, grants = found.origin.label, found.entry.uri, frozenset[str](arguments.grant)
    if not found.entry.is_short:
        contents_of(found.entry)  # refuse at once if nothing can be approved
    _require_terminal(found, arguments)  # before anything is fetched (V5)
    found = await host.complete(found)
    shown = fingerprint(contents_of(found.entry))
    granting = f", and grant {listed(sorted(grants))}" if grants else ""
    await _require_review(host, found, shown, f"Approve exactly this{granting}?", arguments, printer)
    waiting = await _waiting_for(host.store, label, uri, shown)
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
    _print_answered(waiting, printer)
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


async def _decline(host: SkillHost, arguments: Arguments, printer: Printer) -> int:
    from skillwire.skill.approval import fingerprint_of

    found = await find_skill(host, arguments, printer, whole=False)  # V5: declining fetches nothing
    label, uri = found.origin.label, found.entry.uri
    waiting = await _waiting_for(host.store, label, uri, fingerprint_of(found.entry))
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
    _print_answered(waiting, printer)
    return Exit.OK


async def _enable(host: SkillHost, arguments: Arguments, printer: Printer) -> int:
    from skillwire.host.approvals import declines
    from skillwire.skill.approval import claimed_contents, fingerprint

    found, enabled = await find_skill(host, arguments, printer, whole=False), False
    label, uri = found.origin.label, found.entry.uri
    is_declined = any(declines(decision, found.entry) for decision in await host.store.decisions(label, uri))
    if is_declined and _require_terminal(found, arguments):
        found = await host.complete(found)  # for the review
    shown = fingerprint(claimed_contents(found.entry))
    if is_declined:
        await _require_review(host, found, shown, "Enable exactly this?", arguments, printer)
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


def _run_revoke(arguments: Arguments, printer: Printer) -> int:
    check_decision(arguments)
    return run_with_store(arguments, printer, _revoke)


async def _revoke(store: Store, arguments: Arguments, printer: Printer) -> int:
    from skillwire.host.approvals import ASKED_TO, Approvals, Policy, cannot_ask

    found = _find_approval(await store.approvals(), arguments)
    approvals = Approvals(store, Policy(), cannot_ask)
    await approvals.revoke(
        found.origin, found.uri, by=arguments.by, why=ASKED_TO, note=arguments.note, user=system_user()
    )
    if arguments.json:
        printer.json({"origin": found.origin, "uri": found.uri, "fingerprint": found.fingerprint})
    else:
        printer.data(f"revoked {line(found.uri)} from {line(found.origin)}")
        if found.grants:
            printer.data(f"also revoked: {listed(sorted(found.grants))}")
    return Exit.OK


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
    command = shlex.join(["skillwire", "approvals", *host_words(arguments)])
    raise NotFoundError(
        "approval-unknown", f"no approved skill has the name {name!r:.100}", f"list them: {command}"
    )


def _names_of(approval: Approval) -> set[str]:
    """Return every name of the approved skill; the short one is the last part of its path (U3)."""
    from skillwire.skill.uri import parse_uri, skill_root

    path, label = skill_root(parse_uri(approval.uri)).path, approval.origin
    name = path.rpartition("/")[2]
    return {name, f"{label}:{name}", f"{label}:{path}", approval.uri, f"{label}:{approval.uri}"}


def _require_terminal(found: NamedEntry, arguments: Arguments) -> bool:
    """Z4: without a terminal, require ``--fingerprint``. Return whether there is a terminal."""
    if arguments.fingerprint is None and not can_ask():
        raise _fingerprint_missing(found.entry.uri, _review_command(arguments))
    return can_ask()


async def _require_review(
    host: SkillHost, found: NamedEntry, shown: str, question: str, arguments: Arguments, printer: Printer
) -> None:
    """Z4: on a terminal, show the review and ask. Otherwise compare the given fingerprint."""
    from skillwire.cli.review import print_file_command, review_request

    if arguments.fingerprint is not None or not can_ask():
        require_fingerprint(arguments.fingerprint, shown, found.entry.uri, _review_command(arguments))
    if not can_ask():
        return
    approval = await host.store.approval(found.origin.label, found.entry.uri)
    request = await review_request(host, found, approval, printer)
    for each in page(request, approval, is_local=found.origin.is_own):
        printer.talk(each)
    print_file_command(found, arguments, printer)
    if not await confirm(question, printer):
        raise ApprovalError("not-approved", "not confirmed", "nothing was recorded", rule="Z4")


def require_fingerprint(given: str | None, shown: str, uri: str, review: Sequence[str]) -> None:
    """Z4: require the fingerprint of the content that the command ``review`` shows."""
    if not shown:
        raise ApprovalError(
            "terminal-missing",
            f"{uri!r:.300} has no digests, so it can only be approved on a terminal or at the desk",
            f"open the desk: {shlex.join(['skillwire', 'ui', *review[3:]])}",  # with the options of the host
            rule="V7",
        )
    if given is None:
        raise _fingerprint_missing(uri, review)
    if given != shown:
        raise ApprovalError(
            "fingerprint-other",
            f"the content of {uri!r:.300} has another fingerprint",
            f"review it first: {shlex.join(review)}",
            rule="A1",
        )


def _fingerprint_missing(uri: str, review: Sequence[str]) -> ApprovalError:
    return ApprovalError(
        "fingerprint-missing",
        f"without a terminal, --fingerprint has to name the reviewed content of {uri!r:.300}",
        f"review it first: {shlex.join(review)}",
        rule="Z4",
    )


def _review_command(arguments: Arguments) -> list[str]:
    return ["skillwire", "review", arguments.name, *host_words(arguments)]


async def _waiting_for(store: Store, origin: str, uri: str, content: str) -> list[str]:
    """Return the programs that wait for a decision about this content."""
    return [
        question.by
        for question in await store.questions(time.time())
        if (question.kind, question.origin, question.entry.uri) == ("load", origin, uri)
        and question.content in ("", content)
    ]


def _print_answered(waiting: Iterable[str], printer: Printer) -> None:
    """Print the programs that have their answer now."""
    if names := listed(sorted(set(waiting))):
        printer.talk(f"answered: {names}")
