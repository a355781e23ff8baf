"""A model of a store, in dictionaries: a second, simple implementation that the real ones are compared with.

Facts and settings are copied as JSON, so that a caller cannot change stored values.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Unpack

from skillwire.errors import LimitError
from skillwire.skill.approval import fingerprint
from skillwire.store.records import (
    DECISIONS,
    KEPT_SECONDS,
    MOST_QUESTIONS,
    Answered,
    LogFilter,
    LogLine,
    Question,
    SeenEntries,
    StoredOrigin,
    question_row,
)
from skillwire.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillwire.skill import SkillEntry
    from skillwire.skill.approval import Approval, Contents


class ModelStore(Store):
    """Everything is in dictionaries. No method awaits anything, so each call is atomic."""

    def __init__(self) -> None:  # no database
        self._origins: dict[str, StoredOrigin] = {}
        self._entries: dict[str, SeenEntries] = {}
        self._approvals: dict[tuple[str, str], Approval] = {}
        self._log: list[LogLine] = []
        self._questions: dict[str, Question] = {}
        self._answers: dict[str, Answered] = {}
        self._version = 0

    async def put_origin(self, origin: StoredOrigin) -> None:
        self._origins[origin.label] = _copy_of_origin(origin)
        self._version += 1

    async def remove_origin(self, label: str) -> bool:
        self._version += 1
        for key in [key for key in self._entries if f"{key}#".startswith(f"{label}#")]:
            del self._entries[key]
        for key in [key for key in self._approvals if f"{key[0]}#".startswith(f"{label}#")]:
            del self._approvals[key]
        return self._origins.pop(label, None) is not None

    async def origins(self) -> Sequence[StoredOrigin]:
        return [_copy_of_origin(self._origins[label]) for label in sorted(self._origins)]

    async def put_entries(self, label: str, seen: SeenEntries) -> None:
        self._entries[label] = seen
        self._version += 1

    async def add_entry(self, label: str, entry: SkillEntry) -> None:
        seen = self._entries.get(label)
        if seen is not None:
            others = (each for each in seen.asked if each.uri != entry.uri)
            self._entries[label] = replace(seen, asked=(*others, entry))
            self._version += 1

    async def entries(self, label: str) -> SeenEntries | None:
        return self._entries.get(label)

    async def put_approval(self, approval: Approval, line: LogLine, *, after: int | None = None) -> bool:
        if after not in (None, self._newest_decision(line)):
            return False
        await self.log(line)
        self._approvals[approval.origin, approval.uri] = approval
        self._answer_all(line, approval.contents, yes=True, grants=approval.grants)
        return True

    async def put_denial(self, contents: Contents, line: LogLine, *, after: int | None = None) -> bool:
        if after not in (None, self._newest_decision(line)):
            return False
        await self.log(line)
        known = self._approvals.get((line.origin, line.uri))
        if known is not None and known.contents == contents:
            del self._approvals[line.origin, line.uri]
        self._answer_all(line, contents, yes=False)
        return True

    async def change_grants(self, approval: Approval, grants: frozenset[str], line: LogLine) -> bool:
        if self._approvals.get((approval.origin, approval.uri)) != approval:
            return False
        await self.log(line)
        self._approvals[approval.origin, approval.uri] = replace(approval, grants=grants)
        return True

    async def remove_approval(self, origin: str, uri: str, line: LogLine, *, only: Approval | None = None) -> bool:
        known = self._approvals.get((origin, uri))
        if known is None or (only is not None and known != only):
            return False
        await self.log(line)
        del self._approvals[origin, uri]
        return True

    async def approval(self, origin: str, uri: str) -> Approval | None:
        return self._approvals.get((origin, uri))

    async def approvals(self, origin: str | None = None) -> Sequence[Approval]:
        return [self._approvals[key] for key in sorted(self._approvals) if origin in (None, key[0])]

    async def log(self, line: LogLine) -> None:
        self._log.append(replace(_copy_of_line(line), number=len(self._log) + 1))
        self._version += 1

    async def log_news(self, lines: Sequence[LogLine]) -> int:
        before = len(self._log)
        for line in lines:
            newest = await self.lines(limit=1, origin=line.origin, uri=line.uri, what=(line.what,))
            if not newest or newest[0].facts != line.facts:
                await self.log(line)
        return len(self._log) - before

    async def lines(self, *, limit: int = 100, **wanted: Unpack[LogFilter]) -> Sequence[LogLine]:
        what, before = wanted.get("what"), wanted.get("before")
        by, about = wanted.get("by", "").casefold(), wanted.get("about", "").casefold()
        found = (
            line
            for line in reversed(self._log)
            if wanted.get("origin") in (None, line.origin)
            and wanted.get("uri") in (None, line.uri)
            and (what is None or line.what in what)
            and (before is None or line.number < before)
            and by in line.by.casefold()
            and about in line.uri.casefold()
        )
        return [_copy_of_line(line) for line in islice(found, max(0, min(limit, len(self._log))))]

    async def decisions(self, origin: str | None = None, uri: str | None = None) -> Sequence[LogLine]:
        newest = {
            (line.origin, line.uri): line
            for line in self._log
            if _is_decision(line) and origin in (None, line.origin) and uri in (None, line.uri)
        }
        return [_copy_of_line(newest[key]) for key in sorted(newest)]

    async def put_question(self, question: Question) -> None:
        question_row(question)  # the same size limit as in a database
        for key, known in list(self._questions.items()):
            kept = KEPT_SECONDS if key in self._answers else 0.0
            if known.waits_until + kept <= question.asked_at:
                await self.withdraw_question(key)
        if len(self._questions) - len(self._answers) >= MOST_QUESTIONS:
            raise LimitError("questions-too-many", "too many questions are waiting", "answer some")
        self._questions.setdefault(question.id, question)
        self._version += 1

    async def renew_question(self, key: str, until: float) -> bool:
        if key not in self._questions:
            return False
        self._questions[key] = replace(self._questions[key], waits_until=until)
        return True

    async def questions(self, now: float) -> Sequence[Question]:
        return sorted(
            (each for each in self._questions.values() if self._is_open(each, now)),
            key=lambda question: (question.asked_at, question.id),
        )

    async def answer_question(self, key: str, answered: Answered) -> bool:
        question = self._questions.get(key)
        if question is None or not self._is_open(question, answered.at):
            return False
        self._answers[key] = answered
        self._version += 1
        return True

    async def answer_to(self, key: str) -> Answered | None:
        return self._answers.get(key)

    async def withdraw_question(self, key: str) -> Answered | None:
        self._questions.pop(key, None)
        self._version += 1
        return self._answers.pop(key, None)

    async def version(self) -> int:
        return self._version

    async def close(self) -> None:
        """Do nothing: no file is open."""

    def _newest_decision(self, about: LogLine) -> int:
        place = about.origin, about.uri
        newest = (line for line in reversed(self._log) if _is_decision(line) and (line.origin, line.uri) == place)
        return next((line.number for line in newest), 0)

    def _is_open(self, question: Question, now: float) -> bool:
        return question.id not in self._answers and question.waits_until > now

    def _answer_all(
        self, line: LogLine, contents: Contents, *, yes: bool, grants: frozenset[str] = frozenset()
    ) -> None:
        """Answer the open questions about ``contents``."""
        note = str(line.facts.get("note", ""))
        about = ("load", line.origin, line.uri)
        for key, each in self._questions.items():
            is_about = (each.kind, each.origin, each.entry.uri) == about
            # An empty content was unknown when the question was asked (V5).
            if is_about and each.content in ("", fingerprint(contents)):
                self._answers.setdefault(key, Answered(yes, line.by, line.at, grants, note=note, recorded=True))


def _is_decision(line: LogLine) -> bool:
    is_about_reading = line.facts.get("kind", "load") in ("load", "import")
    return line.what in DECISIONS and line.by != "policy" and is_about_reading


def _copy_of_origin(origin: StoredOrigin) -> StoredOrigin:
    return replace(origin, settings=_copied(origin.settings))


def _copy_of_line(line: LogLine) -> LogLine:
    return replace(line, facts=_copied(line.facts))


def _copied(values: Mapping[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(dict(values)))
