"""How values are stored as JSON text, the same in every database. The JSON is ASCII.

The text of a question has a size limit, which the memory store checks too.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from skillwire.catalog.listing import entry_to_document
from skillwire.errors import LimitError
from skillwire.skill.approval import Approval
from skillwire.skill.entry import DYNAMIC, Partial, Resource, SkillEntry
from skillwire.skill.hidden import HiddenFind, HiddenKind
from skillwire.store.contract import (
    LARGEST_QUESTION,
    MOST_QUESTIONS,
    Answered,
    LogLine,
    Question,
    SeenEntries,
    StoredOrigin,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillwire.skill.approval import Contents


# Origins, approvals and the log


def origin_from_row(label: str, settings: str, added_at: float) -> StoredOrigin:
    """An origin, from its label, its settings as JSON, and a time."""
    return StoredOrigin(label, json.loads(settings), added_at)


def contents_to_text(contents: Contents) -> str:
    """The content of an approval. Equal sets give equal text, so that it can be compared in a query (A1)."""
    return json.dumps(sorted(contents))


def approval_to_row(approval: Approval) -> tuple[Any, ...]:
    """The columns of an approval, in the order that ``approval_from_row`` takes."""
    contents, grants = contents_to_text(approval.contents), json.dumps(sorted(approval.grants))
    return approval.origin, approval.uri, contents, approval.by, approval.at, grants


def approval_from_row(origin: str, uri: str, contents: str, who: str, at: float, grants: str) -> Approval:
    """An approval, from its columns."""
    pairs = frozenset((file, digest) for file, digest in json.loads(contents))
    return Approval(origin, uri, pairs, who, at, frozenset(json.loads(grants)))


def line_to_row(line: LogLine) -> tuple[Any, ...]:
    """The columns of a log line, without its number, which the database assigns."""
    return line.what, line.origin, line.uri, line.by, line.at, json.dumps(dict(line.facts))


def line_from_row(what: Any, origin: str, uri: str, who: str, at: float, facts: str, number: int) -> LogLine:
    """A log line, from its columns."""
    return LogLine(what, origin, uri, who, at, json.loads(facts), number)


# Entries


def entries_to_text(entries: Iterable[SkillEntry]) -> str:
    """A whole listing."""
    return json.dumps([entry_to_document(entry) for entry in entries], separators=(",", ":"))


def seen_from_row(entries: str, at: float, is_complete: int) -> SeenEntries:
    """A listing, from its columns."""
    return SeenEntries(tuple(map(_entry_from_document, json.loads(entries))), at, bool(is_complete))


def entry_to_text(entry: SkillEntry) -> str:
    """One entry."""
    return json.dumps(entry_to_document(entry), separators=(",", ":"))


def entry_from_text(text: str) -> SkillEntry:
    """The entry that ``entry_to_text`` wrote."""
    return _entry_from_document(json.loads(text))


def _entry_from_document(document: dict[str, Any]) -> SkillEntry:
    # Not ``entry_from_document``: that function checks untrusted files, which takes most of the time, and rewrites
    # URIs. Stored entries were checked when they were received, and a program that can change them can also change
    # approvals.
    whole = "frontmatter" not in document["notPromised"]
    if document["resources"] == DYNAMIC:
        return SkillEntry(document["uri"], document["frontmatter"], DYNAMIC, whole_frontmatter=whole)
    files = tuple(Resource(file["uri"], file.get("digest"), file.get("size")) for file in document["resources"])
    resources = files if document["complete"] else Partial(files)
    return SkillEntry(document["uri"], document["frontmatter"], resources, whole_frontmatter=whole)


# Questions and answers


def question_to_text(question: Question) -> str:
    """The parts of a question that have no column; ``LimitError`` if they are too large."""
    document = {
        "entry": entry_to_document(question.entry),
        "by": question.by,
        "target": question.target,
        "hidden": question.hidden,
        "diff": question.diff,
        "lasts": question.lasts,
    }
    text = json.dumps(document, separators=(",", ":"))
    if len(text) > LARGEST_QUESTION:
        raise LimitError(
            "question-too-large",
            f"{question.entry.uri!r:.300} is too large for a question in the store",
            "approve it with: skillwire approve",
        )
    return text


def question_to_row(question: Question, text: str) -> tuple[Any, ...]:
    """The columns of a question; ``text`` is from ``question_to_text``."""
    values = (question.id, question.kind, question.origin, question.entry.uri, question.content, text)
    return (*values, question.asked_at, question.waits_until)


def question_from_row(
    key: str, kind: str, origin: str, text: str, asked_at: float, waits_until: float
) -> Question:
    """A question, from its columns. Its URI and its content are also in ``text``."""
    document: dict[str, Any] = json.loads(text)
    entry, diff = _entry_from_document(document["entry"]), tuple(document["diff"])
    by, target = document["by"], document["target"]
    finds = tuple(HiddenFind(HiddenKind(find), place, shown) for find, place, shown in document["hidden"])
    return Question(key, kind, origin, entry, by, asked_at, waits_until, target, finds, diff, document["lasts"])


def answer_to_text(answered: Answered) -> str:
    """An answer."""
    fields = ("yes", "by", "at", "remember", "note", "recorded")
    values = {name: getattr(answered, name) for name in fields}
    return json.dumps({**values, "grants": sorted(answered.grants)})


def answer_from_text(text: str) -> Answered:
    """The answer that ``answer_to_text`` wrote."""
    answered = Answered(**json.loads(text))
    return replace(answered, grants=frozenset(answered.grants))


def too_many_questions() -> LimitError:
    """The error for a question above ``MOST_QUESTIONS``."""
    return LimitError(
        "questions-too-many",
        f"{MOST_QUESTIONS} questions are already waiting for an answer",
        "answer some: skillwire ui, or skillwire approvals questions",
    )
