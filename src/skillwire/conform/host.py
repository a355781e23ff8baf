"""A conformance run of a host: serve the bait, run the command of the host, judge the recorded requests."""

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

from skillwire.conform.honeypot import served_on_stdio, served_over_http
from skillwire.conform.report import Ledger, Report, Section
from skillwire.conform.rules import HOST_RULES
from skillwire.conform.verdicts import judge
from skillwire.errors import FormatError, NotFoundError, SkillwireError, UpstreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from anyio.abc import Process

_GRACE_SECONDS = 5.0


async def probe_host(
    command: Sequence[str],
    *,
    rules: Sequence[str] = (),
    seconds: float = 300.0,
    stdio: bool = False,
    on_serving: Callable[[dict[str, str]], None] | None = None,
) -> Report:
    """Run ``command`` against the bait servers; without one, wait for connections until a timeout or signal."""
    unknown = [rule for rule in rules if rule not in HOST_RULES]
    if unknown:
        raise FormatError("rule-unknown", f"unknown rule {unknown[0]!r:.40}", "list the rules with --list-rules")
    with TemporaryDirectory(prefix="skillwire-conform-") as folder:
        async with served_on_stdio(Path(folder)) if stdio else served_over_http() as served:
            config = Path(folder) / "mcp.json"
            config.write_text(json.dumps(served.config, indent=2))
            placeholders = {"config": str(config)}
            if served.url is not None:
                placeholders["url"] = served.url
            if served.command is not None:
                placeholders["command"] = shlex.join(served.command)
            if on_serving is not None:
                on_serving(placeholders)
            ended = await _run(command, placeholders, seconds) if command else await _wait(seconds)
            seen = served.seen()
    if isinstance(ended, SkillwireError):  # a task group would wrap an error raised above
        raise ended
    if not seen:
        raise UpstreamError(
            "host-silent",
            f"the servers received no requests: {ended}",
            "let it use $SKILLWIRE_URL or $SKILLWIRE_MCP_CONFIG, or put {url} or {config} into the command",
        )
    ledger = Ledger(HOST_RULES[rule] for rule in HOST_RULES if not rules or rule in rules)
    judge(seen, ledger)
    for rule in HOST_RULES.values():
        ledger.not_checked((rule.id,), rule.how)
    target = command[0].rpartition("/")[2] if command else "the connected hosts"
    counts = Counter(one.origin for one in seen).items()
    requests = "requests: " + ", ".join(f"{label} {count}" for label, count in counts)
    return Report("host", target, (Section("seen", ledger.results()),), (requests, ended))


def environment(placeholders: dict[str, str]) -> dict[str, str]:
    """The addresses for the host as environment variables, from the placeholders of its command."""
    names = {"config": "SKILLWIRE_MCP_CONFIG", "url": "SKILLWIRE_URL", "command": "SKILLWIRE_COMMAND"}
    return {names[key]: value for key, value in placeholders.items()}


async def _run(command: Sequence[str], placeholders: dict[str, str], seconds: float) -> str | SkillwireError:
    """Run the command; return how it ended, or the error if it could not be started."""
    filled = list(command)
    for name, value in placeholders.items():
        filled = [word.replace(f"{{{name}}}", value) for word in filled]
    try:
        process = await anyio.open_process(
            filled,
            env={**os.environ, **environment(placeholders)},
            stdin=DEVNULL,
            stdout=sys.stderr.fileno(),  # stdout is for the report
            stderr=None,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "invalid command"
        return NotFoundError(
            "command-failed", f"{command[0]!r:.200} cannot be started: {reason}", "check the command"
        )
    try:
        with anyio.move_on_after(seconds):
            return f"the command ended with exit code {await process.wait()}"
        return f"the command was stopped after {seconds:g} seconds"
    finally:
        with anyio.CancelScope(shield=True):  # otherwise the process would outlive this one
            await _end(process)


async def _end(process: Process) -> None:
    """End the process and its children."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        with anyio.move_on_after(_GRACE_SECONDS):
            await process.wait()
            return


async def _wait(seconds: float) -> str:
    with anyio.move_on_after(seconds), anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            return "stopped by a signal"
    return f"the time limit of {seconds:g} seconds was reached"
