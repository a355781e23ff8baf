"""What decisions on the command line share: options, the review before them (Z4), and who waited for them."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING

from skillwire.cli.hosting import host_words, listed, system_user
from skillwire.cli.prompts import can_ask, confirm, page
from skillwire.errors import ApprovalError, FormatError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from skillwire.cli.printer import Printer
    from skillwire.host.host import Host
    from skillwire.host.names import NamedEntry
    from skillwire.store.contract import Store


def add_decision_options(parser: argparse.ArgumentParser, what: str, fingerprint: str = "") -> None:
    """``--by``, ``--note``, and ``--fingerprint`` with that help if there is one."""
    parser.add_argument(
        "--by", default=system_user(), metavar="WHO", help=f"who {what}, for the log (default: your user name)"
    )
    parser.add_argument("--note", default="", metavar="TEXT", help="why, for the log")
    if fingerprint:
        parser.add_argument("--fingerprint", metavar="SHA256", help=fingerprint)


def check_decision(arguments: argparse.Namespace, grants: Iterable[str] = ()) -> None:
    """``FormatError`` if what goes into the log is not a line of text."""
    for text in (arguments.by, *grants):
        if not text.strip() or not text.isprintable():
            raise FormatError(
                "argument-invalid", "--by and --grant take a line of text", "leave it out, or name one"
            )
    if arguments.by == "policy":
        raise FormatError("argument-invalid", "a policy is nobody who decides", "say who you are with --by")
    if not arguments.note.isprintable():
        raise FormatError("argument-invalid", "--note takes a line of text", "leave out what cannot be printed")


def demand_person(found: NamedEntry, arguments: argparse.Namespace) -> bool:
    """Z4: without a terminal, a decision has to name a fingerprint. Whether there is a terminal."""
    if arguments.fingerprint is None and not can_ask():
        raise _no_fingerprint(found.entry.uri, _review_words(arguments))
    return can_ask()


async def demand_review(
    host: Host, found: NamedEntry, shown: str, question: str, arguments: argparse.Namespace, printer: Printer
) -> None:
    """Z4: on a terminal the person sees the review and answers; elsewhere they name the fingerprint they saw."""
    from skillwire.cli.review import review_request, say_how_to_read

    if arguments.fingerprint is not None or not can_ask():
        require_fingerprint(arguments.fingerprint, shown, found.entry.uri, _review_words(arguments))
    if not can_ask():
        return
    approval = await host.store.approval(found.origin.label, found.entry.uri)
    request = await review_request(host, found, approval, printer)
    for each in page(request, approval, is_local=found.origin.is_local):
        printer.talk(each)
    say_how_to_read(found, arguments, printer)
    if not await confirm(question, printer):
        raise ApprovalError("not-approved", "you did not confirm it", "nothing was recorded", rule="Z4")


def require_fingerprint(given: str | None, shown: str, uri: str, review: Sequence[str]) -> None:
    """Z4: without a terminal, a decision names the content that the command ``review`` showed."""
    if not shown:
        raise ApprovalError(
            "terminal-missing",
            f"{uri!r:.300} promises no digests, so it can only be approved on a terminal or at the desk",
            "open the desk: skillwire ui",
            rule="V7",
        )
    if given is None:
        raise _no_fingerprint(uri, review)
    if given != shown:
        raise ApprovalError(
            "fingerprint-other",
            f"{uri!r:.300} has another content than that fingerprint's",
            f"review it first: {shlex.join(review)}",
            rule="A1",
        )


def _no_fingerprint(uri: str, review: Sequence[str]) -> ApprovalError:
    return ApprovalError(
        "fingerprint-missing",
        f"without a terminal, --fingerprint has to name the content of {uri!r:.300} that was reviewed",
        f"review it first: {shlex.join(review)}",
        rule="Z4",
    )


def _review_words(arguments: argparse.Namespace) -> list[str]:
    return ["skillwire", "review", arguments.name, *host_words(arguments)]


async def waiting_for(store: Store, origin: str, uri: str, content: str) -> list[str]:
    """Who waits for a yes or no to this content."""
    return [
        question.by
        for question in await store.questions(time.time())
        if (question.kind, question.origin, question.entry.uri) == ("load", origin, uri)
        and question.content in ("", content)
    ]


def say_answered(askers: Iterable[str], printer: Printer) -> None:
    """Who has their answer now."""
    if names := listed(sorted(set(askers))):
        printer.talk(f"answered: {names}")
