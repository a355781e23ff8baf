"""``skillwire approve``: shows the review of a skill, asks, and approves it (A1, A2, A4, A5, Z4).

The steps before a decision are shared with ``approvals.py`` and ``questions.py``: on a terminal the user sees the
review and confirms it; without a terminal, ``--fingerprint`` has to name the reviewed content.
"""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING

from skillwire.cli.command import Arguments, TextLine, option, repeated, verb
from skillwire.cli.host_session import BY, HOST_OPTIONS, NAME, find_skill, host_command, run_with_host, system_user
from skillwire.cli.printer import Printer, line, listed, runnable
from skillwire.cli.prompts import can_ask, confirm, page
from skillwire.errors import ApprovalError, UpstreamError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence

    from rich.text import Text

    from skillwire.host.approvals import ApprovalRequest
    from skillwire.host.host import SkillHost
    from skillwire.host.origins import NamedEntry
    from skillwire.skill.approval import Approval
    from skillwire.store.store import Store

NOTE = option(
    "--note", type=TextLine(may_be_empty=True), default="", metavar="TEXT", help="the reason, for the log"
)
GRANT = repeated(
    "--grant",
    type=TextLine(),
    metavar="TOOL",
    help="also grant this tool, or 'execute' to let code run when the model acts on this content (repeatable)",
)
FINGERPRINT = option(
    "--fingerprint",
    metavar="SHA256",
    help="fingerprint of the content that you reviewed; any other content is refused",
)


@verb(
    "Show the review of a skill, ask, and approve it with exactly its current files. An approval alone does"
    " not grant tools or allow code to run. Without a terminal, --fingerprint is required.",
    NAME,
    GRANT,
    BY,
    NOTE,
    FINGERPRINT,
    *HOST_OPTIONS,
    within=run_with_host,
    examples="""\
  skillwire approve refunds                         show the review, then ask
  skillwire approve refunds --grant execute --grant 'Bash(git:*)'
  skillwire approve refunds --by anna --note 'read completely'
  skillwire approve refunds --fingerprint sha256:…  without a terminal: from 'skillwire approvals show'

An approval covers exactly the content that was shown. Any change needs a new approval. Programs that wait for this
decision (see 'skillwire approvals questions') get their answer. To look without deciding, or to decline: skillwire
approvals --help

exit codes: 0 approved, 1 refused: not confirmed, no digests, or a different fingerprint, 2 usage
""",
)
async def command(host: SkillHost, arguments: Arguments, printer: Printer) -> None:
    """Approve a skill, and print what the approval allows and what it does not."""
    from skillwire.skill.approval import EXECUTE, contents_of, fingerprint
    from skillwire.skill.review import review_entry

    found = await find_skill(host, arguments, printer, whole=False)
    if found.origin.is_own:
        document = {"origin": found.origin.label, "uri": found.entry.uri, "local": True}
        printer.result(document, f"{line(found.name)} is in your own folder and needs no approval")
        return
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
    printer.result(
        {"origin": label, "uri": uri, "fingerprint": shown, "grants": sorted(grants)},
        f"approved {line(uri)} from {line(label)}",
        f"fingerprint: {printer.digest(shown)}",
        f"granted: {listed(sorted(grants)) or 'nothing'}",
    )
    review = review_entry(found.entry)
    consequences = {
        "requested, but not granted": [tool for tool in review.tools if tool not in grants],
        "granted, but not requested": sorted(grants - {EXECUTE, *review.tools}),
        "may not run": () if EXECUTE in grants else review.scripts,
        "need their own approval": review.nested,
    }
    for title, names in consequences.items():
        if names:
            printer.talk(f"{title}: {listed(names)}")
    for find in review.hidden:
        printer.talk(f"hidden text: {line(str(find))}")
    print_answered(waiting, printer)


def require_terminal(found: NamedEntry, arguments: Arguments) -> bool:
    """Z4: without a terminal, require ``--fingerprint``. Return whether there is a terminal."""
    if arguments.fingerprint is None and not can_ask():
        raise _fingerprint_missing(found.entry.uri, review_words(arguments))
    return can_ask()


def review_words(arguments: Arguments) -> list[str]:
    """Return the command that shows the review of the skill NAME."""
    return host_command(arguments, "approvals", "show", arguments.name)


async def require_review(
    host: SkillHost, found: NamedEntry, shown: str, question: str, arguments: Arguments, printer: Printer
) -> None:
    """Z4: on a terminal, show the review of a skill and ask. Otherwise compare the given fingerprint."""

    async def review() -> Iterable[Text]:
        approval = await host.store.approval(found.origin.label, found.entry.uri)
        request = await review_request(host, found, approval, printer)
        return [
            *page(request, approval, is_local=found.origin.is_own, address=found.origin.address),
            *file_hint(found, arguments),
        ]

    words = review_words(arguments)
    await require_decision(review, question, arguments, printer, content=shown, uri=found.entry.uri, command=words)


async def require_decision(
    review: Callable[[], Awaitable[Iterable[Text]]],
    question: str,
    arguments: Arguments,
    printer: Printer,
    *,
    content: str,
    uri: str,
    command: Sequence[str],
) -> None:
    """Z4: on a terminal, print the rows of ``review`` and ask. Otherwise require the fingerprint ``content``.

    ``command`` shows the same review.
    """
    if arguments.fingerprint is not None or not can_ask():
        _require_fingerprint(arguments.fingerprint, content, uri, command)
    if not can_ask():
        return
    for row in await review():
        printer.talk(row)
    if not await confirm(question, printer):
        raise ApprovalError("not-approved", "not confirmed", "nothing was recorded", rule="Z4")


def _require_fingerprint(given: str | None, shown: str, uri: str, review: Sequence[str]) -> None:
    if not shown:
        raise ApprovalError(
            "no-terminal",
            f"{uri!r:.300} has no digests, so it can only be approved on a terminal or at the desk",
            f"open the desk: {shlex.join(['skillwire', 'ui', *review[4:]])}",  # with the options of the host
            rule="V7",
        )
    if given is None:
        raise _fingerprint_missing(uri, review)
    if given != shown:
        raise ApprovalError(
            "fingerprint-other",
            f"the content of {uri!r:.300} has a different fingerprint",
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


def file_hint(found: NamedEntry, arguments: Arguments) -> Iterator[Text]:
    """Yield the command that shows another file of a skill, if it has one."""
    from rich.text import Text

    from skillwire.skill.uri import path_in_skill

    other = next((file.uri for file in found.entry.files if file.uri != found.entry.uri), None)
    if other is not None:
        path = path_in_skill(found.entry.uri, other) or other
        words = host_command(arguments, "approvals", "show", line(found.name), "--file", line(path))
        yield Text(runnable(f"to see another file: {shlex.join(words)}"))


async def waiting_for(store: Store, origin: str, uri: str, content: str) -> list[str]:
    """Return the programs that wait for a decision about this content."""
    return [
        question.by
        for question in await store.questions(time.time())
        if (question.kind, question.origin, question.entry.uri) == ("load", origin, uri)
        and question.content in ("", content)
    ]


def print_answered(waiting: Iterable[str], printer: Printer) -> None:
    """Print the programs whose questions this decision answers."""
    if names := listed(sorted(set(waiting))):
        printer.talk(f"answered: {names}")


async def review_request(
    host: SkillHost, found: NamedEntry, approval: Approval | None, printer: Printer
) -> ApprovalRequest:
    """Return the request that the user decides about, after reading every text file."""
    from skillwire.host.approvals import ApprovalRequest
    from skillwire.skill.approval import change_since, has_contents
    from skillwire.skill.review import review_entry

    # An approval ends when its server lists other content. The review still shows what changed since then.
    previous = approval or await host.approvals.previous(found.origin.label, found.entry)
    change = change_since(previous, found.entry)
    try:
        review = await host.review(found)
        diff = [text async for text in _diff(host, found, previous)] if previous is not None else []
    except UpstreamError as error:
        printer.talk(f"the files could not be read: {line(error.message)} {error.label}")
        review, diff = review_entry(found.entry), []
    kind = "load" if has_contents(found.entry) else "dynamic"
    return ApprovalRequest(kind, found.origin.label, found.entry, review, change, tuple(diff))


async def _diff(host: SkillHost, found: NamedEntry, approval: Approval) -> AsyncIterator[str]:
    """Yield the diff of each text file against its approved version, if that is still in the cache."""
    from anyio import to_thread

    from skillwire.catalog.diff import changed_lines
    from skillwire.skill.approval import change_since, file_digests
    from skillwire.skill.uri import path_in_skill

    before, origin, change = file_digests(approval.contents), found.origin, change_since(approval, found.entry)
    if change is None or host.cache is None or not origin.is_connected:
        return
    for uri in change.rotated:
        path = path_in_skill(found.entry.uri, uri) or uri
        old = await to_thread.run_sync(host.cache.get, origin.label, uri, before[uri])
        if old is None:
            yield f"~ {path}: the approved version is not in the cache any more"
            continue
        for text in changed_lines(path, old, (await origin.fetch(found.entry, uri)).data):
            yield text
