"""``skillwire review``: everything to know before approving a skill (A2–A5, B6)."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from skillwire.cli.command import Arguments, Exit, Verbs, add_verb
from skillwire.cli.host_session import NAME_HELP, add_host_options, find_skill, host_words, run_with_host
from skillwire.cli.printer import Printer, line, stamp
from skillwire.cli.prompts import page, path_inside, source_rows
from skillwire.errors import FormatError, UpstreamError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from skillwire.host.approvals import ApprovalRequest
    from skillwire.host.host import SkillHost
    from skillwire.host.names import NamedEntry
    from skillwire.skill.approval import Approval
    from skillwire.store.contract import LogLine

_EXAMPLES = """\
examples:
  skillwire review refunds
  skillwire review refunds --file scripts/pay.py
  skillwire review acme:billing/refunds --json

exit codes: 0 shown, 1 the files do not match the entry, 2 usage, or unknown skill
"""
_DIFF_LINES = 400  # for each file
_COMPARED_LINES = 2000  # the server chooses the lines, and comparing them can take quadratic time


def add_arguments(verbs: Verbs) -> None:
    """Add the parser of the verb."""
    parser = add_verb(
        verbs,
        "review",
        run,
        "show everything to know before you approve a skill",
        "Read and verify every file of a skill, and show what to know before you approve it: the source of its"
        " SKILL.md, files, scripts, requested tools, external links, hidden text, and the changes since the last"
        " approval.",
        _EXAMPLES,
    )
    parser.add_argument("name", metavar="NAME", help=NAME_HELP)
    parser.add_argument("--file", metavar="PATH", help="show the source of this file of the skill instead")
    add_host_options(parser)


def run(arguments: Arguments, printer: Printer) -> int:
    """Review a skill."""
    return run_with_host(arguments, printer, _review)


async def _review(host: SkillHost, arguments: Arguments, printer: Printer) -> int:
    from skillwire.host.approvals import declines
    from skillwire.skill.approval import claimed_contents, fingerprint, fingerprint_of

    found = await find_skill(host, arguments, printer)
    if arguments.file is not None:
        return await _show_file(host, found, arguments, printer)
    approval = await host.store.approval(found.origin.label, found.entry.uri)
    decision = next(iter(await host.store.decisions(found.origin.label, found.entry.uri)), None)
    request = await review_request(host, found, approval, printer)
    if arguments.json:
        printer.json(_document(found, request, approval, decision))
        return Exit.OK
    for each in page(request, approval, decision, is_local=found.origin.is_own):
        printer.data(each)
    print_file_command(found, arguments, printer)
    decisions = dict[str, str]()
    if not found.origin.is_own:
        decisions["approve"] = fingerprint_of(request.entry)
    if decision is not None and declines(decision, request.entry):
        decisions["enable"] = fingerprint(claimed_contents(request.entry))
    for verb, shown in decisions.items():
        if shown:
            words = ["skillwire", verb, line(found.name), "--fingerprint", shown, *host_words(arguments)]
            printer.talk(f"to {verb} exactly this: {shlex.join(words)}")
    return Exit.OK


def print_file_command(found: NamedEntry, arguments: Arguments, printer: Printer) -> None:
    """Print the command that shows another file."""
    others = [file.uri for file in found.entry.files if file.uri != found.entry.uri]
    if others:
        path = path_inside(found.entry.uri, others[0])
        words = ["skillwire", "review", line(found.name), "--file", line(path), *host_words(arguments)]
        printer.talk(f"to see another file: {shlex.join(words)}")


async def _show_file(host: SkillHost, found: NamedEntry, arguments: Arguments, printer: Printer) -> int:
    uris = {
        path_inside(found.entry.uri, uri): uri for uri in (found.entry.uri, *(f.uri for f in found.entry.files))
    }
    if arguments.file not in uris:
        known = ", ".join(map(line, uris))
        raise FormatError(
            "argument-invalid", f"the skill has no file {arguments.file!r:.200}", f"its files: {known:.300}"
        )
    data = (await host.read_for_review(found, uris[arguments.file])).data
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        hint = "write the skill to a folder with 'skillwire pull', and open the file with a program for its type"
        raise FormatError("not-text", f"{arguments.file!r:.200} is not text ({len(data)} bytes)", hint) from error
    if arguments.json:
        printer.json({"uri": uris[arguments.file], "text": text})
        return Exit.OK
    for row in source_rows(text):
        printer.data(row)
    return Exit.OK


async def review_request(
    host: SkillHost, found: NamedEntry, approval: Approval | None, printer: Printer
) -> ApprovalRequest:
    """Return the request that the user decides about, after reading every text file."""
    from skillwire.host.approvals import ApprovalRequest, Approvals
    from skillwire.skill.approval import has_contents
    from skillwire.skill.review import review_entry

    change = Approvals.change(approval, found.entry)
    try:
        review = await host.review(found)
        diff = [text async for text in _diff(host, found, approval)] if approval is not None else []
    except UpstreamError as error:
        printer.talk(f"the files could not be read: {line(error.message)} {error.label}")
        review, diff = review_entry(found.entry), []
    kind = "load" if has_contents(found.entry) else "dynamic"
    return ApprovalRequest(kind, found.origin.label, found.entry, review, change, tuple(diff))


async def _diff(host: SkillHost, found: NamedEntry, approval: Approval) -> AsyncIterator[str]:
    """Yield the diff of each text file against its approved version, if that is still in the cache."""
    from anyio import to_thread

    from skillwire.host.approvals import Approvals
    from skillwire.skill.approval import file_digests

    before, origin, change = file_digests(approval.contents), found.origin, Approvals.change(approval, found.entry)
    if change is None or host.cache is None or not origin.is_connected:
        return
    for uri in change.rotated:
        old = await to_thread.run_sync(host.cache.get, origin.label, uri, before[uri])
        if old is None:
            yield f"~ {path_inside(found.entry.uri, uri)}: the approved version is not in the cache any more"
            continue
        new = (await origin.fetch(found.entry, uri)).data
        for text in _compared(path_inside(found.entry.uri, uri), old, new):
            yield text


def _compared(path: str, old: bytes, new: bytes) -> Iterator[str]:
    from difflib import unified_diff

    try:
        texts = old.decode().splitlines(), new.decode().splitlines()
    except UnicodeDecodeError:
        yield f"~ {path}: not text, {len(old)} bytes before, {len(new)} now"
        return
    if max(map(len, texts)) > _COMPARED_LINES:
        yield f"~ {path}: too long to compare, {len(texts[0])} lines before, {len(texts[1])} now"
        return
    lines = list(unified_diff(*texts, f"{path} as approved", f"{path} now", lineterm="", n=2))
    yield from lines[:_DIFF_LINES]
    if len(lines) > _DIFF_LINES:
        yield f"… and {len(lines) - _DIFF_LINES} more lines"


def _document(
    found: NamedEntry, request: ApprovalRequest, approval: Approval | None, decision: LogLine | None
) -> dict[str, Any]:
    from dataclasses import asdict

    from skillwire.host.results import status_of
    from skillwire.skill.approval import fingerprint_of
    from skillwire.skill.model import estimate_tokens

    entry, facts = request.entry, asdict(request.summary)
    files = [{"path": path_inside(entry.uri, file.uri), **file._asdict()} for file in entry.files]
    return {
        **facts,
        "hidden": [find._asdict() for find in request.summary.hidden],
        "name": found.name,
        "origin": request.origin,
        "uri": entry.uri,
        "status": status_of(found, approval, decision).status,
        "fingerprint": fingerprint_of(request.entry) or None,
        "approval": None
        if approval is None
        else {
            "by": approval.by,
            "at": stamp(approval.at),
            "fingerprint": approval.fingerprint,
            "grants": sorted(approval.grants),
        },
        "tokens": estimate_tokens(entry)._asdict(),
        "files": files,
        "change": None if request.change is None else asdict(request.change),
        "diff": list(request.diff),
    }
