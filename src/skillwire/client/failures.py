"""The table from exceptions of the SDK and the transports to errors of this package."""

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
_RESOURCE_NOT_FOUND = -32002  # the code of older servers; newer ones use -32602
_FIX_SERVER = "the server must be fixed"
_REFUSED = {401: "requires authentication", 403: "denies access"}


class Translated:
    """A ``with`` block that translates exceptions raised while ``method`` is requested."""

    def __init__(self, meter: Meter, method: str) -> None:
        self._meter = meter
        self._method = method

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, SkillwireError):
            raise as_ours(error, self._meter, self._method) from error


def as_ours(error: Exception, meter: Meter, method: str) -> SkillwireError:
    """The error of this package for an exception raised while ``method`` was requested."""
    match error:
        case SkillwireError():
            return error
        case MCPError():
            return _from_rpc(error, meter, method)
        case TimeoutError():
            return too_slow(meter.limits.max_call_seconds)
        case ValidationError():
            return ProtocolError(
                "answer-invalid", f"the response to {method} does not follow the protocol", _FIX_SERVER
            )
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
            return ProtocolError("url-invalid", "the URL cannot be used with HTTP", side="local")
        case RuntimeError() if "protocol version" in str(error):  # raised by the SDK if there is no common version
            return UpstreamError(
                "not-mcp", f"client and server have no common MCP version: {error!s:.200}", "update the older one"
            )
        case _:  # connection refused or reset, name not resolved, process ended
            return meter.take_failure() or _lost(meter, _described(error), method)


def _from_rpc(error: MCPError, meter: Meter, method: str) -> SkillwireError:
    text = _quoted(error.message)
    if error.code in (CONNECTION_CLOSED, PARSE_ERROR):
        failure = meter.take_failure()
        if failure is not None:
            return failure
    if meter.status in _REFUSED:
        return UpstreamError(
            "not-allowed",
            f"the server {_REFUSED[meter.status]} (HTTP {meter.status})",
            "send the header that the server expects, such as 'Authorization: Bearer …'",
        )
    if error.code == CONNECTION_CLOSED or (error.code == INVALID_REQUEST and "Session terminated" in text):
        return _lost(meter, text, method)
    status = f"HTTP {meter.status}" if meter.status and meter.status >= 400 else f"{error.code}"
    if method == CONNECTING:
        return UpstreamError(
            "not-mcp", f"the server does not speak MCP: {text} ({status})", "check the URL; the path is often /mcp"
        )
    return _from_code(error, text, method, status)


def _from_code(error: MCPError, text: str, method: str, status: str) -> SkillwireError:
    code = error.code
    if code in (INVALID_PARAMS, _RESOURCE_NOT_FOUND):
        hint = _hint_of(error) or "list its skills for the URIs that exist"
        return NotFoundError("not-served", f"the server refuses {method}: {text}", hint)
    if code == METHOD_NOT_FOUND:
        return ProtocolError(
            "method-unknown", f"the server does not know {method}", "the server may use another dialect"
        )
    if code == PARSE_ERROR:
        return ProtocolError(
            "message-invalid", f"the server sent a message that cannot be parsed: {text}", _FIX_SERVER, rule="B1"
        )
    return UpstreamError("server-failed", f"the server failed at {method}: {text} ({status})", "try again later")


def _hint_of(error: MCPError) -> str:
    """The hint that servers of this package send with an error."""
    data: object = error.error.data
    hint = cast("dict[str, object]", data).get("hint") if isinstance(data, dict) else None
    return _quoted(hint) if isinstance(hint, str) else ""


def _lost(meter: Meter, text: str, method: str) -> UpstreamError:
    problem = "cannot connect to the server" if method == CONNECTING else "the connection to the server was lost"
    lines = meter.last_output.strip().splitlines()
    last = f"; last output: {_quoted(' '.join(lines[-2:]))}" if lines else ""  # an error, and often a hint
    return UpstreamError(
        "connection-lost", f"{problem} ({text}){last}", "check that the server is running and can be reached"
    )


def _described(error: Exception) -> str:
    """The name and the message of an exception. Some messages contain headers, which may be secrets."""
    name = type(error).__name__
    return name if isinstance(error, httpx2.LocalProtocolError | UnicodeError) else _quoted(f"{name}: {error}")


def _quoted(text: str) -> str:
    """Text from a server on one line, without control characters, which a terminal could interpret."""
    return "".join(character if character.isprintable() else " " for character in text[:300]).strip()
