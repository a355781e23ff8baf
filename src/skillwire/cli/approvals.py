"""``skillwire approvals``: what was approved, as a table, as an export, and from one (A1).

An export is data from somewhere: it is checked whole before anything of it is stored, its fingerprints included,
and an approval is only ever stored for the origin, the skill and the very content that it was given for.
"""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from skillwire.cli.exits import Exit
from skillwire.cli.hosting import add_state_options, line, listed, moment, run_with_store, stamp
from skillwire.cli.parsing import add_verb
from skillwire.errors import FormatError, SkillwireError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer
    from skillwire.skill.approval import Approval, Contents
    from skillwire.store.contract import Store

_EXAMPLES = """\
examples:
  skillwire approvals
  skillwire approvals --json > approvals.json
  skillwire approvals --import approvals.json       on another machine that knows these origins

exit codes: 0 done, 1 some of the import was left out, 2 usage, or a file that is no export
"""
_FORMAT = 1
_MAX_BYTES = 64 * 1024 * 1024
_LATEST = 4_102_444_800  # the year 2100


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "approvals",
        "list, export or import what was approved",
        "List what was approved, by whom and when, and what was granted with it. With --json, an export.",
        _EXAMPLES,
    )
    parser.add_argument(
        "--import",
        dest="file",
        type=Path,
        metavar="FILE",
        help="store the approvals of an export, each for the same origin, skill and content",
    )
    add_state_options(parser)


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """List, export or import."""
    return run_with_store(arguments, printer, _list if arguments.file is None else _import)


async def _list(store: Store, arguments: argparse.Namespace, printer: Printer) -> int:
    from skillwire.cli.printer import counted

    found = await store.approvals()
    if arguments.json:
        export = {"version": _FORMAT, "approvals": [_document(approval) for approval in found]}
        sys.stdout.write(json.dumps(export, indent=2) + "\n")  # ASCII, whatever files it goes through
        return Exit.OK
    rows = [
        (
            line(approval.origin),
            line(approval.uri.removesuffix("/SKILL.md")),
            moment(approval.at),
            line(approval.by),
            approval.fingerprint,
            listed(sorted(approval.grants)) or "nothing",
        )
        for approval in found
    ]
    printer.table(("origin", "skill", "when", "by", "fingerprint", "granted"), rows)
    printer.talk(counted(len(found), "approval"))
    return Exit.OK


def _document(approval: Approval) -> dict[str, Any]:
    return {
        "origin": approval.origin,
        "uri": approval.uri,
        "by": approval.by,
        "at": approval.at,
        "when": stamp(approval.at),
        "fingerprint": approval.fingerprint,
        "grants": sorted(approval.grants),
        "contents": [{"uri": uri, "digest": digest} for uri, digest in sorted(approval.contents)],
    }


async def _import(store: Store, arguments: argparse.Namespace, printer: Printer) -> int:
    from skillwire.cli.printer import counted

    wanted = _read(arguments.file)
    known = {origin.label for origin in await store.origins()}
    left_out: list[tuple[Approval, str]] = []
    for approval in wanted:
        reason = await _store(store, approval, known)
        if reason:
            left_out.append((approval, reason))
    stored = len(wanted) - len(left_out)
    if arguments.json:
        reasons = [{"origin": each.origin, "uri": each.uri, "reason": reason} for each, reason in left_out]
        printer.json({"imported": stored, "leftOut": reasons})
    else:
        for approval, reason in left_out:
            printer.data(f"left out {line(approval.uri)} from {line(approval.origin)}: {reason}")
        printer.talk(f"{counted(stored, 'approval')} imported, {len(left_out)} left out")
    return Exit.PROBLEMS if left_out else Exit.OK


async def _store(store: Store, approval: Approval, known: set[str]) -> str:
    """Store one, or say why not. What was decided here, about another content, is not overruled by a file."""
    from skillwire.store.contract import LogLine

    if approval.origin not in known and await store.entries(approval.origin) is None:
        return "no such origin is known here"
    before = await store.approval(approval.origin, approval.uri)
    what = "approved" if before is None else "granted"
    facts = {"kind": "import", "grants": sorted(approval.grants)}
    entry = LogLine(what, approval.origin, approval.uri, approval.by, time.time(), facts)
    if before is None:
        await store.put_approval(approval, entry)
    elif before.contents != approval.contents:
        return "another content is approved here"
    elif before.grants >= approval.grants:
        return ""
    elif not await store.change_grants(before, before.grants | approval.grants, entry):
        return "the approval here changed just now"
    return ""


def _read(path: Path) -> Sequence[Approval]:
    """Every approval of an export, or ``FormatError`` for the first thing that is wrong with it."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
        document: Any = json.loads(data) if len(data) <= _MAX_BYTES else None
        if document["version"] != _FORMAT:
            raise _invalid("its version is not known here")
        return [_parse(item) for item in cast("list[Any]", document["approvals"])]
    except OSError as error:
        raise FormatError(
            "export-unreadable", f"{path.name!r:.200} cannot be read: {error.strerror}", "check --import"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _invalid("it is not the JSON of an export") from error


def _parse(item: dict[str, Any]) -> Approval:
    from skillwire.skill.approval import Approval

    grants = cast("list[str]", item["grants"] if isinstance(item["grants"], list) else [None])
    texts: list[Any] = [item["origin"], item["uri"], item["by"], *grants]
    if not all(isinstance(text, str) and text and text.isprintable() for text in texts):
        raise _invalid("a field is not a line of text")
    at = float(item["at"])
    if not (math.isfinite(at) and 0 <= at < _LATEST):
        raise _invalid("'at' is not a time")
    contents = _contents(item["uri"], item["contents"])
    approval = Approval(item["origin"], item["uri"], contents, item["by"], at, frozenset(grants))
    if approval.fingerprint != item["fingerprint"]:
        raise _invalid(f"the contents of {approval.uri!r:.200} are not those of its fingerprint")
    return approval


def _contents(uri: str, items: list[dict[str, Any]]) -> Contents:
    """The files, checked as those of an entry are: well-formed digests, all inside the skill, each once."""
    from skillwire.skill.received import parse_entry
    from skillwire.skill.uri import parse_uri, skill_root

    files = [{"uri": file["uri"], "digest": file["digest"]} for file in items]
    try:
        name = skill_root(parse_uri(uri)).segments[-1]
        entry = parse_entry(
            {"uri": uri, "frontmatter": {"name": name, "description": "-"}, "resources": files}, sized=False
        )
    except SkillwireError as error:
        raise _invalid(f"{uri!r:.200}: {error.message}") from error
    return frozenset((file.uri, file.digest or "") for file in entry.files)


def _invalid(reason: str) -> FormatError:
    return FormatError(
        "export-invalid",
        f"the file is no export of approvals: {reason}; nothing was imported",
        "make one: skillwire approvals --json",
        rule="A1",
    )
