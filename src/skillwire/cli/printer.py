"""Output for people and for programs: stdout is data, stderr is talk.

Everything printed here may come from a hostile file, so it is printed as text: no markup is read from it, and
characters that would act on a terminal are spelled out.
"""

from __future__ import annotations

import json
import sys
import time
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from skillwire.amounts import counted as counted
from skillwire.amounts import size_of as size_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from rich.console import Console, RenderableType

    from skillwire.errors import SkillwireError

_PATIENCE_SECONDS = 1.0
_WIDE = 10_000
_WIDEST_COLUMN = 40
_NARROWEST_COLUMN = 10
_IGNORED_SHOWN = 5


class Printer:
    """Prints to one pair of streams. Colour and width follow the terminal; pipes get neither."""

    def __init__(self, stdout: Console | None = None, stderr: Console | None = None) -> None:
        self._given = stdout, stderr

    @cached_property
    def out(self) -> Console:
        """For data."""
        return self._given[0] or _console(stderr=False)

    @cached_property
    def err(self) -> Console:
        """For talk."""
        return self._given[1] or _console(stderr=True)

    @cached_property
    def _talks_plainly(self) -> bool:
        """Into a pipe, such as a host's; a server that starts in one does not wait for rich."""
        return self._given[1] is None and not sys.stderr.isatty()

    def data(self, what: RenderableType) -> None:
        """A result, for stdout."""
        self.out.print(what, soft_wrap=True, highlight=False, markup=False, emoji=False)

    def json(self, value: Any) -> None:
        """A result for programs, for stdout."""
        sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")

    def table(self, titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Rows in columns: fitted to a terminal, with titles; tab-separated in a pipe, without."""
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

    def talk(self, what: RenderableType) -> None:
        """A word to the person, for stderr."""
        if isinstance(what, str) and self._talks_plainly:
            print(what, file=sys.stderr, flush=True)
            return
        self.err.print(what, soft_wrap=True, highlight=False, markup=False, emoji=False)

    def error(self, error: SkillwireError) -> None:
        """What went wrong and what to do, for stderr."""
        from rich.text import Text

        self.talk(Text.assemble(("error", "bold red"), f": {visible(error.message)} {error.label}"))
        if error.hint:
            self.talk(Text.assemble(("hint", "cyan"), f": {visible(error.hint)}"))

    @contextmanager
    def progress(
        self, title: str, unit: str, patience: float = _PATIENCE_SECONDS
    ) -> Generator[Callable[[int], None]]:
        """A counter to call while working; a bar appears if it is a terminal and takes more than a second."""
        if self._talks_plainly or not self.err.is_terminal:
            yield _silent
            return
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn  # late: 30 ms

        bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn(f"{{task.completed}} {unit}"),
            console=self.err,
            transient=True,
        )
        task = bar.add_task(title, total=None)
        begun = time.monotonic()

        def count(done: int) -> None:
            if time.monotonic() - begun > patience:
                bar.start()
                bar.update(task, completed=done)

        try:
            yield count
        finally:
            bar.stop()


def _fitted(cell: str, width: int) -> str:
    """``cell`` in exactly ``width`` columns of a terminal."""
    from rich.cells import cell_len, set_cell_size

    return set_cell_size(cell, width - 1) + "…" if cell_len(cell) > width else set_cell_size(cell, width)


def _silent(done: int) -> None:
    """Nobody is watching."""


def _console(*, stderr: bool) -> Console:
    from rich.console import Console  # late: 25 ms

    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=_WIDE)


def visible(text: str) -> str:
    """``text`` with every character that a terminal would act on, or not show, spelled out."""
    if text.isascii() and text.isprintable():
        return text
    from skillwire.skill.hidden import spell_out  # late: plain words need no table

    return spell_out(text.replace("\t", " "), keep="\n")


def said_ignored(paths: Sequence[str]) -> str:
    """What was left out because of its name, in one line."""
    shown = ", ".join(visible(path) for path in paths[:_IGNORED_SHOWN])
    more = f" and {len(paths) - _IGNORED_SHOWN} more" if len(paths) > _IGNORED_SHOWN else ""
    return f"left out by name: {shown}{more}"
