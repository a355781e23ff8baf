"""The table of dialects, transports and eras that a test run prints at its end.

A test that stands for one cell says so with ``record_property("dialect matrix", [dialect, transport, era])``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

PROPERTY = "dialect matrix"
_WORDS = {"passed": "ok", "failed": "FAILED", "skipped": "-"}


def print_matrix(reporter: TerminalReporter) -> None:
    """One line for each dialect, one column for each transport and era; nothing if no cell was run."""
    cells: dict[tuple[str, str], str] = {}
    for outcome, word in _WORDS.items():
        for report in reporter.stats.get(outcome, ()):
            for name, value in getattr(report, "user_properties", ()):
                if name == PROPERTY and report.when == "call":
                    cells[value[0], f"{value[1]} {value[2]}"] = word
    if not cells:
        return
    rows, columns = (list(dict.fromkeys(cell[side] for cell in sorted(cells))) for side in (0, 1))
    width = max(map(len, columns)) + 2
    reporter.section("every dialect, from one catalog")
    reporter.line(f"{'':12}" + "".join(column.ljust(width) for column in columns))
    for row in rows:
        reporter.line(f"{row:12}" + "".join(cells.get((row, column), "-").ljust(width) for column in columns))
