"""The names of a server's own tools or prompts, which come first: ours of the same name is left out.

They are asked for once, when it first matters, and added to from every listing that passes by, so that a call
costs no listing. What is left out is said once, in the log.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from skillwire.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult

    from skillwire.server.binding import Answer, Context, Served

log = logging.getLogger("skillwire.server")


class OwnNames:
    """The names in what a server lists by ``method`` under ``field``: ``tools`` or ``prompts``."""

    def __init__(self, served: Served, method: str, field: str) -> None:
        self._served = served
        self._method = method
        self._field = field
        self._names: set[str] = set()
        self._left_out: set[str] = set()
        self._is_gathered = False

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def leaves_out(self, name: str) -> bool:
        """Whether ours of this name gives way. The first time, the log says so."""
        if name not in self._names:
            return False
        if name not in self._left_out:
            self._left_out.add(name)
            log.warning(
                "the server has one of its own %s named %r, so the one for skills is left out; rename one of them,"
                ' or leave all of ours out with Skills(…, dialects=Dialects(fallback="never"))',
                self._field,
                name,
            )
        return True

    async def gather(self, ctx: Context, call_next: CallNext) -> None:
        """Ask the server, unless it was asked before."""
        if self._is_gathered or not self._served.has(self._method):
            return
        try:
            await self._ask(ctx, call_next)
        except Exception:  # whatever its listing raises is for whoever asks for that
            log.debug("the server's own %s are not known", self._field, exc_info=True)
        else:
            self._is_gathered = True

    def note(self, listing: HandlerResult) -> str | None:
        """Take in a page of the server's own; the cursor of the next one."""
        page = cast("Answer", listing)
        self._names |= {item["name"] for item in page.get(self._field) or ()}
        return page.get("nextCursor")

    async def _ask(self, ctx: Context, call_next: CallNext) -> None:
        meta = (ctx.params or {}).get("_meta")
        params: dict[str, Any] = {} if meta is None else {"_meta": meta}
        for _ in range(DEFAULT_LIMITS.max_pages):
            cursor = self.note(await call_next(replace(ctx, method=self._method, params=params)))
            if not cursor or cursor == params.get("cursor"):
                return
            params = {**params, "cursor": cursor}
