"""One request of the API: its parts, its bounded body, and errors as responses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pydantic import BaseModel, ValidationError
from starlette.responses import JSONResponse, Response

from skillwire.client.bounds import parse_json
from skillwire.errors import (
    ApprovalError,
    ConflictError,
    FormatError,
    LimitError,
    NotFoundError,
    SkillwireError,
    StoreError,
    VerificationError,
)
from skillwire.limits import DEFAULT_LIMITS, MIB
from skillwire.registry.identity import current_identity, error_body
from skillwire.server.access import first_mistake

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from skillwire.registry.contract import RegistryStore
    from skillwire.registry.identity import Identities
    from skillwire.registry.model import Actor

API_PATH: Final = "/v1"
LARGEST_BODY: Final = 8 * MIB
MOST_LINES: Final = 1_000
SAFE: Final = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-cache",
}

OperationResult: TypeAlias = "dict[str, Any] | Response"


@dataclass(frozen=True, slots=True)
class Call:
    """One request: to which registry, who makes it, the values in its URL, and its body."""

    store: RegistryStore
    identities: Identities
    request: Request
    actor: Actor
    body: Any = None

    def at(self, name: str) -> str:
        """A value in the path."""
        return str(self.request.path_params[name])

    def query(self, name: str, default: str = "") -> str:
        """A value after the question mark."""
        return self.request.query_params.get(name, default)

    def limit(self, default: int, most: int) -> int:
        """The number of items that the caller wants."""
        return parse_limit(self.request, default, most)


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the API, described by the docstring of ``run``.

    ``body`` is the model of its JSON body, or ``bytes`` if ``run`` reads raw bytes itself. ``query`` has the names
    after the question mark, and ``media`` the types of its response.
    """

    method: str
    path: str
    run: Callable[[Call], Awaitable[OperationResult]]
    body: type[BaseModel] | type[bytes] | None = None
    status: int = 200
    query: tuple[str, ...] = ()
    media: tuple[str, ...] = ("application/json",)


def parse_limit(request: Request, default: int, most: int) -> int:
    """The number in the parameter ``limit`` of a URL."""
    text = request.query_params.get("limit", str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= most):
        raise FormatError("argument-invalid", "'limit' is not a valid number", f"write limit=1 to limit={most}")
    return int(text)


async def read_bytes(request: Request, most: int) -> bytes:
    """The body of a request, counted while it arrives."""
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > most:
            raise LimitError("body-too-large", f"the body has more than {most} bytes", "send less at once")
    return bytes(data)


async def read_body(request: Request, kind: type[BaseModel] | type[bytes] | None) -> Any:
    """The JSON document in the body of a request."""
    if kind is None or not issubclass(kind, BaseModel):
        return None
    data = await read_bytes(request, LARGEST_BODY)
    try:
        return kind.model_validate(parse_json(data or b"{}", "the body", DEFAULT_LIMITS))
    except ValidationError as error:
        message = first_mistake(error)
    except ValueError:
        message = "it is not JSON"
    raise FormatError("body-invalid", f"the body is invalid: {message}", f"see {API_PATH}/openapi.json")


def demand_caller() -> None:
    """Refuse a request without a token."""
    if not current_identity().principals:
        raise ApprovalError(
            "registry-login-missing", "this needs a token", "sign in: skillwire registry login URL"
        )


def failure(error: SkillwireError) -> JSONResponse:
    """An error as a response."""
    headers = dict(SAFE)
    match error:
        case NotFoundError():
            status = 404
        case ApprovalError():
            status = 403 if current_identity().principals else 401
        case LimitError():
            status = 413
        case ConflictError():
            status = 409
        case VerificationError():
            status = 422
        case StoreError():
            status = 503
            headers["Retry-After"] = "1"
        case _:
            status = 400
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(error_body(error), status, headers)
