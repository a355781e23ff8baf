"""``skillwire``: parses the command line, runs one verb, and turns its result into an exit code.

To add a verb, write a module with ``command`` and name it in ``GROUPS``. Only the used module is imported.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

import click

from skillwire import __version__
from skillwire.cli.command import Exit
from skillwire.cli.printer import Printer, program
from skillwire.errors import ApprovalError, FormatError, SkillwireError, VerificationError

if TYPE_CHECKING:
    from collections.abc import Sequence

GROUPS = {
    "Write skills": {
        "new": "make a new skill",
        "check": "find problems in skills, and fix some of them",
        "serve": "serve folders of skills as an MCP server",
    },
    "Use skills": {
        "list": "list the skills of a folder or a server",
        "show": "show everything about one skill",
        "read": "read one file of a skill, verified",
        "search": "find skills that match a request",
        "add": "install skills for an agent, or copy them to a folder",
        "update": "update installed skills after showing the changes",
        "remove": "remove an installed skill",
        "verify": "check everything that a server claims",
        "diff": "show the differences between two places",
        "connect": "add a server to the MCP configuration of an agent",
        "load": "load a skill like an agent does",
    },
    "Decide": {
        "approve": "review a skill and approve its current content",
        "approvals": "list, review, decline, revoke; answer questions",
        "ui": "review, approve and answer in a browser",
        "log": "show what happened to which skill, and by whom",
    },
    "Operate": {
        "origins": "the servers and folders that skills come from",
        "gateway": "serve many servers as one, guarded by a policy",
        "conform": "check a server or a host against the protocol",
        "cache": "show, verify or prune the cache of content",
        "token": "make a bearer token for 'serve --access'",
        "explain": "explain a problem or an error",
    },
}
VERBS = tuple(name for group in GROUPS.values() for name in group)
_COMPLETION = "_SKILLWIRE_COMPLETE"


class _Main(click.Group):
    """All verbs, in groups. Only the module of the chosen one is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the verbs, also for completion."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a verb."""
        return import_module(f"skillwire.cli.{cmd_name}").command if cmd_name in VERBS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; an unknown one gets suggestions."""
        if args[0] not in VERBS and not args[0].startswith("-"):
            raise click.exceptions.NoSuchCommand(args[0], possibilities=VERBS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs in their groups, on one screen."""
        formatter.write("Agent Skills over MCP: check, serve, install and approve skills.\n\n")
        formatter.write(f"Usage: {program()} VERB [ARGUMENTS]…\n")
        for title, verbs in GROUPS.items():
            formatter.write(f"\n{title}:\n")
            for name, words in verbs.items():
                formatter.write(f"  {name:10} {words}\n")
        formatter.write(f"\nHelp about a verb: {program()} VERB --help    Version: {program()} --version\n")
        formatter.write(f'Tab completion: eval "$({_COMPLETION}=bash_source skillwire)"    (or zsh_source)\n')


def _print_version(ctx: click.Context, _param: click.Parameter, is_given: bool) -> None:
    if is_given:
        click.echo(f"skillwire {__version__}")
        ctx.exit()


_VERSION = click.Option(
    ["--version"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
)
_main = _Main(
    "skillwire",
    no_args_is_help=True,
    params=[_VERSION],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 115},
)


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    _replace_closed_streams()
    if instruction := os.environ.get(_COMPLETION):
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(_main, {}, "skillwire", _COMPLETION, instruction))
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
    ours = list(argv[: list(argv).index("--")]) if "--" in argv else list(argv)
    printer = Printer(is_json="--json" in ours)
    try:
        # Not click's main: it turns an interrupt and a broken pipe into exit codes of its own.
        with _main.make_context("skillwire", list(argv), obj=printer) as context:
            return _main.invoke(context)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return Exit.USAGE if argv else Exit.OK
    except click.exceptions.Exit as ended:  # after --help and --version
        return ended.exit_code
    except click.UsageError as error:
        printer.failure(_usage_error(error))
        return Exit.USAGE
    except (ApprovalError, VerificationError) as error:
        printer.failure(error)
        return Exit.PROBLEMS
    except SkillwireError as error:
        printer.failure(error)
        return Exit.USAGE
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:  # the reader of our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK


def _usage_error(error: click.UsageError) -> FormatError:
    path = error.ctx.command_path if error.ctx is not None else "skillwire"
    message = error.format_message().rstrip(".")
    return FormatError("usage", message[:1].lower() + message[1:], f"see: {path} --help")
