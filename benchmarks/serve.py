"""How long a client waits: one page of 1,000 skills, one entry, one file, over HTTP on loopback, end to end.

Beside it, in the same run, the same bytes from a bare Starlette application on the same web server: the floor.

    python -m benchmarks.serve
"""

from __future__ import annotations

import http.client
import json
import socket
import statistics
import subprocess
import sys
import time
from typing import Any

from benchmarks.scan import CACHE
from benchmarks.trees import generate, skill_folder

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
FLOOR = """
import sys, uvicorn
from pathlib import Path
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
answers = {path.name: path.read_bytes() for path in Path(sys.argv[1]).iterdir()}
async def answer(request):
    await request.body()
    return Response(answers[request.headers["mcp-method"].replace("/", "-")], media_type="application/json")
app = Starlette(routes=[Route("/mcp", answer, methods=["POST"])])
uvicorn.run(app, port=int(sys.argv[2]), log_level="warning")
"""


def ask(connection: http.client.HTTPConnection, method: str, **params: Any) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": META, **params}})
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
    }
    if method == "resources/read":
        headers["mcp-name"] = params["uri"]
    connection.request("POST", "/mcp", body, headers)
    return connection.getresponse().read()


def main() -> None:
    skills = 1000
    root = generate(CACHE, skills)
    uri = f"skill://{skill_folder(root, 500).relative_to(root)}/SKILL.md"
    asks: dict[str, dict[str, Any]] = {
        "skills/list": {},
        "skills/get": {"uri": uri},
        "resources/read": {"uri": uri},
    }
    serving = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "skillwire",
            "serve",
            str(root),
            "--http",
            "0",
            "--page-size",
            "1000",
            "--no-watch",
        ],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert serving.stderr is not None
    line = next(line for line in serving.stderr if line.startswith("listening at"))
    ours = http.client.HTTPConnection("127.0.0.1", int(line.split(":")[2].split("/")[0]))
    answers = CACHE / "answers"
    answers.mkdir(exist_ok=True)
    for method, params in asks.items():
        (answers / method.replace("/", "-")).write_bytes(ask(ours, method, **params))
    floor_server, floor = start_floor(str(answers))
    try:
        print("| request | bytes | floor (median) | skillwire (median) | ratio |\n|---|---|---|---|---|")
        for method, params in asks.items():
            rounds = 20 if method == "skills/list" else 300
            times: dict[str, list[float]] = {"floor": [], "ours": []}
            for _ in range(rounds):
                for name, connection in (("floor", floor), ("ours", ours)):
                    begun = time.perf_counter()
                    size = len(ask(connection, method, **params))
                    times[name].append((time.perf_counter() - begun) * 1000)
            low, own = statistics.median(times["floor"]), statistics.median(times["ours"])
            print(f"| `{method}` | {size:,} | {low:.2f} ms | {own:.2f} ms | {own / low:.1f} |")
    finally:
        for process in (serving, floor_server):
            process.terminate()
            process.wait()


def start_floor(answers: str) -> tuple[subprocess.Popen[bytes], http.client.HTTPConnection]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-c", FLOOR, answers, str(port)])
    deadline = time.monotonic() + 30
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.connect()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return process, connection


if __name__ == "__main__":
    main()
