"""TARGET and SKILL on the command line.

A TARGET is a folder, an archive, a Git repository, a URL, a label from an ``mcpServers`` file, or a command
(``target_kind``). All of them become a ``Catalog``, so that a verb works with each. A SKILL is a name, a path or a
URI; an unknown one gets suggestions.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillwire.catalog.contract import Catalog
from skillwire.cli.command import (
    COMMAND,
    FILE,
    JSON,
    Arguments,
    Seconds,
    TargetPlace,
    argument,
    command_words,
    flag,
    option,
    repeated,
    run_async,
)
from skillwire.cli.printer import Printer, line
from skillwire.client.dialects import DIALECT_NAMES
from skillwire.errors import FormatError, NotFoundError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from skillwire.skill import Diagnostic, SkillEntry

_TARGET_HELP = (
    "a folder, an archive, owner/repository or the URL of a Git repository, the URL of a server, a label from an"
    " mcpServers file, or a command after --"
)
NO_SKILLS = ": a skill is a folder with a file named SKILL.md; make one: skillwire new NAME"
TARGET = argument("target", "TARGET", _TARGET_HELP, type=TargetPlace())
OPTIONAL_TARGET = argument(
    "target", "[TARGET]", f"{_TARGET_HELP} (default: the current folder)", type=TargetPlace(), required=False
)
SKILL = argument("skill", "SKILL", "a name, a path or a URI")
HEADER = repeated("--header", metavar="'NAME: VALUE'", help="sent with every request to a URL (repeatable)")
TIMEOUT = option(
    "--timeout", type=Seconds(), metavar="SECONDS", help="how long to wait for each response (default: 30)"
)
CONFIG = option(
    "--config", type=FILE, metavar="FILE", help="the mcpServers file with the label (default: search for it)"
)
TARGET_OPTIONS = (
    JSON,
    CONFIG,
    flag("--yes", help="do not ask; also use a server that a file of the project names"),
    HEADER,
    TIMEOUT,
    option(
        "--dialect",
        type=click.Choice(DIALECT_NAMES),
        help="use this dialect instead of detecting it",
    ),
    option(
        "--era",
        type=click.Choice(["auto", "legacy"]),
        default="auto",
        help="the protocol era (default: the newest possible)",
    ),
    flag("--instructions", help="also find skills that the server's instructions name"),
)


def run_on_targets(
    arguments: Arguments,
    printer: Printer,
    work: Callable[..., Awaitable[int]],
    names: Sequence[str] = ("target",),
    *,
    allow_unverified: bool = False,
) -> int:
    """Open the targets in ``arguments``, pass the catalogs to ``work``, and return its exit code."""
    from skillwire.bootstrap import TargetOptions, open_target  # late: not needed for --help
    from skillwire.cli.consent import ask_for_servers
    from skillwire.cli.registry_session import stored_token

    options = TargetOptions(
        arguments.config,
        parse_headers(arguments.header),
        arguments.dialect,
        arguments.era,
        instructions=arguments.instructions,
        allow_unverified=allow_unverified,
        consent=ask_for_servers(printer, "--yes", is_given=arguments.yes),
        timeout=arguments.timeout,
        sign_in=lambda url: stored_token(arguments, url),
    )

    async def run() -> int:
        commands, catalogs = list(arguments.commands), list[Catalog]()
        async with AsyncExitStack() as stack:
            for name in names:
                given: str = getattr(arguments, name) or "."
                target = command_words(commands.pop(0)) if given == COMMAND else given
                with printer.progress("Connecting", "skills") as count:
                    catalog = open_target(target, options, folder=Path.cwd(), home=Path.home(), on_skill=count)
                    catalogs.append(await stack.enter_async_context(catalog))
            return await work(*catalogs, arguments, printer)

    return run_async(run)


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


def target_text(arguments: Arguments) -> str:
    """Return the target as it was typed, for a command in a hint."""
    import shlex

    target = arguments.target or "."
    return f"-- {shlex.join(arguments.commands[0])}" if target == COMMAND else shlex.quote(target)


async def resolve_skill(catalog: Catalog, text: str, *, place: str) -> SkillEntry:
    """Return the current entry of the skill with this name, path or URI. ``place`` is the target in the hint."""
    from skillwire.catalog.names import find_skill  # late: it imports anyio

    try:
        return await find_skill(catalog, text)
    except NotFoundError as error:
        if error.reference == "skill-unknown" and "did you mean" not in error.hint:
            error.hint = f"see the names: skillwire list {place}"
        raise


async def uri_by_name(catalog: Catalog, text: str) -> str | None:
    """Return the URI of ``NAME/PATH``, a file or folder in the skill with that name, if there is one."""
    from skillwire.catalog.names import find_skill
    from skillwire.skill.uri import format_uri, parse_path, parse_uri

    name, _, inside = text.strip("/").partition("/")
    if "://" in text or not inside:
        return None
    try:
        skill = await find_skill(catalog, name)
    except (NotFoundError, ProtocolError):
        return None
    return format_uri(parse_path(f"{skill.path}/{inside}"), parse_uri(skill.uri).scheme)


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
    """Print the entries that are missing from a listing, each with the reason."""
    for problem in problems:
        where, what = line(problem.file)[:300], line(problem.message)
        printer.talk(f"missing: {where}: {what} [{problem.reference}]")
