"""The host of the command line: its options, and how verbs open it, or only its store."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from skillwire.cli.command import JSON, Arguments, Seconds, argument, option, repeated, run_async
from skillwire.cli.printer import Printer, line, listed
from skillwire.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from skillwire.host.approvals import Ask, Policy
    from skillwire.host.host import SkillHost
    from skillwire.host.names import NamedEntry
    from skillwire.host.origins import Origin

    Work: TypeAlias = "Callable[..., Awaitable[int]]"

NAME = argument("name", "NAME", "a name from 'skillwire list --origins', origin:name, origin:path, or a URI")
STATE = option(
    "--state",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="the state folder (default: $XDG_STATE_HOME/skillwire, or ~/.local/state/skillwire)",
)
CONFIG = option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="an mcpServers file, in addition to the stored origins",
)
FOLDER = repeated(
    "--folder", type=click.Path(path_type=Path), metavar="DIR", help="a folder of yours (repeatable)"
)
TIMEOUT = option(
    "--timeout",
    type=Seconds(),
    default=10.0,
    metavar="SECONDS",
    help="how long to wait for servers (default: 10)",
)
STORE_OPTIONS = (STATE, JSON)
SERVER_OPTIONS = (*STORE_OPTIONS, CONFIG, TIMEOUT)
HOST_OPTIONS = (*SERVER_OPTIONS, FOLDER)
_PATIENCE_SECONDS = 2.0


def host_words(arguments: Arguments) -> list[str]:
    """Return the options that select this host, for a command in a hint."""
    given = [("--config", getattr(arguments, "config", None)), ("--state", arguments.state)]
    given += [("--folder", folder) for folder in getattr(arguments, "folder", ())]
    return [word for option, value in given if value is not None for word in (option, str(value))]


def system_user() -> str:
    """Return the user of the operating system. ``LOGNAME`` and the like are ignored: any program can set them."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def state_of(arguments: Arguments) -> Path:
    """Return the state folder."""
    from skillwire.host.state import USER, state_folder  # late: it imports the store

    return state_folder(USER if arguments.state is None else arguments.state)


def run_with_store(arguments: Arguments, printer: Printer, work: Work) -> int:
    """Open the store without connecting to servers, pass it to ``work``, and return its exit code."""

    async def run() -> int:
        from skillwire.host.state import open_store

        store = await open_store(state_of(arguments))
        try:
            return await work(store, arguments, printer)
        finally:
            await store.close()

    return run_async(run)


def run_with_host(
    arguments: Arguments,
    printer: Printer,
    work: Work,
    *,
    ask: Ask | None = None,
    policy: Policy | None = None,
) -> int:
    """Open a host, wait for its origins, pass it to ``work``, and return its exit code."""

    async def run() -> int:
        from skillwire.host.approvals import cannot_ask
        from skillwire.host.host import SkillHost

        async with SkillHost.open(
            config=arguments.config,
            folders=arguments.folder,
            state=state_of(arguments),
            stored_origins=True,
            policy=policy,
            ask=ask or cannot_ask,
        ) as host:
            await _settle(host, arguments.timeout, printer)
            return await work(host, arguments, printer)

    return run_async(run)


async def _settle(host: SkillHost, patience: float, printer: Printer) -> None:
    """Wait for every origin. After a while, print which ones are missing."""
    await host.settle(min(patience, _PATIENCE_SECONDS))
    late = [o.label for o in host.registry if o.error is None and o.state in ("connecting", "stale")]
    if late and patience > _PATIENCE_SECONDS:
        printer.talk(f"waiting for {listed(late)} …")
        await host.settle(patience - _PATIENCE_SECONDS)


async def find_skill(host: SkillHost, arguments: Arguments, printer: Printer, *, whole: bool = True) -> NamedEntry:
    """Find the skill NAME. If it is unknown, print the origins whose skills are not known either."""
    try:
        return await host.find(arguments.name, whole=whole)
    except NotFoundError:
        print_incomplete(host.registry, arguments, printer)
        raise


def print_incomplete(origins: Iterable[Origin], arguments: Arguments, printer: Printer) -> int:
    """Print the origins without a complete listing, and return their number."""
    found = [origin for origin in origins if origin.state != "complete"]
    for origin in found:
        if origin.error is not None:
            reason = f"{line(origin.error.message)} {origin.error.label}"
        elif origin.state == "partial":
            given = [word for word in ("config", "state") if getattr(arguments, word, None) is not None]
            options = [each for word in given for each in (f"--{word}", str(getattr(arguments, word)))]
            command = shlex.join(["skillwire", "origins", "test", origin.label, *options])
            reason = f"some entries cannot be used; see them: {line(command)}"
        else:
            reason = "no response yet"
        printer.talk(f"{line(origin.label)} is {origin.state}: {reason}")
    return len(found)
