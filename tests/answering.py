"""A connection without a server: it answers from a table, and remembers what it was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillwire.client.connection import Connection
from skillwire.errors import NotFoundError
from skillwire.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def text(uri: str, data: bytes) -> dict[str, Any]:
    """The answer to ``resources/read``, for text."""
    return {"contents": [{"uri": uri, "text": data.decode()}]}


class Answering(Connection):
    """``answer`` is called with a method and its parameters; an exception it returns is raised."""

    def __init__(
        self,
        answer: Callable[[str, Mapping[str, Any]], dict[str, Any] | Exception],
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__(None, limits)
        self._answer = answer
        self.asked: list[tuple[str, Mapping[str, Any]]] = []

    async def request(self, method: str, **params: Any) -> dict[str, Any]:
        """What ``answer`` says."""
        self.asked.append((method, dict(params)))
        answer = self._answer(method, params)
        if isinstance(answer, Exception):
            raise answer
        return answer


def serving(resources: Mapping[str, dict[str, Any]], limits: Limits = DEFAULT_LIMITS) -> Answering:
    """A connection that answers ``resources/read`` from a table."""

    def answer(method: str, params: Mapping[str, Any]) -> dict[str, Any] | Exception:
        assert method == "resources/read"
        return resources.get(params["uri"]) or NotFoundError("not-served", f"nothing at {params['uri']}")

    return Answering(answer, limits)
