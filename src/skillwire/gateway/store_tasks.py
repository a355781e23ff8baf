"""Three tasks between the gateway and its store, so that no request waits for the store.

- ``ApprovalView`` keeps the approvals in memory. ``skillwire approve`` and ``skillwire approvals`` write to the
  same store from other processes, so it reads the store every second. Before a request is declined because an
  approval is missing, it reads the store at once.
- ``ApprovalQueue`` creates questions for skills that clients request and whose user cannot be asked (A1, V5). They
  are answered in ``skillwire ui`` or with ``skillwire approve``. Each skill has one question, about its current
  content. It stays open for a while, longer if the skill is requested again. Declined content is not asked about
  again. The number of open questions is limited, and a skill is looked at once a minute, however often it is
  requested.
- ``AuditLog`` records which content of which skill was served, once for each content. If too many records wait, a
  skill is recorded when it is served again.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, NamedTuple

import anyio

from skillwire.errors import SkillwireError, StoreError
from skillwire.host.approvals import ApprovalRequest, declines
from skillwire.host.desk import question_of
from skillwire.skill.approval import fingerprint_of
from skillwire.store.contract import LogLine

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillwire.skill import SkillEntry
    from skillwire.skill.approval import Approval
    from skillwire.store.contract import Store

_REFRESH_SECONDS = 1.0

QUESTION_SECONDS = 900.0
_PAUSE_SECONDS = 60.0
_MAX_QUESTIONS = 50
_MAX_REQUESTED = 100

_MAX_WAITING = 10_000
_MAX_KNOWN = 100_000
_BATCH = 100  # records in one transaction, so that other writers get their turn
_DELAY_SECONDS = 0.2  # to collect more records; responses come before records

log = logging.getLogger("skillwire.gateway")


class ApprovalView:
    """The approvals in ``store``. ``generation`` grows whenever one was added, changed or removed."""

    def __init__(self, store: Store) -> None:
        self.generation = 0
        self._store = store
        self._approvals: dict[tuple[str, str], Approval] = {}
        self._listeners: list[Callable[[], None]] = []

    def approval(self, origin: str, uri: str) -> Approval | None:
        """The approval of one skill, for any content."""
        return self._approvals.get((origin, uri))

    def listen(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` after each change."""
        self._listeners.append(listener)

    async def refresh(self) -> None:
        """Read the store. If that fails, the last known approvals stay in force."""
        try:
            approvals = {(each.origin, each.uri): each for each in await self._store.approvals()}
        except StoreError as error:
            log.warning("approvals cannot be read, so the last known ones stay in force: %s", error.message)
            return
        if approvals != self._approvals:
            self._approvals = approvals
            self.generation += 1
            for listener in self._listeners:
                listener()

    async def run(self) -> None:
        """Refresh every second until cancelled."""
        while True:
            await self.refresh()
            await anyio.sleep(_REFRESH_SECONDS)


class RequestedSkill(NamedTuple):
    """A skill that a client requested. ``content`` is its content name, ``requester`` the subject or client.

    ``address`` is where its upstream is.
    """

    label: str
    entry: SkillEntry
    content: str
    requester: str
    address: str = ""


class _Question(NamedTuple):
    content: str
    id: str
    renewed_at: float

    @property
    def age(self) -> float:
        return time.monotonic() - self.renewed_at


class ApprovalQueue:
    """Creates questions in ``store`` for the skills that ``add`` collects, while ``run`` runs."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._questions: dict[tuple[str, str], _Question] = {}  # by label and URI
        self._waiting: dict[tuple[str, str], RequestedSkill] = {}
        self._wake = anyio.Event()

    def add(self, skill: RequestedSkill) -> None:
        """Add a skill, unless there is a recent question about the same content."""
        key = skill.label, skill.entry.uri
        question = self._questions.get(key)
        is_recent = question is not None and question.content == skill.content and question.age < _PAUSE_SECONDS
        if not is_recent and len(self._waiting) < _MAX_REQUESTED:
            self._waiting[key] = skill
            self._wake.set()

    async def run(self) -> None:
        """Create questions until cancelled."""
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            while self._waiting:
                key, skill = self._waiting.popitem()
                try:
                    await self._ask(key, skill)
                except SkillwireError as error:
                    log.info("no question about %r was created: %s", skill.entry.uri[:200], error.message)

    async def is_declined(self, label: str, entry: SkillEntry) -> bool:
        """Whether the operator declined the skill with its current content."""
        return any(declines(line, entry) for line in await self._store.decisions(label, entry.uri))

    async def _ask(self, key: tuple[str, str], skill: RequestedSkill) -> None:
        if await self.is_declined(skill.label, skill.entry) or await self._renew(key, skill):
            return
        self._questions = {key: each for key, each in self._questions.items() if each.age < QUESTION_SECONDS}
        if len(self._questions) >= _MAX_QUESTIONS:
            log.info("too many open questions; none was created about %r", skill.entry.uri[:200])
            return
        request = ApprovalRequest("load", skill.label, skill.entry, address=skill.address)
        question = question_of(request, f"gateway, for {skill.requester}", seconds=QUESTION_SECONDS)
        await self._store.put_question(question)
        self._questions[key] = _Question(skill.content, question.id, time.monotonic())

    async def _renew(self, key: tuple[str, str], skill: RequestedSkill) -> bool:
        """Whether the open question got more time. A question about other content is withdrawn."""
        question = self._questions.pop(key, None)
        if question is None:
            return False
        is_open = question.content == skill.content and await self._store.answer_to(question.id) is None
        if is_open and await self._store.renew_question(question.id, time.time() + QUESTION_SECONDS):
            self._questions[key] = question._replace(renewed_at=time.monotonic())
            return True
        await self._store.withdraw_question(question.id)
        return False


class AuditLog:
    """Writes what ``record`` collects to the log of ``store``. The store ignores content that it has recorded."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[tuple[str, str], SkillEntry] = {}  # by label and URI: the entry that was recorded last
        self._waiting: dict[tuple[str, str], SkillEntry] = {}
        self._wake = anyio.Event()
        self._writing = anyio.Lock()

    def record(self, label: str, entry: SkillEntry) -> None:
        """Record that a skill is served."""
        key = (label, entry.uri)
        if self._known.get(key) is entry or len(self._waiting) >= _MAX_WAITING:
            return
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()  # repeated records are harmless: the store ignores them
        self._known[key] = self._waiting[key] = entry
        self._wake.set()

    async def run(self) -> None:
        """Write records until cancelled."""
        while True:
            await self._wake.wait()
            await anyio.sleep(_DELAY_SECONDS)
            self._wake = anyio.Event()
            await self.flush()

    async def flush(self) -> None:
        """Write all records that wait."""
        async with self._writing:
            while self._waiting:
                batch = [self._waiting.popitem() for _ in range(min(len(self._waiting), _BATCH))]
                try:
                    await self._store.log_news([_log_line(label, entry) for (label, _), entry in batch])
                except Exception as error:  # a gateway must not stop because its log cannot be written
                    is_expected = isinstance(error, StoreError)
                    log.warning("served skills could not be logged: %s", error, exc_info=not is_expected)
                    for key, entry in batch:  # record them when they are served again
                        if self._known.get(key) is entry:
                            del self._known[key]


def content_name(entry: SkillEntry) -> str:
    """The fingerprint of the content that an entry promises; ``"dynamic"`` if it promises none."""
    return fingerprint_of(entry) or "dynamic"


def _log_line(label: str, entry: SkillEntry) -> LogLine:
    facts = {"fingerprint": content_name(entry), "files": len(entry.files)}
    return LogLine("served", label, entry.uri, "gateway", time.time(), facts)
