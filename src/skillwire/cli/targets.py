"""TARGET: what a verb looks at: a folder, an archive, a URL, a label from an ``mcpServers`` file, or a command.

All of them become a ``Catalog``, so that a verb does not know which it was.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillwire.errors import FormatError

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from skillwire.catalog.contract import Catalog
    from skillwire.cli.printer import Printer

COMMAND = "\0"  # stands for "the command after --"; nobody can type it
TARGET_HELP = "a folder, an archive, a URL, a label from an mcpServers file, or a command after --"
DIALECTS = ("extension", "index", "sep-2076", "native", "fallback")


def split_commands(argv: Sequence[str], targets: int) -> tuple[list[str], list[list[str]]]:
    """The words for the parser, with a mark where a command was, and the commands.

    One target stands first: ``show SKILL -- server`` means ``show <server> SKILL``. Of two, a command is the last.
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


def add_target_options(parser: argparse.ArgumentParser) -> None:
    """The options that every verb with a TARGET has."""
    add = parser.add_argument
    add("--json", action="store_true", help="a document for programs instead of text for people")
    add("--config", type=Path, metavar="FILE", help="the mcpServers file that the label is in (default: found)")
    add("--yes", action="store_true", help="say yes beforehand, also to a server that a project's file names")
    add("--header", action="append", default=[], metavar="'NAME: VALUE'", help="sent with every request to a URL")
    add("--dialect", choices=DIALECTS, help="speak this one instead of finding out")
    add(
        "--era",
        choices=("auto", "legacy"),
        default="auto",
        help="the protocol's era (default: the newest both know)",
    )
    add("--instructions", action="store_true", help="also look for skills that the server's instructions name")


def run_on_targets(
    arguments: argparse.Namespace,
    printer: Printer,
    work: Callable[..., Awaitable[int]],
    names: Sequence[str] = ("target",),
    *,
    allow_unverified: bool = False,
) -> int:
    """Open what ``arguments`` name and hand the catalogs to ``work``; its number is the exit code."""
    import anyio  # late: only once the words are understood

    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # what matters of it comes as an error of ours
    logging.getLogger("httpx2").setLevel(logging.CRITICAL)

    async def run() -> int:
        async with _opened(
            arguments, printer, [getattr(arguments, name) for name in names], allow_unverified
        ) as found:
            return await work(*found, arguments, printer)

    return anyio.run(run)


@asynccontextmanager
async def _opened(
    arguments: argparse.Namespace, printer: Printer, targets: list[str], allow_unverified: bool
) -> AsyncGenerator[list[Catalog]]:
    from contextlib import AsyncExitStack

    from skillwire.bootstrap import TargetOptions, open_target
    from skillwire.cli.consent import ask_for_servers

    options = TargetOptions(
        arguments.config,
        parse_headers(arguments.header),
        arguments.dialect,
        arguments.era,
        mine=arguments.instructions,
        allow_unverified=allow_unverified,
        consent=ask_for_servers(printer, "--yes", is_given=arguments.yes),
    )
    commands = list(arguments.commands)
    async with AsyncExitStack() as stack:
        catalogs: list[Catalog] = []
        for target in targets:
            what: Any = command_words(commands.pop(0)) if target == COMMAND else target
            with printer.progress("Reading", "skills") as count:
                opening = open_target(what, options, folder=Path.cwd(), home=Path.home(), on_skill=count)
                catalogs.append(await stack.enter_async_context(opening))
        yield catalogs


def command_words(words: list[str]) -> list[str]:
    """The words of a command after ``--``; there has to be one."""
    if not words:
        raise FormatError("command-missing", "there is no command after --", "write: -- COMMAND ARGUMENTS")
    return words


def parse_headers(lines: Sequence[str]) -> dict[str, str]:
    """The headers that a person gave, each as 'NAME: VALUE'."""
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name.strip() or not (name.isascii() and value.isascii() and line.isprintable()):
            raise FormatError(  # the line itself may hold a secret and is not repeated
                "header-invalid", "a --header is not 'NAME: VALUE'", "write: --header 'Authorization: Bearer …'"
            )
        headers[name.strip()] = value.strip()
    return headers
