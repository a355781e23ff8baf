"""An origin as a server that writes down every request, before anything else sees it, and what it answered."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND
from pydantic import BaseModel

from skillwire.catalog.memory import MemoryCatalog
from skillwire.client.shapes import as_list, as_object, as_text
from skillwire.conform.evidence import Exchange, shortened
from skillwire.conform.host_probe.honeypot import ENOUGH, REPEATED
from skillwire.server.endpoints import Dialects
from skillwire.server.run import build_server
from skillwire.server.skills import Skills
from skillwire.wire.extension import EXTENSION_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp.server.context import CallNext, HandlerResult
    from mcp.server.lowlevel import Server

    from skillwire.conform.host_probe.honeypot import Origin
    from skillwire.server.binding import Context

_SMALL_PAGE = 4
_OF_SKILLS = ("skills/", "resources/directory/")
_KEPT = ("uri", "cursor", "name")


@dataclass(frozen=True, slots=True)
class Seen:
    """One request, in the order in which they came. ``given`` are the URIs of the entries in its answer."""

    origin: str
    method: str
    params: dict[str, Any]
    declares: bool | None  # whether the request, or the handshake, declares the extension; None: it does not say
    given: list[str] = field(default_factory=list[str])
    next_cursor: str | None = None
    request: dict[str, Any] = field(default_factory=dict[str, Any])
    answer: Any = None

    @property
    def uri(self) -> str:
        """What it is about."""
        return as_text(self.params.get("uri"))

    @property
    def exchange(self) -> Exchange:
        """The request and the answer."""
        return Exchange(self.request, self.answer)

    def to_json(self) -> dict[str, Any]:
        """For the file through which processes tell."""
        return asdict(self)


class Observer:
    """A middleware: the outermost, so that it sees what came and what goes out."""

    def __init__(self, origin: Origin, note: Callable[[Seen], None]) -> None:
        self._origin = origin
        self._note = note
        self._repeated = 0

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Answer as the origin does, and write it down."""
        if ctx.request_id is None:
            return await call_next(ctx)
        try:
            result = self._origin.spoiled(ctx.method, _as_object(await self._answer(ctx, call_next)))
        except MCPError as error:
            self._write(ctx, {"error": {"code": error.code, "message": error.message}})
            raise
        if self._repeated >= ENOUGH:
            result.pop("nextCursor", None)
        self._write(ctx, {"result": result})
        return result

    async def _answer(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        if self._origin.settings is None and ctx.method.startswith(_OF_SKILLS):
            raise MCPError(code=METHOD_NOT_FOUND, message="Method not found")
        if self._origin.settings is None and ctx.method == "resources/read":
            raise MCPError(code=INVALID_PARAMS, message="Resource not found")  # no index either
        params = dict(ctx.params or {})
        if self._origin.repeats and params.get("cursor") == REPEATED:
            self._repeated += 1
            ctx = replace(ctx, params={key: value for key, value in params.items() if key != "cursor"})
        return await call_next(ctx)

    def _write(self, ctx: Context, outcome: dict[str, Any]) -> None:
        params = dict(ctx.params or {})
        result = as_object(outcome.get("result"))
        entries = [*as_list(result.get("skills")), result.get("skill")]
        envelope = {"jsonrpc": "2.0", "id": ctx.request_id}
        self._note(
            Seen(
                self._origin.label,
                ctx.method,
                {key: params[key] for key in _KEPT if key in params},
                _declares(ctx.method, params),
                [as_text(as_object(entry).get("uri")) for entry in entries if entry],
                as_text(result.get("nextCursor")) or None,
                shortened({**envelope, "method": ctx.method, "params": params}),
                shortened({**envelope, **outcome}),
            )
        )


def _declares(method: str, params: Mapping[str, Any]) -> bool | None:
    """K3: in the handshake, or with each request of the stateless era."""
    meta = as_object(params.get("_meta"))
    said = params.get("capabilities") if method == "initialize" else None
    said = next((meta[key] for key in meta if key.endswith("/clientCapabilities")), said)
    capabilities = as_object(said)
    return None if said is None else EXTENSION_ID in as_object(capabilities.get("extensions"))


def observed_server(origin: Origin, note: Callable[[Seen], None]) -> Server[Any]:
    """The origin as a server; ``note`` hears of every request."""
    skills = Skills(
        MemoryCatalog(origin.skills), page_size=_SMALL_PAGE, watch=False, dialects=Dialects(fallback="never")
    )
    server = build_server(skills, name=origin.label)
    server.middleware.insert(0, Observer(origin, note))
    return server


def _as_object(result: HandlerResult) -> dict[str, Any]:
    if isinstance(result, BaseModel):
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return dict(result or {})
