"""Text that a person does not see and a model does (B6).

Unicode tag characters spell ASCII invisibly; control characters, and those that turn the direction of writing,
make text read differently from what it says; runs of zero-width characters and variation selectors carry bits.
A rendered page shows neither comments, declarations and processing instructions, nor elements that are hidden by
their name, an attribute or their style, nor the text in attributes. Each is reported with its kind and with what
it says, so that the person who approves has read it too. Hidden parts of Markdown itself: ``markdown.py``.
"""

from __future__ import annotations

import re
from enum import StrEnum
from html import unescape
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class HiddenKind(StrEnum):
    """How text is hidden. The value is for programs and does not change; ``words`` are for people."""

    words: str

    def __new__(cls, value: str, words: str) -> HiddenKind:
        """A kind with its words."""
        kind = str.__new__(cls, value)
        kind._value_, kind.words = value, words
        return kind

    TAG_CHARACTERS = "tag-characters", "Unicode tag characters"
    CONTROL = "control-characters", "control characters"
    BIDI = "bidi-controls", "bidirectional control characters"
    SELECTORS = "variation-selectors", "a run of variation selectors"
    ZERO_WIDTH = "zero-width", "a run of zero-width characters"
    SINGLE = "invisible-character", "an invisible character"
    COMMENT = "html-comment", "an HTML comment"
    DECLARATION = "html-declaration", "an HTML declaration"
    INSTRUCTION = "processing-instruction", "a processing instruction"
    CDATA = "cdata", "a CDATA section"
    UNCLOSED_TAG = "unclosed-tag", "an HTML tag without an end"
    ATTRIBUTE = "attribute-text", "text in an HTML attribute"
    HIDDEN_ATTRIBUTE = "hidden-attribute", "an element with the attribute 'hidden'"
    HIDDEN_STYLE = "hidden-style", "an element hidden by its style"
    UNRENDERED = "unrendered-element", "an element that browsers do not show"
    DEFINITION = "unused-definition", "a link definition that no link uses"
    TITLE = "link-title", "the title of a link"
    UNREAD = "unread", "too large to look for hidden text in it"
    MORE = "more", "there is more hidden text: look at the whole skill"


class HiddenText(NamedTuple):
    """One find in a text: its kind, where it begins, and what it says."""

    kind: HiddenKind
    offset: int
    says: str


class HiddenFind(NamedTuple):
    """One find in a skill: its kind, the file and line (or the field) it is in, and what it says."""

    kind: HiddenKind
    place: str
    says: str = ""

    def __str__(self) -> str:
        """One line for people."""
        place = f"{self.place}: " if self.place else ""
        return f"{place}{self.kind.words}" + (f": {self.says}" if self.says else "")


class HiddenRun(NamedTuple):
    """Characters side by side that are not seen: what they are, where, and what they say."""

    kind: HiddenKind
    start: int
    end: int
    says: str


# Characters that are not seen. Every use of them begins here: what a check reports, what pages and terminals spell
# out, and what is taken out of text that a model is shown.
_TAGS = "\U000e0001-\U000e007f"
_CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f"
_BIDI = "\u061c\u202a-\u202e\u2066-\u2069"
_SELECTORS = "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
_FILLERS = "\u115f\u1160\u17b4\u17b5\u3164\uffa0"
_JOINERS = "\u200c\u200d"
_WIDTHLESS = (  # without the joiners; U+2800 has a width and no dots
    f"{_FILLERS}\u00ad\u034f\u180e\u200b\u200e\u200f\u2060-\u2065\u206a-\u206f\u2800\ufeff\ufff0-\ufff8"
    "\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
)
_OTHERS = "\x80-\x9f\u2028\u2029\ufff9-\ufffb\ud800-\udfff"
_PATTERN = re.compile(
    f"(?P<tag>[{_TAGS}]+)"
    f"|(?P<control>[{_CONTROLS}]+)"
    f"|(?P<bidi>[{_BIDI}]+)"
    # An emoji may join a selector to one zero-width joiner; three in a row mean nothing visible.
    f"|(?P<selector>[{_SELECTORS}]{{2,}})"
    f"|(?P<zero>[{_WIDTHLESS}{_JOINERS}{_SELECTORS}]{{3,}}|[{_WIDTHLESS}{_JOINERS}]{{2,}})"
    f"|(?P<filler>[{_FILLERS}])"
)
# One alone is often innocent, so that no check reports it; whoever shows text marks it all the same. Not the
# joiners and selectors that emoji and many scripts are written with.
_ANY = re.compile(f"{_PATTERN.pattern}|(?P<single>[{_WIDTHLESS}{_OTHERS}])")
_UNSEEN = re.compile(f"[{_TAGS}{_CONTROLS}{_BIDI}{_SELECTORS}{_WIDTHLESS}{_JOINERS}{_OTHERS}]")
_KINDS = {
    "tag": HiddenKind.TAG_CHARACTERS,
    "control": HiddenKind.CONTROL,
    "bidi": HiddenKind.BIDI,
    "selector": HiddenKind.SELECTORS,
    "zero": HiddenKind.ZERO_WIDTH,
    "filler": HiddenKind.SINGLE,
    "single": HiddenKind.SINGLE,
}
# The flags of England, Scotland and Wales are a black flag, five tag letters and a cancel tag: visible.
_FLAG = re.compile(
    "\U0001f3f4\U000e0067\U000e0062"
    "(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)\U000e007f"
)
# What is not shown of HTML, and tags. Each of the first ends where its piece of HTML does, if not before.
_MARKUP = re.compile(
    r"""<!--(?P<comment>.*?)(?:-->|\Z)
      | <\?(?P<instruction>.*?)(?:\?>|\Z)
      | <!\[CDATA\[(?P<cdata>.*?)(?:\]\]>|\Z)
      | <!(?P<declaration>[^>]*)(?:>|\Z)
      | </(?P<bogus>[^A-Za-z>][^>]*)(?:>|\Z)
      | <(?P<close>/?)(?P<name>[A-Za-z][^\s/>]*)
        (?P<attributes>(?:=\s*+(?:"[^"]*+"|'[^']*+')|[^>])*+)(?P<end>>?)""",
    re.DOTALL | re.VERBOSE,
)
_MARKUP_KINDS = {
    "comment": HiddenKind.COMMENT,
    "instruction": HiddenKind.INSTRUCTION,
    "cdata": HiddenKind.CDATA,
    "declaration": HiddenKind.DECLARATION,
    "bogus": HiddenKind.COMMENT,
}
_ATTRIBUTE = re.compile(r"""([^\s/=>][^\s/=>]*)(?:\s*+=\s*+(?:"([^"]*)"|'([^']*)'|([^\s>]*)))?""")
_TAG = re.compile(r"<[^>]*>")
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
)
# Browsers show nothing of these, or only what a script or a person opens. Those in the second set hold text only:
# a tag inside means nothing.
_UNRENDERED = frozenset({
    "audio", "canvas", "datalist", "head", "iframe", "noembed", "noframes", "noscript", "object", "script",
    "style", "template", "title", "video",
})  # fmt: skip
_RAW = frozenset({"iframe", "noembed", "noframes", "noscript", "script", "style", "title"})
# Attributes that hold several words as a rule, or are shown.
_WORDY = frozenset({
    "allow", "alt", "class", "d", "media", "placeholder", "points", "rel", "sandbox", "sizes", "srcset",
    "style", "transform", "value", "values", "viewbox",
})  # fmt: skip
_MANY_WORDS = 3
_CSS_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_CSS_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})\s?|(.))", re.DOTALL)
_ZERO = r"[0.]++(?:[a-z]+|%)?"
_HIDING_STYLES = {
    "display": r"none",
    "visibility": r"hidden|collapse",
    "content-visibility": r"hidden",
    "opacity": r"0*+(?:\.0\d*)?%?",
    "zoom|scale|line-height": _ZERO,
    "transform": r".*scale[xy3d]*\(\s*[0.]++\s*[,)].*",
    "font-size": rf"{_ZERO}|[0.]*+1?(?:\.\d+)?px",
    "width|height|max-width|max-height": rf"{_ZERO}|0*+1px",
    "color|-webkit-text-fill-color": r"transparent|white|#f{3,4}|#f{6}|#f{8}|#[0-9a-f]{3}0|#[0-9a-f]{6}00"
    r"|(?:rgb|hsl)a?\((?:[^,]*,){3}\s*[0.]++%?\s*\)|(?:rgb|hsl)a?\(.*/\s*[0.]++%?\s*\)"
    r"|rgba?\(\s*255[\s,]+255[\s,]+255\b.*",
    "clip": r"rect\(.*",
    "clip-path": r"inset\(.*|circle\(\s*0.*|polygon\(.*",
    "text-indent|left|top|right|bottom|margin|margin-left|margin-top|inset|translate": r"(?:.*\s)?-\d{3,}.*",
}
_HIDING_STYLE = re.compile(
    "|".join(rf"(?:{names})\s*:\s*(?:{values})" for names, values in _HIDING_STYLES.items()), re.DOTALL
)


def find_hidden_characters(text: str) -> Iterator[HiddenText]:
    """Invisible and reordering characters, in any text."""
    for run in _runs(_PATTERN, text):
        yield HiddenText(run.kind, run.start, run.says)


def find_hidden_runs(text: str) -> Iterator[HiddenRun]:
    """The same, and single characters that are not seen: for whoever shows the text."""
    return _runs(_ANY, text)


def is_seen(text: str) -> bool:
    """Whether a person sees every character of ``text``."""
    return _UNSEEN.search(text) is None


def without_hidden(text: str) -> str:
    """``text`` without the characters that a person does not see."""
    return _UNSEEN.sub("", text)


def encode_hidden(reference: str) -> str:
    """A path or URI with the characters percent-encoded that a person does not see. It means the same."""
    return _UNSEEN.sub(lambda match: quote(match[0].encode(errors="surrogatepass")), reference)


def spell_out(text: str, keep: str = "") -> str:
    """``text`` for a terminal: what is not seen, and what a terminal would act on, becomes ``<U+200B>``."""
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


def find_hidden_html(pieces: Iterable[tuple[int, str]], text: str) -> Iterator[HiddenText]:
    """What a browser does not show of ``pieces`` of HTML, each with its place in ``text``.

    A hidden element may begin in one piece and end in another. What is hidden inside it is not told again.
    """
    hiding: _Hiding | None = None
    for piece in pieces:
        offset, html = piece
        for match in _MARKUP.finditer(html):
            group = match.lastgroup or ""
            if group in _MARKUP_KINDS:
                yield HiddenText(_MARKUP_KINDS[group], offset + match.start(), one_line(match[group]))
                continue
            tag = _read_tag(match, offset)
            if not match["end"]:
                yield HiddenText(HiddenKind.UNCLOSED_TAG, tag.start, one_line(match[0]))
            if not tag.closes:
                yield from _hidden_attributes(tag)
            if hiding is not None:
                hiding = hiding.after(tag)
                if hiding.depth:
                    continue
                yield from hiding.told(text, piece, match.start())
                hiding = None
            elif not tag.closes and (kind := _hiding_kind(tag)) is not None:
                if tag.name in _VOID:
                    yield HiddenText(kind, tag.start, one_line(match[0]))
                else:
                    hiding = _Hiding(kind, tag, piece, match.end())
    if hiding is not None:
        yield from hiding.told(text, (len(text), ""), 0)


def one_line(text: str) -> str:
    """``text`` with every run of white space as one blank."""
    return " ".join(text.split())


class _Tag(NamedTuple):
    name: str
    start: int
    closes: bool
    attributes: dict[str, str]


class _Hiding(NamedTuple):
    """An element that is not shown, where its content begins, and how many elements of its name are open."""

    kind: HiddenKind
    tag: _Tag
    piece: tuple[int, str]
    begins: int
    depth: int = 1

    def after(self, tag: _Tag) -> _Hiding:
        if tag.name != self.tag.name:
            return self
        if tag.closes:
            return self._replace(depth=self.depth - 1)
        return self if tag.name in _RAW else self._replace(depth=self.depth + 1)

    def told(self, text: str, last: tuple[int, str], end: int) -> Iterator[HiddenText]:
        offset, html = self.piece
        inside = html[self.begins : end]
        if last is not self.piece:
            inside = html[self.begins :] + text[offset + len(html) : last[0]] + last[1][:end]
        shown = _TAG.sub(" ", inside) if self.kind is HiddenKind.UNRENDERED else inside
        if shown.strip():
            yield HiddenText(self.kind, self.tag.start, one_line(inside))


def _read_tag(match: re.Match[str], offset: int) -> _Tag:
    attributes: dict[str, str] = {}
    for name, *values in _ATTRIBUTE.findall(match["attributes"]):
        attributes.setdefault(name.lower(), unescape("".join(values)))  # of two, a browser takes the first
    name, closes = match["name"].lower(), bool(match["close"])
    return _Tag(name, offset + match.start(), closes, attributes)


def _hidden_attributes(tag: _Tag) -> Iterator[HiddenText]:
    for name, value in tag.attributes.items():
        words = len(value.split())
        if (words >= _MANY_WORDS and name not in _WORDY) or (words and name == "title"):
            yield HiddenText(HiddenKind.ATTRIBUTE, tag.start, f"{name}={one_line(value)}")


def _hiding_kind(tag: _Tag) -> HiddenKind | None:
    attributes = tag.attributes
    if "hidden" in attributes or (tag.name == "input" and attributes.get("type", "").lower() == "hidden"):
        return HiddenKind.HIDDEN_ATTRIBUTE
    if _hides(attributes.get("style", "")):
        return HiddenKind.HIDDEN_STYLE
    if tag.name in _UNRENDERED or (tag.name == "dialog" and "open" not in attributes):
        return HiddenKind.UNRENDERED
    return None


def _hides(style: str) -> bool:
    """Whether a ``style`` takes an element out of sight: also spelled with comments and escapes."""
    style = _CSS_ESCAPE.sub(_css_character, _CSS_COMMENT.sub("", style)).lower().replace("!important", "")
    return any(_HIDING_STYLE.fullmatch(declaration.strip()) for declaration in style.split(";"))


def _css_character(match: re.Match[str]) -> str:
    number = int(match[1], 16) if match[1] else 0
    return match[2] or (chr(number) if number <= 0x10FFFF else "")


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
