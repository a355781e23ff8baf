"""Questions to the operator about skills that clients request and whose user cannot be asked (A1, V5).

They are answered in ``skillwire ui`` or with ``skillwire approve``. Each skill has one question, about its current
content. It stays open for a while, longer if the skill is requested again. Declined content is not asked about
again. The number of open questions is limited, and a skill is looked at once a minute, however often it is
requested. A task writes them, so that no request waits for the store.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, NamedTuple

import anyio

from skillwire.errors import SkillwireError
from skillwire.host.approvals import declines
from skillwire.host.desk import question_of
from skillwire.skill.approval import fingerprint_of

if TYPE_CHECKING:
    from skillwire.host.approvals import ApprovalRequest
    from skillwire.skill import SkillEntry
    from skillwire.store.store import Store

QUESTION_SECONDS = 900.0
_PAUSE_SECONDS = 60.0
_MAX_QUESTIONS = 50
_MAX_REQUESTED = 100

log = logging.getLogger("skillwire.gateway")


def content_name(entry: SkillEntry) -> str:
    """The fingerprint of the content that an entry promises; ``"dynamic"`` if it promises none."""
    return fingerprint_of(entry) or "dynamic"


class _Question(NamedTuple):
    """An open question: the content that it is about, and when it was created or renewed."""

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
        self._waiting: dict[tuple[str, str], tuple[ApprovalRequest, str]] = {}
        self._wake = anyio.Event()

    def add(self, request: ApprovalRequest, requester: str) -> None:
        """Add a skill that a subject or client requested, unless there is a recent question about its content."""
        key = request.origin, request.entry.uri
        known = self._questions.get(key)
        if known is not None and known.age < _PAUSE_SECONDS and known.content == content_name(request.entry):
            return
        if len(self._waiting) < _MAX_REQUESTED:
            self._waiting[key] = request, requester
            self._wake.set()

    async def run(self) -> None:
        """Create questions until cancelled."""
        while True:
            await self._wake.wait()
            self._wake = anyio.Event()
            while self._waiting:
                key, (request, requester) = self._waiting.popitem()
                try:
                    await self._ask(key, request, requester)
                except SkillwireError as error:
                    log.info("no question about %r was created: %s", request.entry.uri[:200], error.message)

    async def is_declined(self, label: str, entry: SkillEntry) -> bool:
        """Whether the operator declined the skill with its current content."""
        return any(declines(line, entry) for line in await self._store.decisions(label, entry.uri))

    async def _ask(self, key: tuple[str, str], request: ApprovalRequest, requester: str) -> None:
        entry, content = request.entry, content_name(request.entry)
        if await self.is_declined(request.origin, entry) or await self._renew(key, content):
            return
        self._questions = {key: each for key, each in self._questions.items() if each.age < QUESTION_SECONDS}
        if len(self._questions) >= _MAX_QUESTIONS:
            log.info("too many open questions; none was created about %r", entry.uri[:200])
            return
        question = question_of(request, f"gateway, for {requester}", seconds=QUESTION_SECONDS)
        await self._store.put_question(question)
        self._questions[key] = _Question(content, question.id, time.monotonic())

    async def _renew(self, key: tuple[str, str], content: str) -> bool:
        """Whether the open question got more time. A question about other content is withdrawn."""
        question = self._questions.pop(key, None)
        if question is None:
            return False
        is_open = question.content == content and await self._store.answer_to(question.id) is None
        if is_open and await self._store.renew_question(question.id, time.time() + QUESTION_SECONDS):
            self._questions[key] = question._replace(renewed_at=time.monotonic())
            return True
        await self._store.withdraw_question(question.id)
        return False
