"""The question to a person: the page with everything about a skill, and the answer from their terminal.

Only a line of theirs, typed after the question was there, is an answer, and only ``y`` or ``yes`` is a yes. ``n``
declines a skill until it changes; anything else is a no for now. Each grant is a decision of its own (A4, A5).
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from typing import TYPE_CHECKING, NamedTuple

from skillwire.cli.hosting import line, listed, moment, system_user

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rich.text import Text

    from skillwire.cli.printer import Printer
    from skillwire.host.approvals import Answer, ApprovalRequest, Ask
    from skillwire.skill import SkillEntry
    from skillwire.skill.approval import Approval
    from skillwire.skill.review import Review
    from skillwire.store.contract import LogLine, Question

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
    "load": "Let the model read it, exactly as it is now, from now on?",
    "unread": "Let the model read it, with the files that it has when it is loaded now, from now on?",
    "dynamic": "Let the model read it this once, whatever it says?",
    "execute": "Let this run whenever the model acts on this content of the skill, from now on:",
    "tool": "Grant this content of the skill a tool, from now on:",
    "cross-origin": "Let the skill cause this one read:",
}
_UNTIL_LEFT = "Let this run until the model leaves the skill, and do not store it:"


class _Titles(NamedTuple):
    """What it means that a skill has nested ones, scripts and wishes, or changed."""

    nested: str
    scripts: str
    wishes: str
    changes: str


_HOSTED = _Titles(
    "skills inside, which need approvals of their own (A3)",
    "can run, if 'execute' is granted (A5)",
    "asks for, and does not get unless it is granted (A4)",
    "changed since it was approved (A2)",
)
_INSTALLED = _Titles(
    "skills inside, which come with it (A3)",
    "CAN RUN: an agent treats what lies in its folder as its own (A5)",
    "ASKS FOR (allowed-tools and the like), and the agent may give it without a question (A4)",
    "changed since it was installed (A2)",
)


def can_ask() -> bool:
    """Whether a person sees what is said and can answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_on_terminal(printer: Printer, options: Sequence[str] = ()) -> Ask:
    """Show what the entry says, wait for a yes or no, and for what is granted; ``r`` shows the skill (V5)."""

    async def ask(request: ApprovalRequest) -> Answer:
        from skillwire.host.approvals import Answer

        show(request, printer)
        about = f" {line(request.target)}" if request.target else ""
        reply = await answer(f"{meaning_of(request)}{about} [y/N, r to read it first] ", printer)
        while reply.lower() in READ:
            request = await request.review()
            show(request, printer)
            reply = await answer(f"{meaning_of(request)}{about} [y/N] ", printer)
        if reply.lower() not in YES:
            is_declined = request.kind == "load" and reply.lower() in NO
            if is_declined:
                words = ["skillwire", "enable", f"{request.origin}:{request.entry.uri}", *options]
                printer.talk(f"declined until it changes; to undo that: {line(shlex.join(words))}")
            return Answer(yes=False, remember=is_declined, user=system_user())  # Enter is a no for now
        grants = await _grants(request, printer) if request.kind == "load" else frozenset[str]()
        return Answer(yes=True, remember=request.kind != "dynamic", grants=grants, user=system_user())

    return ask


def meaning_of(request: ApprovalRequest) -> str:
    """What a yes means, in words: exactly what is stored, and for how long."""
    if not request.lasts:
        return _UNTIL_LEFT
    return _QUESTIONS["unread" if request.is_unread else request.kind]


def say_yes(printer: Printer) -> Ask:
    """The person said yes before the question (``--yes``), for this time only (Z4). Nothing is granted."""

    async def ask(request: ApprovalRequest) -> Answer:
        from skillwire.host.approvals import Answer

        show(request, printer)
        return Answer(yes=True, remember=False, user=system_user())

    return ask


def ask_elsewhere(printer: Printer, state: Path, by: str, options: str) -> Ask:
    """Wait for whoever is at the desk or at another terminal, and say so. ``options`` end the commands."""

    def say(question: Question) -> None:
        about = f"{line(question.entry.name)} from {line(question.origin)} ({question.kind})"
        printer.talk(f"waiting for an answer about {about}")
        printer.talk(f"it is given with: skillwire ui{options}, or: skillwire questions {question.id}{options}")

    async def ask(request: ApprovalRequest) -> Answer:
        from skillwire.host.desk import ask_at_desk

        given = await ask_at_desk(state, by=by, when_asked=say)(request)
        printer.talk(f"{line(given.by)} says {'yes' if given.yes else 'no'}")
        return given

    return ask


def show(request: ApprovalRequest, printer: Printer) -> None:
    """The page, beside the data."""
    for each in page(request, None, at_most=_ROWS):
        printer.talk(each)


async def _grants(request: ApprovalRequest, printer: Printer) -> frozenset[str]:
    from skillwire.skill.approval import EXECUTE

    offered: Sequence[str] = request.summary.tools[:_TOOLS_OFFERED]
    if request.summary.scripts or offered:
        offered = (*offered, EXECUTE)
    for number, grant in enumerate(offered, 1):
        meaning = (
            "let code run whenever the model acts on this content" if grant == EXECUTE else "a tool it asks for"
        )
        printer.talk(f"  {number}  {line(grant)}  ({meaning})")
    if not offered:
        return frozenset()
    words = await answer("Grant any of these? Numbers, or Enter for none: ", printer)
    chosen = {int(word) for word in words.replace(",", " ").split() if word.isascii() and word.isdigit()}
    return frozenset(grant for number, grant in enumerate(offered, 1) if number in chosen)


async def confirm(question: str, printer: Printer) -> bool:
    """Whether the person says yes to ``question``."""
    return (await answer(f"{question} [y/N] ", printer)).lower() in YES


async def answer(question: str, printer: Printer) -> str:
    """A line from the terminal. What was typed before the question was there is no answer to it."""
    import termios

    import anyio
    from rich.text import Text

    terminal = sys.stdin.fileno()
    termios.tcflush(terminal, termios.TCIFLUSH)
    printer.err.print(Text(question, style="bold"), end="", soft_wrap=True)
    await anyio.wait_readable(terminal)  # a thread in input() could not be interrupted
    return os.read(terminal, 4096).decode(errors="replace").strip()


def page(
    request: ApprovalRequest,
    approval: Approval | None,
    decision: LogLine | None = None,
    *,
    is_local: bool = False,
    at_most: int | None = None,
    to_install: bool = False,
) -> Iterator[Text]:
    """Everything about one skill, line by line: its source first. What deserves a second look stands out, last.

    ``decision`` is the newest one about it, for a skill that is not approved.
    ``at_most`` is for a question: however much a server lists, what warns of it stays on the screen.
    ``to_install`` is for a skill that an agent will treat as its own: no host of ours stands between them then.
    """
    from rich.text import Text

    review = request.summary
    if not to_install:
        yield from (Text(row) for row in _source(review.text or ""))
    yield Text.assemble((_cut(review.name), "bold"), "  from ", (line(request.origin), "bold"))
    yield Text(f"  {_cut(review.description)}")
    standing = "" if to_install else _standing(request, approval, decision, is_local=is_local)
    yield from _facts(request, approval, standing)
    for title, style, rows in _sections(request, _INSTALLED if to_install else _HOSTED):
        if rows:
            yield Text(title, style=style)
            yield from (Text(f"  {_cut(row)}", style=_style(row)) for row in rows[:at_most])
            if at_most is not None and len(rows) > at_most:
                verb = "show" if to_install else "review"
                yield Text(f"  … and {len(rows) - at_most:,} more; skillwire {verb} shows all", style="bold red")
    yield Text("A digest says that bytes are the same, not that they are good (V6).", style="dim")


def source_rows(text: str) -> list[str]:
    """The lines of a text as they are written: what is not rendered, and spelled out, cannot be hidden (B6)."""
    from skillwire.cli.printer import visible

    lines = text.removesuffix("\n").split("\n") if text else []
    return [
        visible(each[start : start + _LONGEST])
        for each in (each.removesuffix("\r") for each in lines)
        for start in range(0, len(each) or 1, _LONGEST)
    ]


def _source(text: str) -> Iterator[str]:
    rows = source_rows(text)
    yield from (f"  | {row}" for row in rows[:_SOURCE_ROWS])
    if len(rows) > _SOURCE_ROWS:
        yield f"  … and {len(rows) - _SOURCE_ROWS:,} more lines; skillwire review with --file SKILL.md shows all"


def _facts(request: ApprovalRequest, approval: Approval | None, standing: str) -> Iterator[Text]:
    from rich.text import Text

    from skillwire.skill.approval import fingerprint_of
    from skillwire.skill.model import estimate_tokens

    tokens = estimate_tokens(request.entry)
    shown = {
        "uri": line(request.entry.uri),
        "fingerprint": fingerprint_of(request.entry),
        "standing": standing,
        "granted": "" if approval is None else listed(sorted(approval.grants)) or "nothing",
        "tokens": f"~{tokens.listed} to list" + ("" if tokens.loaded is None else f", ~{tokens.loaded} to load"),
    }
    for key, value in shown.items():
        if value:
            yield Text.assemble((f"  {key:12}", "dim"), value)


def _standing(
    request: ApprovalRequest, approval: Approval | None, decision: LogLine | None, *, is_local: bool
) -> str:
    from skillwire.host.approvals import declines
    from skillwire.skill.approval import covers

    if decision is not None and declines(decision, request.entry):
        note = decision.facts.get("note")
        said = f": {line(str(note))}" if note else ""
        return f"declined by {line(decision.by)} on {moment(decision.at)}{said}"
    if is_local:
        return "local: needs no approval"
    if approval is None:
        return "changed: another content was approved" if request.change else "unapproved"
    said = f"by {line(approval.by)} on {moment(approval.at)}"
    if covers(approval, request.origin, request.entry):
        return f"approved {said}"
    return f"changed: another content was approved {said}"


def _sections(request: ApprovalRequest, titles: _Titles) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Title, style, rows; what matters most comes last, where the person looks."""
    from skillwire.cli.printer import counted, size_of
    from skillwire.skill.approval import fingerprint_of

    entry, review = request.entry, request.summary
    yield f"{counted(len(entry.files), 'file')}, {size_of(entry.size)}", "bold", _files(entry)
    yield "not promised by the server", "bold yellow", review.gaps
    yield titles.nested, "bold yellow", review.nested
    yield titles.scripts, "bold yellow", review.scripts
    yield titles.wishes, "bold yellow", _wishes(review)
    yield titles.changes, "bold red", _changes(request)
    yield "TEXT THAT PEOPLE DO NOT SEE (B6)", "bold red", tuple(map(str, review.hidden))
    if request.is_unread:
        words = "its server names them when it is loaded; read it first, and you see them"
        yield "ITS FILES ARE NOT KNOWN YET (V5)", "bold red", [words]
    elif not fingerprint_of(entry):
        words = "what it says may be another thing each time it is read, and it is asked about each time"
        yield "NOTHING ABOUT IT CAN BE VERIFIED (V7)", "bold red", [words]


def _files(entry: SkillEntry) -> list[str]:
    from skillwire.cli.printer import size_of

    paths = [line(path_inside(entry.uri, file.uri)) for file in entry.files]
    width = min(max(map(len, paths), default=0), _WIDEST_PATH)
    return [
        f"{path:{width}}  {'?' if file.size is None else size_of(file.size):>9}  {file.digest or 'no digest'}"
        for path, file in zip(paths, entry.files, strict=True)
    ]


def _wishes(review: Review) -> list[str]:
    others = [key for key in review.widening if key != "allowed-tools" or not review.tools]
    return [
        *(f"tool {tool}" for tool in review.tools),
        *(f"{key}: {json.dumps(review.widening[key], ensure_ascii=False)}" for key in others),
    ]


def _changes(request: ApprovalRequest) -> list[str]:
    """Which files came, went and changed, then how their lines differ."""
    if not request.change:
        return []
    change, uri = request.change, request.entry.uri
    marked = [("+ ", change.added), ("- ", change.removed), ("~ ", change.rotated)]
    files = [f"{mark}{path_inside(uri, file)}" for mark, found in marked for file in found]
    described = ["~ the server describes the skill differently"] if change.has_other_frontmatter else []
    return [*described, *files, *(f"| {text}" for text in request.diff)]


def _style(row: str) -> str:
    """Of rows that say what changed, by their marks; others have none."""
    if row.startswith("| "):
        return _STYLES.get(row[2:3], "")
    return _STYLES.get(row[:1], "") if row[1:2] == " " else ""


def _cut(text: str) -> str:
    """A stranger's line: nothing in it acts on the terminal, and it does not fill the screen."""
    from skillwire.cli.printer import visible

    shown = visible(text[:_LONGEST].replace("\n", " "))
    return f"{shown} … and {len(text) - _LONGEST:,} characters more" if len(text) > _LONGEST else shown


def path_inside(skill: str, uri: str) -> str:
    """The path of a file inside the skill whose ``SKILL.md`` is at ``skill``."""
    from skillwire.skill.uri import parse_uri

    return "/".join(parse_uri(uri).segments[len(parse_uri(skill).segments) - 1 :])
