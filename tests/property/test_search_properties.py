"""No query whatsoever raises, whatever a skill says; every skill is found by its own name."""

from __future__ import annotations

import anyio
from hypothesis import example, given
from hypothesis import strategies as st

from property.budget import FEWER
from rules import rule
from skillwire import MemoryCatalog, Skill
from skillwire.search.fts5 import Document, Engine
from skillwire.search.index import SearchIndex
from skillwire.search.text import MAX_SNIPPET, parse_query
from trees import skill_md

ANY_TEXT = st.text(st.characters(), max_size=80)  # lone surrogates too: JSON can carry them
SYNTAX = st.lists(
    st.sampled_from(
        ["NEAR", "(", ")", '"', "*", "-", "+", ":", "^", "{", "}", "AND", "OR", "NOT", "name", "body", ",", "a",
         "\x00", "\x01", " ", "%", "_", "'", ";", "--", "退", "款", "é", "🎉", "\u200b", "\u0301", "\ud800", "İ",
         "pdf", "ß"]
    ),
    max_size=40,
).map("".join)  # fmt: skip
NAMES = st.from_regex(r"[a-z0-9]{1,8}(-[a-z0-9]{1,8}){0,3}", fullmatch=True)
WORDY = st.sampled_from(
    ["the", "and", "how-to", "do-it", "a-b", "not", "near", "or", "x", "to-do", "pdf", "the-pdf"]
)


@rule("B6")
@FEWER
@given(st.lists(st.one_of(ANY_TEXT, SYNTAX), min_size=1, max_size=3), st.one_of(ANY_TEXT, SYNTAX))
@example(["a"], 'NEAR("a" b*)')
@example(["a"], "x" * 100_000)
@example(["a " * 4_000], "a " * 1_000)
def test_no_query_and_no_text_raises(texts: list[str], query: str) -> None:
    """What a server sends is text, whatever it looks like."""
    engine = Engine()
    try:
        engine.put(Document(str(n), str(n), text, text, text) for n, text in enumerate(texts))
        for asked in (query, *texts):
            for found in engine.search(parse_query(asked), 5):
                original = texts[int(found.uri)]
                assert (found.name, found.description) == (original, original)
                assert len(found.snippet) <= MAX_SNIPPET
                assert found.snippet.isprintable() or not original.isprintable()
    finally:
        engine.close()


@FEWER
@given(st.lists(st.one_of(NAMES, WORDY), min_size=1, max_size=12, unique=True))
def test_every_skill_is_found_first_by_its_own_name(names: list[str]) -> None:
    catalog = MemoryCatalog([Skill(name, {"SKILL.md": skill_md(f'"{name}"', "the pdf and x")}) for name in names])

    async def find() -> list[str]:
        index = SearchIndex(catalog)
        try:
            return [(await index.search(name, 1))[0].name for name in names]
        finally:
            index.close()

    assert anyio.run(find) == names
