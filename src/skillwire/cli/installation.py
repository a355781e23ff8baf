"""The verbs that install skills for agents: the options they share, and how a recorded server is opened again.

What was refused or skipped ends with 1, whatever else was done; a wrong word, or a lock that cannot be used, with
2. A lock that came with a project may name programs: they are started only if a person, or a flag, says so.
"""

from __future__ import annotations

import os
import shlex
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from skillwire.cli.consent import allow, ask_for_servers, is_allowed
from skillwire.cli.hosting import default_state, line
from skillwire.cli.prompts import can_ask, confirm
from skillwire.errors import ApprovalError, FormatError, UpstreamError

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncGenerator, Generator, Iterable, Sequence

    from skillwire.catalog.contract import Catalog
    from skillwire.cli.printer import Printer
    from skillwire.install.fetch import Fetched
    from skillwire.install.installation import Outcome, Signature
    from skillwire.install.lock import Installed, Lock, Server
    from skillwire.install.places import Scope

JSON_HELP = "a document for programs instead of text for people"


def add_scope_options(
    parser: argparse.ArgumentParser,
    project: str = "./skills.lock.json",
    everything: str = "~/.config/skillwire/skills.lock.json",
) -> None:
    """``--project`` or ``--global``, and the file that each is about."""
    scope = parser.add_mutually_exclusive_group()
    scope.add_argument(
        "--project",
        action="store_const",
        const="project",
        dest="scope",
        help=f"for this project: {project} (the default)",
    )
    scope.add_argument(
        "--global",
        action="store_const",
        const="global",
        dest="scope",
        help=f"for all your projects: {everything}",
    )
    parser.set_defaults(scope="project")


def add_agent_options(parser: argparse.ArgumentParser) -> None:
    """``--agent`` and ``--agent-dir``."""
    parser.add_argument(
        "--agent", action="append", default=[], metavar="AGENT", help="such as claude-code or codex (repeatable)"
    )
    add_folder_option(parser)


def add_folder_option(parser: argparse.ArgumentParser) -> None:
    """``--agent-dir``."""
    parser.add_argument(
        "--agent-dir",
        action="append",
        default=[],
        metavar="FOLDER",
        help="the skills folder of an agent that is not known here (repeatable)",
    )


def add_lock_options(parser: argparse.ArgumentParser) -> None:
    """The options of every verb that asks the servers in the lock."""
    add_scope_options(parser)
    add = parser.add_argument
    add("--json", action="store_true", help=JSON_HELP)
    add("--header", action="append", default=[], metavar="'NAME: VALUE'", help="sent to the URL in the lock")
    add(
        "--allow-servers",
        action="store_true",
        help="start the programs and contact the servers that the project's lock names",
    )


def add_signing_options(parser: argparse.ArgumentParser) -> None:
    """Who says yes, for every verb that a person has to say yes to."""
    parser.add_argument("--by", metavar="WHO", help="who says yes, for the lock (default: the user's name)")


def scope_of(arguments: argparse.Namespace) -> Scope:
    """The project that the person stands in, or everything of theirs. Z2: typed folders are remembered."""
    from skillwire.install.places import Scope

    typed = {os.path.realpath(os.path.expanduser(folder)) for folder in getattr(arguments, "agent_dir", ())}
    for folder in typed:
        allow({"folder": folder})

    def is_typed(folder: Path) -> bool:
        return str(folder) in typed or is_allowed({"folder": str(folder)})

    return Scope(arguments.scope, Path.cwd(), Path.home(), os.environ, is_typed)


def backups() -> Path:
    """Where copies go of what was changed by hand and then replaced."""
    return default_state() / "backups"


def stamp() -> str:
    """Now, in seconds of UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def tidy_first(scope: Scope, printer: Printer, agents: Iterable[str] = ()) -> None:
    """What killed processes left, before anything else is done."""
    from skillwire.install.installation import tidy_up

    for place in tidy_up(scope, agents, backups=backups(), stamp=stamp()):
        printer.talk(f"a change that was not finished was taken back; it is kept in {line(str(place))}")


def signature(arguments: argparse.Namespace) -> Signature:
    """Who says yes, when, and with what."""
    from skillwire import __version__
    from skillwire.install.installation import Signature

    return Signature(arguments.by or _user(), stamp(), f"skillwire {__version__}")


def check_signing(arguments: argparse.Namespace) -> None:
    """Before anything is fetched: somebody can be asked, or has said yes; and it is known who."""
    if arguments.by is not None and (not arguments.by.strip() or not arguments.by.isprintable()):
        raise FormatError("argument-invalid", "--by takes a line of text", "leave it out, or name somebody")
    if arguments.by is None:
        _user()
    if not arguments.yes and not can_ask():
        raise FormatError(
            "cannot-ask",
            "a person has to say yes, and nobody can be asked here",
            "look at it first (skillwire show), then use --yes",
            rule="A1",
        )


async def say_yes(question: str, arguments: argparse.Namespace, printer: Printer) -> None:
    """``ApprovalError`` unless the person says yes, or said so beforehand."""
    if not arguments.yes and not await confirm(question, printer):
        raise ApprovalError("not-approved", "nobody said yes", "nothing was written", rule="A1")


def show_skill(fetched: Fetched, server: Server, printer: Printer) -> None:
    """The page about a skill, before the question."""
    from skillwire.cli.prompts import page
    from skillwire.host.approvals import ApprovalRequest
    from skillwire.skill.approval import has_contents

    kind = "load" if has_contents(fetched.entry) else "dynamic"
    request = ApprovalRequest(kind, server_text(server), fetched.entry, fetched.review)
    for each in page(request, None, at_most=40, to_install=True):
        printer.talk(each)


def show_outcome(outcome: Outcome, name: str, printer: Printer) -> None:
    """What was written, and where a copy is of what was replaced."""
    for label in outcome.written:
        printer.data(f"wrote {line(label)}/{line(name)}")
    for place in outcome.backups:
        printer.talk(f"what was changed there is kept in {line(str(place))}")


def server_text(server: Server) -> str:
    """A server as a person would type it."""
    return shlex.join(server.words) if server.kind == "command" else server.words[0]


def chosen(lock: Lock, names: Sequence[str]) -> dict[Server, list[Installed]]:
    """The installed skills that a person named, or all, by server."""
    from skillwire.install.installation import demand_skill

    found: dict[Server, list[Installed]] = {}
    for name in dict.fromkeys(names) if names else sorted(lock.skills):
        skill = demand_skill(lock, name)
        found.setdefault(skill.server, []).append(skill)
    return found


def headers_for(servers: Sequence[Server], arguments: argparse.Namespace) -> dict[str, str]:
    """What ``--header`` gives; refused where more than one server would get it."""
    from skillwire.cli.targets import parse_headers

    headers = parse_headers(arguments.header)
    if headers and len({server.origin for server in servers if server.kind in ("url", "label")}) > 1:
        raise FormatError(  # what has a label may be a URL too
            "header-ambiguous",
            "the lock names several servers, and --header would go to all of them",
            "name the skills of one server, or give each its headers in an mcpServers file",
        )
    return headers


@contextmanager
def naming(server: Server) -> Generator[None]:
    """A server that cannot be reached is named: a lock may have many, and a person has many terminals."""
    try:
        yield
    except UpstreamError as error:
        error.message = f"{line(server_text(server))[:200]}: {error.message}"
        raise


@asynccontextmanager
async def open_server(
    server: Server, scope: Scope, arguments: argparse.Namespace, headers: dict[str, str], printer: Printer
) -> AsyncGenerator[Catalog]:
    """The server that the lock names, as a catalog."""
    from skillwire.bootstrap import TargetOptions, open_target
    from skillwire.install.servers import base_of, needs_consent, target_of

    base, (target, config) = base_of(scope), target_of(server, scope)
    foreign = needs_consent(server, scope)
    if foreign is not None:
        await ask_for_servers(printer, "--allow-servers", is_given=arguments.allow_servers)(*foreign)
        if server.kind == "label":
            target, config = foreign.entry, None  # exactly what was allowed
    options = TargetOptions(config, headers, server.dialect, server.era or "auto", start_in=base)
    with naming(server):
        async with open_target(target, options, folder=base, home=scope.home) as catalog:
            yield catalog


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError) as error:
        raise FormatError("user-unknown", "it is not known who you are", "say it: --by WHO") from error
