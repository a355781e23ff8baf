"""The log beyond one page, whatever its length: read piece by piece, newest first, and never as a whole."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from skillwire.store.contract import LogLine, Store

PIECE = 500


async def pieces_of_log(
    store: Store, *, before: int | None = None, **filters: Any
) -> AsyncGenerator[Sequence[LogLine]]:
    """All lines that ``Store.lines`` finds with these filters, some at a time; never an empty piece."""
    while lines := await store.lines(limit=PIECE, before=before, **filters):
        yield lines
        if len(lines) < PIECE:
            return
        before = lines[-1].number


async def newest_line(store: Store, fits: Callable[[LogLine], bool], **filters: Any) -> LogLine | None:
    """The newest line that ``Store.lines`` finds with these filters and that fits."""
    async with aclosing(pieces_of_log(store, **filters)) as pieces:
        async for lines in pieces:
            for line in lines:
                if fits(line):
                    return line
    return None
