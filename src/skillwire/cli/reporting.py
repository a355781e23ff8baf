"""What ``skillwire gateway`` says: what it serves of each upstream, what waits for a yes, and who is away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.cli.hosting import line

if TYPE_CHECKING:
    from skillwire.cli.printer import Printer
    from skillwire.gateway.opening import Gateway, Upstream

_STATES = ("upstream-away", "upstream-stale", "upstream-partial")


class Reporter:
    """Says everything once, and then what changes."""

    def __init__(self, gateway: Gateway, printer: Printer) -> None:
        self._gateway = gateway
        self._printer = printer
        self._said: set[tuple[str, str]] = set()

    async def say_all(self) -> None:
        """What is served, what is not, and why."""
        from skillwire.cli.printer import counted

        served = 0
        for upstream in self._gateway.upstreams.values():
            count = len([entry async for entry in upstream.admitting.entries()])
            served += count
            self._printer.talk(f"  {line(upstream.label)}: {counted(count, 'skill')}, {describe(upstream)}")
        many = counted(len(self._gateway.upstreams), "upstream")
        self._printer.talk(f"serving {counted(served, 'skill')} of {many}")
        for upstream in self._gateway.upstreams.values():
            await self._say_problems(upstream)

    async def watch(self) -> None:
        """What becomes of the upstreams and of their skills, until cancelled."""
        import anyio

        async with anyio.create_task_group() as group:
            for upstream in self._gateway.upstreams.values():
                group.start_soon(self._watch_state, upstream)
                group.start_soon(self._watch_skills, upstream)

    async def _watch_state(self, upstream: Upstream) -> None:
        from skillwire.gateway.upstream import UpstreamCatalog

        while isinstance(upstream.source, UpstreamCatalog):
            await upstream.source.turn()
            self._printer.talk(f"{line(upstream.label)}: {describe(upstream)}")

    async def _watch_skills(self, upstream: Upstream) -> None:
        while True:
            await self._say_problems(upstream)
            await upstream.admitting.decided()

    async def _say_problems(self, upstream: Upstream) -> None:
        """Each problem when it is new; one that went and came again is new."""
        problems = await upstream.admitting.problems_for_operator()
        now = {(upstream.label, each.message): each for each in problems if each.reference not in _STATES}
        for key in sorted(now.keys() - self._said):
            each = now[key]
            if each.reference == "approval-missing":
                self._printer.talk(f"{line(each.message)}: {line(each.hint)}")
            elif each.refuses:
                where = line(f"{upstream.label}/{each.file}")
                self._printer.talk(f"left out {where}: {line(each.message)} [{each.reference}]")
        self._said = {key for key in self._said if key[0] != upstream.label} | now.keys()


def describe(upstream: Upstream) -> str:
    """How an upstream is, in a few words."""
    from skillwire.gateway.upstream import UpstreamCatalog

    source = upstream.source
    if not isinstance(source, UpstreamCatalog):
        return "a folder"
    why = "" if source.error is None else f": {line(source.error.message)} [{source.error.reference}]"
    words = {
        "connecting": "no answer yet",
        "complete": f"speaks {source.dialect}" if source.dialect else "shows no sign of skills",
        "partial": "not all of what it lists can be used",
        "stale": "away; its last listing is served",
        "unreachable": "away, and never listed",
    }
    return f"{words[source.state]}{why}"
