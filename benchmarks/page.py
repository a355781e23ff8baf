"""How long a browser waits for the catalog's page: 5,000 skills, over HTTP on loopback, end to end.

    python -m benchmarks.page
    python -m benchmarks.page --skills 1000 --rounds 50

Asked by turns, on one connection: the list, its last page, a folder, searches (requests of the corpus), skills,
files; and, as the floor, ``/healthz`` of the same server: an empty answer through the same web server and the same
Starlette application. *First* is the first request of its kind after the start: for the list that is
what imports the templates and reads the listing, for search what builds the index. The others come when all
skills are examined, which happens in the background. *CPU* is the time that the server computes for one request;
other programs on the same machine change the waiting, but hardly the CPU time.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import statistics
import time
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from benchmarks.requests_and_skills import corpus_requests
from benchmarks.search import folder_of
from benchmarks.server_process import running

if TYPE_CHECKING:
    from collections.abc import Iterator

FLOOR = "/healthz"


def get(connection: http.client.HTTPConnection, address: str) -> tuple[float, int]:
    begun = time.perf_counter()
    connection.request("GET", address, headers={"Accept-Encoding": "identity"})
    answer = connection.getresponse()
    size = len(answer.read())
    assert answer.status == 200, (address, answer.status)
    return (time.perf_counter() - begun) * 1000, size


def cpu_time(process: int) -> float:
    """The milliseconds that a process has computed (Linux)."""
    return time.clock_gettime((~process << 3) | 2) * 1000  # clock_getcpuclockid(3)


def wait_until_examined(connection: http.client.HTTPConnection) -> None:
    while True:
        connection.request("GET", "/problems")
        if b"not examined yet" not in connection.getresponse().read():
            return


def addresses(skills: int) -> dict[str, Iterator[str]]:
    """Addresses of each kind, without end."""
    root = folder_of(skills)
    paths = sorted(str(path.parent.relative_to(root)) for path in root.glob("*/*/SKILL.md"))
    spread = paths[:: max(1, len(paths) // 100)]
    asked = [request.text for request in corpus_requests()][:100]
    return {
        "list, first page": itertools.repeat("/"),
        "list, last page": itertools.repeat(f"/?page={len(paths) // 100}"),
        "list, a folder": itertools.cycle(f"/?under={quote(path.partition('/')[0])}" for path in spread),
        "search": itertools.cycle(f"/search?part=1&q={quote(words)}" for words in asked),
        "a skill": itertools.cycle(f"/skill/{quote(path)}" for path in spread),
        "a file": itertools.cycle(f"/file/{quote(path)}/SKILL.md" for path in spread),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skills", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=100)
    arguments = parser.parse_args()
    kinds = addresses(arguments.skills)
    with running("serve", str(folder_of(arguments.skills)), "--no-watch") as server:
        place = urlsplit(server.url)
        connection = http.client.HTTPConnection(str(place.hostname), place.port or 80)
        get(connection, FLOOR)
        first = {kind: get(connection, next(asked))[0] for kind, asked in kinds.items()}
        wait_until_examined(connection)
        times: dict[str, list[float]] = {kind: [] for kind in (FLOOR, *kinds)}
        computed: dict[str, list[float]] = {kind: [] for kind in kinds}
        sizes: dict[str, int] = {}
        for _ in range(arguments.rounds):
            times[FLOOR].append(get(connection, FLOOR)[0])
            for kind, asked in kinds.items():
                before = cpu_time(server.pid)
                waited, sizes[kind] = get(connection, next(asked))
                times[kind].append(waited)
                computed[kind].append(cpu_time(server.pid) - before)
    floor = statistics.median(times[FLOOR])
    print(f"floor, an empty answer: {floor:.2f} ms\n")
    print("| page | bytes | CPU | median | 95 of 100 within | ratio to the floor | first |")
    print("|---|---|---|---|---|---|---|")
    for kind in kinds:
        median, late = statistics.median(times[kind]), statistics.quantiles(times[kind], n=20)[-1]
        cells = (
            f"{sizes[kind]:,}",
            f"{statistics.median(computed[kind]):.1f} ms",
            f"{median:.1f} ms",
            f"{late:.1f} ms",
            f"{median / floor:.1f}",
            f"{first[kind]:.0f} ms",
        )
        print(f"| {kind} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
