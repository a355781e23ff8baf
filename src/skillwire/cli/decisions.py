"""What every decision about a skill shares: its options, the review before it, and the fingerprint (A1–A5, Z4).

Every decision is about the content that the skill has now. Before an approval the user sees the review on a
terminal and confirms it; without a terminal, ``--fingerprint`` has to name the reviewed content.
"""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING

from skillwire.cli.command import Arguments, check_name, option
from skillwire.cli.host_session import host_words, system_user
from skillwire.cli.printer import Printer, line, listed
from skillwire.cli.prompts import can_ask, confirm, page
from skillwire.errors import ApprovalError, FormatError, UpstreamError
from skillwire.skill.uri import path_in_skill

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

    from skillwire.host.approvals import ApprovalRequest
    from skillwire.host.host import SkillHost
    from skillwire.host.names import NamedEntry
    from skillwire.skill.approval import Approval
    from skillwire.store.contract import Store

BY = option("--by", default=system_user, metavar="WHO", help="who decides, for the log (default: your user name)")
NOTE = option("--note", default="", metavar="TEXT", help="the reason, for the log")
FINGERPRINT = option("--fingerprint", metavar="SHA256", help="the content that you reviewed; any other is refused")
_DIFF_LINES = 400  # for each file
_COMPARED_LINES = 2000  # the server chooses the lines, and comparing them can take quadratic time


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


def require_terminal(found: NamedEntry, arguments: Arguments) -> bool:
    """Z4: without a terminal, require ``--fingerprint``. Return whether there is a terminal."""
    if arguments.fingerprint is None and not can_ask():
        raise _fingerprint_missing(found.entry.uri, _review_command(arguments))
    return can_ask()


async def require_review(
    host: SkillHost, found: NamedEntry, shown: str, question: str, arguments: Arguments, printer: Printer
) -> None:
    """Z4: on a terminal, show the review and ask. Otherwise compare the given fingerprint."""
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
            f"open the desk: {shlex.join(['skillwire', 'ui', *review[4:]])}",  # with the options of the host
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
    return ["skillwire", "approvals", "show", arguments.name, *host_words(arguments)]


async def waiting_for(store: Store, origin: str, uri: str, content: str) -> list[str]:
    """Return the programs that wait for a decision about this content."""
    return [
        question.by
        for question in await store.questions(time.time())
        if (question.kind, question.origin, question.entry.uri) == ("load", origin, uri)
        and question.content in ("", content)
    ]


def print_answered(waiting: Iterable[str], printer: Printer) -> None:
    """Print the programs that have their answer now."""
    if names := listed(sorted(set(waiting))):
        printer.talk(f"answered: {names}")


async def review_request(
    host: SkillHost, found: NamedEntry, approval: Approval | None, printer: Printer
) -> ApprovalRequest:
    """Return the request that the user decides about, after reading every text file."""
    from skillwire.host.approvals import ApprovalRequest, Approvals
    from skillwire.skill.approval import has_contents
    from skillwire.skill.review import review_entry

    change = Approvals.change(approval, found.entry)
    try:
        review = await host.review(found)
        diff = [text async for text in _diff(host, found, approval)] if approval is not None else []
    except UpstreamError as error:
        printer.talk(f"the files could not be read: {line(error.message)} {error.label}")
        review, diff = review_entry(found.entry), []
    kind = "load" if has_contents(found.entry) else "dynamic"
    return ApprovalRequest(kind, found.origin.label, found.entry, review, change, tuple(diff))


async def _diff(host: SkillHost, found: NamedEntry, approval: Approval) -> AsyncIterator[str]:
    """Yield the diff of each text file against its approved version, if that is still in the cache."""
    from anyio import to_thread

    from skillwire.host.approvals import Approvals
    from skillwire.skill.approval import file_digests

    before, origin, change = file_digests(approval.contents), found.origin, Approvals.change(approval, found.entry)
    if change is None or host.cache is None or not origin.is_connected:
        return
    for uri in change.rotated:
        path = path_in_skill(found.entry.uri, uri) or uri
        old = await to_thread.run_sync(host.cache.get, origin.label, uri, before[uri])
        if old is None:
            yield f"~ {path}: the approved version is not in the cache any more"
            continue
        new = (await origin.fetch(found.entry, uri)).data
        for text in compared(path, old, new):
            yield text


def compared(path: str, old: bytes, new: bytes) -> Iterator[str]:
    """Yield the changed lines of one file, or why they cannot be shown."""
    from difflib import unified_diff

    try:
        texts = old.decode().splitlines(), new.decode().splitlines()
    except UnicodeDecodeError:
        yield f"~ {path}: not text, {len(old)} bytes before, {len(new)} now"
        return
    if max(map(len, texts)) > _COMPARED_LINES:
        yield f"~ {path}: too long to compare, {len(texts[0])} lines before, {len(texts[1])} now"
        return
    lines = list(unified_diff(*texts, f"{path} as approved", f"{path} now", lineterm="", n=2))
    yield from lines[:_DIFF_LINES]
    if len(lines) > _DIFF_LINES:
        yield f"… and {len(lines) - _DIFF_LINES} more lines"


def print_file_command(found: NamedEntry, arguments: Arguments, printer: Printer) -> None:
    """Print the command that shows another file."""
    others = [file.path or file.uri for file in found.entry.files if file.uri != found.entry.uri]
    if others:
        words = [
            "skillwire",
            "approvals",
            "show",
            line(found.name),
            "--file",
            line(others[0]),
            *host_words(arguments),
        ]
        printer.talk(f"to see another file: {shlex.join(words)}")
