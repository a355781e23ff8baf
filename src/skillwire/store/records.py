"""What a store keeps: origins, entries last seen, approvals, questions, and a log of events; and their rows.

A question is a request for approval that another process can answer. The process that needs the approval adds the
question and renews it while it waits. The process that the user works with answers it. A decision about a content
answers every question about that content.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypedDict

from skillwire.amounts import utc_text
from skillwire.catalog.listing import entry_to_document, trusted_entry
from skillwire.errors import LimitError
from skillwire.limits import MIB
from skillwire.skill.approval import Approval, fingerprint_of
from skillwire.skill.hidden import HiddenFind, HiddenKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from skillwire.skill.approval import Contents
    from skillwire.skill.entry import SkillEntry

MOST_QUESTIONS: Final = 200
"""The number of questions that may be open at once."""
LARGEST_QUESTION: Final = 4 * MIB
"""The size of a stored question, in bytes."""
KEPT_SECONDS: Final = 3600.0
"""How long an answer is kept after its question expired."""

Happening: TypeAlias = Literal[
    "approved",
    "denied",
    "revoked",
    "enabled",
    "granted",
    "loaded",
    "read",
    "refused",
    "served",
    "origin-added",
    "origin-removed",
]


DECISIONS: Final[tuple[Happening, ...]] = ("approved", "denied", "revoked", "enabled")
"""The events in which a user decides about a skill."""


@dataclass(frozen=True, slots=True)
class StoredOrigin:
    """An origin that a user added: its label, and its settings (a folder, or an ``mcpServers`` entry)."""

    label: str
    settings: Mapping[str, Any]
    added_at: float


@dataclass(frozen=True, slots=True)
class SeenEntries:
    """The last listing of an origin.

    ``asked`` has entries that were requested later, for skills whose listed entry has less detail.
    """

    entries: tuple[SkillEntry, ...]
    at: float
    is_complete: bool = True
    asked: tuple[SkillEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class LogLine:
    """One event: its kind, the skill and its origin, the user or program that caused it, the time, and facts."""

    what: Happening
    origin: str
    uri: str
    by: str
    at: float
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    number: int = 0

    def to_json(self) -> dict[str, Any]:
        """The line as a JSON document, with its time in UTC."""
        who = {"what": self.what, "origin": self.origin, "uri": self.uri, "by": self.by}
        return {"number": self.number, "at": utc_text(self.at), **who, "facts": dict(self.facts)}


class LogFilter(TypedDict, total=False):
    """Which lines of the log: of an origin, a skill, these kinds, with a number below ``before``.

    ``by`` and ``about`` are substrings of ``LogLine.by`` and of the URI; case does not matter.
    """

    origin: str | None
    uri: str | None
    what: Collection[str] | None
    by: str
    about: str
    before: int | None


@dataclass(frozen=True, slots=True)
class Question:
    """A host's ``ApprovalRequest``, stored so that a user can answer it in another process.

    ``kind``, ``target``, ``address`` and ``lasts`` are those of the request; ``by`` is the name of the asking
    process, for display. The question expires at ``waits_until`` unless it is renewed. ``hidden`` and ``diff`` are
    findings in the content, if the asking process has read it (V5): the answering process may not be able to read
    it.
    """

    id: str
    kind: str
    origin: str
    entry: SkillEntry
    by: str
    asked_at: float
    waits_until: float
    target: str = ""
    hidden: tuple[HiddenFind, ...] = ()
    diff: tuple[str, ...] = ()
    lasts: bool = True
    address: str = ""

    @property
    def content(self) -> str:
        """The fingerprint of the content; empty if nothing about it can be verified (V7)."""
        return fingerprint_of(self.entry)


@dataclass(frozen=True, slots=True)
class Answered:
    """A user's answer to a question. ``recorded``: the store also has it as an approval or a denial."""

    yes: bool
    by: str
    at: float
    grants: frozenset[str] = frozenset()
    remember: bool = True
    note: str = ""
    recorded: bool = False


# Rows. Columns are in the order of the statements in ``store.py``. The JSON text is ASCII. Entries are not checked
# again: they were when they were received, and a program that can change them here can also change approvals.


def origin_from_row(label: str, settings: str, added_at: float) -> StoredOrigin:
    """An origin, from its columns."""
    return StoredOrigin(label, json.loads(settings), added_at)


def contents_text(contents: Contents) -> str:
    """The content of an approval. Equal sets give equal text, so that it can be compared in a query (A1)."""
    return json.dumps(sorted(contents))


def approval_row(approval: Approval) -> tuple[Any, ...]:
    """The columns of an approval."""
    contents, grants = contents_text(approval.contents), json.dumps(sorted(approval.grants))
    return approval.origin, approval.uri, contents, approval.by, approval.at, grants


def approval_from_row(origin: str, uri: str, contents: str, who: str, at: float, grants: str) -> Approval:
    """An approval, from its columns."""
    pairs = frozenset((file, digest) for file, digest in json.loads(contents))
    return Approval(origin, uri, pairs, who, at, frozenset(json.loads(grants)))


def line_row(line: LogLine) -> tuple[Any, ...]:
    """The columns of a log line, without its number, which the database assigns."""
    kind = str(line.facts.get("kind", ""))  # of the request that a decision answers
    return line.what, line.origin, line.uri, line.by, line.at, json.dumps(dict(line.facts)), kind


def line_from_row(what: Any, origin: str, uri: str, who: str, at: float, facts: str, number: int) -> LogLine:
    """A log line, from its columns."""
    return LogLine(what, origin, uri, who, at, json.loads(facts), number)


def entries_text(entries: Iterable[SkillEntry]) -> str:
    """A whole listing."""
    return json.dumps([entry_to_document(entry) for entry in entries], separators=(",", ":"))


def seen_from_row(entries: str, at: float, is_complete: int) -> SeenEntries:
    """A listing, from its columns."""
    return SeenEntries(tuple(map(trusted_entry, json.loads(entries))), at, bool(is_complete))


def entry_text(entry: SkillEntry) -> str:
    """One entry."""
    return json.dumps(entry_to_document(entry), separators=(",", ":"))


def entry_from_text(text: str) -> SkillEntry:
    """The entry that ``entry_text`` wrote."""
    return trusted_entry(json.loads(text))


def question_row(question: Question) -> tuple[Any, ...]:
    """The columns of a question; ``LimitError`` if it is too large."""
    document = {
        "entry": entry_to_document(question.entry),
        "by": question.by,
        "target": question.target,
        "hidden": question.hidden,
        "diff": question.diff,
        "lasts": question.lasts,
        "address": question.address,
    }
    text = json.dumps(document, separators=(",", ":"))
    if len(text) > LARGEST_QUESTION:
        raise LimitError(
            "question-too-large",
            f"{question.entry.uri!r:.300} is too large for a question in the store",
            "approve it with: skillwire approve",
        )
    values = (question.id, question.kind, question.origin, question.entry.uri, question.content, text)
    return (*values, question.asked_at, question.waits_until)


def question_from_row(
    key: str, kind: str, origin: str, text: str, asked_at: float, waits_until: float
) -> Question:
    """A question, from its columns. Its URI and its content are also in ``text``."""
    document: dict[str, Any] = json.loads(text)
    document["entry"], document["diff"] = trusted_entry(document["entry"]), tuple(document["diff"])
    document["hidden"] = tuple(HiddenFind(HiddenKind(find), *rest) for find, *rest in document["hidden"])
    return Question(key, kind, origin, asked_at=asked_at, waits_until=waits_until, **document)


def answer_text(answered: Answered) -> str:
    """An answer."""
    return json.dumps({**asdict(answered), "grants": sorted(answered.grants)})


def answer_from_text(text: str) -> Answered:
    """The answer that ``answer_text`` wrote."""
    answered = Answered(**json.loads(text))
    return replace(answered, grants=frozenset(answered.grants))
