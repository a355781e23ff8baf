"""``skillwire``: parses the command line, runs one verb, and turns its result into an exit code.

To add a verb, write a module with ``command`` and name it in ``GROUPS``. Only the used module is imported.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from itertools import zip_longest
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
        "check": "find and fix problems",
        "serve": "serve folders over MCP",
        "publish": "publish in a registry",
    },
    "Use skills": {
        "list": "list skills",
        "show": "show one skill",
        "read": "read one verified file",
        "search": "find skills",
        "add": "install for an agent",
        "update": "update installed skills",
        "remove": "remove installed skills",
        "verify": "check a server's claims",
        "diff": "compare two places",
        "connect": "give an agent a server",
        "load": "load like an agent",
    },
    "Decide": {
        "approve": "review, then approve",
        "approvals": "decline, revoke, answer",
        "ui": "decide in a browser",
        "log": "show what happened",
    },
    "Operate": {
        "origins": "sources of your skills",
        "gateway": "many servers as one",
        "registry": "versions for many people",
        "mirror": "copy into a registry",
        "export": "write a static site",
        "conform": "test a server or a host",
        "cache": "stored content",
        "token": "make an access token",
        "explain": "explain a problem",
    },
}
# The columns of the help, which fits 80 columns and 24 rows.
_COLUMNS = (("Write skills", "Use skills"), ("Decide", "Operate"))
_WORDS = {name: words for group in GROUPS.values() for name, words in group.items()}
VERBS = tuple(_WORDS)
_COMPLETION = "_SKILLWIRE_COMPLETE"


class _Main(click.Group):
    """All verbs, in groups. Only the module of the chosen one is imported."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the verbs, also for completion."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a verb."""
        if cmd_name not in VERBS:
            return None
        command = import_module(f"skillwire.cli.{cmd_name}").command
        command.short_help = _WORDS[cmd_name]  # for completion; click would cut the help
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; an unknown one gets suggestions."""
        if args[0] not in VERBS and not args[0].startswith("-"):
            raise click.exceptions.NoSuchCommand(args[0], possibilities=VERBS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs in their groups, in two columns, on one screen."""
        formatter.write("Agent Skills over MCP: check, serve, install and approve skills.\n")
        formatter.write(f"Usage: {program()} VERB [ARGUMENTS]…\n\n")
        columns: list[list[str]] = [[], []]
        for column, titles in zip(columns, _COLUMNS, strict=True):
            for title in titles:
                verbs = [f"  {name:10} {words}" for name, words in GROUPS[title].items()]
                column += [*([""] if column else []), f"{title}:", *verbs]
        for left, right in zip_longest(*columns, fillvalue=""):
            formatter.write(f"{left:40}{right}".rstrip() + "\n")
        formatter.write(f"\nAbout a verb: {program()} VERB --help\n")
        shell = os.path.basename(os.environ.get("SHELL", ""))
        made = f"{_COMPLETION}={shell if shell in ('fish', 'zsh') else 'bash'}_source {program()}"
        formatter.write("Tab completion: " + (f"{made} | source\n" if shell == "fish" else f'eval "$({made})"\n'))


_main = click.version_option(__version__, prog_name="skillwire", message="%(prog)s %(version)s")(
    _Main(
        "skillwire",
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 115},
    )
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
    printer = Printer(is_json="--json" in ours, typed=argv)
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
    """Return the error as one of ours. The hint has similar words, or the usage if something is missing."""
    path, message, usage = "skillwire", error.format_message().rstrip("."), ""
    if isinstance(error, click.NoSuchOption | click.exceptions.NoSuchCommand) and error.possibilities:
        message, usage = error.message.rstrip("."), f"did you mean {' or '.join(error.possibilities)}? "
    if error.ctx is not None:
        path = error.ctx.command_path
        if error.ctx.meta.get("commands") and "extra argument" in message:
            usage = "the command after -- is the TARGET: omit the other one; "
        if isinstance(error, click.MissingParameter):
            words = error.ctx.command.collect_usage_pieces(error.ctx)
            usage = f"write: {path} {' '.join(word for word in words if word != '[OPTIONS]')}; "
    return FormatError("usage", message[:1].lower() + message[1:], f"{usage}see: {path} --help")
