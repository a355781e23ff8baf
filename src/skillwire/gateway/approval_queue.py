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
from skillwire.host.approvals import ApprovalRequest, declines
from skillwire.host.desk import question_of
from skillwire.skill.approval import fingerprint_of

if TYPE_CHECKING:
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
