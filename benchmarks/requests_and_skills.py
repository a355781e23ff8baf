"""The corpus in ``benchmarks/requests``, and any number of skills of the same kind.

``skills-*.jsonl`` has lines ``{"name", "description", "body"}``; ``requests-*.jsonl`` has lines ``{"request",
"skill"}``, and ``"also"`` where other skills are as right. A generated skill is about what one of these is about:
half of its words are from there, most others are words that several skills use, one in ten is of a long tail.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

PLACE = Path(__file__).parent / "requests"
_TAIL_WORDS = 60_000
_SHARED_BY = 4
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]+")


class CorpusSkill(NamedTuple):
    name: str
    description: str
    body: str

    def skill_md(self) -> str:
        return f"---\nname: {self.name}\ndescription: {json.dumps(self.description)}\n---\n\n{self.body}\n"

    def words(self) -> list[str]:
        return _WORD.findall(f"{self.description} {self.body}")


class Request(NamedTuple):
    text: str
    right: frozenset[str]


def _lines(pattern: str) -> list[dict[str, Any]]:
    texts = (path.read_text() for path in sorted(PLACE.glob(pattern)))
    return [json.loads(line) for text in texts for line in text.splitlines() if line.strip()]


def corpus_skills() -> list[CorpusSkill]:
    return [CorpusSkill(line["name"], line["description"], line["body"]) for line in _lines("skills-*.jsonl")]


def corpus_requests() -> list[Request]:
    lines = _lines("requests-*.jsonl")
    return [Request(line["request"], frozenset([line["skill"], *line.get("also", [])])) for line in lines]


class Writer:
    """Writes skills; the same ones in each run."""

    def __init__(self, skills: list[CorpusSkill], seed: int = 1) -> None:
        self._random = random.Random(seed)
        self._topics = [skill.words() for skill in skills]
        spread = Counter(word.lower() for words in self._topics for word in set(words))
        self._shared = [w for words in self._topics for w in words if spread[w.lower()] >= _SHARED_BY]
        self._tail = [f"{self._syllable()}{self._syllable()}{rank}" for rank in range(_TAIL_WORDS)]
        self._weights = list(itertools.accumulate(1 / (rank + 10) for rank in range(_TAIL_WORDS)))

    def skill(self, number: int) -> CorpusSkill:
        topic = self._random.choice(self._topics)
        name = "-".join(re.sub("[^a-z]", "", word.lower()) or "x" for word in self._random.choices(topic, k=2))
        body = self._text(topic, self._random.randint(80, 900))
        return CorpusSkill(f"{name[:50]}-{number}", self._text(topic, 30), body)

    def _text(self, topic: list[str], count: int) -> str:
        rare = self._random.choices(self._tail, cum_weights=self._weights, k=count // 10)
        shared = self._random.choices(self._shared, k=count // 2 - len(rare))
        words = rare + shared + self._random.choices(topic, k=count - count // 2)
        self._random.shuffle(words)
        return " ".join(words)

    def _syllable(self) -> str:
        return self._random.choice("bdfgklmnprstvz") + self._random.choice(("a", "e", "i", "o", "u", "ar", "en"))
