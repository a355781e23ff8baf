"""From a finished test run to the matrix's cells: what was run, how it went, what is missing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from interop.cells import PEERS, PROPERTY, ROUND, SETTINGS, Cell

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _pytest.reports import TestReport


@dataclass
class Gathered:
    """The cells of a run. A cell with a failed test is in ``failed``, whatever else passed."""

    passed: set[Cell] = field(default_factory=set[Cell])
    failed: set[Cell] = field(default_factory=set[Cell])

    @property
    def cells(self) -> set[Cell]:
        """Everything that was run."""
        return self.passed | self.failed

    @property
    def missing(self) -> list[str]:
        """Rows that no test filled and nobody explained: ``role peer setting`` and ``role peer feature``."""
        seen = {(*cell[:2], cell.setting) for cell in self.cells if cell.feature in ROUND}
        seen |= {(*cell[:2], cell.feature) for cell in self.cells}
        wanted = [
            (role, name, column)
            for role, peers in PEERS.items()
            for name, peer in peers.items()
            for column in (*(f"{transport} {era}" for transport, era in SETTINGS), *peer.features)
            if column not in peer.absent
        ]
        return [" ".join(place) for place in wanted if place not in seen]


def gather(reports: Iterable[TestReport]) -> Gathered:
    """What the reports of a run say about cells."""
    gathered = Gathered()
    for report in reports:
        if report.when == "teardown" and report.passed:
            continue
        cells = {Cell(*value) for name, value in report.user_properties if name == PROPERTY}
        if report.failed:
            gathered.failed |= cells
        elif report.when == "call" and report.passed:
            gathered.passed |= cells
    return gathered
