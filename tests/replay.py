"""A server that answers exactly what another one was recorded to answer (``tests/recorded``), errors included.

Run with a file it speaks on stdio, without the SDK; ``app`` is the same over HTTP. Of what was not recorded,

- a method is refused as the recorded server refused ``server/discover``, which it did not know,
- a resource as it refused the nearest one that it did not have, which in some servers is prose,
- other parameters of a known method with an error of our own, so that no test rests on an invented answer.
"""

from __future__ import annotations

import json
import sys
from os.path import commonpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

Recording = dict[str, Any]

UNRECORDED = {"code": -32099, "message": "this was not recorded"}
_UNKNOWN_METHOD = {"code": -32601, "message": "Method not found"}


class Replay:
    """One recording as a server."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._calls: list[dict[str, Any]] = recording.get("calls", [])

    def answer(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """The answer to one message, or ``None`` to a notification."""
        if "id" not in message:
            return None
        params = {key: value for key, value in message.get("params", {}).items() if key != "_meta"}
        return {"jsonrpc": "2.0", "id": message["id"], **self._outcome(message["method"], params)}

    def _outcome(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        recording = self._recording
        for call in self._calls:
            if (call["method"], call["params"]) == (method, params):
                return {key: call[key] for key in ("result", "error") if key in call}
        if any(call["method"] == method for call in self._calls):
            return {"error": UNRECORDED}
        match method:
            case "server/discover" if "discover" in recording:
                return {"result": recording["discover"]}
            case "initialize" if "protocolVersion" in recording:
                fields = ("protocolVersion", "capabilities", "serverInfo", "instructions")
                return {"result": {key: recording[key] for key in fields if recording[key] is not None}}
            case "resources/list":
                return {"result": {**self._around(), "resources": recording["resources"]}}
            case "resources/read" if recording["reads"]:
                return self._read(params["uri"])
            case _:
                return {"error": recording.get("discover_error", _UNKNOWN_METHOD)}

    def _read(self, uri: str) -> dict[str, Any]:
        reads, errors = self._recording["reads"], self._recording.get("errors", {})
        if uri not in reads and uri not in errors:
            missing = [*errors, *(known for known, answer in reads.items() if _is_prose(answer))]
            nearest = max(missing, key=lambda known: len(commonpath([known, uri])))
            return json.loads(json.dumps(self._read(nearest)).replace(nearest, uri))
        return {"result": reads[uri]} if uri in reads else {"error": errors[uri]}

    def _around(self) -> dict[str, Any]:
        """Of a listing only the items were recorded; around them stood what stands around any other answer."""
        fields = ("resultType", "ttlMs", "cacheScope", "_meta")
        return {key: value for key, value in self._recording.get("discover", {}).items() if key in fields}


def _is_prose(answer: dict[str, Any]) -> bool:
    return answer["contents"][0].get("text", "").startswith("# Error\n")


def app(recording: Recording) -> Starlette:
    """The server for HTTP: no session, no stream."""
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, Response
    from starlette.routing import Route

    replay = Replay(recording)

    async def respond(request: Request) -> Response:
        answer = replay.answer(await request.json())
        return Response(status_code=202) if answer is None else JSONResponse(answer)

    return Starlette(routes=[Route("/mcp", respond, methods=["POST"])])


def main() -> None:
    """Speak on stdio until it ends."""
    replay = Replay(json.loads(Path(sys.argv[1]).read_text()))
    for line in sys.stdin:
        answer = replay.answer(json.loads(line))
        if answer is not None:
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
