"""The one table from what the SDK and transports raise to our errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import httpx2
from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR
from pydantic import ValidationError

from skillwire.client.http import too_slow
from skillwire.errors import NotFoundError, ProtocolError, SkillwireError, UpstreamError

if TYPE_CHECKING:
    from skillwire.client.meter import Meter

CONNECTING = "connecting"
_RESOURCE_NOT_FOUND = -32002  # what servers said before -32602 was agreed on
_CORRECT = "the server has to be corrected"
_REFUSED = {401: "wants to know who you are", 403: "does not let you in"}


class Translated:
    """A ``with`` block in which foreign exceptions become ours. ``method`` is what was asked."""

    def __init__(self, meter: Meter, method: str) -> None:
        self._meter = meter
        self._method = method

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, SkillwireError):
            raise as_ours(error, self._meter, self._method) from error


def as_ours(error: Exception, meter: Meter, method: str) -> SkillwireError:
    """Our error for whatever was raised while ``method`` was asked."""
    match error:
        case SkillwireError():
            return error
        case MCPError():
            return _from_rpc(error, meter, method)
        case TimeoutError():
            return too_slow(meter.limits.max_call_seconds)
        case ValidationError():
            return ProtocolError(
                "answer-invalid", f"the answer to {method} is not what the protocol says", _CORRECT
            )
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
            return ProtocolError("url-invalid", "the URL is none that HTTP can reach", side="local")
        case RuntimeError() if "protocol version" in str(error):  # how the SDK says that there is none in common
            return UpstreamError(
                "not-mcp", f"no version of MCP is spoken on both sides: {error!s:.200}", "update the older side"
            )
        case _:  # refused, reset, resolved to nothing: whatever a network or a process can do
            return meter.take_failure() or _lost(meter, _said_by(error), method)


def _from_rpc(error: MCPError, meter: Meter, method: str) -> SkillwireError:
    said = _quoted(error.message)
    if error.code in (CONNECTION_CLOSED, PARSE_ERROR):
        failure = meter.take_failure()
        if failure is not None:
            return failure
    if meter.status in _REFUSED:
        return UpstreamError(
            "not-allowed",
            f"the server {_REFUSED[meter.status]} (HTTP {meter.status})",
            "send the header it expects, such as 'Authorization: Bearer …'",
        )
    if error.code == CONNECTION_CLOSED or (error.code == INVALID_REQUEST and "Session terminated" in said):
        return _lost(meter, said, method)
    status = f"HTTP {meter.status}" if meter.status and meter.status >= 400 else f"{error.code}"
    if method == CONNECTING:
        return UpstreamError(
            "not-mcp", f"what answers there does not speak MCP: {said} ({status})", "a server's path is often /mcp"
        )
    return _from_code(error, said, method, status)


def _from_code(error: MCPError, said: str, method: str, status: str) -> SkillwireError:
    code = error.code
    if code in (INVALID_PARAMS, _RESOURCE_NOT_FOUND):
        hint = _said_hint(error) or "ask for what its listing names"
        return NotFoundError("not-served", f"the server refuses {method}: {said}", hint)
    if code == METHOD_NOT_FOUND:
        return ProtocolError(
            "method-unknown", f"the server does not know {method}", "it may speak another dialect"
        )
    if code == PARSE_ERROR:
        return ProtocolError(
            "message-invalid", f"the server sent what cannot be read: {said}", _CORRECT, rule="B1"
        )
    return UpstreamError("server-failed", f"the server failed at {method}: {said} ({status})", "try again later")


def _said_hint(error: MCPError) -> str:
    """What the server says to do next, as servers of this package do."""
    data: object = error.error.data
    hint = cast("dict[str, object]", data).get("hint") if isinstance(data, dict) else None
    return _quoted(hint) if isinstance(hint, str) else ""


def _lost(meter: Meter, said: str, method: str) -> UpstreamError:
    what = "cannot connect to the server" if method == CONNECTING else "the connection to the server is gone"
    words = meter.last_words.strip().splitlines()
    last = f"; its last words: {_quoted(' '.join(words[-2:]))}" if words else ""  # an error, and often a hint
    return UpstreamError(
        "connection-lost", f"{what} ({said}){last}", "see whether the server runs and can be reached from here"
    )


def _said_by(error: Exception) -> str:
    """What was raised, in its own words unless it may quote what we send: headers are secrets."""
    name = type(error).__name__
    return name if isinstance(error, httpx2.LocalProtocolError | UnicodeError) else _quoted(f"{name}: {error}")


def _quoted(text: str) -> str:
    """A stranger's words on one line: nothing in them ends it, and nothing is an order to a terminal."""
    return "".join(character if character.isprintable() else " " for character in text[:300]).strip()
