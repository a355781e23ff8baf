"""Installing skills from the command line: shared options, questions, and opening a server of the lock again.

If any skill is refused or skipped, the exit code is 1. A wrong argument or an unusable lock is 2. The lock of a
project may name programs; they start only if the user, or an option, allows it.
"""

from __future__ import annotations

import os
import shlex
import time
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from skillwire.cli.command import JSON, Arguments, again, flag, option, repeated
from skillwire.cli.consent import allow, ask_for_servers, is_allowed
from skillwire.cli.printer import Printer, line, utc_text
from skillwire.cli.prompts import can_ask, confirm, no_terminal, page
from skillwire.cli.targets import TIMEOUT, parse_headers
from skillwire.errors import ApprovalError, FormatError, NotFoundError, SkillwireError, UpstreamError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterable, Sequence

    import click

    from skillwire.catalog.contract import Catalog
    from skillwire.install.installation import Backups, Fetched, InstallOutcome, Signature
    from skillwire.install.lock import Installed, Server
    from skillwire.install.places import InstallScope

T = TypeVar("T")
_ROWS = 40


def scope_option(
    project: str = "./skills.lock.json", everything: str = "~/.config/skillwire/skills.lock.json"
) -> click.Option:
    """Return the option ``--global``; its help names the two files."""
    return option(
        "--global/--project",
        "is_global",
        help=f"for all your projects: {everything}, or for this one (the default): {project}",
    )


SCOPE = scope_option()


def complete_agents(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of an agent in a shell."""
    from skillwire.install.agents import AGENTS

    return [agent for agent in AGENTS if agent.startswith(incomplete)]


AGENT = repeated(
    "--agent",
    metavar="AGENT",
    help="such as claude-code or codex (repeatable)",
    shell_complete=complete_agents,
)
AGENT_DIR = repeated(
    "--agent-dir", metavar="FOLDER", help="the skills folder of an agent without a name here (repeatable)"
)
FORCE = flag("--force", help="replace edited files; a copy is kept")
LOCK_OPTIONS = (
    SCOPE,
    JSON,
    repeated("--header", metavar="'NAME: VALUE'", help="sent to the URL in the lock (repeatable)"),
    TIMEOUT,
    flag("--allow-servers", help="start the programs and contact the servers that the project's lock names"),
)


def is_about_installed(arguments: Arguments) -> bool:
    """Return whether ``--installed`` was given. It excludes a TARGET."""
    if arguments.installed and arguments.target is not None:
        raise FormatError(
            "argument-invalid",
            "only one of TARGET and --installed is possible",
            f"write: skillwire {arguments.verb} ./skills, or: skillwire {arguments.verb} --installed",
        )
    return arguments.installed


def scope_of(arguments: Arguments) -> InstallScope:
    """Return the current project or the whole account. Z2: folders that the user typed are remembered."""
    from skillwire.install.places import InstallScope

    typed = {os.path.realpath(os.path.expanduser(folder)) for folder in getattr(arguments, "agent_dir", ())}
    for folder in typed:
        allow({"folder": folder})

    def is_typed(folder: Path) -> bool:
        return str(folder) in typed or is_allowed({"folder": str(folder)})

    kind = "global" if arguments.is_global else "project"
    return InstallScope(kind, Path.cwd(), Path.home(), os.environ, is_typed)


def backups(*, force: bool = False) -> Backups:
    """Return where copies of edited files go. They are replaced only with ``force``."""
    from skillwire.install.installation import Backups
    from skillwire.store.place import state_folder

    return Backups(state_folder() / "backups", timestamp(), force)


def timestamp() -> str:
    """Return the current time in UTC, in seconds."""
    return utc_text(time.time(), "seconds")


def recover_first(scope: InstallScope, printer: Printer, agents: Iterable[str] = ()) -> None:
    """Complete or undo the changes of killed processes, before any other change."""
    from skillwire.install.installation import recover

    for place in recover(scope, agents, backups()):
        printer.talk(f"an unfinished change was undone; a copy of it is in {line(str(place))}")


def signature(arguments: Arguments) -> Signature:
    """Return the user who approves, the time, and the version of this program."""
    from skillwire import __version__
    from skillwire.install.installation import Signature

    return Signature(arguments.by, timestamp(), f"skillwire {__version__}")


def require_answer(arguments: Arguments, hint: str, *, rule: str = "") -> None:
    """Require ``--yes`` if no terminal is available to ask."""
    if not arguments.yes and not can_ask():
        raise no_terminal(hint, rule)


def require_review(arguments: Arguments, review: str) -> None:
    """Require ``--yes`` if no terminal is available. ``review`` is the command that shows the content."""
    require_answer(arguments, f"review it: {review}; then: {again(arguments, '--yes')}", rule="A1")


async def require_approval(question: str, arguments: Arguments, printer: Printer) -> None:
    """Raise ``ApprovalError`` unless the user confirms ``question`` or gave ``--yes``."""
    if not arguments.yes and not await confirm(question, printer):
        raise ApprovalError("not-approved", "not confirmed", "nothing was written", rule="A1")


def show_skill(fetched: Fetched, server: Server, printer: Printer, *, with_source: bool) -> None:
    """Print the page about a skill before the question. An update shows changed lines instead of the source."""
    from skillwire.host.approvals import ApprovalRequest
    from skillwire.skill.approval import has_contents

    kind = "load" if has_contents(fetched.entry) else "dynamic"
    where = server_text(server) + (f" at commit {fetched.commit[:12]}" if fetched.commit else "")
    request = ApprovalRequest(kind, where, fetched.entry, fetched.review)
    for each in page(request, None, at_most=_ROWS, to_install=True, with_source=with_source):
        printer.talk(each)


def show_outcome(outcome: InstallOutcome, name: str, printer: Printer) -> None:
    """Print the written folders, and the copies of replaced files."""
    for label in outcome.written:
        printer.data(f"wrote {line(label)}/{line(name)}")
    show_backups(outcome, printer)


def show_backups(outcome: InstallOutcome, printer: Printer) -> None:
    """Print where the copies of edited files are."""
    for place in outcome.backups:
        printer.talk(f"a copy of the edited files is in {line(str(place))}")


def server_text(server: Server) -> str:
    """Return a server as a user would type it. A relative folder begins with ``./``, unlike owner/repository."""
    if server.kind == "command":
        return shlex.join(server.words)
    is_bare = server.kind == "folder" and not server.words[0].startswith(("/", "."))
    return f"./{server.words[0]}" if is_bare else server.words[0]


async def visit_installed(
    skills: Iterable[Installed],
    visit: Callable[[Catalog, Installed], Awaitable[T]],
    scope: InstallScope,
    arguments: Arguments,
    printer: Printer,
    *,
    on_error: Callable[[SkillwireError], None] = lambda _: None,
    at_commit: bool = False,
) -> dict[str, T | SkillwireError]:
    """Call ``visit`` with each skill and the catalog of its server. Return the results by name.

    An error of one skill does not stop the others; the error of a server is that of all its skills. Repositories
    are opened at their newest commit, or with ``at_commit`` at the one in the lock.
    """
    groups: dict[tuple[Server, str | None], list[Installed]] = {}
    for skill in skills:
        groups.setdefault((skill.server, skill.commit if at_commit else None), []).append(skill)
    headers = _headers_for([server for server, _ in groups], arguments)
    found: dict[str, T | SkillwireError] = {}
    for (server, commit), members in groups.items():
        try:
            async with _open_server(server, scope, arguments, headers, printer, commit) as catalog:
                if not at_commit:
                    await _report_rewritten(catalog, members, printer)
                for skill in members:
                    try:
                        found[skill.name] = await visit(catalog, skill)
                    except SkillwireError as error:
                        found[skill.name] = error
                        on_error(error)
        except SkillwireError as error:
            found |= {skill.name: error for skill in members}
            on_error(error)
    return found


def _headers_for(servers: Sequence[Server], arguments: Arguments) -> dict[str, str]:
    """Return the headers of ``--header``, unless more than one server would get them."""
    headers = parse_headers(arguments.header)
    if headers and len({server.origin for server in servers if server.kind in ("url", "label")}) > 1:
        raise FormatError(  # a label may stand for a URL too
            "header-ambiguous",
            "the lock names several servers, and --header would go to all of them",
            "name only skills of one server, or write the headers of each into an mcpServers file",
        )
    return headers


@contextmanager
def prefix_errors(server: Server) -> Generator[None]:
    """Add the name of the server to connection errors, because a lock may have many. Errors of Git have it."""
    try:
        yield
    except UpstreamError as error:
        if server.kind == "git":
            raise
        error.message = f"{line(server_text(server))[:200]}: {error.message}"
        raise


@asynccontextmanager
async def _open_server(
    server: Server,
    scope: InstallScope,
    arguments: Arguments,
    headers: dict[str, str],
    printer: Printer,
    commit: str | None,
) -> AsyncGenerator[Catalog]:
    """Open a server from the lock as a catalog; a repository at ``commit``, if it is given."""
    from skillwire.bootstrap import TargetOptions, open_target
    from skillwire.cli.registry_session import stored_token
    from skillwire.install.servers import base_of, needs_consent, target_of

    target, config = target_of(server, scope, commit)
    foreign = needs_consent(server, scope)
    if foreign is not None:
        await ask_for_servers(printer, "--allow-servers", is_given=arguments.allow_servers)(*foreign)
        if server.kind == "label":
            target, config = foreign.entry, None  # exactly the entry that was allowed
    if server.kind == "git":
        headers = {}  # they are for the MCP servers in the lock; git signs in by itself
    options = TargetOptions(
        config,
        headers,
        server.dialect,
        server.era or "auto",
        timeout=arguments.timeout,
        sign_in=lambda url: stored_token(arguments, url),
    )
    async with AsyncExitStack() as stack:
        try:
            with prefix_errors(server):
                opened = open_target(target, options, folder=base_of(scope), home=scope.home)
                catalog = await stack.enter_async_context(opened)
        except NotFoundError as error:
            if commit is None or error.reference != "git-ref-unknown":
                raise
            raise NotFoundError(
                "lock-commit-gone",
                f"{server_text(server)!r:.200} no longer has the commit {commit[:12]} of the lock: its history was"
                " rewritten",
                f"see what it has now: {scope.command('update')}",
            ) from error
        yield catalog


async def _report_rewritten(catalog: Catalog, skills: Sequence[Installed], printer: Printer) -> None:
    """Warn if a commit in the lock is not in the history of the commit that the repository has now."""
    from skillwire.catalog.git import HISTORY, GitCatalog

    if not isinstance(catalog, GitCatalog) or catalog.commit is None:
        return
    for commit in sorted(
        {skill.commit for skill in skills if skill.commit not in (None, catalog.commit)}, key=str
    ):
        position = await catalog.repository.position(str(commit), catalog.commit)
        where = f"{line(str(catalog.source))}: the commit {str(commit)[:12]} in the lock is not"
        if position == "rewritten":
            printer.talk(f"warning: {where} in its history, which was rewritten; look closely at the changes")
        elif position == "unknown":
            printer.talk(f"note: {where} among the last {HISTORY} commits, so its history may have been rewritten")
