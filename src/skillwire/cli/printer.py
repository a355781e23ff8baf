"""Output for people and programs: results go to stdout, messages to stderr.

With ``--json``, stdout has the result as a document (``json``), and no text (``data``, ``table``). The error that
ends a command is a document too: ``{"error": {"reference", "message", "hint"}}``. So a program reads only stdout.

Everything printed here may come from a hostile file. So it is printed as plain text without markup, and characters
that would control a terminal are spelled out.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import threading
from contextlib import contextmanager
from datetime import datetime
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from skillwire.amounts import counted as counted
from skillwire.amounts import size_of as size_of
from skillwire.amounts import utc_text as utc_text

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from rich.console import Console, RenderableType

    from skillwire.errors import SkillwireError

_PATIENCE_SECONDS = 1.0
_WIDE = 10_000
_WIDEST_COLUMN = 40
_NARROWEST_COLUMN = 10
_IGNORED_SHOWN = 5
_SHORT_DIGEST = len("sha256:") + 12
_COMMAND = re.compile(r"(?<![\w./-])skillwire(?= (?:[a-z]+\b|--))")


class Printer:
    """Prints to a pair of streams. Colour and width follow the terminal; pipes get neither."""

    def __init__(
        self,
        stdout: Console | None = None,
        stderr: Console | None = None,
        *,
        is_json: bool = False,
        typed: Sequence[str] = (),
    ) -> None:
        self._given = stdout, stderr
        self.is_json = is_json
        self.typed = typed  # the arguments of the program, for hints that repeat the command
        self.stop_waiting: Callable[[], None] = lambda: None  # removes the spinner, because a question follows

    @cached_property
    def out(self) -> Console:
        """The console for results."""
        return self._given[0] or _console(stderr=False)

    @cached_property
    def err(self) -> Console:
        """The console for messages."""
        return self._given[1] or _console(stderr=True)

    @cached_property
    def _is_plain(self) -> bool:
        """Whether stderr is a pipe. A server that a host starts does not wait for the import of rich."""
        return self._given[1] is None and not sys.stderr.isatty()

    def json(self, document: Any) -> None:
        """With ``--json``, print the result to stdout as a document."""
        if self.is_json:
            print(json.dumps(document, indent=2, ensure_ascii=False), flush=True)

    def data(self, what: RenderableType) -> None:
        """Print a part of the result to stdout as text, unless ``--json`` was given."""
        if not self.is_json:
            self.out.print(what, soft_wrap=True, highlight=False, markup=False, emoji=False)

    def result(self, document: Any, *lines: str) -> None:
        """Print the result to stdout: the lines, or with ``--json`` the document."""
        self.json(document)
        for each in lines:
            self.data(each)

    def table(self, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print rows in columns that fit the terminal, with titles; in a pipe tab-separated, without titles."""
        if self.is_json:
            return
        if not self.out.is_terminal:
            for row in rows:
                self.out.file.write("\t".join(row) + "\n")
            return
        from rich.cells import cell_len
        from rich.text import Text

        columns = list(zip(titles, *rows, strict=True))
        widths = [min(max(map(cell_len, column)), _WIDEST_COLUMN) for column in columns[:-1]]
        widths.append(max(_NARROWEST_COLUMN, self.out.width - sum(widths) - 2 * len(widths)))
        for index, row in enumerate((titles, *rows)):
            line = "  ".join(_fitted(cell, width) for cell, width in zip(row, widths, strict=True))
            self.data(Text(line.rstrip(), style="bold" if index == 0 else ""))

    def digest(self, digest: str) -> str:
        """Return a digest for ``data`` or ``table``: its beginning on a terminal, all of it in a pipe."""
        return short_digest(digest) if self.out.is_terminal else digest or "no digest"

    def talk(self, what: RenderableType) -> None:
        """Print a message to stderr."""
        if isinstance(what, str):
            what = runnable(what)
            if self._is_plain:
                print(what, file=sys.stderr, flush=True)
                return
        self.err.print(what, soft_wrap=True, highlight=False, markup=False, emoji=False)

    def error(self, error: SkillwireError) -> None:
        """Print an error and its hint to stderr."""
        from rich.text import Text

        self.talk(Text.assemble(("error", "bold red"), f": {visible(error.message)} {error.label}"))
        if error.hint:
            self.talk(Text.assemble(("hint", "cyan"), f": {runnable(visible(error.hint))}"))

    def failure(self, error: SkillwireError) -> None:
        """Print the error that ends the command; with ``--json`` as a document to stdout."""
        if self.is_json:
            words = {"reference": error.reference, "message": error.message, "hint": runnable(error.hint)}
            self.json({"error": words | ({"rule": error.rule} if error.rule else {})})
        else:
            self.error(error)

    @contextmanager
    def progress(
        self, title: str, unit: str, patience: float = _PATIENCE_SECONDS
    ) -> Generator[Callable[[int], None]]:
        """Yield a function that takes the count so far. A terminal shows a spinner after ``patience`` seconds."""
        if self._is_plain or not self.err.is_terminal:
            yield lambda _done: None
            return
        from rich.progress import Progress, SpinnerColumn, TextColumn  # late: 30 ms

        columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.fields[done]}"))
        bar = Progress(*columns, console=self.err, transient=True)
        task = bar.add_task(title, total=None, done="")
        timer = threading.Timer(patience, bar.start)
        timer.start()

        def stop() -> None:
            timer.cancel()
            timer.join()  # it may be starting the spinner
            bar.stop()

        self.stop_waiting, outer = stop, self.stop_waiting
        try:
            yield lambda done: bar.update(task, done=f"{done} {unit}")
        finally:
            self.stop_waiting = outer
            stop()


@cache
def program() -> str:
    """Return the command as it can be typed in the current folder."""
    typed = sys.argv[0]
    if typed.endswith(os.path.join("skillwire", "__main__.py")):
        return f"{shlex.quote(_short_path(sys.executable))} -m skillwire"
    found = shutil.which("skillwire")
    is_path = os.sep in typed and os.path.basename(typed) == "skillwire"
    if not is_path or (found is not None and os.path.realpath(found) == os.path.realpath(typed)):
        return "skillwire"
    return shlex.quote(_short_path(typed))


def _short_path(path: str) -> str:
    """Return ``path`` relative to the current folder if it is below it."""
    relative = os.path.relpath(path)
    return os.path.abspath(path) if relative.startswith("..") else relative


def runnable(text: str) -> str:
    """Return ``text`` with commands that work where the program is not on the ``PATH``."""
    return text if program() == "skillwire" else _COMMAND.sub(lambda _: program(), text)


def _fitted(cell: str, width: int) -> str:
    """Cut or pad ``cell`` to exactly ``width`` columns of a terminal."""
    from rich.cells import cell_len, set_cell_size

    return set_cell_size(cell, width - 1) + "…" if cell_len(cell) > width else set_cell_size(cell, width)


def _console(*, stderr: bool) -> Console:
    from rich.console import Console  # late: 25 ms

    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=_WIDE)


def visible(text: str) -> str:
    """Spell out every character of ``text`` that controls a terminal or is invisible."""
    if text.isascii() and text.isprintable():
        return text
    from skillwire.skill.hidden import spell_out  # late: most text needs no table

    return spell_out(text.replace("\t", " "), keep="\n")


def line(text: str) -> str:
    """Return foreign text as one line that cannot control a terminal."""
    return visible(" ".join(text.split()))


def cut_line(text: str, longest: int) -> str:
    """Return foreign text as one line of at most ``longest`` characters, with a note if more follow."""
    shown = visible(text[:longest].replace("\n", " "))
    return f"{shown} … and {len(text) - longest:,} more characters" if len(text) > longest else shown


def shortened(text: str, longest: int) -> str:
    """Return the beginning of foreign text as one line."""
    whole = " ".join(text[: 4 * longest].split())
    return visible(whole if len(whole) <= longest else f"{whole[: longest - 1].rstrip()}…")


def listed(names: Iterable[str]) -> str:
    """Join names with commas."""
    return ", ".join(line(name) for name in names)


def moment(at: float | None) -> str:
    """Format a time for people, in their time zone."""
    return "" if at is None else datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def short_digest(digest: str) -> str:
    """Return the beginning of a digest; an empty one means that there is none."""
    return f"{digest[:_SHORT_DIGEST]}…" if digest else "no digest"


def ignored_text(paths: Sequence[str]) -> str:
    """Describe files that are ignored because of their names, in one line."""
    shown = ", ".join(visible(path) for path in paths[:_IGNORED_SHOWN])
    more = f" and {len(paths) - _IGNORED_SHOWN} more" if len(paths) > _IGNORED_SHOWN else ""
    return f"ignored by name: {shown}{more}"
