"""What every verb shares: its parser, the exit codes, the command after ``--``, and running a coroutine.

A refusal by a user or a rule ends with 1. A wrong argument, or a server that cannot be reached, ends with 2.
"""

from __future__ import annotations

import argparse
import logging
import math
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

from skillwire.errors import ApprovalError, FormatError, VerificationError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from skillwire.cli.printer import Printer

Arguments: TypeAlias = argparse.Namespace
Parser: TypeAlias = argparse.ArgumentParser
Verbs: TypeAlias = "argparse._SubParsersAction[Parser]"  # pyright: ignore[reportPrivateUsage] - it has no public name
Run: TypeAlias = "Callable[[Arguments, Printer], int]"
COMMAND = "\0"  # marks the place of the command after --; no argument can contain it
JSON_HELP = "print a JSON document instead of text"


class Exit(IntEnum):
    """Process exit codes."""

    OK = 0
    PROBLEMS = 1
    USAGE = 2
    INTERRUPTED = 130


def add_verb(verbs: Verbs, name: str, run: Run, summary: str, description: str, examples: str) -> Parser:
    """Add the parser of one verb. ``examples`` end its help."""
    parser = verbs.add_parser(
        name,
        help=summary,
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def add_json_option(parser: Parser) -> None:
    """Add ``--json``."""
    parser.add_argument("--json", action="store_true", help=JSON_HELP)


def seconds(text: str) -> float:
    """Parse a waiting time of at most a day."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 86_400:
        raise argparse.ArgumentTypeError("is not a number of seconds")
    return value


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """Return a parser of whole numbers from ``low`` to ``high``."""

    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low} to {high}")
        return int(text)

    return parse


def check_name(name: str, option: str) -> None:
    """Check the name of a user that goes into a log or a lock."""
    if not name.strip() or not name.isprintable():
        raise FormatError(
            "argument-invalid", f"{option} needs one line of text", f"omit it, or write: {option} anna"
        )
    if name == "policy":
        raise FormatError(
            "argument-invalid", "'policy' is reserved for policies", f"write your name: {option} anna"
        )


def split_commands(argv: Sequence[str], targets: int) -> tuple[list[str], list[list[str]]]:
    """Split ``argv`` into the words for the parser, with ``COMMAND`` in place of a command, and the commands.

    A single target comes first: ``show SKILL -- server`` means ``show <server> SKILL``. Of two targets, a command
    is the last.
    """
    if targets == 0 or "--" not in argv:
        return list(argv), []
    at = list(argv).index("--")
    words, rest = list(argv[:at]), list(argv[at + 1 :])
    if targets == 1:
        return [words[0], COMMAND, *words[1:]], [rest]
    if "--" in rest:
        second = rest.index("--")
        return [*words, COMMAND, COMMAND], [rest[:second], rest[second + 1 :]]
    return [*words, COMMAND], [rest]


def command_words(words: list[str]) -> list[str]:
    """Return the words of a command after ``--``, which must not be empty."""
    if not words:
        raise FormatError("command-missing", "no command after --", "write: -- COMMAND ARGUMENTS")
    return words


def whole_command(arguments: Arguments) -> list[str]:
    """Return everything after the first ``--``, including any further ``--``."""
    first, *others = arguments.commands
    return [*first, *(word for rest in others for word in ("--", *rest))]


def silence_libraries(*names: str) -> None:
    """Hide the log of libraries. Their failures that matter become errors of ours."""
    for name in ("mcp", "httpx2", *names):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def run_async(work: Callable[[], Awaitable[int]], printer: Printer) -> int:
    """Run ``work`` and return its exit code. A refusal ends with 1; ``main`` handles other errors."""
    import anyio  # late: not needed for --help

    silence_libraries()
    logging.getLogger("skillwire.host").setLevel(logging.ERROR)  # verbs print failed origins themselves
    try:
        return anyio.run(work)
    except (ApprovalError, VerificationError) as error:
        printer.error(error)
        return Exit.PROBLEMS
