"""``skillwire origins``: where skills come from: folders and servers under labels of yours (O1, C3).

What was given as a header, a variable or an argument may be a secret: it is stored, for this user alone, and never
printed again.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillwire.cli.exits import Exit
from skillwire.cli.hosting import add_server_options, add_state_options, line, moment, run_with_store, state_of
from skillwire.cli.parsing import add_verb
from skillwire.cli.probe import ask_origins, unknown, where_of
from skillwire.cli.targets import COMMAND, parse_headers
from skillwire.errors import FormatError, NotFoundError, OriginError

if TYPE_CHECKING:
    import argparse

    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer
    from skillwire.cli.probe import Answered
    from skillwire.store.contract import Store

TARGETS = 2  # a command after -- stands last
_EXAMPLES = """\
examples:
  skillwire origins add acme https://skills.example.com/mcp --header 'Authorization: Bearer ${ACME_TOKEN}'
  skillwire origins add tools -- npx some-mcp-server     started whenever a host is
  skillwire origins add mine ./skills                    a folder of your own: its skills need no approval
  skillwire origins list
  skillwire origins test acme
  skillwire origins remove acme                          with its content and approvals

A ${VARIABLE} is stored as it is written, and filled in when the server is used.

exit codes: 0 done, 1 a server left skills out, 2 usage, or no answer
"""
_OURS = re.compile(r"local(-\d+)?\Z")


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "origins",
        "add, remove, list or test where skills come from",
        "Look after the origins of skills: servers and folders, each under a label of yours.",
        _EXAMPLES,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="remember an origin, after asking it what it serves")
    add.add_argument("label", metavar="LABEL", help="what you call it: letters, digits, - _ .")
    add.add_argument("where", metavar="WHERE", nargs="+", help="a URL, a folder, or a command after --")
    add.add_argument("--header", action="append", default=[], metavar="'NAME: VALUE'", help="sent to a URL")
    add.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="set for a command")
    add.add_argument("--no-test", action="store_true", help="do not connect now")
    add_server_options(add)
    remove = actions.add_parser("remove", help="forget an origin with its content and approvals")
    remove.add_argument("label", metavar="LABEL", help="what you call it")
    add_state_options(remove)
    add_server_options(actions.add_parser("list", help="every origin: where, how current, how many skills"))
    test = actions.add_parser("test", help="connect now, and say what is there")
    test.add_argument("label", metavar="LABEL", nargs="?", help="one origin (default: all)")
    add_server_options(test)


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """Add, remove, list or test."""
    actions = {"add": _add, "remove": _remove, "list": _list, "test": _test}
    return run_with_store(arguments, printer, actions[arguments.action])


async def _add(store: Store, arguments: argparse.Namespace, printer: Printer) -> int:
    from skillwire.store.contract import LogLine, StoredOrigin

    label, settings = arguments.label, _settings(arguments)
    await _check(store, label, settings, arguments)
    found = [] if arguments.no_test else await ask_origins(store, {label: settings}, arguments.wait)
    for answer in found:
        if answer.exit == Exit.USAGE:
            printer.talk("not added; to add it without asking it: --no-test")
            answer.demand()
    now = time.time()
    await store.put_origin(StoredOrigin(label, settings, now))
    await store.log(LogLine("origin-added", label, "", "user", now))
    if arguments.json:
        printer.json({"added": label, "where": where_of(settings), "found": [each.document() for each in found]})
    else:
        printer.talk(f"added {line(label)}: {where_of(settings)}")
        if "folder" in settings:
            printer.talk("it is a folder of yours: its skills need no approval")
        _print(found, printer)
    return max((answer.exit for answer in found), default=Exit.OK)


def _settings(arguments: argparse.Namespace) -> dict[str, Any]:
    """The entry that is stored: as in an ``mcpServers`` file, or a folder."""
    where, headers = arguments.where, parse_headers(arguments.header)
    pairs = [pair.partition("=") for pair in arguments.env]
    if COMMAND in where:
        words = [*arguments.commands[0], *(word for rest in arguments.commands[1:] for word in ("--", *rest))]
        if words and set(where) == {COMMAND} and not headers and all(name and equals for name, equals, _ in pairs):
            env = {name: value for name, _, value in pairs}
            return {
                "command": words[0],
                "args": words[1:],
                "cwd": os.getcwd(),
                "env": env,
            }  # its words may be paths
    elif len(where) == 1 and not pairs and "://" in where[0]:
        return {"type": "http", "url": where[0], "headers": headers}
    elif len(where) == 1 and not pairs and not headers:
        if not os.path.isdir(where[0]):
            raise NotFoundError(
                "target-unknown", f"{where[0]!r:.200} is no folder and no URL", "check the spelling"
            )
        return {"folder": os.path.abspath(where[0])}
    raise FormatError(
        "origin-unclear",
        "an origin is one URL (with --header), one folder, or one command after -- (with --env NAME=VALUE)",
        "see skillwire origins --help",
    )


async def _check(store: Store, label: str, settings: dict[str, Any], arguments: argparse.Namespace) -> None:
    """Whether it can be added at all, before anything is started or stored."""
    from skillwire.client.servers import parse_server
    from skillwire.host.host import Host
    from skillwire.host.skill_host import open_cache

    if _OURS.match(label):
        raise OriginError(
            "origin-invalid", f"{label!r} is what --folder is called", "choose another label", rule="O1"
        )
    if any(origin.label == label for origin in await store.origins()):
        hint = f"choose another, or first: skillwire origins remove {label}"
        raise OriginError("origin-taken", f"there is an origin {label!r:.80} already", hint, rule="O1")
    await Host(store).origins.add_server(label, settings)  # a label that cannot be one is refused here
    if "folder" in settings:
        open_cache(state_of(arguments), [Path(settings["folder"])])
    else:
        parse_server(settings)


async def _remove(store: Store, arguments: argparse.Namespace, printer: Printer) -> int:
    from skillwire.cli.printer import counted
    from skillwire.host.host import Host
    from skillwire.host.skill_host import open_cache

    label = arguments.label
    added, approvals = [origin.label for origin in await store.origins()], await store.approvals(label)
    if label not in added and not approvals and await store.entries(label) is None:
        raise unknown(label, added)
    host = Host(store, cache=open_cache(state_of(arguments)))
    await host.origins.add_server(label, {})
    await host.remove_origin(label)
    if arguments.json:
        printer.json({"removed": label, "approvals": len(approvals)})
    else:
        printer.talk(f"removed {line(label)} with its content and {counted(len(approvals), 'approval')}")
    return Exit.OK


async def _list(store: Store, arguments: argparse.Namespace, printer: Printer) -> int:
    from skillwire.cli.printer import counted

    found = await _known(store, arguments)
    if arguments.json:
        printer.json({"origins": [answer.document() for answer in found]})
        return Exit.OK
    rows = [
        (answer.label, answer.where, answer.state, answer.skills, moment(answer.origin.seen_at), answer.error)
        for answer in found
    ]
    printer.table(("origin", "where", "state", "skills", "last seen", "error"), rows)
    printer.talk(counted(len(found), "origin"))
    return Exit.OK


async def _test(store: Store, arguments: argparse.Namespace, printer: Printer) -> int:
    found = await _known(store, arguments, arguments.label)
    if arguments.json:
        printer.json({"origins": [answer.document() for answer in found]})
    else:
        _print(found, printer)
    return max((answer.exit for answer in found), default=Exit.OK)


async def _known(store: Store, arguments: argparse.Namespace, label: str | None = None) -> list[Answered]:
    from skillwire.host.skill_host import known_origins

    folders, servers = await known_origins(store, arguments.config)
    targets = {**{name: {"folder": str(path)} for name, path in folders.items()}, **servers}
    if label is not None and label not in targets:
        raise unknown(label, targets)
    return await ask_origins(store, targets if label is None else {label: targets[label]}, arguments.wait)


def _print(found: list[Answered], printer: Printer) -> None:
    rows = [(answer.label, answer.state, answer.dialect or "", answer.skills, answer.names) for answer in found]
    printer.table(("origin", "state", "dialect", "skills", "names"), rows)
    for answer in found:
        if answer.error:
            printer.talk(f"{answer.label}: {answer.error}")
        elif not answer.origin.entries:
            printer.talk(f"{answer.label} lists no skills; that does not prove that it has none")
        for problem in answer.problems:
            printer.talk(
                f"{answer.label} left out {line(problem.file)}: {line(problem.message)} [{problem.reference}]"
            )
