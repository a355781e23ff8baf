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
from skillwire.cli.printer import Printer, counted, line, listed, moment, stamp
from skillwire.cli.targets import parse_headers
from skillwire.errors import FormatError, NotFoundError, OriginError, UpstreamError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from skillwire.host.origins import Origin
    from skillwire.skill import Diagnostic
    from skillwire.store.contract import Store

_RESERVED = re.compile(r"local(-\d+)?\Z")
_SECRET_PLACES = re.compile(r"//[^/?#]*@|[?#].*")  # user and password, query
_NAMES_SHOWN = 20


@dataclass(frozen=True, slots=True)
class OriginProbe:
    """The result of connecting to one origin. Its texts are safe for a terminal."""

    origin: Origin
    where: str
    dialect: str | None
    problems: tuple[Diagnostic, ...]

    @property
    def names(self) -> str:
        """The names of the first skills."""
        more = len(self.origin.known) - _NAMES_SHOWN
        names = listed(entry.name for entry in self.origin.known[:_NAMES_SHOWN])
        return f"{names} and {more:,} more" if more > 0 else names

    @property
    def error(self) -> str:
        """The reason for a missing or incomplete listing."""
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
            "where": self.where,
            "state": self.origin.state,
            "dialect": self.dialect,
            "skills": [entry.uri for entry in self.origin.known],
            "lastSeen": None if seen is None else stamp(seen),
            "error": None if error is None else {"reference": error.reference, "message": error.message},
            "problems": [{"uri": each.file, "message": each.message} for each in self.problems],
        }


async def _add(store: Store, arguments: Arguments, printer: Printer) -> int:
    from skillwire.store.contract import LogLine, StoredOrigin

    label, settings = arguments.label, _settings(arguments)
    await _check_new(store, label, settings, arguments)
    found = [] if arguments.no_test else await probe_origins(store, {label: settings}, arguments.timeout)
    for probe in found:
        if probe.exit == Exit.USAGE:
            printer.talk("not added; to add it without connecting, add --no-test")
            raise probe.origin.error or UpstreamError(
                "timed-out", f"{label!r:.80} did not respond in time", "wait longer: --timeout 60"
            )
    now = time.time()
    await store.put_origin(StoredOrigin(label, settings, now))
    await store.log(LogLine("origin-added", label, "", "user", now))
    if arguments.json:
        printer.json({"added": label, "where": where_of(settings), "found": [each.document() for each in found]})
    else:
        printer.talk(f"added {line(label)}: {where_of(settings)}")
        if "folder" in settings:
            printer.talk("this is a folder of yours: its skills need no approval")
        _print_probes(found, printer)
    return max((probe.exit for probe in found), default=Exit.OK)


def _settings(arguments: Arguments) -> dict[str, Any]:
    """Return the entry to store: as in an ``mcpServers`` file, or a folder."""
    where, headers = arguments.where, parse_headers(arguments.header)
    pairs = [pair.partition("=") for pair in arguments.env]
    if COMMAND in where:
        words = whole_command(arguments)
        if words and set(where) == {COMMAND} and not headers and all(name and equals for name, equals, _ in pairs):
            env = {name: value for name, _, value in pairs}
            # The arguments may be relative paths, so the folder is stored too.
            return {"command": words[0], "args": words[1:], "cwd": os.getcwd(), "env": env}
    elif len(where) == 1 and not pairs and "://" in where[0]:
        return {"type": "http", "url": where[0], "headers": headers}
    elif len(where) == 1 and not pairs and not headers:
        if not os.path.isdir(where[0]):
            raise NotFoundError(
                "target-unknown", f"{where[0]!r:.200} is neither a folder nor a URL", "check the spelling"
            )
        return {"folder": os.path.abspath(where[0])}
    raise FormatError(
        "origin-unclear",
        "an origin is one URL (with --header), one folder, or one command after -- (with --env NAME=VALUE)",
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
        command = shlex.join(["skillwire", "origins", "remove", label, *_state_words(arguments)])
        hint = f"choose another label, or remove the origin first: {command}"
        raise OriginError("origin-taken", f"the origin {label!r:.80} exists already", hint, rule="O1")
    await SkillHost(store).registry.add_server(label, settings)  # raises if the label is invalid
    if "folder" in settings:
        open_cache(state_of(arguments), [Path(settings["folder"])])
    else:
        parse_server(settings)


def _state_words(arguments: Arguments) -> list[str]:
    return [] if arguments.state is None else ["--state", str(arguments.state)]


async def _remove(store: Store, arguments: Arguments, printer: Printer) -> int:
    from skillwire.host.host import SkillHost
    from skillwire.host.state import open_cache

    label = arguments.label
    added, approvals = [origin.label for origin in await store.origins()], await store.approvals(label)
    if label not in added and not approvals and await store.entries(label) is None:
        raise _unknown_origin(label, added)
    host = SkillHost(store, cache=open_cache(state_of(arguments)))
    await host.registry.add_server(label, {})
    await host.remove_origin(label)
    if arguments.json:
        printer.json({"removed": label, "approvals": len(approvals)})
    else:
        printer.talk(f"removed {line(label)} with its content and {counted(len(approvals), 'approval')}")
    return Exit.OK


async def _list(store: Store, arguments: Arguments, printer: Printer) -> int:
    found = await _known(store, arguments)
    if arguments.json:
        printer.json({"origins": [probe.document() for probe in found]})
        return Exit.OK
    rows = [
        (line(o.label), probe.where, o.state, str(len(o.known)), moment(o.seen_at), probe.error)
        for probe in found
        for o in [probe.origin]
    ]
    printer.table(("origin", "where", "state", "skills", "last seen", "error"), rows)
    printer.talk(counted(len(found), "origin"))
    return Exit.OK


async def _test(store: Store, arguments: Arguments, printer: Printer) -> int:
    found = await _known(store, arguments, arguments.label)
    if arguments.json:
        printer.json({"origins": [probe.document() for probe in found]})
    else:
        _print_probes(found, printer)
    return max((probe.exit for probe in found), default=Exit.OK)


async def _known(store: Store, arguments: Arguments, label: str | None = None) -> list[OriginProbe]:
    from skillwire.host.state import known_origins

    folders, servers = await known_origins(store, arguments.config)
    targets = {**{name: {"folder": str(path)} for name, path in folders.items()}, **servers}
    if label is not None and label not in targets:
        raise _unknown_origin(label, targets)
    return await probe_origins(store, targets if label is None else {label: targets[label]}, arguments.timeout)


def _print_probes(found: list[OriginProbe], printer: Printer) -> None:
    rows = [
        (line(o.label), o.state, probe.dialect or "", str(len(o.known)), probe.names)
        for probe in found
        for o in [probe.origin]
    ]
    printer.table(("origin", "state", "dialect", "skills", "names"), rows)
    for probe in found:
        label = line(probe.origin.label)
        if probe.error:
            printer.talk(f"{label}: {probe.error}")
        elif not probe.origin.known:
            printer.talk(f"{label} lists no skills; this does not prove that it has none")
        for problem in probe.problems:
            printer.talk(f"{label} skipped {line(problem.file)}: {line(problem.message)} [{problem.reference}]")


async def probe_origins(
    store: Store, targets: Mapping[str, Mapping[str, Any]], patience: float
) -> list[OriginProbe]:
    """Connect to all origins at the same time, wait until each has responded or failed, and disconnect."""
    from anyio import to_thread

    from skillwire.host.host import SkillHost

    host = SkillHost(store)
    for label, target in targets.items():
        if "folder" in target:
            await to_thread.run_sync(host.registry.add_folder, label, Path(target["folder"]))
    async with host.connected({label: each for label, each in targets.items() if "folder" not in each}):
        await host.settle(patience)
        found, probes = {origin.label: origin for origin in host.registry}, list[OriginProbe]()
        for label, target in targets.items():
            origin = found[label]
            problems = tuple(await origin.problems()) if origin.kind else ()
            probes.append(OriginProbe(origin, where_of(target), origin.kind or None, problems))
        return probes


def where_of(target: Mapping[str, Any]) -> str:
    """Describe the place of an origin without possible secrets: values, arguments and queries."""
    if "folder" in target:
        return line(str(target["folder"]))
    url = next((target[key] for key in ("httpUrl", "url", "serverUrl") if key in target), None)
    if url is not None:
        place = _SECRET_PLACES.sub(lambda match: "//…@" if match[0].endswith("@") else "", str(url))
        return line(place) + _names_only("headers", target.get("headers"))
    args = target.get("args")
    words = f" … {counted(len(args), 'argument')}" if isinstance(args, list) and args else ""  # pyright: ignore[reportUnknownArgumentType]
    return line(str(target.get("command", "?"))) + words + _names_only("env", target.get("env"))


def _names_only(what: str, values: object) -> str:
    return f" ({what}: {listed(map(str, values))})" if isinstance(values, dict) and values else ""  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _unknown_origin(label: str, known: Iterable[str]) -> OriginError:
    return OriginError(
        "origin-unknown",
        f"unknown origin {label!r:.80}",
        f"the origins are: {', '.join(sorted(known)) or 'none':.300}",
        rule="O1",
    )


@verb(
    "Connect to an origin, then store it.",
    argument("label", "LABEL", "the name of the origin: letters, digits, - _ ."),
    argument("where", "WHERE…", "a URL, a folder, or a command after --", nargs=-1, required=True),
    repeated("--header", metavar="'NAME: VALUE'", help="sent to a URL (repeatable)"),
    repeated("--env", metavar="NAME=VALUE", help="set for a command (repeatable)"),
    flag("--no-test", help="do not connect now"),
    *SERVER_OPTIONS,
    targets=2,  # a command after -- comes last
    examples="""\
  skillwire origins add acme https://skills.example.com/mcp --header 'Authorization: Bearer ${ACME_TOKEN}'
  skillwire origins add tools -- npx some-mcp-server     starts with every host
  skillwire origins add mine ./skills                    a folder of yours: its skills need no approval

A ${VARIABLE} is stored unchanged, and replaced by its value when the server is used.

exit codes: 0 done, 1 some entries of a server cannot be used, 2 usage, or no response
""",
)
def _add_verb(arguments: Arguments, printer: Printer) -> int:
    return run_with_store(arguments, printer, _add)


@verb(
    "List every origin with its place, state and number of skills.",
    *SERVER_OPTIONS,
    examples="  skillwire origins list\n",
)
def _list_verb(arguments: Arguments, printer: Printer) -> int:
    return run_with_store(arguments, printer, _list)


@verb(
    "Connect to origins now and show their skills.",
    argument("label", "[LABEL]", "one origin (default: all)", required=False),
    *SERVER_OPTIONS,
    examples="""\
  skillwire origins test acme

exit codes: 0 done, 1 some entries of a server cannot be used, 2 usage, or no response
""",
)
def _test_verb(arguments: Arguments, printer: Printer) -> int:
    return run_with_store(arguments, printer, _test)


@verb(
    "Remove an origin with its content and approvals.",
    argument("label", "LABEL", "the name of the origin"),
    *STORE_OPTIONS,
    examples="  skillwire origins remove acme                          also removes its content and approvals\n",
)
def _remove_verb(arguments: Arguments, printer: Printer) -> int:
    return run_with_store(arguments, printer, _remove)


command = Noun(
    "The origins of skills: servers and folders, each under a label.",
    {"list": _list_verb, "add": _add_verb, "test": _test_verb, "remove": _remove_verb},
    default="list",
)
