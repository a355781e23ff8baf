"""What clients want and nobody said yes to, asked of whoever looks at the questions of this host (A1, V5).

A client whose person cannot be asked is told so at once, and nobody waits: the question stands in the store for a
while, longer if somebody wants the skill again, and a yes to it is an approval like any other.

- One question for each skill, about its content as it is now. What was declined there is not asked about again.
- However many clients want however much, only so many questions are open, and a skill is looked at once a minute.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, NamedTuple

import anyio

from skillwire.errors import SkillwireError
from skillwire.host.approvals import ApprovalRequest, declines
from skillwire.host.desk import question_of
from skillwire.skill.review import review_entry

if TYPE_CHECKING:
    from skillwire.skill import SkillEntry
    from skillwire.store.contract import Store

LIVES_SECONDS = 900.0
_PAUSE_SECONDS = 60.0
_MOST_ASKED = 50
_MOST_WAITING = 100

log = logging.getLogger("skillwire.gateway")


class Wish(NamedTuple):
    """A skill that a client wants."""

    label: str
    entry: SkillEntry
    content: str
    who: str


class _Asked(NamedTuple):
    content: str
    question: str
    at: float


class Wishes:
    """Puts what ``note`` was told as questions into ``store``, while ``run`` runs."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._asked: dict[tuple[str, str], _Asked] = {}
        self._waiting: dict[tuple[str, str], Wish] = {}
        self._news = anyio.Event()

    def note(self, wish: Wish) -> None:
        """A client wants this."""
        key = wish.label, wish.entry.uri
        asked = self._asked.get(key)
        is_recent = asked is not None and asked.content == wish.content and _age(asked) < _PAUSE_SECONDS
        if not is_recent and len(self._waiting) < _MOST_WAITING:
            self._waiting[key] = wish
            self._news.set()

    async def run(self) -> None:
        """Ask about what was noted, until cancelled."""
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            while self._waiting:
                key, wish = self._waiting.popitem()
                try:
                    await self._ask(key, wish)
                except SkillwireError as error:
                    log.info("nobody could be asked about %r: %s", wish.entry.uri[:200], error.message)

    async def is_declined(self, label: str, entry: SkillEntry) -> bool:
        """Whether whoever decides for this host said no to the skill as it is now."""
        return any(declines(line, entry) for line in await self._store.decisions(label, entry.uri))

    async def _ask(self, key: tuple[str, str], wish: Wish) -> None:
        if await self.is_declined(wish.label, wish.entry) or await self._renewed(key, wish):
            return
        self._asked = {key: asked for key, asked in self._asked.items() if _age(asked) < LIVES_SECONDS}
        if len(self._asked) >= _MOST_ASKED:
            log.info("too many skills are asked about: %r is not, for now", wish.entry.uri[:200])
            return
        request = ApprovalRequest("load", wish.label, wish.entry, review_entry(wish.entry))
        question = question_of(request, f"gateway, for {wish.who}", seconds=LIVES_SECONDS)
        await self._store.put_question(question)
        self._asked[key] = _Asked(wish.content, question.id, time.monotonic())

    async def _renewed(self, key: tuple[str, str], wish: Wish) -> bool:
        """Whether the question waits and was given more time; one about another content is taken back."""
        asked = self._asked.pop(key, None)
        if asked is None:
            return False
        is_open = asked.content == wish.content and await self._store.answer_to(asked.question) is None
        if is_open and await self._store.renew_question(asked.question, time.time() + LIVES_SECONDS):
            self._asked[key] = asked._replace(at=time.monotonic())
            return True
        await self._store.withdraw_question(asked.question)
        return False


def _age(asked: _Asked) -> float:
    return time.monotonic() - asked.at
