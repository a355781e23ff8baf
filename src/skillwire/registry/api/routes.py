"""The routes of the API."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from skillwire.errors import NotFoundError, SkillwireError
from skillwire.registry.api import accounts, namespaces, skills
from skillwire.registry.api.call import API_PATH, SAFE, Call, demand_caller, failure, read_body
from skillwire.registry.api.openapi import openapi
from skillwire.registry.identity import current_identity
from skillwire.registry.model import Actor

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from skillwire.registry.api.call import Operation
    from skillwire.registry.catalog import Changes
    from skillwire.registry.contract import RegistryStore
    from skillwire.registry.identity import Identities

OPERATIONS: Final[Sequence[Operation]] = (
    *namespaces.OPERATIONS,
    *skills.OPERATIONS,
    *accounts.OPERATIONS,
)


class _SkillPath(Convertor[str]):
    """The path of a skill in a URL. A segment never is ``-``, so what follows it is unambiguous."""

    regex = "[a-z0-9][a-z0-9-]*(?:/[a-z0-9][a-z0-9-]*)+"

    def convert(self, value: str) -> str:
        """The path, unchanged."""
        return value

    def to_string(self, value: str) -> str:
        """The same in the other direction."""
        return value


register_url_convertor("skill", _SkillPath())


class RegistryApi:
    """The operations on one registry."""

    def __init__(self, store: RegistryStore, identities: Identities, changes: Changes) -> None:
        self._store = store
        self._identities = identities
        self._changes = changes

    def routes(self) -> list[Route]:
        """The routes, for the web application."""
        paths: dict[str, dict[str, Operation]] = {}
        for operation in OPERATIONS:
            paths.setdefault(operation.path, {})[operation.method] = operation
        routes = [
            Route(API_PATH + path, self._endpoint(methods), methods=list(methods))
            for path, methods in paths.items()
        ]
        document = openapi(OPERATIONS)

        async def describe(request: Request) -> Response:  # noqa: ARG001 - the form of an endpoint
            return JSONResponse(document)

        async def unknown(request: Request) -> Response:
            words = f"{request.method} {request.url.path!r:.200} is not an operation"
            return failure(NotFoundError("operation-unknown", words, f"see {API_PATH}/openapi.json"))

        return [
            Route(f"{API_PATH}/openapi.json", describe),
            *routes,
            Route(API_PATH + "/{rest:path}", unknown, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
        ]

    def _endpoint(self, methods: dict[str, Operation]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            operation = methods["GET" if request.method == "HEAD" else request.method]
            client = request.client.host if request.client else "unknown"
            actor = Actor(current_identity(), client, time.time())
            try:
                if operation.method != "GET":
                    demand_caller()  # before its body is read: to strangers a request is cheap (Z6)
                call = Call(
                    self._store, self._identities, request, actor, await read_body(request, operation.body)
                )
                result = await operation.run(call)
            except SkillwireError as error:
                return failure(error)
            except ClientDisconnect:
                return Response(status_code=400)
            finally:
                if operation.method != "GET":
                    self._changes.wake()
            if isinstance(result, Response):
                return result
            return JSONResponse(result, operation.status, SAFE)

        return answer
