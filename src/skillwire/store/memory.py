"""A store that ends with the process: for tests, and for a host that shall leave nothing behind.

It keeps the contract of the others, as far as one process goes. What was put is copied, so that nobody changes it
from outside; facts and settings are JSON here too.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from skillwire.store.contract import LogLine, SeenEntries, Store, StoredOrigin

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillwire.skill.approval import Approval


class MemoryStore(Store):
    """Everything in dictionaries. No method waits, so that each call is one step."""

    def __init__(self) -> None:
        self._origins: dict[str, StoredOrigin] = {}
        self._entries: dict[str, SeenEntries] = {}
        self._approvals: dict[tuple[str, str], Approval] = {}
        self._log: list[LogLine] = []

    async def put_origin(self, origin: StoredOrigin) -> None:
        """Add or replace an origin."""
        self._origins[origin.label] = _copy_of_origin(origin)

    async def remove_origin(self, label: str) -> bool:
        """Forget an origin, what it listed and what was approved of it; whether there was one. The log stays."""
        for key in [key for key in self._entries if f"{key}#".startswith(f"{label}#")]:
            del self._entries[key]
        self._approvals = {key: approval for key, approval in self._approvals.items() if key[0] != label}
        return self._origins.pop(label, None) is not None

    async def origins(self) -> Sequence[StoredOrigin]:
        """Every origin, by label."""
        return [_copy_of_origin(self._origins[label]) for label in sorted(self._origins)]

    async def put_entries(self, label: str, seen: SeenEntries) -> None:
        """Remember what an origin lists."""
        self._entries[label] = seen

    async def entries(self, label: str) -> SeenEntries | None:
        """What an origin listed last, if it was ever asked."""
        return self._entries.get(label)

    async def put_approval(self, approval: Approval, line: LogLine) -> None:
        """Remember an approval, in place of an earlier one for the same skill, and log it (A1, A4)."""
        await self.log(line)
        self._approvals[approval.origin, approval.uri] = approval

    async def change_grants(self, approval: Approval, grants: frozenset[str], line: LogLine) -> bool:
        """Give exactly ``approval`` other grants; whether it was still there (A4, A5)."""
        if self._approvals.get((approval.origin, approval.uri)) != approval:
            return False
        await self.log(line)
        self._approvals[approval.origin, approval.uri] = replace(approval, grants=grants)
        return True

    async def remove_approval(self, origin: str, uri: str, line: LogLine, *, only: Approval | None = None) -> bool:
        """Forget an approval and its grants; whether there was one. Only then is there anything to log (A2)."""
        known = self._approvals.get((origin, uri))
        if known is None or (only is not None and known != only):
            return False
        await self.log(line)
        del self._approvals[origin, uri]
        return True

    async def approval(self, origin: str, uri: str) -> Approval | None:
        """The approval of one skill."""
        return self._approvals.get((origin, uri))

    async def approvals(self, origin: str | None = None) -> Sequence[Approval]:
        """Every approval, by origin and URI."""
        return [self._approvals[key] for key in sorted(self._approvals) if origin in (None, key[0])]

    async def log(self, line: LogLine) -> None:
        """Add a line."""
        self._log.append(replace(_copy_of_line(line), number=len(self._log) + 1))

    async def lines(
        self, *, limit: int = 100, origin: str | None = None, uri: str | None = None
    ) -> Sequence[LogLine]:
        """The newest lines, newest first."""
        wanted = (
            line for line in reversed(self._log) if origin in (None, line.origin) and uri in (None, line.uri)
        )
        return [_copy_of_line(line) for line in islice(wanted, max(0, min(limit, len(self._log))))]

    async def close(self) -> None:
        """Nothing is held open."""


def _copy_of_origin(origin: StoredOrigin) -> StoredOrigin:
    return replace(origin, settings=_copied(origin.settings))


def _copy_of_line(line: LogLine) -> LogLine:
    return replace(line, facts=_copied(line.facts))


def _copied(values: Mapping[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(dict(values)))
