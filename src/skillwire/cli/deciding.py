"""What every decision on the command line has: who decides, a note for the log, and who was waiting for it."""

from __future__ import annotations

import os
import shlex
import time
from typing import TYPE_CHECKING

from skillwire.errors import ApprovalError, FormatError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from skillwire.cli.printer import Printer
    from skillwire.store.contract import Store


def add_decision_options(parser: argparse.ArgumentParser, what: str) -> None:
    """``--by`` and ``--note``."""
    parser.add_argument(
        "--by", default=system_user(), metavar="WHO", help=f"who {what}, for the log (default: your user name)"
    )
    parser.add_argument("--note", default="", metavar="TEXT", help="why, for the log")


def system_user() -> str:
    """The user of the operating system. Variables such as ``LOGNAME`` are not asked: a program can set them."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


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


def require_fingerprint(given: str | None, shown: str, uri: str, review: Sequence[str]) -> None:
    """Z4: without a terminal, an approval names the content that the command ``review`` showed."""
    hint = f"review it first: {shlex.join(review)}"
    if not shown:
        raise ApprovalError(
            "terminal-missing",
            f"{uri!r:.300} promises no digests, so it can only be approved on a terminal or at the desk",
            "open the desk: skillwire ui",
            rule="V7",
        )
    if given is None:
        raise ApprovalError(
            "fingerprint-missing",
            f"without a terminal, --fingerprint has to name the content of {uri!r:.300} to approve",
            hint,
            rule="Z4",
        )
    if given != shown:
        raise ApprovalError(
            "fingerprint-other", f"{uri!r:.300} has another content than that fingerprint's", hint, rule="A1"
        )


async def waiting_for(store: Store, origin: str, uri: str, content: str) -> list[str]:
    """Who waits for a yes or no to this content."""
    return [
        question.by
        for question in await store.questions(time.time())
        if (question.kind, question.origin, question.entry.uri, question.content) == ("load", origin, uri, content)
    ]


def say_answered(askers: Iterable[str], printer: Printer) -> None:
    """Who has their answer now."""
    from skillwire.cli.hosting import listed

    if names := listed(sorted(set(askers))):
        printer.talk(f"answered: {names}")
