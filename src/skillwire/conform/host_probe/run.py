"""The whole run: serve the bait, run the host's command with the bait's address, judge what was seen."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import anyio

from skillwire.conform.host_probe.requirements import DUTIES
from skillwire.conform.host_probe.server import served_on_stdio, served_over_http
from skillwire.conform.host_probe.verdicts import judge
from skillwire.conform.outcome import Ledger, Report, Section
from skillwire.errors import FormatError, NotFoundError, SkillwireError, UpstreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from anyio.abc import Process

    from skillwire.conform.host_probe.observations import Seen
    from skillwire.conform.host_probe.server import Served

_GRACE_SECONDS = 5.0


async def watch_host(
    command: Sequence[str],
    *,
    rules: Sequence[str] = (),
    seconds: float = 300.0,
    stdio: bool = False,
    on_serving: Callable[[dict[str, str]], None] | None = None,
) -> Report:
    """Run ``command`` against the bait; without one, wait until the time is over or somebody interrupts."""
    unknown = [rule for rule in rules if rule not in DUTIES]
    if unknown:
        raise FormatError("rule-unknown", f"there is no duty {unknown[0]!r:.40}", "see --list-rules")
    with TemporaryDirectory(prefix="skillwire-conform-") as folder:
        async with served_on_stdio(Path(folder)) if stdio else served_over_http() as served:
            config = Path(folder) / "mcp.json"
            config.write_text(json.dumps(served.config, indent=2))
            words = _words(served, config)
            if on_serving is not None:
                on_serving(words)
            ended = await _run(command, words, seconds) if command else await _wait(seconds)
            seen = served.seen()
    if isinstance(ended, SkillwireError):  # raised here, and not as one of a group of errors
        raise ended
    if not seen:
        raise UpstreamError(
            "host-silent",
            f"nothing reached the servers: {ended}",
            "let it use $SKILLWIRE_URL or $SKILLWIRE_MCP_CONFIG, or write {url} or {config} among its words",
        )
    ledger = Ledger(DUTIES[duty] for duty in DUTIES if not rules or duty in rules)
    judge(seen, ledger)
    for duty in DUTIES.values():
        ledger.unchecked((duty.id,), duty.how)
    target = command[0].rpartition("/")[2] if command else "whoever connected"
    return Report("host", target, (Section("seen", ledger.results()),), (_summed(seen), ended))


def _words(served: Served, config: Path) -> dict[str, str]:
    """What the host is told, by its name among the words."""
    found = {"config": str(config)}
    if served.url is not None:
        found["url"] = served.url
    if served.command is not None:
        found["command"] = shlex.join(served.command)
    return found


def environment(words: dict[str, str]) -> dict[str, str]:
    """The same as variables of the environment."""
    names = {"config": "SKILLWIRE_MCP_CONFIG", "url": "SKILLWIRE_URL", "command": "SKILLWIRE_COMMAND"}
    return {names[key]: value for key, value in words.items()}


async def _run(command: Sequence[str], words: dict[str, str], seconds: float) -> str | SkillwireError:
    """How the command ended, in words, or why it could not be started."""
    filled = [_filled(word, words) for word in command]
    try:
        process = await anyio.open_process(
            filled,
            env={**os.environ, **environment(words)},
            stdin=DEVNULL,
            stdout=sys.stderr.fileno(),  # stdout is for the report
            stderr=None,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "it is not a command"
        return NotFoundError(
            "command-failed", f"{command[0]!r:.200} cannot be started: {reason}", "check the command"
        )
    try:
        with anyio.move_on_after(seconds):
            return f"the command ended with exit code {await process.wait()}"
        return f"the command was ended after {seconds:g} seconds"
    finally:
        with anyio.CancelScope(shield=True):  # or it would outlive us
            await _end(process)


def _filled(word: str, words: dict[str, str]) -> str:
    for name, value in words.items():
        word = word.replace(f"{{{name}}}", value)
    return word


async def _end(process: Process) -> None:
    """The process, and whatever it left behind."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with anyio.move_on_after(_GRACE_SECONDS):
            await process.wait()
            return


async def _wait(seconds: float) -> str:
    with anyio.move_on_after(seconds), anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            return "ended by a person"
    return f"the time of {seconds:g} seconds was over"


def _summed(seen: Sequence[Seen]) -> str:
    counts = Counter(one.origin for one in seen)
    return "requests seen: " + ", ".join(f"{label} {count}" for label, count in counts.items())
