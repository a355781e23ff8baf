"""The one table between our errors and JSON-RPC's.

Unknown or malformed names and cursors are the caller's: ``-32602``. What went wrong on our side is ``-32603``.
Both carry the stable reference and the hint, so that a client's log says what to do.
"""

from __future__ import annotations

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from skillwire.errors import FormatError, NotFoundError, ProtocolError, SkillwireError

_CALLERS_FAULT = (FormatError, NotFoundError, ProtocolError)


def to_rpc_error(error: SkillwireError) -> MCPError:
    """The JSON-RPC error for one of ours."""
    code = INVALID_PARAMS if isinstance(error, _CALLERS_FAULT) else INTERNAL_ERROR
    data = {"reference": error.reference}
    if error.hint:
        data["hint"] = error.hint
    return MCPError(code=code, message=error.message, data=data)


def resource_unknown(error: NotFoundError, uri: str) -> MCPError:
    """The error for a ``resources/read`` of what is not there: its data is the URI and nothing else.

    Clients of the ``index`` dialect tell "there is none" from "something is wrong" by exactly that.
    """
    message = f"{error.message}; {error.hint} [{error.reference}]"
    return MCPError(code=INVALID_PARAMS, message=message, data={"uri": uri})
