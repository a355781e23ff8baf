"""Finds characters that people do not see and models read (B6), and shows or removes them.

Unicode tag characters spell invisible ASCII. Control characters and bidirectional controls change how text is
displayed. Zero-width characters and variation selectors can encode bits, in a run or spread over a text. A list
states where scripts and emoji use them; all others of a text are counted together. Each find is reported with its
kind and its text, so the person who approves a skill has read it too. Hidden parts of HTML: ``hidden_html.py``.
Hidden parts of Markdown: ``markdown.py``.

``text_for_model`` and ``escape_text`` prepare untrusted text for a model: it cannot end its element, imitate
another one or hide text.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote
from xml.sax.saxutils import escape

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
    BLANKS = "trailing-blanks", "blanks at the end of lines"
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
    ALT = "alt-text", "many words in place of images"
    FAR = "far-text", "text far to the right"
    LOST_CELL = "lost-cell", "table cells beyond the last column"
    CODE_INFO = "code-info", "words after the language of a code block"
    YAML_COMMENT = "yaml-comment", "a comment in the frontmatter"
    LINKS = "more-links", "more links than a review lists: look at the files"
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
_HYPHEN = "\u00ad"
_MARKS = "\u200e\u200f"
# Without the characters above. U+2800 has a width and no dots.
_IGNORED = (
    "\u034f\u180e\u200b\u2060-\u2065\u206a-\u206f\u2800\ufeff\ufff0-\ufff8"
    "\U0001107f\U00013430-\U0001345f\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    "\U000e0000\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
)
# With unassigned and private-use planes, which have a glyph in special fonts.
_WIDTHLESS = f"{_FILLERS}{_HYPHEN}{_MARKS}{_IGNORED}\U00040000-\U000dffff\U000e1000-\U0010ffff"
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
)
# Alternating tabs and spaces can encode bits. Editors leave only tabs before spaces, or spaces before tabs.
_BLANKS = re.compile(r"[^\S\r\n]{3,}+")
_EDITED = re.compile(r" *+\t*+|\t*+ *+")
# Scripts whose letters take joiners, marks or invisible breaks: Hebrew to Burmese, Khmer, Mongolian and others.
_SHAPED = (
    "\u0590-\u109f\u1780-\u18af\u1900-\u1c7f\u1cd0-\u1cff\u2d30-\u2d7f\ua800-\uabff\ufb1d-\ufdff\ufe70-\ufefc"
    "\U00010800-\U00011fff\U00013000-\U0001345f\U00018b00-\U00018cff\U0001bc00-\U0001bcaf"
    "\U0001d100-\U0001d1ff\U0001d800-\U0001daaf"
)
_SYMBOLS = "\u00a9\u00ae\u2010-\u2027\u2030-\u205e\u20a0-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
# Where an invisible character has a purpose. Everywhere else it is stray.
_USED = (
    f"(?<=[{_SHAPED}])[{_JOINERS}{_STACKERS}{_IGNORED}\u180b-\u180f]"
    f"|(?<=[{_SYMBOLS}])[\ufe0e\ufe0f]|(?<=[{_SYMBOLS}\ufe0f])\u200d|(?<=[0-9#*])\ufe0f(?=\u20e3)"
    f"|(?<=[^\\W\\d_]{{2}}){_HYPHEN}(?=[^\\W\\d_]{{2}})"
    r"|\A\ufeff"
)
_STRAY = f"(?!{_USED})[{_JOINERS}{_STACKERS}{_IGNORED}{_SELECTORS}{_HYPHEN}]"
_SCATTERED = re.compile(f"(?:{_STRAY})(?![{_SELECTORS}{_WIDTHLESS}{_JOINERS}])")
_FEW = 3
_MOST_HYPHENS = 20
_RIGHT_TO_LEFT = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]{2,}"
)
# A single one is often harmless, so checks do not report it, but displayed text marks it. Joiners and selectors
# that emoji and many scripts need are not included.
_ANY = re.compile(f"{_PATTERN.pattern}|(?P<single>[{_WIDTHLESS}{_OTHERS}]|{_STRAY})")
_UNSEEN = re.compile(f"[{_TAGS}{_CONTROLS}{_BIDI}{_SELECTORS}{_WIDTHLESS}{_JOINERS}{_OTHERS}]")
_SUSPECT = re.compile(f"{_UNSEEN.pattern[:-1]}{_STACKERS}]")  # a quick test: the patterns find nothing else
_CONTROL = re.compile(f"[{_CONTROLS}]")  # the same for ASCII
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
    "single": HiddenKind.SINGLE,
}
# The flags of England, Scotland and Wales are a black flag, five tag letters and a cancel tag: visible.
_LONGEST_DESCRIPTION = 1024  # F3
_FLAG = re.compile(
    "\U0001f3f4\U000e0067\U000e0062"
    "(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f"
)


def find_hidden_characters(text: str) -> Iterator[HiddenText]:
    """Find invisible and reordering characters in any text."""
    for run in _runs(_PATTERN, text):
        yield HiddenText(run.kind, run.start, run.text)
    if text.isascii() or not _is_suspect(text):
        return
    strays = [match.start() for match in _SCATTERED.finditer(text)]
    # Good positions do not excuse great numbers: hyphens everywhere, and marks in text that needs none.
    if text.count(_HYPHEN) > _MOST_HYPHENS:
        strays += [match.start() for match in re.finditer(_HYPHEN, text)]
    marks = [match.start() for match in re.finditer(f"[{_MARKS}]", text)]
    if len(marks) >= _FEW + len(_RIGHT_TO_LEFT.findall(text)) // 4:
        strays += marks
    strays = sorted(set(strays))
    if len(strays) >= _FEW:
        spelled = _spell("single", "".join(text[at] for at in strays))
        yield HiddenText(HiddenKind.SCATTERED, strays[0], f"{len(strays)} of them: {spelled}")


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


def text_for_model(text: str) -> str:
    """Untrusted ``text`` for a model: one line, without hidden characters, truncated (B6, F3).

    Names, titles and descriptions reach a model before a person has approved them. For paths and URIs, which must
    keep their meaning, use ``encode_hidden``.
    """
    shown = one_line(without_hidden(one_line(text)))
    return shown if len(shown) <= _LONGEST_DESCRIPTION else f"{shown[:_LONGEST_DESCRIPTION]}…"


def escape_text(text: str) -> str:
    """``text`` escaped for an XML element or attribute, without hidden characters."""
    return escape(without_hidden(text), {'"': "&quot;", "'": "&apos;"})


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


def _is_suspect(text: str) -> bool:
    """Whether ``text`` may have hidden characters. Searching its few different characters is much faster."""
    return _CONTROL.search(text) is not None if text.isascii() else _SUSPECT.search("".join(set(text))) is not None


def _runs(pattern: re.Pattern[str], text: str) -> Iterator[HiddenRun]:
    found: list[HiddenRun] = []
    if "\t" in text or not text.isascii():
        found = [
            HiddenRun(HiddenKind.BLANKS, *match.span(), _spell("blanks", match[0]))
            for match in _BLANKS.finditer(text)
            if text[match.end() : match.end() + 1] in ("", "\r", "\n") and not _EDITED.fullmatch(match[0])
        ]
    if _is_suspect(text):
        for match in pattern.finditer(_FLAG.sub(lambda flag: " " * len(flag[0]), text)):
            kind = match.lastgroup or ""
            found.append(HiddenRun(_KINDS[kind], *match.span(), _spell(kind, match[0])))
    yield from sorted(found, key=lambda run: run.start)


def _spell(kind: str, characters: str) -> str:
    if kind == "tag":
        return "".join(chr(ord(character) - 0xE0000) for character in characters if character != "\U000e007f")
    shown = " ".join(f"U+{ord(character):04X}" for character in characters[:8])
    return f"{shown} …" if len(characters) > 8 else shown
