"""The official Python SDK, answering from a dictionary: what the protocol costs when nothing has to be looked up.

python -m benchmarks.peers.python_sdk ANSWERS
"""

from __future__ import annotations

import json
import sys
from typing import Any

from mcp.server.lowlevel import Server
from mcp_types import RequestParams

from benchmarks.peers.floor import read_answers, run


class AboutParams(RequestParams):
    """What any of the three methods is asked with."""

    uri: str | None = None
    cursor: str | None = None


def build(answers: dict[tuple[str, str | None], dict[str, Any]]) -> Server[Any]:
    server: Server[Any] = Server("python-sdk")
    server.extensions["io.modelcontextprotocol/skills"] = {}
    for method in {method for method, _ in answers}:

        async def answer(_ctx: Any, params: AboutParams, method: str = method) -> dict[str, Any]:
            return answers[method, params.uri or params.cursor]

        server.add_request_handler(method, AboutParams, answer)
    return server


def main(path: str) -> None:
    answers = {key: json.loads(head + b"1" + tail)["result"] for key, (head, tail) in read_answers(path).items()}
    app = build(answers).streamable_http_app(streamable_http_path="/mcp", json_response=True, host="127.0.0.1")
    run(app, lifespan="on")


if __name__ == "__main__":
    main(sys.argv[1])
