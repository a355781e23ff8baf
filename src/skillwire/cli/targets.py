"""TARGET and SKILL on the command line.

A TARGET is a folder, an archive, a URL, a label from an ``mcpServers`` file, or a command. All of them become a
``Catalog``, so that a verb works with each. A SKILL is a name, a path or a URI; an unknown one gets suggestions.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from skillwire.catalog.contract import Catalog
from skillwire.cli.command import COMMAND, Arguments, Parser, add_json_option, command_words, silence_libraries
from skillwire.cli.printer import Printer, line
from skillwire.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from skillwire.skill import Diagnostic

TARGET_HELP = "a folder, an archive, a URL, a label from an mcpServers file, or a command after --"
SKILL_HELP = "a name, a path or a URI"
_DIALECTS = ("extension", "index", "sep-2076", "native", "fallback")


def add_target_options(parser: Parser) -> None:
    """Add the options of every verb with a TARGET."""
    add_json_option(parser)
    add = parser.add_argument
    add("--config", type=Path, metavar="FILE", help="the mcpServers file with the label (default: search for it)")
    add("--yes", action="store_true", help="do not ask; also use a server that a file of the project names")
    add("--header", action="append", default=[], metavar="'NAME: VALUE'", help="sent with every request to a URL")
    add("--dialect", choices=_DIALECTS, help="use this dialect instead of detecting it")
    add(
        "--era", choices=("auto", "legacy"), default="auto", help="the protocol era (default: the newest possible)"
    )
    add("--instructions", action="store_true", help="also find skills that the server's instructions name")


def run_on_targets(
    arguments: Arguments,
    printer: Printer,
    work: Callable[..., Awaitable[int]],
    names: Sequence[str] = ("target",),
    *,
    allow_unverified: bool = False,
) -> int:
    """Open the targets in ``arguments``, pass the catalogs to ``work``, and return its exit code."""
    import anyio  # late: not needed for --help

    from skillwire.bootstrap import TargetOptions, open_target
    from skillwire.cli.consent import ask_for_servers

    silence_libraries()
    options = TargetOptions(
        arguments.config,
        parse_headers(arguments.header),
        arguments.dialect,
        arguments.era,
        mine=arguments.instructions,
        allow_unverified=allow_unverified,
        consent=ask_for_servers(printer, "--yes", is_given=arguments.yes),
    )

    async def run() -> int:
        commands, catalogs = list(arguments.commands), list[Catalog]()
        async with AsyncExitStack() as stack:
            for name in names:
                given: str = getattr(arguments, name)
                target = command_words(commands.pop(0)) if given == COMMAND else given
                with printer.progress("Reading", "skills") as count:
                    catalog = open_target(target, options, folder=Path.cwd(), home=Path.home(), on_skill=count)
                    catalogs.append(await stack.enter_async_context(catalog))
            return await work(*catalogs, arguments, printer)

    return anyio.run(run)


def parse_headers(lines: Sequence[str]) -> dict[str, str]:
    """Parse the values of ``--header``, each ``NAME: VALUE``."""
    headers: dict[str, str] = {}
    for each in lines:
        name, colon, value = each.partition(":")
        if not colon or not name.strip() or not (name.isascii() and value.isascii() and each.isprintable()):
            raise FormatError(  # the value may be a secret and is not repeated
                "header-invalid", "a --header is not 'NAME: VALUE'", "write: --header 'Authorization: Bearer …'"
            )
        headers[name.strip()] = value.strip()
    return headers


def as_uri(text: str) -> str:
    """Return a URI unchanged, or the URI of a path such as ``acme/refunds/SKILL.md``."""
    from skillwire.skill.uri import DEFAULT_SCHEME, format_uri, parse_path

    return text if "://" in text else format_uri(parse_path(text.strip("/")), DEFAULT_SCHEME)


def problems_json(problems: Iterable[Diagnostic]) -> list[dict[str, str]]:
    """Return the problems of a listing as a document."""
    return [
        {"uri": p.file, "rule": p.rule, "reference": p.reference, "message": p.message, "hint": p.hint}
        for p in problems
    ]


def print_problems(problems: Iterable[Diagnostic], printer: Printer) -> None:
    """Print what is missing from a listing, and why."""
    for problem in problems:
        where, what = line(problem.file)[:300], line(problem.message)
        printer.talk(f"missing: {where}: {what} [{problem.reference}, {problem.rule}]")
