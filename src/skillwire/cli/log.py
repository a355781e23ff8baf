"""``skillwire log``: shows what happened to which skill, and by whom."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, cast

import click

from skillwire.cli.command import Arguments, option, verb
from skillwire.cli.host_session import STORE_OPTIONS, run_with_store
from skillwire.cli.printer import Printer, line, moment

if TYPE_CHECKING:
    from rich.text import Text

    from skillwire.store.records import LogLine
    from skillwire.store.store import Store

_COLOURS = {
    "approved": "green",
    "enabled": "green",
    "granted": "yellow",
    "denied": "red",
    "revoked": "red",
    "refused": "red",
}


@verb(
    "Show the log, the newest entry last: approvals, loads, reads, refusals and revocations. With --json, one"
    " document for each line.",
    option("-n", type=click.IntRange(min=0), default=50, metavar="N", help="the number of lines (default: 50)"),
    option("--origin", metavar="LABEL", help="only lines about this origin"),
    *STORE_OPTIONS,
    within=run_with_store,
    examples="""\
  skillwire log
  skillwire log -n 1000 --origin acme
  skillwire log --json | jq 'select(.what == "refused")'
""",
)
async def command(store: Store, arguments: Arguments, printer: Printer) -> None:
    """Show the log."""
    newest_first = await store.lines(limit=arguments.n, origin=arguments.origin)
    lines = newest_first[::-1]
    if not lines and not arguments.json:
        printer.talk("the log is empty" if arguments.origin is None else f"nothing about {line(arguments.origin)}")
    if arguments.json:
        for entry in lines:
            sys.stdout.write(json.dumps(entry.to_json()) + "\n")  # ASCII: a hostile name may be invalid Unicode
    elif printer.out.is_terminal:
        for entry in lines:
            printer.data(_coloured(*_cells(entry, printer)))
    else:
        rows = [_cells(entry, printer) for entry in lines]
        printer.table(("when", "what", "origin", "skill", "by", "facts"), rows)


def _cells(entry: LogLine, printer: Printer) -> tuple[str, str, str, str, str, str]:
    facts = {key: value for key, value in entry.facts.items() if value != "" and key != "rule"}
    words = " ".join(f"{line(key)}={line(_value(value, printer))}" for key, value in facts.items())
    return moment(entry.at), entry.what, line(entry.origin), line(entry.uri), line(entry.by), words


def _coloured(when: str, what: str, origin: str, uri: str, by: str, facts: str) -> Text:
    from rich.text import Text

    words = "  ".join(word for word in (origin, uri, f"by {by}", facts) if word)
    return Text.assemble((when, "dim"), "  ", (f"{what:14}", _COLOURS.get(what, "")), "  ", words)


def _value(value: object, printer: Printer) -> str:
    """Shorten a fact; approved files are only counted. ``--json`` has all of it."""
    if isinstance(value, list) and value and isinstance(value[0], list):
        return f"{len(cast('list[object]', value))} files"
    if not isinstance(value, str):
        return json.dumps(value)
    return printer.digest(value) if value.startswith("sha256:") else value
