"""The one table from our errors to JSON-RPC errors.

Unknown or invalid names and cursors are errors of the caller: ``-32602``. Failures on our side are ``-32603``.
Both carry the stable reference and the hint, so that a client's log contains the fix.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from skillwire.errors import FormatError, NotFoundError, ProtocolError, SkillwireError

if TYPE_CHECKING:
    from collections.abc import Generator

_ERRORS_OF_THE_CALLER = (FormatError, NotFoundError, ProtocolError)


def to_rpc_error(error: SkillwireError) -> MCPError:
    """The JSON-RPC error for one of our errors."""
    code = INVALID_PARAMS if isinstance(error, _ERRORS_OF_THE_CALLER) else INTERNAL_ERROR
    data = {"reference": error.reference}
    if error.hint:
        data["hint"] = error.hint
    return MCPError(code=code, message=error.message, data=data)


@contextmanager
def rpc_errors() -> Generator[None]:
    """Turn our errors into JSON-RPC errors in a ``with`` block."""
    try:
        yield
    except SkillwireError as error:
        raise to_rpc_error(error) from error


def resource_unknown(error: NotFoundError, uri: str) -> MCPError:
    """The error for a ``resources/read`` of a resource that does not exist: its data is only the URI.

    Clients of the ``index`` dialect recognise a missing index by exactly that, and report all other errors.
    """
    message = f"{error.message}; {error.hint} [{error.reference}]"
    return MCPError(code=INVALID_PARAMS, message=message, data={"uri": uri})
