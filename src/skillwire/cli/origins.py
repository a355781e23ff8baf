"""``skillwire origins``: the servers and folders that skills come from, each under a label (O1, C3).

Headers, variables and arguments may be secrets: they are stored for this user only, and never printed again.
Connecting to an origin reads no file of a skill (V5).
"""

from __future__ import annotations

import os
import re
import shlex
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillwire.cli.command import COMMAND, Arguments, Exit, Noun, argument, flag, repeated, verb, whole_command
from skillwire.cli.host_session import SERVER_OPTIONS, STORE_OPTIONS, run_with_store, state_of
from skillwire.cli.printer import Printer, counted, line, listed, moment, utc_text
from skillwire.cli.targets import parse_headers
from skillwire.errors import FormatError, NotFoundError, OriginError, UpstreamError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillwire.host.origins import Origin
    from skillwire.skill import Diagnostic
    from skillwire.store.store import Store

_RESERVED = re.compile(r"local(-\d+)?\Z")
_NAMES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class OriginProbe:
    """The result of connecting to one origin."""

    origin: Origin
    problems: tuple[Diagnostic, ...]

    @property
    def error(self) -> str:
        """The reason for a missing or incomplete listing, safe for a terminal."""
        if self.origin.error is not None:
            return f"{line(self.origin.error.message)} {self.origin.error.label}"
        return "no response yet" if self.exit == Exit.USAGE else ""

    @property
    def exit(self) -> Exit:
        """2 without a response, 1 if some entries cannot be used."""
        if self.origin.state in ("complete", "partial"):
            return Exit.PROBLEMS if self.problems or self.origin.state == "partial" else Exit.OK
        return Exit.USAGE

    def document(self) -> dict[str, Any]:
        """Return the result as a document."""
        error, seen = self.origin.error, self.origin.seen_at
        return {
            "label": self.origin.label,
            "where": self.origin.address,
            "state": self.origin.state,
            "dialect": self.origin.kind or None,
            "skills": [entry.uri for entry in self.origin.known],
            "lastSeen": None if seen is None else utc_text(seen),
            "error": None if error is None else {"reference": error.reference, "message": error.message},
            "problems": [{"uri": each.file, "message": each.message} for each in self.problems],
        }


@verb(
    "Connect to an origin, then store it.",
    argument("label", "LABEL", "the name of the origin: letters, digits, - _ ."),
    argument(
        "where", "WHERE…", "a URL, a Git repository, a folder, or a command after --", nargs=-1, required=True
    ),
    repeated("--header", metavar="'NAME: VALUE'", help="sent to a URL (repeatable)"),
    repeated("--env", metavar="NAME=VALUE", help="set for a command (repeatable)"),
    flag("--no-test", help="do not connect now"),
    *SERVER_OPTIONS,
    targets=2,  # a command after -- comes last
    within=run_with_store,
    examples="""\
  skillwire origins add acme https://skills.example.com/mcp --header 'Authorization: Bearer ${ACME_TOKEN}'
  skillwire origins add tools -- npx some-mcp-server     starts with every host
  skillwire origins add team acme/skills@v1              a Git repository
  skillwire origins add mine ./skills                    a folder of yours: its skills need no approval

A ${VARIABLE} is stored unchanged, and replaced by its value when the server is used.

exit codes: 0 done, 1 some entries of a server cannot be used, 2 usage, or no response
""",
)
async def _add(store: Store, arguments: Arguments, printer: Printer) -> int:
    from skillwire.client.servers import address_of
    from skillwire.store.records import LogLine, StoredOrigin

    label, settings = arguments.label, _settings(arguments)
    await _check_new(store, label, settings, arguments)
    found: list[OriginProbe] = []
    if not arguments.no_test:
        settings, probe = await _try(store, label, settings, arguments.timeout)
        if probe.exit == Exit.USAGE:
            printer.talk("not added; to add it without connecting, add --no-test")
            error = probe.origin.error or UpstreamError(
                "timed-out", f"{label!r:.80} did not respond in time", "wait longer: --timeout 60"
            )
            if "command" in settings and error.reference in ("connection-lost", "not-mcp"):
                error.hint = f"run it yourself, to see why: {shlex.join([settings['command'], *settings['args']])}"
            raise error
        found.append(probe)
    now, where = time.time(), settings.get("folder") or address_of(settings)
    await store.put_origin(StoredOrigin(label, settings, now))
    await store.log(LogLine("origin-added", label, "", "user", now))
    printer.json({"added": label, "where": where, "found": [each.document() for each in found]})
    printer.talk(f"added {line(label)}: {line(where)}")
    if "folder" in settings:
        printer.talk("this is a folder of yours: its skills need no approval")
    _print_probes(found, printer)
    return max((probe.exit for probe in found), default=Exit.OK)


def _settings(arguments: Arguments) -> dict[str, Any]:
    """Return the entry to store: as in an ``mcpServers`` file, or a folder."""
    from skillwire.catalog.git_source import parse_git_source
    from skillwire.client.servers import as_url, target_kind

    where, headers = arguments.where, parse_headers(arguments.header)
    pairs = [pair.partition("=") for pair in arguments.env]
    if COMMAND in where:
        words = whole_command(arguments)
        if words and set(where) == {COMMAND} and not headers and all(name and equals for name, equals, _ in pairs):
            env = {name: value for name, _, value in pairs}
            # The arguments may be relative paths, so the folder is stored too.
            return {"command": words[0], "args": words[1:], "cwd": os.getcwd(), "env": env}
    elif len(where) == 1 and not pairs and not headers and target_kind(where[0]) == "git":
        return {"git": f"git+{parse_git_source(where[0])}"}
    elif len(where) == 1 and not pairs and (url := as_url(where[0])) is not None:
        return {"type": "http", "url": url, "headers": headers}
    elif len(where) == 1 and not pairs and not headers:
        if not os.path.isdir(where[0]):
            raise NotFoundError(
                "target-unknown",
                f"{where[0]!r:.200} is not a folder, a repository or a URL",
                "use a folder of skills, owner/repository, a URL, or a command after --",
            )
        return {"folder": os.path.abspath(where[0])}
    raise FormatError(
        "origin-unclear",
        "an origin is one URL (with --header), one Git repository, one folder, or one command after -- (with --env"
        " NAME=VALUE)",
        "see: skillwire origins add --help",
    )


async def _check_new(store: Store, label: str, settings: dict[str, Any], arguments: Arguments) -> None:
    """Check the origin before anything is started or stored."""
    from skillwire.client.servers import parse_server
    from skillwire.host.host import SkillHost
    from skillwire.host.state import open_cache

    if _RESERVED.match(label):
        raise OriginError(
            "origin-invalid", f"the label {label!r} is reserved for --folder", "choose another label", rule="O1"
        )
    if any(origin.label == label for origin in await store.origins()):
        state = [] if arguments.state is None else ["--state", str(arguments.state)]
        command = shlex.join(["skillwire", "origins", "remove", label, *state])
        hint = f"choose another label, or remove the origin first: {command}"
        raise OriginError("origin-taken", f"the origin {label!r:.80} exists already", hint, rule="O1")
    await SkillHost(store).registry.add_server(label, settings)  # raises if the label is invalid
    if "folder" in settings:
        open_cache(state_of(arguments), [Path(settings["folder"])])
    else:
        parse_server(settings)


async def _try(
    store: Store, label: str, settings: dict[str, Any], patience: float
) -> tuple[dict[str, Any], OriginProbe]:
    """Connect to a new origin. If no MCP server responds at a URL without a path, ``/mcp`` is tried."""
    from skillwire.client.servers import with_usual_path

    [probe] = await _probe(store, {label: settings}, patience)
    error, url = probe.origin.error, with_usual_path(settings["url"]) if "url" in settings else None
    if error is None or error.reference != "not-mcp" or url is None:
        return settings, probe
    other = {**settings, "url": url}
    [second] = await _probe(store, {label: other}, patience)
    return (settings, probe) if second.exit == Exit.USAGE else (other, second)


@verb(
    "List every origin with its place, state and number of skills.",
    *SERVER_OPTIONS,
    within=run_with_store,
    examples="  skillwire origins list\n",
)
async def _list(store: Store, arguments: Arguments, printer: Printer) -> None:
    found = await _known(store, arguments)
    printer.json({"origins": [probe.document() for probe in found]})
    rows = [
        (line(o.label), line(o.address), o.state, str(len(o.known)), moment(o.seen_at), probe.error)
        for probe in found
        for o in [probe.origin]
    ]
    if rows:
        printer.table(("origin", "where", "state", "skills", "last seen", "error"), rows)
        printer.talk(counted(len(found), "origin"))
    else:
        printer.talk("no origins; add one: skillwire origins add LABEL URL")


@verb(
    "Connect to origins now and show their skills.",
    argument("label", "[LABEL]", "one origin (default: all)", required=False),
    *SERVER_OPTIONS,
    within=run_with_store,
    examples="""\
  skillwire origins test acme

exit codes: 0 done, 1 some entries of a server cannot be used, 2 usage, or no response
""",
)
async def _test(store: Store, arguments: Arguments, printer: Printer) -> int:
    found = await _known(store, arguments, arguments.label)
    printer.json({"origins": [probe.document() for probe in found]})
    _print_probes(found, printer)
    return max((probe.exit for probe in found), default=Exit.OK)


@verb(
    "Remove an origin with its content and approvals.",
    argument("label", "LABEL", "the name of the origin"),
    *STORE_OPTIONS,
    within=run_with_store,
    examples="  skillwire origins remove acme                          also removes its content and approvals\n",
)
async def _remove(store: Store, arguments: Arguments, printer: Printer) -> None:
    from skillwire.host.host import SkillHost
    from skillwire.host.state import open_cache

    label = arguments.label
    added, approvals = [origin.label for origin in await store.origins()], await store.approvals(label)
    if label not in added and not approvals and await store.entries(label) is None:
        raise _unknown_origin(label, added)
    host = SkillHost(store, cache=open_cache(state_of(arguments)))
    await host.registry.add_server(label, {})
    await host.remove_origin(label)
    printer.json({"removed": label, "approvals": len(approvals)})
    printer.talk(f"removed {line(label)} with its content and {counted(len(approvals), 'approval')}")


async def _known(store: Store, arguments: Arguments, label: str | None = None) -> list[OriginProbe]:
    from skillwire.host.state import known_origins

    folders, servers = await known_origins(store, arguments.config)
    targets = {**{name: {"folder": str(path)} for name, path in folders.items()}, **servers}
    if label is not None and label not in targets:
        raise _unknown_origin(label, targets)
    return await _probe(store, targets if label is None else {label: targets[label]}, arguments.timeout)


async def _probe(store: Store, targets: Mapping[str, Mapping[str, Any]], patience: float) -> list[OriginProbe]:
    """Connect to all origins at the same time, wait until each has responded or failed, and disconnect."""
    from anyio import to_thread

    from skillwire.host.host import SkillHost

    host = SkillHost(store)
    for label, target in targets.items():
        if "folder" in target:
            await to_thread.run_sync(host.registry.add_folder, label, Path(target["folder"]))
    async with host.connected({label: each for label, each in targets.items() if "folder" not in each}):
        await host.settle(patience)
        found = {origin.label: origin for origin in host.registry}
        return [
            OriginProbe(origin, tuple(await origin.problems()) if origin.kind else ())
            for origin in (found[label] for label in targets)
        ]


def _print_probes(found: list[OriginProbe], printer: Printer) -> None:
    rows: list[tuple[str, ...]] = []
    for origin in (probe.origin for probe in found):
        more = len(origin.known) - _NAMES_SHOWN
        names = listed(entry.name for entry in origin.known[:_NAMES_SHOWN])
        names += f" and {more:,} more" if more > 0 else ""
        rows.append((line(origin.label), origin.state, origin.kind, str(len(origin.known)), names))
    printer.table(("origin", "state", "dialect", "skills", "names"), rows)
    for probe in found:
        label = line(probe.origin.label)
        if probe.error:
            printer.talk(f"{label}: {probe.error}")
        elif not probe.origin.known:
            printer.talk(f"{label} lists no skills; this does not prove that it has none")
        for problem in probe.problems:
            printer.talk(f"{label} skipped {line(problem.file)}: {line(problem.message)} [{problem.reference}]")


def _unknown_origin(label: str, known: Iterable[str]) -> NotFoundError:
    names = ", ".join(sorted(known))
    return NotFoundError(
        "origin-unknown",
        f"unknown origin {label!r:.80}",
        f"the origins are: {names:.300}" if names else "there are none; add one: skillwire origins add LABEL URL",
        rule="O1",
    )


command = Noun(
    "The origins of skills: servers and folders, each under a label.",
    {"list": _list, "add": _add, "test": _test, "remove": _remove},
    default="list",
)
