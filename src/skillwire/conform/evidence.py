"""Requests and responses as evidence: shortened and without secrets.

HTTP headers are not recorded, so no token that we send can appear in a report. ``Redactor`` removes secrets that a
server repeats in a response.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Iterable

Message: TypeAlias = dict[str, Any]

_MAX_TEXT = 200
_MAX_ITEMS = 4
_MAX_KEYS = 24
_MAX_DEPTH = 10
_SHORTEST_SECRET = 4
_HIDDEN = "[hidden]"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its response, or the reason why there is no readable response."""

    request: Message
    answer: Any = None
    problem: str = ""

    @property
    def method(self) -> str:
        """The method of the request."""
        return str(self.request.get("method", ""))

    @property
    def result(self) -> Message | None:
        """The result, if the response has one and it is an object."""
        result: object = _object(self.answer).get("result")
        return cast("Message", result) if isinstance(result, dict) else None

    @property
    def code(self) -> int | None:
        """The error code, if the response is an error."""
        code: object = _object(_object(self.answer).get("error")).get("code")
        return code if isinstance(code, int) and not isinstance(code, bool) else None

    @property
    def is_error(self) -> bool:
        """Whether the response is an error, well formed or not."""
        return "error" in _object(self.answer)

    @property
    def summary(self) -> str:
        """The outcome in a few words."""
        if self.problem:
            return self.problem
        if self.is_error:
            return f"error {self.code}"
        return "a result" if self.result is not None else "no result"


def _object(value: object) -> Message:
    return cast("Message", value) if isinstance(value, dict) else {}


def printable(text: str) -> str:
    """``text`` with lone surrogates escaped: JSON can carry them, a file cannot."""
    return text.encode(errors="backslashreplace").decode()


def shorten(value: Any, depth: int = _MAX_DEPTH) -> Any:
    """``value`` in a readable size: long text is cut, and long lists show their first items."""
    match value:
        case str() if len(value) > _MAX_TEXT:
            return f"{printable(value[:_MAX_TEXT])}… ({len(value):,} characters)"
        case str():
            return printable(value)
        case list() | dict() if depth == 0:
            return "…"
        case list():
            items = cast("list[Any]", value)
            more = [f"… and {len(items) - _MAX_ITEMS:,} more"] if len(items) > _MAX_ITEMS else []
            return [*(shorten(item, depth - 1) for item in items[:_MAX_ITEMS]), *more]
        case dict():
            fields = cast("dict[str, Any]", value)
            kept = {
                printable(key[:_MAX_TEXT]): shorten(fields[key], depth - 1) for key in list(fields)[:_MAX_KEYS]
            }
            more = {"…": f"{len(fields) - _MAX_KEYS:,} more"} if len(fields) > _MAX_KEYS else {}
            return {**kept, **more}
        case _:
            return value


class Redactor:
    """Replaces the secrets that a server was given."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        words = {word for secret in secrets for word in (secret, secret.rpartition(" ")[2])}
        self._secrets = sorted((word for word in words if len(word) >= _SHORTEST_SECRET), key=len, reverse=True)

    def __call__(self, value: Any) -> Any:
        """Return ``value`` without the secrets."""
        match value:
            case str():
                for secret in self._secrets:
                    value = value.replace(secret, _HIDDEN)
                return value
            case list():
                return [self(item) for item in cast("list[Any]", value)]
            case dict():
                return {self(key): self(item) for key, item in cast("dict[str, Any]", value).items()}
            case _:
                return value

    def evidence(self, exchange: Exchange) -> dict[str, Any]:
        """Return the exchange as evidence for a report."""
        answer = {"problem": exchange.problem} if exchange.answer is None else exchange.answer
        return {"request": shorten(self(exchange.request)), "answer": shorten(self(answer))}
