"""What was asked and what came back, as it went over the wire; shortened and without secrets where it is shown.

HTTP headers are no part of it, so that no token that we send can be shown. What a server repeats of the secrets
that it was given is taken out by ``Redactor``.
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
    """One request and its answer, or the reason why there is none that could be read."""

    request: Message
    answer: Any = None
    problem: str = ""

    @property
    def method(self) -> str:
        """What was asked."""
        return str(self.request.get("method", ""))

    @property
    def result(self) -> Message | None:
        """The result, if the answer has one that is an object."""
        result: object = _object(self.answer).get("result")
        return cast("Message", result) if isinstance(result, dict) else None

    @property
    def code(self) -> int | None:
        """The error's code, if the answer is an error."""
        code: object = _object(_object(self.answer).get("error")).get("code")
        return code if isinstance(code, int) and not isinstance(code, bool) else None

    @property
    def is_error(self) -> bool:
        """Whether the answer is an error, well formed or not."""
        return "error" in _object(self.answer)

    @property
    def said(self) -> str:
        """What came back, in a few words."""
        if self.problem:
            return self.problem
        if self.is_error:
            return f"the error {self.code}"
        return "a result" if self.result is not None else "no result"


def _object(value: object) -> Message:
    return cast("Message", value) if isinstance(value, dict) else {}


def legible(text: str) -> str:
    """``text`` with half characters, which JSON can carry and no file can hold, spelled out."""
    return text.encode(errors="backslashreplace").decode()


def shortened(value: Any, depth: int = _MAX_DEPTH) -> Any:
    """``value`` in a size that people read: long text is cut, long lists are begun."""
    match value:
        case str() if len(value) > _MAX_TEXT:
            return f"{legible(value[:_MAX_TEXT])}… ({len(value):,} characters)"
        case str():
            return legible(value)
        case list() | dict() if depth == 0:
            return "…"
        case list():
            items = cast("list[Any]", value)
            more = [f"… and {len(items) - _MAX_ITEMS:,} more"] if len(items) > _MAX_ITEMS else []
            return [*(shortened(item, depth - 1) for item in items[:_MAX_ITEMS]), *more]
        case dict():
            fields = cast("dict[str, Any]", value)
            kept = {
                legible(key[:_MAX_TEXT]): shortened(fields[key], depth - 1) for key in list(fields)[:_MAX_KEYS]
            }
            more = {"…": f"{len(fields) - _MAX_KEYS:,} more"} if len(fields) > _MAX_KEYS else {}
            return {**kept, **more}
        case _:
            return value


class Redactor:
    """Takes the secrets that a server was given out of what is shown of it."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        words = {word for secret in secrets for word in (secret, secret.rpartition(" ")[2])}
        self._secrets = sorted((word for word in words if len(word) >= _SHORTEST_SECRET), key=len, reverse=True)

    def __call__(self, value: Any) -> Any:
        """``value`` without any of the secrets."""
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

    def shown(self, exchange: Exchange) -> dict[str, Any]:
        """The exchange as evidence."""
        answer = {"problem": exchange.problem} if exchange.answer is None else exchange.answer
        return {"request": shortened(self(exchange.request)), "answer": shortened(self(answer))}
