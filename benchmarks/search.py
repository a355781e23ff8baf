"""How fast a search is, how large its index, and how often it finds the right skill.

    python -m benchmarks.search                    # 1,000, 10,000 and 50,000 skills, then the corpus of requests
    python -m benchmarks.search --skills 1000      # a quick look

Speed: folders of generated skills (see ``requests_and_skills``). Searched for are the requests of the corpus, as
people write them, and pairs of *common* words, each in a fifth to a half of all skills. By turns with each search,
on the same rows: bare FTS5, which ranks whatever has one of the same words, with the same weights; and, seldom, a
scan with LIKE, which ranks nothing. *Agree*: bare FTS5's first is among our ten. Memory: the peak of a process
that reads the folder, and of one that also builds the index and searches it (Linux only).

Quality: for each request of the corpus, where the skill stands that its author had in mind.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio

from benchmarks.requests_and_skills import CorpusSkill, Writer, corpus_requests, corpus_skills
from benchmarks.scan import CACHE, MB
from skillwire import DirectoryCatalog, MemoryCatalog, Skill
from skillwire.search.index import SearchIndex
from skillwire.search.text import parse_query, quoted

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Sequence

BARE = "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY bm25(texts, 10.0, 4.0, 1.0) LIMIT 10"
LIKE_ROUNDS = 3


def folder_of(skills: int) -> Path:
    """A folder with the corpus and with generated skills, ``skills`` in all; written unless it is there."""
    corpus = corpus_skills()
    root = CACHE / f"search-{skills}-{sum(len(skill.body) for skill in corpus)}"
    if (root / ".complete").exists():
        return root
    writer = Writer(corpus)
    for number, skill in enumerate(itertools.chain(corpus, map(writer.skill, itertools.count()))):
        if number == skills:
            break
        place = root / f"team-{number // 100:03}" / skill.name
        place.mkdir(parents=True, exist_ok=True)
        (place / "SKILL.md").write_text(skill.skill_md())
    (root / ".complete").touch()
    return root


class Bare:
    """The rows of an index, without what is around them."""

    def __init__(self, index: SearchIndex) -> None:
        engine: Any = index._engine  # the same rows, or the comparison says nothing
        self._connection: sqlite3.Connection = engine._connection

    def rank(self, request: str) -> list[int]:
        expression = " OR ".join(map(quoted, parse_query(request).terms))
        return [row[0] for row in self._connection.execute(BARE, (expression,))]

    def uri(self, number: int) -> str:
        return self._connection.execute("SELECT uri FROM skills WHERE id = ?", (number,)).fetchone()[0]

    def scan(self, request: str) -> int:
        words = [f"%{term[0]}%" for term in parse_query(request).terms]
        tests = " OR ".join("name LIKE ? OR description LIKE ? OR body LIKE ?" for _ in words)
        values = [word for word in words for _ in range(3)]
        return len(self._connection.execute(f"SELECT rowid FROM texts WHERE {tests}", values).fetchall())

    def common_pairs(self, skills: int, count: int) -> list[str]:
        self._connection.execute("CREATE VIRTUAL TABLE temp.vocab USING fts5vocab(main, texts, row)")
        query = "SELECT term FROM vocab WHERE doc BETWEEN ? AND ? AND length(term) > 3"
        words = [row[0] for row in self._connection.execute(query, (skills // 5, skills // 2))]
        return [" ".join(random.Random(number).sample(words, 2)) for number in range(count)]


class Times(NamedTuple):
    ours: list[float]
    cpu: list[float]
    bare: list[float]
    agreed: int

    def shown(self) -> str:
        agreed = f"{100 * self.agreed / len(self.ours):.0f} %"
        return f"{spread(self.ours)} | {spread(self.cpu)} | {spread(self.bare)} | {agreed}"


def spread(times: Sequence[float]) -> str:
    cuts = statistics.quantiles(times, n=20)
    return f"{statistics.median(times) * 1000:.1f} / {cuts[-1] * 1000:.1f} ms"


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


async def by_turns(index: SearchIndex, requests: Sequence[str], rounds: int) -> Times:
    bare, times = Bare(index), Times([], [], [], 0)
    for request in [request for _ in range(rounds) for request in requests]:
        begun, busy = time.perf_counter(), time.process_time()
        hits = await index.search(request)
        times.cpu.append(time.process_time() - busy)
        times.ours.append(time.perf_counter() - begun)
        seconds, rows = timed(lambda request=request: bare.rank(request))
        times.bare.append(seconds)
        agrees = not rows or bare.uri(rows[0]) in {hit.uri for hit in hits}
        times = times._replace(agreed=times.agreed + agrees)
    return times


async def measure(skills: int, rounds: int) -> None:
    catalog = DirectoryCatalog(folder_of(skills))
    reading, _ = timed(catalog.load)
    index = SearchIndex(catalog)
    requests = [request.text for request in corpus_requests()]
    begun = time.perf_counter()
    await index.search(requests[0])
    building = time.perf_counter() - begun
    asked = await by_turns(index, requests, rounds)
    bare = Bare(index)
    common = await by_turns(index, bare.common_pairs(skills, 100), rounds)
    scans = [timed(lambda text=text: bare.scan(text))[0] for text in requests[:LIKE_ROUNDS]]
    index.close()
    memory = f"{peak_memory(skills, search=False):.0f} / {peak_memory(skills, search=True):.0f} MB"
    like = f"{statistics.median(scans) * 1000:.0f} ms"
    print(f"| {skills:,} | {reading:.1f} s | {building:.1f} s | {memory} | requests | {asked.shown()} | {like} |")
    print(f"| | | | | common words | {common.shown()} | |", flush=True)


def peak_memory(skills: int, *, search: bool) -> float:
    """Megabytes of a fresh process that has read the folder, and perhaps searched it."""
    words = [
        sys.executable,
        "-m",
        "benchmarks.search",
        "--memory-of",
        str(skills),
        *(["--search"] if search else []),
    ]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


async def print_memory(skills: int, search: bool) -> None:
    catalog = DirectoryCatalog(folder_of(skills))
    catalog.load()
    if search:
        index = SearchIndex(catalog)
        for request in corpus_requests():
            await index.search(request.text)
        index.close()
    print(json.dumps(own_peak()))


def own_peak() -> float:
    """Megabytes. Not from getrusage: the peak that it gives is at first that of the parent process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024 / MB


async def quality(title: str, skills: Sequence[CorpusSkill], *, bodies: bool) -> None:
    catalog = MemoryCatalog([Skill(skill.name, {"SKILL.md": skill.skill_md()}) for skill in skills])
    index = SearchIndex(catalog, bodies=bodies)
    ranks: list[int] = []
    for request in corpus_requests():
        names = [hit.name for hit in await index.search(request.text)]
        ranks.append(next((rank for rank, name in enumerate(names, 1) if name in request.right), 0))
    index.close()
    first, five = sum(rank == 1 for rank in ranks), sum(1 <= rank <= 5 for rank in ranks)
    reciprocal = sum(1 / rank for rank in ranks if rank)
    shares = [f"{100 * count / len(ranks):.1f} %" for count in (first, five)]
    print(f"| {title} | {shares[0]} | {shares[1]} | {reciprocal / len(ranks):.3f} |", flush=True)


async def report_quality() -> None:
    skills = corpus_skills()
    print(f"\n{len(corpus_requests())} requests, {len(skills)} skills\n")
    print("| searched | Hit@1 | Hit@5 | MRR (of ten) |\n|---|---|---|---|")
    await quality("names", [skill._replace(description="-") for skill in skills], bodies=False)
    await quality("names, descriptions", skills, bodies=False)
    await quality("names, descriptions, bodies", skills, bodies=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skills", type=int, nargs="+", default=[1_000, 10_000, 50_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--search", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of is not None:
        anyio.run(print_memory, arguments.memory_of, arguments.search)
        return
    print(
        "| skills | folder read | index built | memory | for | p50 / p95 | of it CPU | bare FTS5 | agree | LIKE |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for skills in arguments.skills:
        anyio.run(measure, skills, arguments.rounds)
    anyio.run(report_quality)


if __name__ == "__main__":
    main()
