"""The matrix of a run: gathered at its end, and compared with the page that is committed, or written to it.

``--matrix check`` fails if a cell is missing or differs from ``docs/explanation/interop.md``; ``--matrix write``
writes the page. Cells whose peer could not be run here, for want of Node or Python 3.12, are left as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from interop import page
from interop.gathering import gather

if TYPE_CHECKING:
    import pytest

    from interop.gathering import Gathered

_STATS = ("passed", "failed", "error", "skipped")


def conclude(session: pytest.Session) -> list[str]:
    """What is wrong with the matrix of this run; the session fails if anything is."""
    wanted = session.config.getoption("--matrix")
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not wanted or reporter is None:
        return []
    reports = [report for outcome in _STATS for report in reporter.stats.get(outcome, [])]
    gathered = gather(reports)
    is_whole = not reporter.stats.get("skipped")
    if wanted == "write":
        wrong = [f"not run: {place}" for place in gathered.missing] if is_whole else []
        wrong += [f"failed: {' '.join(cell)}" for cell in sorted(gathered.failed)]
        if not wrong:
            page.save(gathered.passed)
    else:
        wrong = differences(gathered, is_whole=is_whole)
    if wrong:
        session.exitstatus = 1
    return wrong


def differences(gathered: Gathered, *, is_whole: bool) -> list[str]:
    """How a run differs from what is committed. If tests were skipped, only what was run is compared."""
    known = page.load()
    wrong = [f"not in the matrix: {' '.join(cell)}" for cell in sorted(gathered.passed - known)]
    if is_whole:
        wrong += [f"not run: {place}" for place in gathered.missing]
        wrong += [f"in the matrix, but not run: {' '.join(cell)}" for cell in sorted(known - gathered.cells)]
    if page.PAGE.read_text() != page.render(known):
        wrong.append(
            "docs/explanation/interop.md was changed by hand, or its sources were: run `make interop-matrix`"
        )
    return wrong
