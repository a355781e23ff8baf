"""The floor: bare ASGI that sends prepared bytes, on the same web server as ours, set up as ours is.

    python -m benchmarks.peers.floor ANSWERS [starlette]

It decodes the request, looks the answer up and puts the request's id into it: what no server can do without.
``ANSWERS`` is what our server answered (``answers.py``), so that both send the same bytes. With ``starlette`` it
is a route of Starlette, as a person would write it by hand.
"""

from __future__ import annotations

import json
import socket
import sys
from typing import TYPE_CHECKING, Any, Literal

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request

_HEADERS = [(b"content-type", b"application/json")]


def read_answers(path: str) -> dict[tuple[str, str | None], tuple[bytes, bytes]]:
    """Answers by method and by what was asked for, each in the two parts around its id."""
    with open(path, encoding="utf-8") as file:
        rows = (json.loads(line) for line in file)
        return {(method, about): (head.encode(), tail.encode()) for method, about, head, tail in rows}


class Floor:
    """The application."""

    def __init__(self, answers: dict[tuple[str, str | None], tuple[bytes, bytes]]) -> None:
        self._answers = answers

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        message = await receive()
        body = message["body"]
        while message.get("more_body"):
            message = await receive()
            body += message["body"]
        answer = self.answer(json.loads(body))
        length = (b"content-length", b"%d" % len(answer))
        await send({"type": "http.response.start", "status": 200, "headers": [*_HEADERS, length]})
        await send({"type": "http.response.body", "body": answer})

    def answer(self, request: dict[str, Any]) -> bytes:
        params = request["params"]
        head, tail = self._answers[request["method"], params.get("uri") or params.get("cursor")]
        return b"%b%d%b" % (head, request["id"], tail)

    def starlette(self) -> Starlette:
        async def answer(request: Request) -> Response:
            return Response(self.answer(await request.json()), media_type="application/json")

        return Starlette(routes=[Route("/mcp", answer, methods=["POST"])])


def run(app: Any, lifespan: Literal["on", "off"] = "off") -> None:
    """As ``skillwire serve`` runs the web server: the same event loop, the same parser of HTTP."""
    anyio.run(_serve, app, lifespan)


async def _serve(app: Any, lifespan: Literal["on", "off"]) -> None:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # or asyncio delays answers
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)
    print(f"listening at http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, ws="none", lifespan=lifespan
    )
    await uvicorn.Server(config).serve([listener])


if __name__ == "__main__":
    floor = Floor(read_answers(sys.argv[1]))
    run(floor.starlette() if sys.argv[2:] == ["starlette"] else floor)
