"""Ours beside its peers and beside floors, in one run on one machine: tables, a plot and a file of raw figures.

python -m benchmarks.peers                                   # everything; about half an hour
python -m benchmarks.peers --parts requests --rounds 1       # a first look
python -m benchmarks.peers --quick                           # two minutes; fails if a ratio has halved
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.peers import parts
from benchmarks.peers.gate import check_quickly
from benchmarks.peers.packages import PLACE
from benchmarks.peers.rounds import CONNECTIONS
from benchmarks.peers.servers import SERVERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    names, wanted = _names(SERVERS), _names(parts.PARTS)
    add("--peers", type=names, default=list(SERVERS), metavar="NAME,…", help=f"of {', '.join(SERVERS)}")
    add("--parts", type=wanted, default=list(parts.PARTS), metavar="NAME,…", help=f"of {', '.join(parts.PARTS)}")
    add("--skills", type=int, default=1000, help="in the tree that requests are measured on (default: 1000)")
    add("--start-skills", type=int, default=5000, help="for starts and for rewriting (default: 5000)")
    add("--sizes", type=_numbers, default=[100, 1000, 10_000, 100_000], metavar="N,…", help="for the plot")
    add("--rounds", type=int, default=5, help="of which medians are taken (default: 5)")
    add("--seconds", type=float, default=1.0, help="that one measurement takes (default: 1)")
    add("--connections", type=_numbers, default=list(CONNECTIONS), metavar="N,…", help="(default: 1,16,64)")
    add("--soak", type=float, default=3.0, metavar="MINUTES", help="of load on ours (default: 3)")
    add("--out", type=Path, default=PLACE / "report", help="the folder for report.md, report.json and sizes.svg")
    add("--quick", action="store_true", help="ours and the floor, small; compared with expected.json")
    add("--record", action="store_true", help="with --quick: write expected.json anew")
    return parser.parse_args()


def _names(known: Iterable[str]) -> Callable[[str], list[str]]:
    def names(text: str) -> list[str]:
        for name in text.split(","):
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is not one of {', '.join(known)}")
        return text.split(",")

    return names


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def main() -> int:
    arguments = parse()
    PLACE.mkdir(parents=True, exist_ok=True)
    if arguments.quick:
        return check_quickly(record=arguments.record)
    parts.run(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
