"""Questions to the user on a terminal, and the page with everything about a skill.

Only a line typed after the question appeared is an answer, and only ``y`` or ``yes`` approves. ``n`` declines a
skill until it changes; any other answer refuses it this time. Each grant is a separate decision (A4, A5).
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from typing import TYPE_CHECKING, NamedTuple

from skillwire.cli.host_session import system_user
from skillwire.cli.printer import Printer, counted, cut_line, line, listed, moment, short_digest, size_of, visible
from skillwire.errors import FormatError
from skillwire.skill.uri import path_in_skill

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from rich.text import Text

    from skillwire.host.approvals import Answer, ApprovalRequest, Ask
    from skillwire.skill import SkillEntry
    from skillwire.skill.approval import Approval
    from skillwire.skill.review import ExternalLink, Review
    from skillwire.skill.version_status import VersionStatus
    from skillwire.store.records import LogLine, Question

_STYLES = {"+": "green", "-": "red", "~": "yellow", "@": "cyan"}
YES = ("y", "yes")
NO = ("n", "no")
READ = ("r", "read")
_ROWS = 40
_LONGEST = 1000
_SOURCE_ROWS = 2000
_WIDEST_PATH = 40
_TOOLS_OFFERED = 20
_QUESTIONS = {
    "load": "Let the model read exactly this content, from now on?",
    "unread": "Let the model read it with the files that it has when loaded now, from now on?",
    "dynamic": "Let the model read it this once, with any content?",
    "execute": "Let this run whenever the model acts on this content of the skill, from now on:",
    "tool": "Grant this content of the skill a tool, from now on:",
    "cross-origin": "Let the skill cause this one read:",
}
_RUN_ONCE = "Let this run until the model leaves the skill, and do not store it:"


class _Titles(NamedTuple):
    """The titles of the sections for nested skills, scripts, requested rights, and changes."""

    nested: str
    scripts: str
    requests: str
    changes: str


_HOSTED = _Titles(
    "nested skills, which need their own approval",
    "scripts, which run only if 'execute' is granted",
    "requested, and granted only if you grant it",
    "changed since it was approved",
)
_INSTALLED = _Titles(
    "nested skills, which are installed with it",
    "SCRIPTS: an agent trusts everything in its folder and may run them",
    "REQUESTED (such as allowed-tools): the agent may grant it without asking",
    "changed since it was installed",
)


def can_ask() -> bool:
    """Return whether a user sees messages and can answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def no_terminal(hint: str, rule: str = "") -> FormatError:
    """Return the error for a question that cannot be asked."""
    return FormatError("no-terminal", "not approved, and no terminal is available to ask", hint, rule=rule)


def ask_on_terminal(printer: Printer, options: Sequence[str] = ()) -> Ask:
    """Return a function that shows the entry and asks for approval and grants; ``r`` shows the skill (V5)."""

    async def ask(request: ApprovalRequest) -> Answer:
        from skillwire.host.approvals import Answer
        from skillwire.skill.approval import EXECUTE

        show(request, printer)
        about = f" {line(request.target)}" if request.target else ""
        reply = await answer(f"{question_text(request)}{about} [y/N, r to read it first] ", printer)
        while reply.lower() in READ:
            request = await request.review()
            show(request, printer)
            reply = await answer(f"{question_text(request)}{about} [y/N] ", printer)
        if reply.lower() not in YES:
            is_declined = request.kind == "load" and reply.lower() in NO
            if is_declined:
                words = ["skillwire", "approvals", "enable", f"{request.origin}:{request.entry.uri}", *options]
                printer.talk(f"declined until it changes; to undo: {line(shlex.join(words))}")
            return Answer(yes=False, remember=is_declined, user=system_user())  # Enter refuses it only this time
        grants: Sequence[str] = ()
        if request.kind == "load":
            offered = dict.fromkeys(request.summary.tools[:_TOOLS_OFFERED], "a tool it requests")
            if request.summary.scripts or offered:
                offered[EXECUTE] = "let code run whenever the model acts on this content"
            grants = await choose("Grant any of these? Numbers, or Enter for none: ", offered, printer)
        remember = request.kind != "dynamic"
        return Answer(yes=True, remember=remember, grants=frozenset(grants), user=system_user())

    return ask


def question_text(request: ApprovalRequest) -> str:
    """Return the question, which states exactly what an approval allows, and for how long."""
    if not request.lasts:
        return _RUN_ONCE
    return _QUESTIONS["unread" if request.is_unread else request.kind]


def approve_once(printer: Printer) -> Ask:
    """Return a function that approves each request once, for ``--yes`` (Z4). It grants nothing."""

    async def ask(request: ApprovalRequest) -> Answer:
        from skillwire.host.approvals import Answer

        show(request, printer)
        return Answer(yes=True, remember=False, user=system_user())

    return ask


def ask_through_store(printer: Printer, state: str | Path, by: str, options: str) -> Ask:
    """Return a function that waits for an answer from the desk or another terminal.

    ``options`` are added to the printed commands.
    """

    def print_question(question: Question) -> None:
        about = f"{line(question.entry.name)} from {line(question.origin)} ({question.kind})"
        printer.talk(f"waiting for an answer about {about}")
        printer.talk(
            f"answer it with: skillwire ui{options}, or: skillwire approvals questions {question.id}{options}"
        )

    async def ask(request: ApprovalRequest) -> Answer:
        from skillwire.host.desk import ask_at_desk

        given = await ask_at_desk(state, by=by, when_asked=print_question)(request)
        printer.talk(f"{line(given.by)} {'approved' if given.yes else 'declined'}")
        return given

    return ask


def show(request: ApprovalRequest, printer: Printer) -> None:
    """Print the page to stderr."""
    for each in page(request, None, at_most=_ROWS):
        printer.talk(each)


async def choose(question: str, offered: Mapping[str, str], printer: Printer, *, names: bool = True) -> list[str]:
    """Print the offered names with their meanings, and return those whose numbers the user types."""
    if not offered:
        return []
    for number, (name, meaning) in enumerate(offered.items(), 1):
        printer.talk(f"  {number}  {line(name)}  ({meaning})" if names else f"  {number}  {meaning}")
    words = (await answer(question, printer)).replace(",", " ").split()
    numbers = {int(word) for word in words if word.isascii() and word.isdigit()}
    return [name for number, name in enumerate(offered, 1) if number in numbers]


async def confirm(question: str, printer: Printer) -> bool:
    """Return whether the user confirms ``question``."""
    return (await answer(f"{question} [y/N] ", printer)).lower() in YES


async def answer(question: str, printer: Printer) -> str:
    """Return a line from the terminal. Input typed before the question appeared is discarded."""
    import termios

    import anyio
    from rich.text import Text

    printer.stop_waiting()
    terminal = sys.stdin.fileno()
    termios.tcflush(terminal, termios.TCIFLUSH)
    printer.err.print(Text(question, style="bold"), end="", soft_wrap=True)
    await anyio.wait_readable(terminal)  # a thread in input() cannot be interrupted
    return os.read(terminal, 4096).decode(errors="replace").strip()


def page(
    request: ApprovalRequest,
    approval: Approval | None,
    decision: LogLine | None = None,
    *,
    is_local: bool = False,
    at_most: int | None = None,
    to_install: bool = False,
    with_source: bool = True,
    address: str = "",
) -> Iterator[Text]:
    """Yield everything about one skill, line by line: its source first, warnings last.

    ``decision`` is the newest one, for a skill that is not approved. ``at_most`` limits the rows of each section,
    so that a long section cannot move the warnings off the screen. ``to_install`` is for a skill that goes into
    the folder of an agent: the agent trusts it, and no host of ours checks its actions. ``with_source`` begins
    with the ``SKILL.md``.
    """
    from rich.text import Text

    from skillwire.skill.approval import fingerprint_of
    from skillwire.skill.model import estimate_tokens
    from skillwire.skill.version_status import version_status

    review, tokens, status = request.summary, estimate_tokens(request.entry), version_status(request.entry)
    if with_source:
        rows = source_rows(review.text or "")
        yield from (Text(f"  | {row}") for row in rows[:_SOURCE_ROWS])
        if len(rows) > _SOURCE_ROWS:
            command = "'skillwire read'" if to_install else "'skillwire approvals show NAME --file SKILL.md'"
            yield Text(f"  … and {len(rows) - _SOURCE_ROWS:,} more lines; {command} shows all")
    yield Text.assemble((cut_line(review.name, _LONGEST), "bold"), "  from ", (line(request.origin), "bold"))
    yield Text(f"  {cut_line(review.description, _LONGEST)}")
    facts = {
        "origin": line(address),
        "uri": line(request.entry.uri),
        "version": cut_line(status.number, _LONGEST),
        "fingerprint": fingerprint_of(request.entry),
        "status": "" if to_install else _status(request, approval, decision, is_local=is_local),
        "granted": "" if approval is None else listed(sorted(approval.grants)) or "nothing",
        "tokens": f"~{tokens.listed} to list" + ("" if tokens.loaded is None else f", ~{tokens.loaded} to load"),
    }
    yield from (Text.assemble((f"  {key:12}", "dim"), value) for key, value in facts.items() if value)
    yield from (Text(f"  {each}", style="bold red") for each in withdrawn(status))
    titles = _INSTALLED if to_install else _HOSTED
    for title, style, rows in _sections(request, titles):
        if rows:
            yield Text(title, style=style)
            yield from (Text(f"  {cut_line(row, _LONGEST)}", style=_style(row)) for row in rows[:at_most])
            if at_most is not None and len(rows) > at_most:
                verb = "show" if to_install else "approvals show"
                yield Text(f"  … and {len(rows) - at_most:,} more; 'skillwire {verb}' shows all", style="bold red")
    yield Text("A digest proves that bytes are the same, not that they are safe.", style="dim")


def withdrawn(status: VersionStatus) -> list[str]:
    """Return a line for each thing that a registry withdrew: the version, or the whole skill."""
    rows = list[str]()
    if status.yanked:
        rows.append(f"this version was yanked: {cut_line(status.yanked, _LONGEST)}")
    if status.deprecated:
        instead = f"; use {cut_line(status.instead, _LONGEST)} instead" if status.instead else ""
        rows.append(f"this skill is deprecated: {cut_line(status.deprecated, _LONGEST)}{instead}")
    return rows


def source_rows(text: str) -> list[str]:
    """Return the lines of a text unrendered, with invisible characters spelled out, so that nothing hides (B6)."""
    lines = text.removesuffix("\n").split("\n") if text else []
    return [
        visible(each[start : start + _LONGEST])
        for each in (each.removesuffix("\r") for each in lines)
        for start in range(0, len(each) or 1, _LONGEST)
    ]


def _status(
    request: ApprovalRequest, approval: Approval | None, decision: LogLine | None, *, is_local: bool
) -> str:
    from skillwire.host.approvals import declines
    from skillwire.skill.approval import covers

    if decision is not None and declines(decision, request.entry):
        note = decision.facts.get("note")
        reason = f": {line(str(note))}" if note else ""
        return f"declined by {line(decision.by)} on {moment(decision.at)}{reason}"
    if is_local:
        return "local: needs no approval"
    if approval is None:
        return "changed since it was approved" if request.change else "unapproved"
    decided = f"approved by {line(approval.by)} on {moment(approval.at)}"
    if covers(approval, request.origin, request.entry):
        return decided
    return f"changed since it was {decided}"


def _sections(request: ApprovalRequest, titles: _Titles) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Yield title, style and rows. The most important section is the last, next to the question."""
    from skillwire.skill.approval import fingerprint_of

    entry, review = request.entry, request.summary
    yield f"{counted(len(entry.files), 'file')}, {size_of(entry.size)}", "bold", _files(entry)
    yield "not stated by the server", "bold yellow", review.gaps
    yield titles.nested, "bold yellow", review.nested
    yield titles.scripts, "bold yellow", review.scripts
    yield titles.requests, "bold yellow", _requests(review)
    names = dict.fromkeys(review.names)
    yield "outside links", "bold", [row for link in review.links if link not in names for row in _link_rows(link)]
    yield "XML namespaces and templates, which look like links", "dim", [link.target for link in names]
    yield titles.changes, "bold red", _changes(request)
    yield "HIDDEN TEXT", "bold red", tuple(map(str, review.hidden))
    if request.is_unread:
        words = "the server names its files only when the skill is loaded"
        yield "FILES NOT KNOWN YET", "bold red", [words]
    elif not fingerprint_of(entry):
        words = "its content may change with every read, so every load needs an approval"
        yield "NOTHING CAN BE VERIFIED", "bold red", [words]


def _link_rows(link: ExternalLink) -> Iterator[str]:
    """Yield the whole address, also decoded, and where it is, in rows that are not cut."""
    label = {"machine": "LOCAL FILE ", "outside": "OUTSIDE ITS FOLDER "}.get(link.kind, "")
    decoded = f"  decoded: {link.decoded}" if link.decoded != link.target else ""
    more = f" and {link.count - len(link.places)} more" if link.count > len(link.places) else ""
    row = f"{label}{link.target}{decoded}  {', '.join(link.places)}{more}"
    yield row[:_LONGEST]
    part = _LONGEST - 2
    yield from (f"… {row[start : start + part]}" for start in range(_LONGEST, len(row), part))


def _files(entry: SkillEntry) -> list[str]:
    paths = [line(file.path or file.uri) for file in entry.files]
    width = min(max(map(len, paths), default=0), _WIDEST_PATH)
    sizes = ["?" if file.size is None else size_of(file.size) for file in entry.files]
    digests = [short_digest(file.digest or "") for file in entry.files]
    return [
        f"{path:{width}}  {size:>9}  {digest}" for path, size, digest in zip(paths, sizes, digests, strict=True)
    ]


def _requests(review: Review) -> list[str]:
    others = [key for key in review.widening if key != "allowed-tools" or not review.tools]
    return [
        *(f"tool {tool}" for tool in review.tools),
        *(f"{key}: {json.dumps(review.widening[key], ensure_ascii=False)}" for key in others),
    ]


def _changes(request: ApprovalRequest) -> list[str]:
    """Return the added, removed and changed files, then a diff of their lines."""

    if not request.change:
        return []
    change, uri = request.change, request.entry.uri
    marked = [("+ ", change.added), ("- ", change.removed), ("~ ", change.rotated)]
    files = [f"{mark}{path_in_skill(uri, file) or file}" for mark, found in marked for file in found]
    described = ["~ the server describes the skill differently"] if change.has_other_frontmatter else []
    return [*described, *files, *(f"| {text}" for text in request.diff)]


def _style(row: str) -> str:
    """Return the colour of a row about a change, by its mark."""
    if row.startswith("| "):
        return _STYLES.get(row[2:3], "")
    return _STYLES.get(row[:1], "") if row[1:2] == " " else ""
