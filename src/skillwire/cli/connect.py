"""``skillwire connect``: an MCP server's entry into a host's configuration, shown first, and out of it again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillwire.cli.exits import Exit
from skillwire.cli.hosting import line, run_async
from skillwire.cli.installation import add_scope_options, say_yes, scope_of
from skillwire.cli.parsing import add_verb
from skillwire.cli.prompts import can_ask
from skillwire.cli.targets import COMMAND
from skillwire.errors import FormatError, StoreError

if TYPE_CHECKING:
    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer
    from skillwire.install.config_edit import Edit

TARGETS = 1
_STYLES = {"+": "green", "-": "red"}
# Nothing is wrong with what was typed: the host's file, or the disk, is not as it would have to be.
_ABOUT_THE_FILE = frozenset({
    "config-backups", "config-by-hand", "config-changed", "config-invalid", "config-taken", "config-unreadable",
    "folder-elsewhere", "write-failed",
})  # fmt: skip
_EXAMPLES = """\
examples:
  skillwire connect --agent claude-code -- skillwire serve ./skills
  skillwire connect --agent cursor --global --name acme --url https://skills.example.com/mcp
  skillwire connect --agent cursor --global --name acme --undo

Comments, order and spacing of the file stay as they are. What it was is kept beside it.

exit codes: 0 done, 1 nothing was changed: somebody said no, the name is taken, the file cannot be changed, 2 usage
"""


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "connect",
        "add a server to a host's MCP configuration",
        "Show what would change in the file where a host keeps its MCP servers, ask, and change it in one step.",
        _EXAMPLES,
    )
    parser.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("--agent", required=True, metavar="AGENT", help="the host, such as claude-code or codex")
    parser.add_argument("--name", default="skillwire", help="what the host calls the server (default: skillwire)")
    parser.add_argument("--url", help="the server's address; or give the command that starts it after --")
    parser.add_argument("--undo", action="store_true", help="take the entry out again")
    parser.add_argument("--yes", action="store_true", help="say yes beforehand; the change is shown all the same")
    add_scope_options(parser, "the host's file in this folder", "the host's file in your home folder")


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """Connect."""
    from skillwire.install.agents import find_agent
    from skillwire.install.servers import from_anywhere

    if arguments.command is not None and arguments.command != COMMAND:
        raise FormatError("argument-invalid", "the command stands after --", "write: -- COMMAND ARGUMENTS")
    words: list[str] = arguments.commands[0] if arguments.commands else []
    if sum((bool(words), arguments.url is not None, arguments.undo)) != 1:
        raise FormatError(
            "argument-invalid", "one of --url, --undo and a command is needed", "skillwire connect -h"
        )
    if arguments.scope == "global":
        words = from_anywhere(words, Path.cwd())
    find_agent(arguments.agent)
    return run_async(lambda: _connect(arguments, words, printer), printer)


async def _connect(arguments: argparse.Namespace, words: list[str], printer: Printer) -> int:
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


async def _change(arguments: argparse.Namespace, entry: dict[str, Any], printer: Printer) -> int:
    from skillwire.install.config_edit import apply_edit, plan_connect, plan_undo

    if arguments.undo:
        edit = plan_undo(arguments.agent, arguments.name, scope_of(arguments))
    else:
        edit = plan_connect(arguments.agent, arguments.name, entry, scope_of(arguments))
    if edit is None:
        printer.talk(f"{line(arguments.name)} is there already, exactly so")
        return Exit.OK
    _show(edit, printer)
    if not arguments.yes and not can_ask():
        raise FormatError("cannot-ask", "a person has to say yes, and nobody can be asked here", "use --yes")
    await say_yes(f"Change {line(edit.label)} so?", arguments, printer)
    backup = apply_edit(edit)
    done = "removed" if edit.new is None else "changed"
    printer.talk(f"{done} {line(edit.label)}" + ("" if backup is None else f"; before: {line(backup.name)}"))
    return Exit.OK


def _entry(arguments: argparse.Namespace, words: list[str]) -> dict[str, Any]:
    from skillwire.install.host_configs import entry_for, find_config

    if arguments.undo:
        return {}
    if arguments.url is not None:
        from skillwire.client.servers import UrlServer

        UrlServer(arguments.url)  # raises if it is not one
    shape = find_config(arguments.agent).shape
    return entry_for(shape, url=arguments.url, command=words, name=arguments.name)


def _show_lines(arguments: argparse.Namespace, entry: dict[str, Any], printer: Printer) -> None:
    from skillwire.install.config_edit import lines_to_add

    for each in lines_to_add(arguments.agent, arguments.name, entry):
        printer.data(each)


def _show(edit: Edit, printer: Printer) -> None:
    from rich.text import Text

    printer.talk(Text(edit.label + (" (new)" if edit.is_new else ""), style="bold"))
    for each in edit.lines:
        printer.talk(Text(f"  {line(each[:1])}{_shown(each[1:])}", style=_STYLES.get(each[:1], "")))


def _shown(text: str) -> str:
    from skillwire.cli.printer import visible

    return visible(text)
