"""Finds characters that people do not see and models read (B6), and makes them visible.

Unicode tag characters spell invisible ASCII. Control characters and bidirectional controls change how text is
displayed. Zero-width characters and variation selectors, in a run or spread over ordinary letters, can encode
bits. Each find is reported with its kind and its text, so the person who approves a skill has read it too. Hidden
parts of HTML: ``hidden_html.py``. Hidden parts of Markdown: ``markdown.py``.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterator


class HiddenKind(StrEnum):
    """How text is hidden. The value is stable and for programs; ``label`` is for people."""

    label: str

    def __new__(cls, value: str, label: str) -> HiddenKind:
        """A kind with its label."""
        kind = str.__new__(cls, value)
        kind._value_, kind.label = value, label
        return kind

    TAG_CHARACTERS = "tag-characters", "Unicode tag characters"
    CONTROL = "control-characters", "control characters"
    BIDI = "bidi-controls", "bidirectional control characters"
    SELECTORS = "variation-selectors", "a run of variation selectors"
    ZERO_WIDTH = "zero-width", "a run of zero-width characters"
    SCATTERED = "scattered-characters", "invisible characters between ordinary letters"
    SINGLE = "invisible-character", "an invisible character"
    BLANKS = "mixed-blanks", "different blanks at the end of a line"
    COMMENT = "html-comment", "an HTML comment"
    DECLARATION = "html-declaration", "an HTML declaration"
    INSTRUCTION = "processing-instruction", "a processing instruction"
    CDATA = "cdata", "a CDATA section"
    UNCLOSED_TAG = "unclosed-tag", "an HTML tag without an end"
    ATTRIBUTE = "attribute-text", "text in an HTML attribute"
    TAG_WORDS = "tag-words", "words in tags that browsers do not know"
    HIDDEN_ATTRIBUTE = "hidden-attribute", "an element hidden by an attribute"
    HIDDEN_STYLE = "hidden-style", "an element whose style may hide it"
    HIDDEN_CLASS = "hidden-class", "an element hidden by its class"
    CLOSED = "closed-element", "text that is shown only after a click"
    UNRENDERED = "unrendered-element", "an element that pages may not show"
    DEFINITION = "unused-definition", "a link definition that no link uses"
    TITLE = "link-title", "the title of a link"
    EMPTY_LINK = "empty-link", "a link without text"
    LINK_WORDS = "link-words", "words in the address or the label of a link"
    ALT = "alt-text", "a long text in place of an image"
    FAR = "far-text", "text far to the right"
    LOST_CELL = "lost-cell", "table cells beyond the last column"
    CODE_INFO = "code-info", "words after the language of a code block"
    YAML_COMMENT = "yaml-comment", "a comment in the frontmatter"
    UNREAD = "unread", "too large or too deeply nested to find all hidden text"
    MORE = "more", "more hidden text: look at the whole skill"


class HiddenText(NamedTuple):
    """One find in a text: its kind, its offset, and the hidden text."""

    kind: HiddenKind
    offset: int
    text: str


class HiddenFind(NamedTuple):
    """One find in a skill: its kind, its file and line (or its field), and the hidden text."""

    kind: HiddenKind
    place: str
    text: str = ""

    def __str__(self) -> str:
        """One line for people."""
        place = f"{self.place}: " if self.place else ""
        return f"{place}{self.kind.label}" + (f": {self.text}" if self.text else "")


class HiddenRun(NamedTuple):
    """A run of hidden characters: its kind, its range, and the hidden text."""

    kind: HiddenKind
    start: int
    end: int
    text: str


# Hidden characters. Every use is based on these sets: the reports of checks, the escapes on pages and terminals,
# and the text for models, from which they are removed.
_TAGS = "\U000e0001-\U000e007f"
_CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f"
_BIDI = "\u061c\u202a-\u202e\u2066-\u2069"
_SELECTORS = "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
_FILLERS = "\u115f\u1160\u17b4\u17b5\u3164\uffa0"
_JOINERS = "\u200c\u200d"
_WIDTHLESS = (  # without the joiners; U+2800 has a width and no dots
    f"{_FILLERS}\u00ad\u034f\u180e\u200b\u200e\u200f\u2060-\u2065\u206a-\u206f\u2800\ufeff\ufff0-\ufff8"
    "\U0001107f\U00013430-\U0001345f\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    # Unassigned planes, unassigned code points beside the tags, and the private-use planes.
    "\U00040000-\U000e0000\U000e0080-\U000e00ff\U000e01f0-\U0010ffff"
)
# These join letters of certain scripts. After other letters, most fonts draw nothing.
_STACKERS = (
    "\u1039\u17d2\u1a60\u2d7f\U00010a3f\U00011133\U000113d0\U0001193e\U00011a47\U00011a99\U00011d45"
    "\U00011d97\U0001bc9d\U0001da9b-\U0001da9f\U0001daa1-\U0001daaf"
)
# C1 controls, interlinear annotations, and noncharacters.
_UNASSIGNED = (
    "\x80-\x9f\ufff9-\ufffb\ufdd0-\ufdef\ufffe\uffff\U0001fffe\U0001ffff\U0002fffe\U0002ffff\U0003fffe\U0003ffff"
)
_PRIVATE = "\ue000-\uf8ff"  # visible only with a special font; a single one may be an icon
_OTHERS = f"{_UNASSIGNED}{_PRIVATE}\u2028\u2029\ud800-\udfff"
_PATTERN = re.compile(
    f"(?P<tag>[{_TAGS}]+)"
    f"|(?P<control>[{_CONTROLS}]+)"
    f"|(?P<bidi>[{_BIDI}]+)"
    # An emoji may have a selector next to one zero-width joiner. Three in a row display nothing.
    f"|(?P<selector>[{_SELECTORS}]{{2,}})"
    f"|(?P<zero>[{_WIDTHLESS}{_JOINERS}{_SELECTORS}]{{3,}}|[{_WIDTHLESS}{_JOINERS}]{{2,}})"
    f"|(?P<stacker>[{_STACKERS}]{{3,}})"
    f"|(?P<filler>[{_FILLERS}])"
    f"|(?P<unassigned>[{_UNASSIGNED}]+)"
    f"|(?P<private>[{_PRIVATE}]{{2,}})"
    # Alternating tabs and spaces can encode bits. Editors leave only tabs before spaces, or spaces before tabs.
    r"|(?P<blanks>(?<![^\S\r\n])(?!(?: *+\t*+|\t*+ *+)(?:[\r\n]|\Z))[^\S\r\n]{3,}+(?=[\r\n]|\Z))"
)
# Positions in which no script and no emoji uses them: joiners after letters of an alphabet that does not join
# (Latin, Greek, Cyrillic, Armenian, Georgian) or at the start of a line, and selectors after characters without
# variants. A digit has a selector in a keycap. Soft hyphens and the two direction marks are legitimate there.
_LATIN = (
    " -~\u00a0-\u02af\u0370-\u058f\u10a0-\u10ff\u1c80-\u1cbf\u1d00-\u1dbf\u1e00-\u1fff"
    "\u2c60-\u2d2f\ua640-\ua69d\ua720-\ua7ff"
)
_STRAY = (
    f"(?<![^{_LATIN}\\n\\t])(?:[{_JOINERS}{_STACKERS}\u034f\u180b-\u180f\u200b\u2060-\u2064\u206a-\u206f\u2800\ufe00-\ufe0d]"
    "|(?<![\u00a9\u00ae])(?:\ufe0e|\ufe0f(?!\u20e3))|\ufeff)"
    "|[\ufe00-\ufe0d\U000e0100-\U000e01ef]"  # a few select glyphs of ideographs and symbols; many encode bits
)
_SCATTERED = re.compile(f"(?:{_STRAY})(?![{_SELECTORS}{_WIDTHLESS}{_JOINERS}])")
_FEW = 3
# A single one is often harmless, so checks do not report it, but displayed text marks it. Joiners and selectors
# that emoji and many scripts need are not included.
_ANY = re.compile(f"{_PATTERN.pattern}|(?P<single>[{_WIDTHLESS}{_OTHERS}]|{_STRAY})")
_UNSEEN = re.compile(f"[{_TAGS}{_CONTROLS}{_BIDI}{_SELECTORS}{_WIDTHLESS}{_JOINERS}{_OTHERS}]")
_KINDS = {
    "tag": HiddenKind.TAG_CHARACTERS,
    "control": HiddenKind.CONTROL,
    "bidi": HiddenKind.BIDI,
    "selector": HiddenKind.SELECTORS,
    "zero": HiddenKind.ZERO_WIDTH,
    "stacker": HiddenKind.ZERO_WIDTH,
    "filler": HiddenKind.SINGLE,
    "unassigned": HiddenKind.CONTROL,
    "private": HiddenKind.SINGLE,
    "blanks": HiddenKind.BLANKS,
    "single": HiddenKind.SINGLE,
}
# The flags of England, Scotland and Wales are a black flag, five tag letters and a cancel tag: visible.
_FLAG = re.compile(
    "\U0001f3f4\U000e0067\U000e0062"
    "(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f"
)


def find_hidden_characters(text: str) -> Iterator[HiddenText]:
    """Find invisible and reordering characters in any text."""
    for run in _runs(_PATTERN, text):
        yield HiddenText(run.kind, run.start, run.text)
    if text.isascii():
        return
    strays = list(_SCATTERED.finditer(text))
    if len(strays) >= _FEW:
        says = _spell("single", "".join(match[0] for match in strays))
        yield HiddenText(HiddenKind.SCATTERED, strays[0].start(), f"{len(strays)} of them: {says}")


def find_hidden_runs(text: str) -> Iterator[HiddenRun]:
    """Find hidden characters including single ones, for displaying the text."""
    return _runs(_ANY, text)


def is_seen(text: str) -> bool:
    """Whether every character of ``text`` is visible."""
    return _UNSEEN.search(text) is None


def without_hidden(text: str) -> str:
    """``text`` without hidden characters."""
    return _UNSEEN.sub("", text)


def encode_hidden(reference: str) -> str:
    """A path or URI with hidden characters percent-encoded. Its meaning does not change."""
    return _UNSEEN.sub(lambda match: quote(match[0].encode(errors="surrogatepass")), reference)


def spell_out(text: str, keep: str = "") -> str:
    """``text`` for a terminal: hidden and control characters are written like ``<U+200B>``."""
    if text.isascii() and text.isprintable():
        return text
    pieces: list[str] = []
    at = 0
    for run in find_hidden_runs(text):
        pieces += (_spelled(text[at : run.start], keep), "".join(map(_number, text[run.start : run.end])))
        at = run.end
    return "".join((*pieces, _spelled(text[at:], keep)))


def _spelled(text: str, keep: str) -> str:
    return "".join(c if c.isprintable() or c in keep else _number(c) for c in text)


def _number(character: str) -> str:
    return f"<U+{ord(character):04X}>"


def one_line(text: str) -> str:
    """``text`` with every run of white space replaced by one space."""
    return " ".join(text.split())


def _runs(pattern: re.Pattern[str], text: str) -> Iterator[HiddenRun]:
    if text.isascii() and text.isprintable():
        return
    for match in pattern.finditer(_FLAG.sub(_blank, text)):
        kind = match.lastgroup or ""
        yield HiddenRun(_KINDS[kind], *match.span(), _spell(kind, match.group()))


def _blank(match: re.Match[str]) -> str:
    return " " * len(match.group())


def _spell(kind: str, characters: str) -> str:
    if kind == "tag":
        return "".join(chr(ord(character) - 0xE0000) for character in characters if character != "\U000e007f")
    shown = " ".join(f"U+{ord(character):04X}" for character in characters[:8])
    return f"{shown} …" if len(characters) > 8 else shown
