"""Markdown as a reader sees it: its links and its comments, not those inside code.

markdown-it-py does the reading (CommonMark). Its tokens know the line a block begins at; the exact place of a
link inside the block is found again in the text.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from skillwire.skill.hidden import HiddenText, find_comments

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.token import Token


class Link(NamedTuple):
    """A link or image: where it points, and the offset in the text where that is written."""

    target: str
    offset: int


class MarkdownFacts(NamedTuple):
    """What a check wants to know of a Markdown text."""

    links: list[Link]
    comments: list[HiddenText]


@cache
def _reader() -> MarkdownIt:
    from markdown_it import MarkdownIt  # late: 20 ms that only a check needs

    reader = MarkdownIt("commonmark")
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
    line_starts = _line_starts(text)
    links: list[Link] = []
    comments: list[HiddenText] = []
    for token in _reader().parse(text):
        if token.map is None:
            continue
        start, end = line_starts[token.map[0]], line_starts[token.map[1]]
        if token.type == "html_block":
            comments += _comments_in(text, start, end)
        elif token.type == "inline":
            links += _links_in(token.children or (), text, start, end)
            if any(child.type == "html_inline" for child in token.children or ()):
                comments += _comments_in(text, start, end)
    comments += [item for item in find_comments(text) if item.kind == "a Markdown comment"]
    return MarkdownFacts(links, comments)


def _links_in(children: Sequence[Token], text: str, start: int, end: int) -> Iterator[Link]:
    for child in children:
        target = child.attrGet("href") or child.attrGet("src")
        if isinstance(target, str):
            found = text.find(target, start, end)
            yield Link(target, found if found >= 0 else start)
        if child.children:
            yield from _links_in(child.children, text, start, end)


def _comments_in(text: str, start: int, end: int) -> Iterator[HiddenText]:
    for item in find_comments(text[start:end]):
        if item.kind == "an HTML comment":
            yield item._replace(offset=item.offset + start)


def _line_starts(text: str) -> list[int]:
    starts = [0]
    while (found := text.find("\n", starts[-1])) >= 0:
        starts.append(found + 1)
    return [*starts, len(text), len(text)]
