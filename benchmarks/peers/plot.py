"""The plot: what a catalog's size costs, four small pictures with logarithmic axes, as one SVG without a library.

Colours keep apart for colour-blind eyes and on light and dark pages; each server also has a mark of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from benchmarks.peers.servers import SERVERS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Costs = dict[str, list[dict[str, Any]]]

WIDTH, HEIGHT, LEFT, TOP, BELOW, RIGHT = 400, 240, 68, 104, 84, 30
_COLOURS = {
    "ours": "#d55e00",
    "floor": "#888888",
    "python-sdk": "#56b4e9",
    "typescript": "#0072b2",
    "fastmcp": "#009e73",
    "ext-skills": "#cc79a7",
}
_MARKS = {"ours": "●", "floor": "○", "python-sdk": "▲", "typescript": "■", "fastmcp": "◆", "ext-skills": "▼"}
_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600; font-size: 13px }
.tick { font-size: 11px; fill: #57606a }
.grid { stroke: #d0d7de; stroke-width: 1 }
.paper { fill: #ffffff }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .tick { fill: #9198a1 } .grid { stroke: #3d444d } .paper { fill: #0d1117 }
}
"""


def seconds(value: float) -> str:
    for factor, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value >= factor * 0.999:
            return f"{value / factor:g} {unit}"
    return f"{value:g} s"


def megabytes(value: float) -> str:
    return f"{value / 1000:g} GB" if value >= 999 else f"{value:g} MB"


@dataclass(frozen=True)
class Panel:
    """One picture: which cost, and how a tick is written."""

    cost: str
    title: str
    write: Callable[[float], str]
    of_replays: bool = True  # a server that replays has not read the tree: its start and memory say nothing


_PANELS = (
    Panel("list", "List everything", seconds),
    Panel("start", "Start to first answer", seconds, of_replays=False),
    Panel("read", "One resources/read (p50)", seconds),
    Panel("memory", "Peak memory", megabytes, of_replays=False),
)


@dataclass(frozen=True)
class Axis:
    """Powers of ten along a line: from ``low`` at ``begins`` to ``high`` at ``ends``."""

    low: int
    high: int
    begins: float
    ends: float

    @classmethod
    def over(cls, values: Sequence[float], begins: float, ends: float) -> Axis:
        low = math.floor(math.log10(min(values)) + 1e-9)
        return cls(low, max(math.ceil(math.log10(max(values)) - 1e-9), low + 1), begins, ends)

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return round(self.begins + share * (self.ends - self.begins), 1)

    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]


def draw(costs: Costs) -> str:
    """The whole picture; a server without figures is not in it."""
    costs = {name: rows for name, rows in costs.items() if rows}
    width, height = 2 * (LEFT + WIDTH + RIGHT), TOP + 2 * (HEIGHT + BELOW) - 36
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
        ' aria-label="Cost against catalog size, per server">',
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{width}" height="{height}"/>',
        *_legend(list(costs)),
    ]
    for number, panel in enumerate(_PANELS):
        left = LEFT + (number % 2) * (LEFT + WIDTH + RIGHT)
        top = TOP + (number // 2) * (HEIGHT + BELOW)
        shown = {name: rows for name, rows in costs.items() if panel.of_replays or not SERVERS[name].replays}
        parts += _panel(panel, shown, left, top)
    return "\n".join([*parts, "</svg>", ""])


def _legend(names: Sequence[str]) -> list[str]:
    parts = [f'<text class="title" x="{LEFT}" y="24">Cost against the number of skills</text>']
    for number, name in enumerate(names):
        x, y = LEFT + (number % 3) * 300, 46 + (number // 3) * 18
        mark = f'<tspan style="fill: {_COLOURS[name]}">{_MARKS[name]}</tspan>'
        parts.append(f'<text x="{x}" y="{y}">{mark} {escape(SERVERS[name].label)}</text>')
    return parts


def _panel(panel: Panel, costs: Costs, left: float, top: float) -> list[str]:
    rows = [row for found in costs.values() for row in found]
    across = Axis.over([row["skills"] for row in rows], left, left + WIDTH)
    up = Axis.over([row[panel.cost] for row in rows], top + HEIGHT, top)
    parts = [f'<text class="title" x="{left}" y="{top - 8}">{escape(panel.title)}</text>']
    for value in across.ticks():
        x = across.at(value)
        parts.append(f'<line class="grid" x1="{x}" y1="{top}" x2="{x}" y2="{top + HEIGHT}"/>')
        parts.append(
            f'<text class="tick" x="{x}" y="{top + HEIGHT + 16}" text-anchor="middle">{value:,.0f}</text>'
        )
    for value in up.ticks():
        y = up.at(value)
        parts.append(f'<line class="grid" x1="{left}" y1="{y}" x2="{left + WIDTH}" y2="{y}"/>')
        parts.append(
            f'<text class="tick" x="{left - 6}" y="{y + 4}" text-anchor="end">{panel.write(value)}</text>'
        )
    middle = left + WIDTH / 2
    parts.append(f'<text class="tick" x="{middle}" y="{top + HEIGHT + 32}" text-anchor="middle">skills</text>')
    for name in reversed(costs):  # ours, the first, on top
        parts += _line(name, [(across.at(row["skills"]), up.at(row[panel.cost])) for row in costs[name]])
    return parts


def _line(name: str, points: Sequence[tuple[float, float]]) -> list[str]:
    path, colour = " ".join(f"{x},{y}" for x, y in points), _COLOURS[name]
    width = 3 if name == "ours" else 1.6
    marks = [
        f'<text x="{x}" y="{y + 4}" text-anchor="middle" style="fill: {colour}">{_MARKS[name]}</text>'
        for x, y in points
    ]
    return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>', *marks]
