"""The parts that every verb uses: its declaration, exit codes, the command after ``--``, and running a coroutine.

The module of a verb declares ``command`` with ``verb``: a sentence for the help, arguments and options, and
examples. The decorated function returns an exit code, or ``None`` for 0. A refusal by a user or a rule is exit
code 1. A wrong argument, or a server that cannot be reached, is 2.
"""

from __future__ import annotations

import logging
import re
import shlex
from enum import IntEnum
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

from skillwire.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from click.shell_completion import CompletionItem

    from skillwire.cli.printer import Printer

T = TypeVar("T")
Arguments: TypeAlias = SimpleNamespace
Run: TypeAlias = "Callable[[Arguments, Printer], int | None]"
VerbWork: TypeAlias = "Callable[..., Awaitable[Any]]"
VerbSession: TypeAlias = "Callable[[Arguments, Printer, VerbWork], int | None]"
COMMAND = "\0"  # marks the place of the command after --; no argument can contain it
_MOST_EXAMPLES = 10
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([KMGT]?)(?:i?B)?\Z", re.IGNORECASE)
_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}


class Exit(IntEnum):
    """Process exit codes."""

    OK = 0
    PROBLEMS = 1
    USAGE = 2
    INTERRUPTED = 130


class Verb(click.Command):
    """A verb. ``targets`` is the number of targets that can be a command after ``--``."""

    def __init__(self, run: Run, *, targets: int, examples: str, **settings: Any) -> None:
        super().__init__(name=None, callback=self._call, **settings)
        self._run = run
        self._targets = targets
        self.examples = examples

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the commands after ``--`` out of the arguments, then parse the rest."""
        words, ctx.meta["commands"] = split_commands(args, self._targets)
        return super().parse_args(ctx, words)

    def _call(self, **given: Any) -> int:
        context = click.get_current_context()
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        verb = context.command_path.partition(" ")[2]
        arguments = Arguments(**values, verb=verb, commands=context.meta["commands"], typed=context.obj.typed)
        context.obj.is_json = given.get("json", False)
        return self._run(arguments, context.obj) or Exit.OK

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples without wrapping their lines, as click would."""
        formatter.write(f"\nExamples:\n{self.examples}")


class Noun(click.Group):
    """A verb with actions. Without one, ``default`` runs."""

    def __init__(self, help: str, actions: dict[str, Verb], *, default: str) -> None:  # noqa: A002
        super().__init__(help=help, commands=dict(actions), subcommand_metavar="[ACTION] [ARGUMENTS]…")
        self._actions = actions
        self._default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Add the default action if none is given."""
        is_given = bool(args) and (not args[0].startswith("-") or args[0] in ("--help", "-h"))
        if not is_given and not ctx.resilient_parsing:  # a shell completes the name of the action
            args = [self._default, *args]
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first example of each action; of many actions only that of the first."""
        first = [each.examples.partition("\n")[0] for each in self._actions.values()]
        if len(first) > _MOST_EXAMPLES:
            first = [first[0], f"  {ctx.command_path} ACTION --help"]
        formatter.write("\nExamples:\n" + "".join(f"{example}\n" for example in first))

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the actions in the order of their declaration."""
        return list(self._actions)


def verb(
    help: str,  # noqa: A002
    *params: click.Parameter,
    examples: str,
    targets: int = 0,
    within: VerbSession | None = None,
) -> Callable[[Callable[..., Any]], Verb]:
    """Declare a verb: the decorated function runs it.

    The function gets the arguments and the printer. With ``within`` it is a coroutine function, and its first
    arguments are the objects that ``within`` opens for it: a host, a store, or the catalogs of targets.
    """

    def declare(work: Callable[..., Any]) -> Verb:
        def run(arguments: Arguments, printer: Printer) -> int | None:
            return work(arguments, printer) if within is None else within(arguments, printer, work)

        return Verb(run, targets=targets, examples=examples, help=help, params=list(params))

    return declare


def option(*names: str, **settings: Any) -> click.Option:
    """Declare an option."""
    return click.Option(names, **settings)


def flag(*names: str, **settings: Any) -> click.Option:
    """Declare an option without a value."""
    return click.Option(names, is_flag=True, **settings)


def repeated(*names: str, **settings: Any) -> click.Option:
    """Declare an option that may be given several times."""
    return click.Option(names, multiple=True, **settings)


def argument(name: str, metavar: str, text: str, **settings: Any) -> click.Argument:
    """Declare an argument."""
    return click.Argument([name], metavar=metavar, help=text, **settings)


FILE = click.Path(path_type=Path)  # of a file or a folder
JSON = flag("--json", help="print a JSON document instead of text, also for errors")


class TargetPlace(click.ParamType[str]):
    """A path or anything else that is a TARGET. Shells complete it like the name of a file."""

    name = "place"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Let the shell complete the name of a file."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


class DatabasePlace(click.ParamType["str | Path"]):
    """A folder, or the URL of a PostgreSQL database, without a password: other users can see a command line."""

    name = "place"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | Path:
        """Check a URL, or make a path."""
        from skillwire.store.place import has_password, is_url

        if not is_url(value):
            return Path(value)
        if has_password(value):
            raise FormatError(
                "password-visible",
                "the URL of the database has a password, which other users of this machine could see",
                "remove it, and set PGPASSWORD or write it into ~/.pgpass",
            )
        return value

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Let the shell complete the name of a folder."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="dir")]


class Seconds(click.ParamType[float]):
    """A waiting time of at most a day."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Parse a number of seconds."""
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        return (
            number if 0 <= number < 86_400 else self.fail(f"{value!r:.80} is not a number of seconds", param, ctx)
        )


class Size(click.ParamType[int]):
    """A size such as ``100M`` or ``1.5 GiB``, in units of 1024 bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse a size."""
        match = _SIZE.match(str(value).strip())
        if match is None:
            return self.fail(f"{value!r:.80} is not a size; write 100M or 2G", param, ctx)
        return int(float(match[1]) * 1024 ** _UNITS[match[2].upper()])


class TextLine(click.ParamType[str]):
    """Text for the log: one line without control characters."""

    name = "text"

    def __init__(self, *, may_be_empty: bool = False) -> None:
        self._may_be_empty = may_be_empty

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the text."""
        if value.isprintable() and (value.strip() or self._may_be_empty):
            return value
        option = "it" if param is None else param.opts[0]
        raise FormatError("argument-invalid", f"{option} needs one line of text", f"correct or omit {option}")


class UserName(TextLine):
    """The name of the user who decides, for a log or a lock."""

    name = "user"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the name."""
        if value == "policy":
            raise FormatError("argument-invalid", "the name 'policy' is reserved", "write your own name")
        return super().convert(value, param, ctx)


def split_commands(args: Sequence[str], targets: int) -> tuple[list[str], list[list[str]]]:
    """Split ``args`` into the words for the parser, with ``COMMAND`` in place of a command, and the commands.

    A single target comes first: ``show SKILL -- server`` means ``show <server> SKILL``. Of two targets, a command
    is the last.
    """
    if targets == 0 or "--" not in args:
        return list(args), []
    at = list(args).index("--")
    words, rest = list(args[:at]), command_words(list(args[at + 1 :]))
    if targets == 1:
        return [COMMAND, *words], [rest]
    if "--" in rest:
        second = rest.index("--")
        return [*words, COMMAND, COMMAND], [rest[:second], rest[second + 1 :]]
    return [*words, COMMAND], [rest]


def command_words(words: list[str]) -> list[str]:
    """Return the words of a command after ``--``, which must not be empty."""
    if not words:
        raise FormatError("command-missing", "no command after --", "write: -- COMMAND ARGUMENTS")
    return words


def whole_command(arguments: Arguments) -> list[str]:
    """Return everything after the first ``--``, including any further ``--``."""
    first, *others = arguments.commands
    return [*first, *(word for rest in others for word in ("--", *rest))]


def again(arguments: Arguments, *more: str) -> str:
    """Return the command that was typed, with ``more`` options, for a hint."""
    typed = list(arguments.typed)
    at = typed.index("--") if "--" in typed else len(typed)
    return shlex.join(["skillwire", *typed[:at], *more, *typed[at:]])


def silence_libraries(*names: str) -> None:
    """Hide the log of libraries. Their failures that matter become errors of ours."""
    for name in ("mcp", "httpx2", *names):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def run_async(work: Callable[[], Awaitable[T]]) -> T:
    """Run ``work`` and return its result."""
    import anyio  # late: not needed for --help

    silence_libraries()
    logging.getLogger("skillwire.host").setLevel(logging.ERROR)  # verbs print failed origins themselves
    return anyio.run(work)
