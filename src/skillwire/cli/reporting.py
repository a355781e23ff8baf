"""What ``skillwire gateway`` says: what it serves of each upstream, what waits for a yes, and who is away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.cli.hosting import line

if TYPE_CHECKING:
    from skillwire.cli.printer import Printer
    from skillwire.gateway.gateway import Gateway, Upstream
    from skillwire.skill import Diagnostic

_STATES = ("upstream-away", "upstream-stale", "upstream-partial")
_PAUSE_SECONDS = 2.0  # at least, between two numbers of an upstream whose skills come and go


class Reporter:
    """Says everything once, and then what changes."""

    def __init__(self, gateway: Gateway, printer: Printer) -> None:
        self._gateway = gateway
        self._printer = printer
        self._said: set[tuple[str, ...]] = set()
        self._counts: dict[str, int] = {}

    async def say_all(self) -> None:
        """What is served, what is not, and why."""
        from skillwire.cli.printer import counted

        for upstream in self._gateway.upstreams.values():
            await self._say_count(upstream, indent="  ")
        many = counted(len(self._gateway.upstreams), "upstream")
        self._printer.talk(f"serving {counted(sum(self._counts.values()), 'skill')} of {many}")
        for upstream in self._gateway.upstreams.values():
            await self._say_problems(upstream)

    async def watch(self) -> None:
        """What becomes of the upstreams and of their skills, until cancelled."""
        import anyio

        async with anyio.create_task_group() as group:
            for upstream in self._gateway.upstreams.values():
                group.start_soon(self._watch_state, upstream)
                group.start_soon(self._watch_problems, upstream)
                group.start_soon(self._watch_count, upstream)

    async def _watch_state(self, upstream: Upstream) -> None:
        while upstream.remote is not None:
            await upstream.remote.next_state()
            self._printer.talk(f"{line(upstream.label)}: {describe(upstream)}")

    async def _watch_problems(self, upstream: Upstream) -> None:
        while True:
            decided = upstream.gate.decided()
            await self._say_problems(upstream)
            await decided.wait()

    async def _watch_count(self, upstream: Upstream) -> None:
        import anyio

        while True:
            decided = upstream.gate.decided()
            await self._say_count(upstream)
            await anyio.sleep(_PAUSE_SECONDS)
            await decided.wait()

    async def _say_count(self, upstream: Upstream, indent: str = "") -> None:
        """How many skills of an upstream are served, if that is another number than was said last."""
        from skillwire.cli.printer import counted

        count = len([entry async for entry in upstream.gate.entries()])
        if count != self._counts.get(upstream.label):
            self._counts[upstream.label] = count
            self._printer.talk(f"{indent}{line(upstream.label)}: {counted(count, 'skill')}, {describe(upstream)}")

    async def _say_problems(self, upstream: Upstream) -> None:
        """Each problem when it is new, or when there is something else to do about it; also if it comes again."""
        label = upstream.label
        problems = await upstream.gate.problems_for_operator()
        now = {(label, *_words(each)): each for each in problems if each.reference not in _STATES}
        for key in sorted(now.keys() - self._said):
            each = now[key]
            if each.reference == "approval-missing":
                self._printer.talk(f"{line(each.message)}: {line(each.hint)}")
            elif each.reference == "snapshot-failed":
                self._printer.talk(f"{line(each.message)}; {line(each.hint)}")
            elif each.refuses:
                where = line(f"{label}/{each.file}")
                self._printer.talk(f"left out {where}: {line(each.message)} [{each.reference}]")
        self._said = {key for key in self._said if key[0] != label} | now.keys()


def _words(problem: Diagnostic) -> tuple[str, str, str]:
    return problem.file, problem.message, problem.hint


def describe(upstream: Upstream) -> str:
    """How an upstream is, in a few words."""
    source = upstream.remote
    if source is None:
        return "a folder"
    is_whole = source.error is None or source.error.reference != "listing-too-long"
    why = "" if source.error is None else f": {line(source.error.message)} [{source.error.reference}]"
    words = {
        "connecting": "no answer yet",
        "complete": f"speaks {source.dialect}" if source.dialect else "shows no sign of skills",
        "partial": "not all of what it lists can be used",
        "stale": "away; its last listing is served" if is_whole else "its last whole listing is served",
        "unreachable": "away, and never listed",
    }
    return f"{words[source.state]}{why}"
