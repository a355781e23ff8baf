"""``skillwire``: reads the command line, runs one verb, turns its outcome into an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from skillwire import __version__
from skillwire.cli.exits import Exit
from skillwire.errors import SkillwireError

if TYPE_CHECKING:
    from collections.abc import Sequence

VERBS = (
    "add", "approvals", "approve", "cache", "check", "ci", "conform", "connect", "decline", "diff", "enable",
    "gateway", "list", "load", "log", "ls", "origins", "outdated", "pull", "questions", "read", "remove",
    "review", "revoke", "search", "serve", "show", "skills", "token", "tree", "ui", "update", "verify",
)  # fmt: skip

_EXAMPLES = """\
examples:
  skillwire check ./skills                   is everything right with these skills?
  skillwire tree ./skills                    what is there, and how large is it?
  skillwire serve ./skills --http 8000       make the folder an MCP server
  skillwire list https://example.com/mcp     what does that server serve?
  skillwire verify -- npx some-mcp-server    is everything it claims true?
  skillwire conform server -- npx my-server  does it keep the protocol's rules?
  skillwire pull my-server refunds ./skills  copy a skill from it, verified
  skillwire search ./skills refund a customer
  skillwire add my-server refunds --agent claude-code
  skillwire gateway --config servers.json    many servers as one, guarded by a policy
  skillwire origins add acme https://example.com/mcp
  skillwire skills                           what would a model see of all origins?
  skillwire review refunds                   what should I know before I say yes?
  skillwire load refunds                     give me the block for the model's context
  skillwire ui                               review, approve and answer in a browser
"""


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave the process."""
    _open_what_is_closed()
    sys.exit(run(sys.argv[1:] if argv is None else argv))


def _open_what_is_closed() -> None:
    """Nobody is at a stream that was closed (``<&-``): nothing comes from there, and what goes there is lost.

    Left closed, its number would be given to the next file or socket that is opened, and talk would go there.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(descriptor, True)
            setattr(sys, name, os.fdopen(descriptor, mode, closefd=False))


def run(argv: Sequence[str]) -> int:
    """Run the command line; the exit code is returned."""
    words, commands = _split(argv)
    is_verb = bool(words) and words[0] in VERBS
    arguments = _parser(words[:1] if is_verb else VERBS).parse_args(words)
    arguments.commands = commands
    from skillwire.cli.printer import Printer  # late: `--help` should not wait for rich

    printer = Printer()
    verb = import_module(f"skillwire.cli.{arguments.verb}")
    try:
        return verb.run(arguments, printer)
    except SkillwireError as error:
        printer.error(error)
        return Exit.USAGE
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK


def _split(argv: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Take the command after ``--`` away from the parser, for the verbs that may have one."""
    if not argv or argv[0] not in VERBS:
        return list(argv), []
    from skillwire.cli.targets import split_commands

    return split_commands(argv, getattr(import_module(f"skillwire.cli.{argv[0]}"), "TARGETS", 0))


def _parser(verbs: Sequence[str]) -> argparse.ArgumentParser:
    """For ``verbs``: if one is named, nobody waits for the others."""
    parser = argparse.ArgumentParser(
        prog="skillwire",
        description="Agent Skills over MCP: check, serve, read, approve and load skills.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"skillwire {__version__}")
    parsers = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb in verbs:
        import_module(f"skillwire.cli.{verb}").add_arguments(parsers)
    return parser
