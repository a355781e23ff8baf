"""``skillwire``: parses the command line, runs one verb, and turns its result into an exit code.

To add a verb, write a module with ``add_arguments`` and name it in ``VERBS``.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from skillwire import __version__
from skillwire.cli.command import Exit, split_commands
from skillwire.cli.printer import Printer
from skillwire.errors import SkillwireError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import ModuleType

_DECISIONS = ("approve", "decline", "enable", "revoke")
VERBS = {
    verb: "decisions" if verb in _DECISIONS else verb
    for verb in (
        "add", "approvals", "approve", "cache", "check", "ci", "conform", "connect", "decline", "diff", "enable",
        "gateway", "list", "load", "log", "ls", "origins", "outdated", "pull", "questions", "read", "remove",
        "review", "revoke", "search", "serve", "show", "skills", "token", "tree", "ui", "update", "verify",
    )
}  # fmt: skip
"""The module of each verb in this package."""

_EXAMPLES = """\
examples:
  skillwire check ./skills                   find problems in skills
  skillwire tree ./skills                    draw a folder of skills with sizes
  skillwire serve ./skills --http 8000       serve a folder as an MCP server
  skillwire list https://example.com/mcp     list the skills of a server
  skillwire verify -- npx some-mcp-server    check everything that a server claims
  skillwire conform server -- npx my-server  check a server against the rules of the protocol
  skillwire pull my-server refunds ./skills  copy a skill into a folder, verified
  skillwire search ./skills refund a customer
  skillwire add my-server refunds --agent claude-code
  skillwire gateway --config servers.json    serve many servers as one, guarded by a policy
  skillwire origins add acme https://example.com/mcp
  skillwire skills                           show the skills that a model would see
  skillwire review refunds                   show a skill before you approve it
  skillwire load refunds                     print the text that a model would get
  skillwire ui                               review, approve and answer in a browser
"""


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    _replace_closed_streams()
    sys.exit(run(sys.argv[1:] if argv is None else argv))


def _replace_closed_streams() -> None:
    """Connect closed standard streams (``<&-``) to ``/dev/null``.

    Otherwise the next file or socket would get the free number, and messages would be written into it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(descriptor, True)
            setattr(sys, name, os.fdopen(descriptor, mode, closefd=False))


def run(argv: Sequence[str]) -> int:
    """Run the command line and return the exit code."""
    verb = argv[0] if argv and argv[0] in VERBS else None
    modules = [import_module(f"skillwire.cli.{VERBS[each]}") for each in ([verb] if verb else VERBS)]
    words, commands = split_commands(argv, getattr(modules[0], "TARGETS", 0) if verb else 0)
    arguments = _parser(modules).parse_args(words)
    arguments.commands = commands
    printer = Printer()
    try:
        return arguments.run(arguments, printer)
    except SkillwireError as error:
        printer.error(error)
        return Exit.USAGE
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:  # the reader of our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK


def _parser(modules: Iterable[ModuleType]) -> argparse.ArgumentParser:
    """Make a parser for the verbs of ``modules``. One verb does not wait for the imports of the others."""
    parser = argparse.ArgumentParser(
        prog="skillwire",
        description="Agent Skills over MCP: check, serve, read, approve and load skills.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"skillwire {__version__}")
    parsers = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for module in dict.fromkeys(modules):
        module.add_arguments(parsers)
    return parser
