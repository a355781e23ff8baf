"""``skillwire connect``: adds a server to the MCP configuration of an agent, or removes it again.

The server is tried first. What does not start or respond is not written, unless ``--force`` is given. Paths are
absolute, because an agent starts a server from any folder.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillwire.cli.command import (
    COMMAND,
    JSON,
    Arguments,
    Exit,
    TargetPlace,
    again,
    argument,
    command_words,
    flag,
    option,
    run_async,
    verb,
)
from skillwire.cli.consent import allow, forget, is_allowed
from skillwire.cli.install_session import complete_agents, require_answer, require_approval, scope_of, scope_option
from skillwire.cli.printer import Printer, counted, line, visible
from skillwire.cli.targets import TIMEOUT
from skillwire.errors import FormatError, NotFoundError, SkillwireError, StoreError, UpstreamError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire.install.config_edit import Edit

_STYLES = {"+": "green", "-": "red"}
# The arguments are right, but the file of the agent, or the disk, cannot be changed: exit code 1.
_ABOUT_THE_FILE = frozenset({
    "config-backups", "config-by-hand", "config-changed", "config-invalid", "config-taken", "config-unreadable",
    "folder-elsewhere", "write-failed",
})  # fmt: skip


@verb(
    "Try a server, show the change to the file where an agent keeps its MCP servers, ask, and write it.",
    argument(
        "target",
        "[TARGET]",
        "a folder of skills, a Git repository, a URL, or a command after --",
        type=TargetPlace(),
        required=False,
    ),
    option(
        "--agent",
        metavar="AGENT",
        help="the agent, such as claude-code or codex (required)",
        shell_complete=complete_agents,
    ),
    option("--name", default="skillwire", help="the name of the server in the agent (default: skillwire)"),
    flag("--undo", help="remove the entry; no TARGET is needed"),
    flag("--force", help="write the entry although the server does not start or respond"),
    flag("--yes", help="do not ask; the change is still shown"),
    TIMEOUT,
    JSON,
    scope_option("the file of the agent in this folder", "the file of the agent in your home folder"),
    targets=1,
    examples="""\
  skillwire connect ./skills --agent cursor
  skillwire connect acme/skills@v1 --agent claude-code
  skillwire connect https://skills.example.com/mcp --agent cursor --global --name acme
  skillwire connect --agent claude-code -- npx some-mcp-server ./skills
  skillwire connect --agent cursor --global --name acme --undo

Comments, order and spacing of the file are preserved. A copy of the old file is kept beside it.

exit codes: 0 done, 1 nothing was changed: not confirmed, the name is taken, or the file cannot be changed,
2 usage, or the server does not respond
""",
)
def command(arguments: Arguments, printer: Printer) -> int:
    """Connect a server."""
    from skillwire.install.agents import find_config
    from skillwire.install.config_edit import check_name

    if arguments.target is None and not arguments.undo:
        raise FormatError(
            "argument-invalid",
            "no server was given: a folder, a URL, or a command after --",
            f"write: skillwire connect ./skills --agent {shlex.quote(arguments.agent or 'claude-code')}",
        )
    if arguments.agent is None:
        hint = f"name it, for example: {again(arguments, '--agent', 'claude-code')}"
        raise FormatError("agent-missing", "no agent was given", hint)
    find_config(arguments.agent)
    check_name(arguments.name)
    # Before a server is started.
    require_answer(arguments, f"see the change and write it: {again(arguments, '--yes')}")
    return run_async(lambda: _connect(arguments, printer))


async def _connect(arguments: Arguments, printer: Printer) -> int:
    from skillwire.install.agents import entry_for, find_config

    entry: dict[str, Any] = {}
    if not arguments.undo:
        url, words = _server(arguments)
        if not arguments.force:
            url = await _try(url, words, arguments, printer)
        entry = entry_for(find_config(arguments.agent).shape, url=url, command=words, name=arguments.name)
    try:
        return await _change(arguments, entry, printer)
    except (FormatError, StoreError) as error:
        if error.reference not in _ABOUT_THE_FILE:
            raise
        printer.failure(error)
        if error.reference == "config-by-hand" and not arguments.undo:
            from skillwire.install.config_edit import lines_to_add

            for each in lines_to_add(arguments.agent, arguments.name, entry):
                printer.data(each)
        return Exit.PROBLEMS


def _server(arguments: Arguments) -> tuple[str | None, list[str]]:
    """Return the URL of the server, or the command that starts it."""
    from skillwire.catalog.git_source import parse_git_source
    from skillwire.client.servers import UrlServer, as_url, target_kind
    from skillwire.install.servers import portable_words

    target = arguments.target
    if target == COMMAND:
        return None, portable_words(command_words(arguments.commands[0]), Path.cwd())
    if target_kind(target) == "git":
        return None, [*_own_command(), "serve", f"git+{parse_git_source(target)}"]
    url = as_url(target)
    if url is not None:
        UrlServer(url)  # raises if it is invalid
        return url, []
    if not os.path.isdir(target):
        raise NotFoundError(
            "target-unknown",
            f"{target!r:.200} is not a folder, a repository or a URL",
            "use a folder of skills, owner/repository, a URL, or a command after --",
        )
    return None, [*_own_command(), "serve", os.path.abspath(target)]


def _own_command() -> list[str]:
    """Return the absolute command that starts this program."""
    started = sys.argv[0]
    if os.sep in started and os.path.basename(started) == "skillwire":
        return [os.path.abspath(started)]
    beside = os.path.join(os.path.dirname(sys.executable), "skillwire")
    return [beside] if os.access(beside, os.X_OK) else [sys.executable, "-m", "skillwire"]


async def _try(url: str | None, words: Sequence[str], arguments: Arguments, printer: Printer) -> str | None:
    """Connect to the server, and return the URL that responded, if it is one."""
    from skillwire.bootstrap import TargetOptions, open_target

    responded: list[str] = []
    options = TargetOptions(timeout=arguments.timeout, on_url=responded.append)
    try:
        with printer.progress("Trying the server", "skills"):
            async with open_target(url or list(words), options, folder=Path.cwd(), home=Path.home()) as catalog:
                count = len([entry async for entry in catalog.entries()])
    except SkillwireError as error:
        hint = f"see why: {shlex.join(words)}" if words else error.hint or "correct the URL"
        raise UpstreamError(
            "server-not-usable",
            f"the server does not work, so nothing was written: {error.message}",
            f"{hint}; to write the entry nevertheless, add --force",
        ) from error
    printer.talk(f"the server responds, with {counted(count, 'skill')}")
    return responded[0] if responded else None


async def _change(arguments: Arguments, entry: dict[str, Any], printer: Printer) -> int:
    from skillwire.install.agents import AGENTS
    from skillwire.install.config_edit import apply_edit, plan_connect, plan_undo

    def created(path: Path) -> dict[str, str]:
        """Remember that the file is ours, so that ``--undo`` may remove it without keeping a copy."""
        return {"created": str(path), "name": arguments.name}

    if arguments.undo:
        scope = scope_of(arguments)
        edit = plan_undo(arguments.agent, arguments.name, scope, lambda path: is_allowed(created(path)))
    else:
        edit = plan_connect(arguments.agent, arguments.name, entry, scope_of(arguments))
    if edit is None:
        printer.talk(f"{line(arguments.name)} is already in the file")
        return Exit.OK
    _show(edit, printer)
    await require_approval(f"Change {line(edit.label)} like this?", arguments, printer)
    backup = apply_edit(edit)
    if edit.is_new:
        allow(created(edit.file.path))
    elif edit.new is None:
        forget(created(edit.file.path))
    done = "removed" if edit.new is None else "changed"
    printer.json({"file": edit.label, done: arguments.name, "backup": backup and backup.name})
    printer.talk(
        f"{'created' if edit.is_new else done} {line(edit.label)}"
        + ("" if backup is None else f"; the old file is {line(backup.name)}")
    )
    known = AGENTS.get(arguments.agent)
    printer.talk(f"restart {arguments.agent if known is None else known.title}: it reads the file when it starts")
    return Exit.OK


def _show(edit: Edit, printer: Printer) -> None:
    from rich.text import Text

    printer.talk(Text(edit.label + (" (new)" if edit.is_new else ""), style="bold"))
    for each in edit.lines:
        printer.talk(Text(f"  {line(each[:1])}{visible(each[1:])}", style=_STYLES.get(each[:1], "")))
