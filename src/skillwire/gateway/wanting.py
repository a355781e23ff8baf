"""What a request wants of a skill that waits for a yes, whether its client can ask for one, and what it is told.

Functions over one request. ``eliciting.py`` decides with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from mcp_types.methods import INPUT_REQUIRED_METHODS

from skillwire.gateway.forms import FIELD, shown_name
from skillwire.server.binding import is_modern
from skillwire.wire.extension import SKILLS_GET
from skillwire.wire.fallback import LOAD, READ
from skillwire.wire.native import SKILLS_ACTIVATE

if TYPE_CHECKING:
    from mcp.server.context import HandlerResult

    from skillwire.server.binding import Context

_BY_URI_OR_NAME = (SKILLS_GET, SKILLS_ACTIVATE, "resources/read", "prompts/get")


def wanted_word(ctx: Context) -> str | None:
    """Which skill or file a request is about: a URI, a path or a name."""
    params = ctx.params or {}
    word = None
    if ctx.method in _BY_URI_OR_NAME:
        word = params.get("uri") or params.get("name")
    elif ctx.method == "tools/call" and params.get("name") in (LOAD, READ):
        word = cast("dict[str, Any]", params.get("arguments") or {}).get("skill")
    return word if isinstance(word, str) and word else None


def is_refused(answer: HandlerResult) -> bool:
    """Whether a tool says that it could not."""
    return isinstance(answer, dict) and answer.get("isError") is True


def can_ask(ctx: Context) -> bool:
    """Whether the client has a form for its person, and the question a way to it.

    In the handshake era that is a request of ours on the stream of theirs: over HTTP there is one only if answers
    are event streams. In the stateless era an answer can be a question, to three methods and to no other.
    """
    declared = ctx.session.client_capabilities
    asks = None if declared is None else declared.elicitation
    if asks is None or (asks.form is None and asks.url is not None):
        return False
    return ctx.method in INPUT_REQUIRED_METHODS if is_modern(ctx) else ctx.session.can_send_request


def given_answer(ctx: Context) -> dict[str, Any] | None:
    """The answer that a request of the stateless era brings, to whatever question."""
    answers = (ctx.params or {}).get("inputResponses")
    answer = cast("dict[str, Any]", answers).get(FIELD) if isinstance(answers, dict) else None
    return cast("dict[str, Any]", answer) if isinstance(answer, dict) else None


def who_asks(ctx: Context) -> str:
    """Who says yes: the subject of a token, or else the client by the name it gives itself."""
    token = get_access_token()
    if token is not None and token.subject:
        return token.subject
    params = ctx.session.client_params
    return f"client:{shown_name(params.client_info.name)}" if params is not None else "client"


def waiting_answer(ctx: Context, refused: HandlerResult, message: str, hint: str) -> dict[str, Any]:
    """What a client is told that cannot ask: in a tool's result, or as an error like that for what is not there.

    ``refused`` is what it was told before anybody looked for the reason; ``None`` if that was an error.
    """
    text = f"{message}; {hint} [approval-missing A1]"
    if isinstance(refused, dict):
        return {**refused, "content": [{"type": "text", "text": text}]}
    if ctx.method == "resources/read":  # its data is the URI and nothing else, as in wire/errors.py
        raise MCPError(code=INVALID_PARAMS, message=text, data={"uri": (ctx.params or {}).get("uri")})
    raise MCPError(code=INVALID_PARAMS, message=message, data={"reference": "approval-missing", "hint": hint})
