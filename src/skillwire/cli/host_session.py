"""The host of the command line: its options, and how verbs open it, or only its store."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from skillwire.cli.command import (
    FILE,
    JSON,
    Arguments,
    DatabasePlace,
    Seconds,
    UserName,
    VerbWork,
    argument,
    option,
    repeated,
    run_async,
)
from skillwire.cli.printer import Printer, line
from skillwire.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from skillwire.host.approvals import Ask, Policy
    from skillwire.host.host import SkillHost
    from skillwire.host.origins import NamedEntry, Origin


def system_user() -> str:
    """Return the user of the operating system. ``LOGNAME`` and the like are ignored: any program can set them."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


BY = option(
    "--by",
    type=UserName(),
    default=system_user,
    metavar="WHO",
    help="who decides, for the record (default: your user name)",
)
NAME = argument("name", "NAME", "a name from 'skillwire list --origins', origin:name, origin:path, or a URI")
STATE = option(
    "--state",
    type=DatabasePlace(),
    metavar="DIR",
    help="the state folder, or a postgresql:// URL"
    " (default: $XDG_STATE_HOME/skillwire, or ~/.local/state/skillwire)",
)
CONFIG = option(
    "--config", type=FILE, metavar="FILE", help="an mcpServers file, in addition to the stored origins"
)
FOLDER = repeated("--folder", type=FILE, metavar="DIR", help="a folder of yours (repeatable)")
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


def host_command(arguments: Arguments, *words: str) -> list[str]:
    """Return a command with the options that select this host, for a hint."""
    return ["skillwire", *words, *host_words(arguments)]


def host_words(arguments: Arguments, *names: str) -> list[str]:
    """Return the options that select this host, or only those with the given names."""
    given = [("config", getattr(arguments, "config", None)), ("state", getattr(arguments, "state", None))]
    given += [("folder", folder) for folder in getattr(arguments, "folder", ())]
    return [
        word
        for name, value in given
        if value is not None and (not names or name in names)
        for word in (f"--{name}", str(value))
    ]


def state_of(arguments: Arguments) -> str | Path:
    """Return the state folder, or the URL of a database."""
    from skillwire.store.place import USER, expanded_state, state_folder

    return state_folder(USER) if arguments.state is None else expanded_state(arguments.state)


def run_with_store(arguments: Arguments, printer: Printer, work: VerbWork) -> int | None:
    """Open the store without connecting to servers, pass it to ``work``, and return its exit code."""

    async def run() -> int | None:
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
    work: VerbWork,
    *,
    ask: Ask | None = None,
    policy: Policy | None = None,
) -> int | None:
    """Open a host, wait for its origins, pass it to ``work``, and return its exit code."""

    async def run() -> int | None:
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
            with printer.progress("Waiting for origins", "skills"):
                await host.settle(arguments.timeout)
            return await work(host, arguments, printer)

    return run_async(run)


async def find_skill(host: SkillHost, arguments: Arguments, printer: Printer, *, whole: bool = True) -> NamedEntry:
    """Find the skill NAME. If it is unknown, print the origins without a complete listing."""
    from difflib import get_close_matches

    try:
        return await host.find(arguments.name, whole=whole)
    except NotFoundError as error:
        print_incomplete(host.registry, arguments, printer)
        if not list(host.registry):
            error.hint = "there are no origins; add one: skillwire origins add LABEL URL"
        elif error.reference == "skill-unknown":
            near = get_close_matches(arguments.name, [skill.name for skill in host.names.skills], 3)
            command = shlex.join(["skillwire", "list", "--origins", *host_words(arguments)])
            error.hint = f"did you mean {' or '.join(near)}?" if near else f"see the names: {command}"
        raise


def print_incomplete(origins: Iterable[Origin], arguments: Arguments, printer: Printer) -> int:
    """Print the origins without a complete listing, and return their number."""
    found = [origin for origin in origins if origin.state != "complete"]
    for origin in found:
        if origin.error is not None:
            reason = f"{line(origin.error.message)} {origin.error.label}"
        elif origin.state == "partial":
            words = host_words(arguments, "config", "state")
            command = shlex.join(["skillwire", "origins", "test", origin.label, *words])
            reason = f"some entries cannot be used; see them: {line(command)}"
        else:
            reason = "no response yet"
        printer.talk(f"{line(origin.label)} is {origin.state}: {reason}")
    return len(found)
