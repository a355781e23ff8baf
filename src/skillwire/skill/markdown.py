"""Markdown as a reader sees it: its links and its comments, not those inside code.

markdown-it-py does the reading (CommonMark). Its tokens know the lines of a block; the exact place of a link or
comment inside the block is found again in the text. The reader gives up on what nests absurdly deep; then the
text is searched plainly instead, since hiding behind depth must not work (B6).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from skillwire.skill.hidden import HiddenText, find_html_comments, find_markdown_comments

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_MAX_NESTING = 20  # the reader's own bound; work grows with it
_MAX_BRACKETS = 10  # open at once in a paragraph, before the reader's work grows out of hand
_MAX_READ = 256 * 1024
_LINE_END = re.compile(r"\r\n|\r|\n")
_BRACKETS = re.compile(r"[\[\]]|\n[ \t]*\r?\n")  # or the end of a paragraph
_PLAIN_LINK = re.compile(r"\]\(\s*<?([^\s()<>]+)")


class Link(NamedTuple):
    """A link or image: where it points, the offset in the text where that is written, and its words if known."""

    target: str
    offset: int
    words: str = ""


class MarkdownFacts(NamedTuple):
    """What a check wants to know of a Markdown text."""

    links: list[Link]
    comments: list[HiddenText]


@cache
def _reader() -> MarkdownIt:
    from markdown_it import MarkdownIt  # late: 20 ms that only a check needs

    reader = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING})
    # Links are wanted as written, also those that a renderer would refuse (file:, javascript:).
    reader.normalizeLink = _as_written
    reader.validateLink = _any_link
    return reader


def _as_written(url: str) -> str:
    return url


def _any_link(url: str) -> bool:  # noqa: ARG001 - the signature is markdown-it's
    return True


def read_markdown(text: str) -> MarkdownFacts:
    """The links and comments of ``text``, with their places."""
    if "[" not in text and "<" not in text:  # neither link nor comment: most files, and reading costs
        return MarkdownFacts([], [])
    if not is_tame(text):
        return _search_plainly(text)
    tokens = _reader().parse(text)
    if any(token.level >= _MAX_NESTING - 2 for token in tokens):
        return _search_plainly(text)
    starts = [0, *(match.end() for match in _LINE_END.finditer(text)), len(text), len(text)]
    facts = MarkdownFacts([], [])
    visible_code: list[tuple[int, int]] = []
    for token in tokens:
        if token.map is None:
            continue
        start, end = starts[token.map[0]], starts[token.map[1]]
        if token.type == "html_block":
            facts.comments.extend(_shifted(find_html_comments(text[start:end]), start))
        elif token.type == "inline":
            _Inline(text, start, end, facts).read(token.children or ())
        elif token.type in ("fence", "code_block"):
            visible_code.append((start, end))
    for comment in find_markdown_comments(text):
        before = bisect_right(visible_code, (comment.offset, len(text))) - 1
        if before < 0 or comment.offset >= visible_code[before][1]:
            facts.comments.append(comment)
    return facts


def is_tame(text: str) -> bool:
    """Whether reading ``text`` as Markdown takes a bounded time: it is not huge, nor nested out of hand."""
    return len(text) <= _MAX_READ and _bracket_depth(text) <= _MAX_BRACKETS


class _Inline:
    """Goes through the pieces of one block, and through the text beside them, so that each has its own place."""

    def __init__(self, text: str, start: int, end: int, facts: MarkdownFacts) -> None:
        self._text = text
        self._at = start
        self._end = end
        self._facts = facts

    def read(self, pieces: Sequence[Token]) -> None:
        closing: list[tuple[str, list[str]]] = []
        for piece in pieces:
            if piece.type == "html_inline":
                start = self._find(piece.content)
                self._facts.comments.extend(_shifted(find_html_comments(piece.content), start))
            elif piece.type == "image":
                self.read(piece.children or ())
                self._link(str(piece.attrGet("src") or ""), piece.content)
            elif piece.type == "link_open":
                closing.append((str(piece.attrGet("href") or ""), []))
            elif piece.type == "link_close" and closing:
                target, words = closing.pop()
                self._link(target, "".join(words))
            elif piece.type in ("text", "code_inline") and piece.content:
                self._find(piece.content)
                if closing:
                    closing[-1][1].append(piece.content)
            elif piece.type in ("softbreak", "hardbreak") and closing:
                closing[-1][1].append(" ")

    def _link(self, target: str, words: str) -> None:
        """A link's target is written after its words, unless it is a reference or stands in ``<>``."""
        if not target:
            return
        found = self._text.find(target, self._at, self._end)
        if found >= 0:
            self._at = found + len(target)
        self._facts.links.append(Link(target, found if found >= 0 else self._at, words))

    def _find(self, content: str) -> int:
        found = self._text.find(content, self._at, self._end)
        if found < 0:
            return self._at
        self._at = found + len(content)
        return found


def _bracket_depth(text: str) -> int:
    """How many brackets are open at once in a paragraph, at the most."""
    depth = deepest = 0
    for piece in _BRACKETS.findall(text):
        depth = depth + 1 if piece == "[" else max(depth - 1, 0) if piece == "]" else 0
        deepest = max(deepest, depth)
    return deepest


def _search_plainly(text: str) -> MarkdownFacts:
    links = [Link(match.group(1), match.start(1)) for match in _PLAIN_LINK.finditer(text)]
    return MarkdownFacts(links, [*find_html_comments(text), *find_markdown_comments(text)])


def _shifted(items: Iterator[HiddenText], by: int) -> Iterator[HiddenText]:
    for item in items:
        yield item._replace(offset=item.offset + by)
