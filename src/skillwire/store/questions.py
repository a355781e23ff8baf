"""What a store on disk says to SQLite about questions (see ``rows.py``)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from skillwire.catalog.listing import entry_to_document
from skillwire.errors import LimitError
from skillwire.skill.hidden import HiddenFind, HiddenKind
from skillwire.store.contract import (
    LARGEST_QUESTION,
    MOST_QUESTIONS,
    Answered,
    Question,
)
from skillwire.store.rows import to_entry

OPEN_QUESTIONS = (
    "SELECT id, kind, origin, question, asked_at, waits_until FROM questions"
    " WHERE answer IS NULL AND waits_until > ? ORDER BY asked_at, id"
)
RENEW = "UPDATE questions SET waits_until = ? WHERE id = ?"
ANSWER = "UPDATE questions SET answer = ? WHERE id = ? AND answer IS NULL AND waits_until > ?"
ANSWER_ALL = (
    "UPDATE questions SET answer = ?"
    " WHERE answer IS NULL AND kind = 'load' AND origin = ? AND uri = ? AND content IN (?, '')"
)
GIVEN = "SELECT answer FROM questions WHERE id = ? AND answer IS NOT NULL"
WITHDRAW = "DELETE FROM questions WHERE id = ?"
FORGET = "DELETE FROM questions WHERE waits_until <= ? AND (answer IS NULL OR waits_until <= ?)"
COUNT = "SELECT count(*) FROM questions WHERE answer IS NULL"
PUT = (
    "INSERT OR IGNORE INTO questions (id, kind, origin, uri, content, question, asked_at, waits_until)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)


def values_of(question: Question, text: str) -> tuple[Any, ...]:
    """A row of ``questions``."""
    values = (question.id, question.kind, question.origin, question.entry.uri, question.content, text)
    return (*values, question.asked_at, question.waits_until)


def question_as_text(question: Question) -> str:
    """All of it that has no column; ``LimitError`` if that is too much."""
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
            f"{question.entry.uri!r:.300} has too much to it to be asked about elsewhere",
            "approve it with: skillwire approve",
        )
    return text


def to_question(key: str, kind: str, origin: str, text: str, asked_at: float, waits_until: float) -> Question:
    """The question of a row."""
    document: dict[str, Any] = json.loads(text)
    entry, hidden, diff = to_entry(document["entry"]), document["hidden"], tuple(document["diff"])
    by, target = document["by"], document["target"]
    finds = tuple(HiddenFind(HiddenKind(find), place, says) for find, place, says in hidden)
    return Question(key, kind, origin, entry, by, asked_at, waits_until, target, finds, diff, document["lasts"])


def answer_as_text(answered: Answered) -> str:
    """An answer for a column."""
    fields = ("yes", "by", "at", "remember", "note", "recorded")
    values = {name: getattr(answered, name) for name in fields}
    return json.dumps({**values, "grants": sorted(answered.grants)})


def to_answered(text: str) -> Answered:
    """The answer of a row."""
    answered = Answered(**json.loads(text))
    return replace(answered, grants=frozenset(answered.grants))


def too_many() -> LimitError:
    """Nobody answers so many."""
    return LimitError(
        "questions-too-many",
        f"{MOST_QUESTIONS} questions wait for a person already",
        "answer some: skillwire ui, or skillwire questions",
    )
