"""The verbs of a host: the options they share, and how a host, or only its memory, is opened.

What a person or a rule refused ends with 1; what could not be reached or understood ends with 2, as everywhere.
"""

from __future__ import annotations

import logging
import math
import os
from argparse import ArgumentTypeError
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from skillwire.cli.exits import Exit
from skillwire.errors import ApprovalError, NotFoundError, VerificationError

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable

    from skillwire.cli.printer import Printer
    from skillwire.host.approvals import Ask, Policy
    from skillwire.host.host import Host
    from skillwire.host.names import NamedEntry
    from skillwire.host.origins import Origin
    from skillwire.store.contract import Store

    Work: TypeAlias = "Callable[..., Awaitable[int]]"

NAME_HELP = "a name from 'skillwire skills', origin:name, origin:path, or a URI"
_PATIENCE_SECONDS = 2.0


def add_state_options(parser: argparse.ArgumentParser) -> None:
    """The options of every verb that only looks into the memory."""
    parser.add_argument(
        "--state",
        type=Path,
        metavar="DIR",
        help="what the host remembers (default: $XDG_STATE_HOME/skillwire, or ~/.local/state/skillwire)",
    )
    parser.add_argument("--json", action="store_true", help="a document for programs instead of text for people")


def add_server_options(parser: argparse.ArgumentParser) -> None:
    """The options of every verb that asks servers."""
    add_state_options(parser)
    add = parser.add_argument
    add("--config", type=Path, metavar="FILE", help="an mcpServers file, beside the origins that were added")
    add("--wait", type=seconds, default=10.0, metavar="SECONDS", help="how long to wait for servers (default: 10)")


def add_host_options(parser: argparse.ArgumentParser) -> None:
    """The options of every verb that opens a host."""
    add_server_options(parser)
    parser.add_argument(
        "--folder", type=Path, action="append", default=[], metavar="DIR", help="a folder of your own (repeatable)"
    )


def host_words(arguments: argparse.Namespace) -> list[str]:
    """The options that made this host, for a command in a hint: without them it would mean another one."""
    given = [("--config", getattr(arguments, "config", None)), ("--state", arguments.state)]
    given += [("--folder", folder) for folder in getattr(arguments, "folder", ())]
    return [word for option, value in given if value is not None for word in (option, str(value))]


def system_user() -> str:
    """The user of the operating system. Variables such as ``LOGNAME`` are not asked: a program can set them."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def seconds(text: str) -> float:
    """A time that can be waited for."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 86_400:
        raise ArgumentTypeError("is not a number of seconds")
    return value


def state_of(arguments: argparse.Namespace) -> Path:
    """Where the memory is."""
    return default_state() if arguments.state is None else arguments.state


def default_state() -> Path:
    """Where it is unless somebody said otherwise."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".local" / "state") / "skillwire"


@asynccontextmanager
async def opened_store(arguments: argparse.Namespace) -> AsyncGenerator[Store]:
    """The memory alone; no server is asked."""
    from skillwire.host.skill_host import open_store

    store = await open_store(state_of(arguments))
    try:
        yield store
    finally:
        await store.close()


def run_with_store(arguments: argparse.Namespace, printer: Printer, work: Work) -> int:
    """Hand the memory to ``work``; its number is the exit code."""

    async def run() -> int:
        async with opened_store(arguments) as store:
            return await work(store, arguments, printer)

    return run_async(run, printer)


def run_with_host(
    arguments: argparse.Namespace,
    printer: Printer,
    work: Work,
    *,
    ask: Ask | None = None,
    policy: Policy | None = None,
) -> int:
    """Open a host, wait for its origins, hand it to ``work``; its number is the exit code."""

    async def run() -> int:
        from skillwire.host.approvals import cannot_ask
        from skillwire.host.skill_host import SkillHost

        async with SkillHost.open(
            config=arguments.config,
            folders=arguments.folder,
            state=state_of(arguments),
            policy=policy,
            ask=ask or cannot_ask,
        ) as host:
            await _settle(host, arguments.wait, printer)
            return await work(host, arguments, printer)

    return run_async(run, printer)


def run_async(work: Callable[[], Awaitable[int]], printer: Printer) -> int:
    """Run ``work`` to its end. What was refused is said and ends with 1; ``main`` knows the other errors."""
    import anyio  # late: only once the words are understood

    for name in ("mcp", "httpx2"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters of it comes as an error of ours
    try:
        return anyio.run(work)
    except (ApprovalError, VerificationError) as error:
        printer.error(error)
        return Exit.PROBLEMS


async def _settle(host: Host, patience: float, printer: Printer) -> None:
    """Wait for every origin; a person who waits long is told for which."""
    await host.settle(min(patience, _PATIENCE_SECONDS))
    late = [origin.label for origin in host.origins if _is_pending(origin)]
    if late and patience > _PATIENCE_SECONDS:
        printer.talk(f"waiting for {listed(late)} …")
        await host.settle(patience - _PATIENCE_SECONDS)


def _is_pending(origin: Origin) -> bool:
    return origin.error is None and origin.state in ("connecting", "stale")


async def find_skill(host: Host, name: str, printer: Printer, *, whole: bool = True) -> NamedEntry:
    """The skill that a person means. If there is none, they learn whose skills are not known just now."""
    try:
        return await host.find(name, whole=whole)
    except NotFoundError:
        say_troubles(host.origins, printer)
        raise


def say_troubles(origins: Iterable[Origin], printer: Printer) -> int:
    """Say which origins did not answer, or not with everything; how many."""
    found = [origin for origin in origins if origin.state != "complete"]
    for origin in found:
        printer.talk(f"{line(origin.label)} is {origin.state}{_reason(origin)}")
    return len(found)


def _reason(origin: Origin) -> str:
    if origin.error is not None:
        return f": {line(origin.error.message)} {origin.error.label}"
    if origin.state == "partial":
        return ": entries were left out; 'skillwire origins test' says which"
    return ": it has not answered yet"


def line(text: str) -> str:
    """A stranger's text in one line, with nothing in it that a terminal would act on."""
    from skillwire.cli.printer import visible

    return visible(" ".join(text.split()))


def listed(names: Iterable[str]) -> str:
    """Names with commas between them."""
    return ", ".join(line(name) for name in names)


def moment(at: float | None) -> str:
    """A time as people read it where they are."""
    return "" if at is None else datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def stamp(at: float) -> str:
    """The same time for programs."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
