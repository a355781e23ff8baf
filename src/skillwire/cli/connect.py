"""``skillwire connect``: adds a server to the MCP configuration of a host, or removes it again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillwire.cli.command import COMMAND, Arguments, Exit, Verbs, add_verb, run_async
from skillwire.cli.install_session import add_scope_options, require_answer, require_approval, scope_of
from skillwire.cli.printer import Printer, line, visible
from skillwire.errors import FormatError, StoreError

if TYPE_CHECKING:
    from skillwire.install.config_edit import Edit

TARGETS = 1
_STYLES = {"+": "green", "-": "red"}
# The arguments are right, but the file of the host, or the disk, cannot be changed: exit code 1.
_ABOUT_THE_FILE = frozenset({
    "config-backups", "config-by-hand", "config-changed", "config-invalid", "config-taken", "config-unreadable",
    "folder-elsewhere", "write-failed",
})  # fmt: skip
_EXAMPLES = """\
examples:
  skillwire connect --agent claude-code -- skillwire serve ./skills
  skillwire connect --agent cursor --global --name acme --url https://skills.example.com/mcp
  skillwire connect --agent cursor --global --name acme --undo

Comments, order and spacing of the file are preserved. A copy of the old file is kept beside it.

exit codes: 0 done, 1 nothing was changed: not confirmed, the name is taken, or the file cannot be changed, 2 usage
"""


def add_arguments(verbs: Verbs) -> None:
    """Add the parser of the verb."""
    parser = add_verb(
        verbs,
        "connect",
        run,
        "add a server to the MCP configuration of a host",
        "Show the change to the file where a host keeps its MCP servers, ask, and write it in one step.",
        _EXAMPLES,
    )
    parser.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("--agent", required=True, metavar="AGENT", help="the host, such as claude-code or codex")
    parser.add_argument(
        "--name", default="skillwire", help="the name of the server in the host (default: skillwire)"
    )
    parser.add_argument(
        "--url", help="the address of the server; otherwise write the command that starts it after --"
    )
    parser.add_argument("--undo", action="store_true", help="remove the entry")
    parser.add_argument("--yes", action="store_true", help="do not ask; the change is still shown")
    add_scope_options(parser, "the file of the host in this folder", "the file of the host in your home folder")


def run(arguments: Arguments, printer: Printer) -> int:
    """Connect a server."""
    from skillwire.install.agents import find_config
    from skillwire.install.servers import from_anywhere

    if arguments.command is not None and arguments.command != COMMAND:
        raise FormatError("argument-invalid", "the command must follow --", "write: -- COMMAND ARGUMENTS")
    words: list[str] = arguments.commands[0] if arguments.commands else []
    if sum((bool(words), arguments.url is not None, arguments.undo)) != 1:
        raise FormatError(
            "argument-invalid",
            "exactly one of --url, --undo and a command after -- is required",
            "see: skillwire connect --help",
        )
    if arguments.scope == "global":
        words = from_anywhere(words, Path.cwd())
    find_config(arguments.agent)
    return run_async(lambda: _connect(arguments, words, printer), printer)


async def _connect(arguments: Arguments, words: list[str], printer: Printer) -> int:
    from skillwire.install.config_edit import check_name

    check_name(arguments.name)
    entry = _entry(arguments, words)
    try:
        return await _change(arguments, entry, printer)
    except (FormatError, StoreError) as error:
        if error.reference not in _ABOUT_THE_FILE:
            raise
        printer.error(error)
        if error.reference == "config-by-hand" and not arguments.undo:
            _show_lines(arguments, entry, printer)
        return Exit.PROBLEMS


async def _change(arguments: Arguments, entry: dict[str, Any], printer: Printer) -> int:
    from skillwire.install.config_edit import apply_edit, plan_connect, plan_undo

    if arguments.undo:
        edit = plan_undo(arguments.agent, arguments.name, scope_of(arguments))
    else:
        edit = plan_connect(arguments.agent, arguments.name, entry, scope_of(arguments))
    if edit is None:
        printer.talk(f"{line(arguments.name)} is already in the file")
        return Exit.OK
    _show(edit, printer)
    require_answer(arguments, "add --yes")
    await require_approval(f"Change {line(edit.label)} like this?", arguments, printer)
    backup = apply_edit(edit)
    done = "removed" if edit.new is None else "changed"
    printer.talk(
        f"{done} {line(edit.label)}" + ("" if backup is None else f"; the old file is {line(backup.name)}")
    )
    return Exit.OK


def _entry(arguments: Arguments, words: list[str]) -> dict[str, Any]:
    from skillwire.install.agents import entry_for, find_config

    if arguments.undo:
        return {}
    if arguments.url is not None:
        from skillwire.client.servers import UrlServer

        UrlServer(arguments.url)  # raises if it is invalid
    shape = find_config(arguments.agent).shape
    return entry_for(shape, url=arguments.url, command=words, name=arguments.name)


def _show_lines(arguments: Arguments, entry: dict[str, Any], printer: Printer) -> None:
    from skillwire.install.config_edit import lines_to_add

    for each in lines_to_add(arguments.agent, arguments.name, entry):
        printer.data(each)


def _show(edit: Edit, printer: Printer) -> None:
    from rich.text import Text

    printer.talk(Text(edit.label + (" (new)" if edit.is_new else ""), style="bold"))
    for each in edit.lines:
        printer.talk(Text(f"  {line(each[:1])}{visible(each[1:])}", style=_STYLES.get(each[:1], "")))
