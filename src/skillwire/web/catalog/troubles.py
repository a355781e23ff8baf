"""What goes wrong, as a page: in words, with a reference, and nothing of an exception that nobody expected."""

from __future__ import annotations

import logging
import secrets
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException

from skillwire.errors import (
    ApprovalError,
    FormatError,
    LimitError,
    NotFoundError,
    ProtocolError,
    SkillwireError,
    UpstreamError,
)
from skillwire.server.page import KNOWN
from skillwire.web.catalog.framed import framed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ExceptionHandler

    from skillwire.web.catalog.signing import Signing
    from skillwire.web.catalog.site import Site

log = logging.getLogger("skillwire.page")


class Troubles:
    """One answer for each kind of exception."""

    def __init__(self, site: Site, signing: Signing) -> None:
        self._site = site
        self._signing = signing

    @property
    def handlers(self) -> Mapping[type[Exception], ExceptionHandler]:
        """By what was raised."""
        return {SkillwireError: self._ours, HTTPException: self._no_page, Exception: self._unexpected}

    async def _ours(self, request: Request, error: Exception) -> Response:  # noqa: ARG002 - a handler's shape
        if not isinstance(error, SkillwireError):  # handlers are found by type
            raise error
        return self._page(error, _status(error))

    async def _no_page(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            raise error
        if not request.scope.get(KNOWN, False):
            return self._signing.ask(request)
        path, method = request.url.path, request.method
        if error.status_code == 405:
            refused = ProtocolError(
                "method-refused", f"{path!r:.200} takes no {method:.20}", "open a page instead"
            )
            return self._page(refused, 405, error.headers)
        missing = NotFoundError("page-unknown", f"there is no page at {path!r:.200}", "look for it in the list")
        return self._page(missing, error.status_code)

    async def _unexpected(self, request: Request, error: Exception) -> Response:
        number = secrets.token_hex(4)
        log.error("%s of a page failed [unexpected %s]", request.method, number, exc_info=error)
        told = UpstreamError(
            f"unexpected {number}",
            "something went wrong here that nobody expected",
            "try again; if it stays, tell whoever runs this server the number: its log has it",
        )
        return self._page(told, 500)

    def _page(self, error: SkillwireError, status: int, headers: Mapping[str, str] | None = None) -> Response:
        response = framed(self._site, "catalog/trouble.html", status=status, error=error, is_missing=status == 404)
        response.headers.update(headers or {})
        return response


def _status(error: SkillwireError) -> int:
    if isinstance(error, NotFoundError | FormatError):
        return 404
    if isinstance(error, ApprovalError):
        return 403
    return 413 if isinstance(error, LimitError) else 503
