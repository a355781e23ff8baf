"""Forms: read within a bound, and only if the page that sent them was made for this very session."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from skillwire.errors import FormatError
from skillwire.web.desk.answers import refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from skillwire.web.desk.sessions import Session

_MOST_FIELDS = 1000
_LONGEST_NOTE = 2000
_LONGEST_WORD = 300


class Form:
    """The fields of a form."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self._pairs = pairs

    def get(self, name: str) -> str:
        """One field; empty if it is not there."""
        return next((value for key, value in self._pairs if key == name), "")

    def all(self, name: str) -> list[str]:
        """Every value of a field that may be there several times."""
        return [value for key, value in self._pairs if key == name]

    @property
    def note(self) -> str:
        """What the person wrote beside their decision, as one line of text."""
        return " ".join(self.get("note").split())[:_LONGEST_NOTE]

    @property
    def grants(self) -> frozenset[str]:
        """What was ticked or written to be granted; ``FormatError`` for what could be no tool's name."""
        words = [word for word in (*self.all("grant"), *self.get("more").splitlines()) if word.strip()]
        if any(not word.isprintable() or len(word) > _LONGEST_WORD for word in words):
            raise FormatError("argument-invalid", "a tool's name is a line of text", "write its name alone")
        return frozenset(word.strip() for word in words)


def changing(
    act: Callable[[Request, Form], Awaitable[Response]], *, max_bytes: int = 64 * 1024
) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint for a form that changes something. Without the session's token nothing happens."""

    async def endpoint(request: Request) -> Response:
        body = await _read(request, max_bytes)
        if body is None:
            return refusal("form-too-large", request)
        form = _parse(body)
        session: Session = request.state.session
        if form is None or not session.has_token(form.get("csrf")):
            return refusal("wrong-token", request)
        return await act(request, form)

    return endpoint


async def _read(request: Request, max_bytes: int) -> bytes | None:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > max_bytes:
            return None
    return bytes(data)


def _parse(body: bytes) -> Form | None:
    try:
        return Form(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError:
        return None
