"""Asking origins what is there: state, dialect, skills, and what was left out. No file is read (V5)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillwire.cli.exits import Exit
from skillwire.cli.hosting import line, listed, stamp
from skillwire.errors import OriginError, UpstreamError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillwire.host.origins import Origin
    from skillwire.skill import Diagnostic
    from skillwire.store.contract import Store

_SECRET_PLACES = re.compile(r"//[^/?#]*@|[?#].*")  # user and password, query
_NAMES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Answered:
    """One origin, just asked. Texts are fit for a terminal."""

    origin: Origin
    where: str
    dialect: str | None
    problems: tuple[Diagnostic, ...]

    @property
    def label(self) -> str:
        """What the person calls it."""
        return line(self.origin.label)

    @property
    def state(self) -> str:
        """How current what is known of it is."""
        return self.origin.state

    @property
    def skills(self) -> str:
        """How many it lists."""
        return str(len(self.origin.entries))

    @property
    def names(self) -> str:
        """What it lists."""
        more = len(self.origin.entries) - _NAMES_SHOWN
        names = listed(entry.name for entry in self.origin.entries[:_NAMES_SHOWN])
        return f"{names} and {more:,} more" if more > 0 else names

    @property
    def error(self) -> str:
        """Why it did not answer, or not with everything."""
        if self.origin.error is not None:
            return f"{line(self.origin.error.message)} {self.origin.error.label}"
        return "no answer yet" if self.exit == Exit.USAGE else ""

    @property
    def exit(self) -> Exit:
        """2 if it did not answer now, 1 if it left something out."""
        if self.origin.state in ("complete", "partial"):
            return Exit.PROBLEMS if self.problems or self.origin.state == "partial" else Exit.OK
        return Exit.USAGE

    def demand(self) -> None:
        """Raise why it did not answer, if it did not."""
        if self.exit == Exit.USAGE:
            raise self.origin.error or UpstreamError(
                "timed-out", f"{self.origin.label!r:.80} did not answer in time", "wait longer: --wait SECONDS"
            )

    def document(self) -> dict[str, Any]:
        """For programs."""
        error, seen = self.origin.error, self.origin.seen_at
        return {
            "label": self.origin.label,
            "where": self.where,
            "state": self.origin.state,
            "dialect": self.dialect,
            "skills": [entry.uri for entry in self.origin.entries],
            "lastSeen": None if seen is None else stamp(seen),
            "error": None if error is None else {"reference": error.reference, "message": error.message},
            "problems": [{"uri": each.file, "message": each.message} for each in self.problems],
        }


async def ask_origins(store: Store, targets: Mapping[str, Mapping[str, Any]], patience: float) -> list[Answered]:
    """Connect to all at once, wait until each has answered or failed, and let go."""
    from anyio import to_thread

    from skillwire.host.host import Host

    host = Host(store)
    for label, target in targets.items():
        if "folder" in target:
            await to_thread.run_sync(host.origins.add_folder, label, Path(target["folder"]))
    async with host.connected({label: each for label, each in targets.items() if "folder" not in each}):
        await host.settle(patience)
        found = {origin.label: origin for origin in host.origins}
        return [await _answered(found[label], target) for label, target in targets.items()]


async def _answered(origin: Origin, target: Mapping[str, Any]) -> Answered:
    problems = tuple(await origin.problems()) if origin.kind else ()
    return Answered(origin, where_of(target), origin.kind or None, problems)


def where_of(target: Mapping[str, Any]) -> str:
    """Where an origin is, without what may be a secret: values of headers and variables, arguments, queries."""
    from skillwire.cli.printer import counted

    if "folder" in target:
        return line(str(target["folder"]))
    url = next((target[key] for key in ("httpUrl", "url", "serverUrl") if key in target), None)
    if url is not None:
        place = _SECRET_PLACES.sub(lambda match: "//…@" if match[0].endswith("@") else "", str(url))
        return line(place) + _named("headers", target.get("headers"))
    args = target.get("args")
    words = f" … {counted(len(args), 'word')}" if isinstance(args, list) and args else ""  # pyright: ignore[reportUnknownArgumentType]
    return line(str(target.get("command", "?"))) + words + _named("env", target.get("env"))


def _named(what: str, values: object) -> str:
    """Only the names."""
    return f" ({what}: {listed(map(str, values))})" if isinstance(values, dict) and values else ""  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def unknown(label: str, known: Iterable[str]) -> OriginError:
    """There is no such origin."""
    return OriginError(
        "origin-unknown",
        f"there is no origin {label!r:.80}",
        f"known: {', '.join(sorted(known)) or 'none':.300}",
        rule="O1",
    )
