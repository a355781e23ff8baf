"""Finds the links of Markdown, and the text that a rendered page does not display (B6). Code displays everything.

markdown-it-py parses the text (CommonMark). Its tokens have the lines of a block; the exact offset of a link or a
tag inside the block is searched in the text. Text that is huge or very deeply nested is not parsed, but searched
with regular expressions, and this is reported, so that deep nesting cannot hide text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from html import unescape
from html.entities import html5
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from skillwire.skill.coreyaml import find_comments
from skillwire.skill.frontmatter import find_frontmatter
from skillwire.skill.hidden import (
    HiddenKind,
    HiddenText,
    find_hidden_characters,
    one_line,
    without_hidden,
)
from skillwire.skill.hidden_html import (
    count_name_parts,
    count_words,
    find_hidden_html,
    has_address_words,
)
from skillwire.skill.uri import SKILL_MD

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.rules_core.state_core import StateCore
    from markdown_it.token import Token

_MAX_NESTING = 20  # limit of the parser, whose work grows with it
_MAX_BRACKETS = 10  # open at once in a paragraph; the parser's work grows quickly with more
_MAX_READ = 256 * 1024
_LINE_END = re.compile(r"\r\n|\r|\n")
_BRACKETS = re.compile(r"[\[\]]|\n[ \t]*\r?\n")  # or the end of a paragraph
_PLAIN_LINK = re.compile(r"\]\(\s*<?([^\s()<>]+)")
_PLAIN_EMPTY = re.compile(r"(?<!!)\[\s*+\]\(([^()\n]++)\)")
_FENCE = re.compile(r"(?<![`~])(?:```|~~~)[`~]*+[ \t]*+([^\s`][^\n`]*+)")
_MARKUP = re.compile(r"[\[<]|&[#\w]|\|")  # begins a link, or something that can hide text
_INLINE_MARKUP = re.compile(r"[\[<&]")  # the same inside a paragraph
_NOTE = re.compile(r"\[\^[^\]\s]{1,99}\]")
_NOTE_START = re.compile(r"^(?=\[\^[^\]\s]{1,99}\]:)", re.MULTILINE)
_NOTE_PIECES = {"softbreak": "\n", "hardbreak": "\n", "link_open": "[", "link_close": "]"}
_BLANK_CODES = [code for code in range(0x3001) if chr(code).isspace()]
_BLANK_ENTITIES = "|".join(
    (
        *(name.removesuffix(";") for name, value in html5.items() if value.isspace()),
        *(f"#0*{code}|#[xX]0*(?i:{code:x})" for code in _BLANK_CODES),
    )
)
# Blanks, and text behind them that may be beyond the right edge of every window.
_FAR = re.compile(rf"(?<![^\S\n])(?:[^\S\n]|&(?:{_BLANK_ENTITIES});){{100,}}+([^\n]{{0,400}})")
# A quick test: 100 of them need 20 spaces in a row, another kind of blank, or five entities.
_GAP = re.compile(r"[ ]{20}|[^\S\n ]")
_FEW_ENDS = 3
_MANY_ENDS = 20
_COLUMNS = re.compile(r"[ \t]*+\|?[ \t]*+:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+\|?[ \t]*+")
_CELL_END = re.compile(r"(?<!\\)\|")
_MANY_WORDS = 3
_MORE_WORDS = 4
_MOST_WORDS = 6
_SETTING = re.compile(r"""[\w-]++=(?:"[^"]*+"|'[^']*+'|\S*)""")
_PLAIN_LABEL = re.compile(r"\[([^\[\]]{1,999})\]")
_PLAIN_DEFINITION = re.compile(r"^[ \t>]*\[([^\[\]]{1,999})\]:.*(?:\n[^\n\[]+)*", re.MULTILINE)
_IMAGE = "\ufffc"  # stands for an image without text


class Link(NamedTuple):
    """A link or image: its target, the offset of the target in the text, and its text if known."""

    target: str
    offset: int
    words: str = ""


class MarkdownFacts(NamedTuple):
    """The links and the hidden text of a file."""

    links: list[Link]
    hidden: list[HiddenText]


@cache
def _reader() -> MarkdownIt:
    from markdown_it import MarkdownIt  # late: takes 20 ms, and only checks need it

    reader = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING, "store_labels": True})
    # Links are kept as written, including those that a renderer would refuse (file:, javascript:).
    reader.normalizeLink = lambda url: url
    reader.validateLink = lambda url: True  # noqa: ARG005 - the signature is markdown-it's
    reader.core.ruler.at("inline", _parse_inline)
    return reader


def _parse_inline(state: StateCore) -> None:
    """Parse the text of blocks with links or HTML. Parsing all blocks would take twice the time."""
    for token in state.tokens:
        if token.type == "inline":
            token.children = []
            if _INLINE_MARKUP.search(token.content):
                state.md.inline.parse(token.content, state.md, state.env, token.children)


def read_text(file: str, text: str) -> MarkdownFacts:
    """The links of a skill's file, if it is Markdown, and all hidden text in it, in order (B6)."""
    facts = MarkdownFacts([], [])
    if file.lower().endswith((".md", ".markdown")):
        start, end, body = _frontmatter(text) if file == SKILL_MD else (0, 0, 0)
        # The frontmatter is blanked, because YAML is not Markdown. The offsets stay the same.
        facts = read_markdown(re.sub(r"[^\n]", " ", text[:body]) + text[body:])
        for offset, comment in find_comments(text[start:end]):
            facts.hidden.append(HiddenText(HiddenKind.YAML_COMMENT, start + offset, one_line(comment)))
        for match in _FAR.finditer(text) if text.count("&") >= 5 or _GAP.search(text) else ():
            if match[1].strip():
                facts.hidden.append(HiddenText(HiddenKind.FAR, match.start(), one_line(match[1])))
        facts.hidden.extend(_line_ends(text))
    facts.hidden.extend(find_hidden_characters(text))
    facts.hidden.sort(key=lambda item: item.offset)
    return facts


def read_markdown(text: str) -> MarkdownFacts:
    """The links of ``text``, and the text that a rendered page does not display, with offsets."""
    if not _MARKUP.search(text) and not any(_hidden_info(text)):
        return MarkdownFacts([], [])
    if not is_tame(text):
        return _search_plainly(text)
    env: dict[str, Any] = {}
    tokens = _reader().parse(text, env)
    starts = [0, *(match.end() for match in _LINE_END.finditer(text)), len(text), len(text)]
    found = _Found()
    notes = _Notes(env.get("references", {}))
    for token in tokens:
        if token.level >= _MAX_NESTING - 2:
            return _search_plainly(text)
        if token.map is None:
            continue
        start, end = starts[token.map[0]], starts[token.map[1]]
        if token.type == "html_block":
            # Without the markers of enclosing quotes and lists, which would end a tag.
            written = text[start:end]
            is_plain = _LINE_END.sub("\n", written).strip() == token.content.strip()
            found.html.append((start, written if is_plain else token.content))
            if "&" in token.content:
                found.decoded.append((start, unescape(token.content)))
        elif token.type == "fence":
            found.hidden.extend(_info(start, token.info))
        elif token.type == "inline":
            if token.children:
                _Inline(text, start, end, found).read(token.children)
                notes.read(start, token)
            found.hidden.extend(_lost_cells(start, token.content))
    found.hidden.extend(notes.unseen())
    found.hidden.extend(find_hidden_html(found.html, text, found.alts))
    found.hidden.extend(_entities(found.decoded, text))
    for label, definition in _definitions(env):
        first, last = definition["map"]
        if label not in found.used:
            words = one_line(text[starts[first] : starts[last]])
            found.hidden.append(HiddenText(HiddenKind.DEFINITION, starts[first], words))
    found.hidden.sort(key=lambda item: item.offset)
    return MarkdownFacts(found.links, found.hidden)


@dataclass
class _Found:
    """What was found in a text. The last four are judged when the whole text is read."""

    links: list[Link] = field(default_factory=list[Link])
    hidden: list[HiddenText] = field(default_factory=list[HiddenText])
    html: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    alts: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    decoded: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])  # text with entities
    used: set[str] = field(default_factory=set[str])  # labels of definitions


def _definitions(env: dict[str, Any]) -> Iterator[tuple[str | None, dict[str, Any]]]:
    """Link definitions with their labels. The label of a duplicate is ``None``, because it is never used."""
    yield from env.get("references", {}).items()
    for definition in env.get("duplicate_refs", ()):
        yield None, definition


def _frontmatter(text: str) -> tuple[int, int, int]:
    """The offsets where the YAML begins and ends and the Markdown begins, as in ``parse_skill_md``."""
    data = text.encode(errors="surrogatepass")
    begins, ends, body = (
        len(data[:at].decode(errors="surrogatepass")) for at in find_frontmatter(data) or (0, 0, 0)
    )
    return begins, ends, body


def is_tame(text: str) -> bool:
    """Whether ``text`` is small and flat enough to be parsed in bounded time."""
    if len(text) > _MAX_READ:
        return False
    depth = 0
    for piece in _BRACKETS.findall(text) if text.count("[") > _MAX_BRACKETS else ():
        depth = depth + 1 if piece == "[" else max(depth - 1, 0) if piece == "]" else 0
        if depth > _MAX_BRACKETS:
            return False
    return True


class _Notes:
    """Footnotes. A page displays the first of each name, if the text or a displayed footnote refers to it."""

    def __init__(self, definitions: Iterable[str]) -> None:
        """``definitions`` are link labels: a note of one word looks like one, and is reported as one if unused."""
        self._used = [f"[{label}]".casefold() for label in definitions]
        self._notes = {name: (0, "", list[str]()) for name in self._used}
        self._again: list[tuple[int, str]] = []

    def read(self, start: int, block: Token) -> None:
        if "[^" not in block.content:
            return
        # References in code do not count.
        text = "".join(
            _NOTE_PIECES.get(piece.type, piece.content if piece.type == "text" else " ")
            for piece in block.children or ()
        )
        for part in _NOTE_START.split(text):
            name, *others = map(str.casefold, _NOTE.findall(part) or [""])
            if not _NOTE_START.match(part):
                self._used += [name, *others]
            elif name in self._notes:
                self._again.append((start, part))
            else:
                self._notes[name] = start, part, others

    def unseen(self) -> Iterator[HiddenText]:
        waiting = list(self._used)
        while waiting:
            _, _, others = self._notes.pop(waiting.pop(), (0, "", []))
            waiting += others
        for start, text in (*((start, text) for start, text, _ in self._notes.values()), *self._again):
            yield HiddenText(HiddenKind.DEFINITION, start, one_line(text))


class _Inline:
    """Reads the tokens of one block, and advances through the text with them to find their offsets."""

    def __init__(self, text: str, start: int, end: int, found: _Found) -> None:
        self._text = text
        self._at = start
        self._end = end
        self._found = found

    def read(self, pieces: Sequence[Token]) -> None:
        closing: list[tuple[Token, list[str]]] = []
        for piece in pieces:
            if piece.type == "html_inline":
                self._found.html.append((self._find(piece.content), piece.content))
                if closing and piece.content.lower().startswith(("<img", "<svg", "<picture")):
                    closing[-1][1].append(_IMAGE)
            elif piece.type == "image":
                self.read(piece.children or ())
                self._link(str(piece.attrGet("src") or ""), piece.content)
                self._refer(piece, "src", piece.content)
                self._found.alts.append((self._at, one_line(piece.content)))
                if closing:
                    closing[-1][1].append(piece.content or _IMAGE)
            elif piece.type == "link_open":
                closing.append((piece, []))
            elif piece.type == "link_close" and closing:
                opening, parts = closing.pop()
                target, words = str(opening.attrGet("href") or ""), "".join(parts)
                self._link(target, words.replace(_IMAGE, ""))
                self._refer(opening, "href", words)
                if target and not without_hidden(words).strip():
                    self._hide(HiddenKind.EMPTY_LINK, target)
            elif piece.type in ("text", "code_inline") and piece.content:
                if self._find(piece.content, missing=-1) < 0 and piece.type == "text":
                    self._found.decoded.append((self._at, piece.content))
                if closing:
                    closing[-1][1].append(piece.content)
            elif piece.type in ("softbreak", "hardbreak") and closing:
                closing[-1][1].append(" ")

    def _link(self, target: str, words: str) -> None:
        """Record a link. Its target follows its text, unless it is a reference or is in ``<>``."""
        if not target:
            return
        found = self._text.find(target, self._at, self._end)
        if found >= 0:
            self._at = found + len(target)
        self._found.links.append(Link(target, found if found >= 0 else self._at, words))

    def _refer(self, piece: Token, address: str, words: str) -> None:
        """Check title, address and label. A page shows the first two only on hover, and the label never."""
        label = piece.meta.get("label", "")
        if label:
            self._found.used.add(label)
            many = len(label.split()) >= _MANY_WORDS or count_words(label) >= _MORE_WORDS
            if many and _letters(label) != _letters(words):
                self._hide(HiddenKind.LINK_WORDS, label)
        title = str(piece.attrGet("title") or "")
        if title.strip():
            self._hide(HiddenKind.TITLE, title)
        target = str(piece.attrGet(address) or "")
        is_shown = address == "href" and (_letters(target) == _letters(words) or not words.strip())
        if not is_shown and has_address_words(target):
            self._hide(HiddenKind.LINK_WORDS, unquote(target))

    def _hide(self, kind: HiddenKind, text: str) -> None:
        self._found.hidden.append(HiddenText(kind, self._at, one_line(text)))

    def _find(self, content: str, missing: int | None = None) -> int:
        found = self._text.find(content, self._at, self._end)
        if found < 0:
            return self._at if missing is None else missing
        self._at = found + len(content)
        return found


def _info(offset: int, info: str) -> Iterator[HiddenText]:
    """Words after the language of a code block, which pages do not display."""
    language, _, rest = info.strip().partition(" ")
    words = count_words(_SETTING.sub("", rest))
    if words >= _MANY_WORDS or count_words(rest) > _MOST_WORDS or count_name_parts(language) >= _MORE_WORDS:
        yield HiddenText(HiddenKind.CODE_INFO, offset, one_line(info))


def _entities(decoded: list[tuple[int, str]], text: str) -> Iterator[HiddenText]:
    """Hidden characters that are written as entities in ``text``, counted over all ``decoded`` parts."""
    starts: list[int] = []
    length = 0
    for _, part in decoded:
        starts.append(length)
        length += len(part) + 1
    found = list(find_hidden_characters("\n".join(part for _, part in decoded)))
    written = {item._replace(offset=0) for item in find_hidden_characters(text if found else "")}
    for item in found:
        if item._replace(offset=0) not in written:
            yield item._replace(offset=decoded[bisect_right(starts, item.offset) - 1][0])


def _line_ends(text: str) -> Iterator[HiddenText]:
    """Blanks at the ends of lines that can encode text: a few with tabs, or many.

    Two spaces after a word are a line break. A line of several blanks is left by editors, a line of one is not.
    """
    found, tabs, start = list[int](), list[int](), 0  # offsets
    for line in text.split("\n"):
        if line[-1:].isspace():
            shown = line.removesuffix("\r")
            words = shown.rstrip()
            blanks = shown[len(words) :]
            if blanks and (blanks != "  " if words else blanks in (" ", "\t")):
                found.append(start + len(words))
                if words and blanks.strip(" "):
                    tabs.append(found[-1])
        start += len(line) + 1
    reported = found if len(found) >= _MANY_ENDS else tabs if len(tabs) >= _FEW_ENDS else []
    if reported:
        yield HiddenText(HiddenKind.BLANKS, reported[0], f"in {len(reported)} lines")


def _letters(words: str) -> str:
    return "".join(filter(str.isalnum, words)).casefold()


def _lost_cells(offset: int, paragraph: str) -> Iterator[HiddenText]:
    """Table cells beyond the last column, which renderers drop."""
    if "|" not in paragraph:
        return
    columns = 0
    for line in paragraph.split("\n"):
        cells = [cell.strip() for cell in _CELL_END.split(line.strip().removeprefix("|"))]
        if not columns and "-" in line and _COLUMNS.fullmatch(line):
            columns = sum(1 for cell in cells if cell)
        elif columns and any(cells[columns:]):
            yield HiddenText(HiddenKind.LOST_CELL, offset, one_line(" | ".join(cells[columns:])))


def _hidden_info(text: str) -> Iterator[HiddenText]:
    for match in _FENCE.finditer(text):
        yield from _info(match.start(), match[1])


def _search_plainly(text: str) -> MarkdownFacts:
    links = [Link(match[1], match.start(1)) for match in _PLAIN_LINK.finditer(text)]
    labels = Counter(one_line(match[1]).casefold() for match in _PLAIN_LABEL.finditer(text))
    definitions = (
        HiddenText(HiddenKind.DEFINITION, match.start(), one_line(match[0]))
        for match in _PLAIN_DEFINITION.finditer(text)
        if labels[one_line(match[1]).casefold()] == 1
    )
    empty = (
        HiddenText(HiddenKind.EMPTY_LINK, match.start(), one_line(match[1].strip("<>")))
        for match in _PLAIN_EMPTY.finditer(text)
    )
    unread = HiddenText(HiddenKind.UNREAD, 0, "")
    hidden = [unread, *find_hidden_html([(0, text)], text), *definitions, *empty]
    hidden += [*_hidden_info(text), *_entities([(0, unescape(text))], text)]
    return MarkdownFacts(links, hidden)
