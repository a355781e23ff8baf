"""Finds text in HTML that a browser does not show (B6).

The tables below list what is certainly shown: elements, attributes with their values, and style declarations.
Everything else is reported with its kind and its text. A few words that are not shown are normal in the texts of
images and in tags for models, so these are counted over the whole text. Hidden characters: ``hidden.py``. Hidden
parts of Markdown: ``markdown.py``.
"""

from __future__ import annotations

import re
from collections import Counter
from html import unescape
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from skillwire.skill.hidden import HiddenKind, HiddenText, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Markup that is not displayed, and tags. Markup without an end extends to the end of its piece of HTML.
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
# A <summary> at the beginning that contains only text and plain formatting.
_SUMMARY = re.compile(
    r"\A\s*+<summary>(?:[^<]|</?(?:b|strong|i|em|code|kbd|h[1-6]|br)\s*/?>)*+</summary\s*>", re.IGNORECASE
)
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
)
# The elements of HTML, in two lists. The content of the first is always displayed. The content of the second may
# not be: controls, drawings, formulas, elements that scripts open, obsolete elements. An element in neither list
# is a placeholder or a marker for the model: browsers display its content, but not its name.
_SHOWN = frozenset(
    """a abbr acronym address article aside b bdi big blockquote body br caption center cite code col colgroup
    data dd del details dfn div dl dt em fieldset figcaption figure font footer form h1 h2 h3 h4 h5 h6 header
    hgroup hr html i img ins kbd label legend li main mark nav nobr ol output p picture pre q rt ruby s samp
    search section small source span strike strong sub summary sup table tbody td tfoot th thead time tr tt u
    ul var wbr""".split()  # noqa: SIM905 - a list of this length is read as words
)
_UNRENDERED = frozenset(
    """applet area audio base basefont bdo bgsound blink button canvas command datalist dialog dir embed
    fencedframe frame frameset head iframe image input isindex keygen link listing map marquee math menu
    menuitem meta meter multicol nextid noembed noframes noscript object optgroup option param plaintext
    portal progress rb rp rtc script select selectedcontent slot spacer style svg template textarea title
    track video xmp""".split()  # noqa: SIM905 - as above
)
# These contain only text: a tag inside has no effect.
_RAW = frozenset({"iframe", "noembed", "noframes", "noscript", "script", "style", "textarea", "title", "xmp"})
# Attributes and their usual values. Other attributes and values are text that only a model reads.
_ALLOWED = {
    name: re.compile(pattern, re.IGNORECASE)
    for names, pattern in (
        ("open reversed nowrap noshade compact hidden popover", "auto|until-found|"),
        ("width height border cellpadding cellspacing hspace vspace", r"\d{1,4}(?:\.\d{1,2})?(?:px|em|%)?"),
        ("colspan rowspan span start value size tabindex", r"[-+]?\d{1,4}"),
        ("align valign", "left|right|center|middle|justify|top|bottom|baseline|abs(?:middle|bottom)|text-?top"),
        ("dir", "ltr|rtl|auto"),
        ("lang hreflang xml:lang", r"[a-z]{2,3}(?:-[a-z]{4})?(?:-(?:[a-z]{2}|\d{3}))?"),
        ("type", r"1|a|i|disc|circle|square|(?:image|text|application)/[a-z0-9.+-]{2,20}"),
        ("rel", r"(?:(?:nofollow|noopener|noreferrer|external|ugc|license|author|me)\s*+)*"),
        ("target", "_blank|_self|_parent|_top"),
        ("loading", "lazy|eager"),
        ("decoding", "async|sync|auto"),
        ("scope", "(?:row|col)(?:group)?"),
        ("clear", "left|right|all|both|none"),
        ("role", "presentation|none|img|note|table|list|listitem|row|cell|heading|group|region|main|navigation"),
        ("aria-hidden", "true|false"),
        ("markdown", "1|0|block|span"),
        ("datetime", r"[\d:.+TZ -]{1,32}"),
        ("media", r"\((?:prefers-color-scheme:\s?(?:dark|light)|(?:min|max)-width:\s?\d{1,4}px)\)"),
    )
    for name in names.split()
}
_ADDRESSES = frozenset({"href", "src", "srcset", "cite"})
_SOURCE = re.compile(r"\s*+(\S++)(?:\s++[\d.]{1,6}[wx])?(?:,|\s*\Z)")
_NAMES = frozenset({"id", "name", "class", "for"})
_NAME_PART = re.compile(r"[A-Z]*[a-z]+|[A-Z]+|[^\W\dA-Za-z_]+")
_LONGEST_NAME = 32
_MOST_PARTS = 3
_MOST_CLASSES = 6
_COLOURS = frozenset({"background", "bgcolor", "color"})
_MANY_WORDS = 3
_MORE_WORDS = 4
_MANY_NAMES = 6
_MOST_ALT_WORDS = 8  # of all images of a text
_MOST_TAG_WORDS = 16  # of all tags that browsers do not know
_MOST_ADDRESS_WORDS = 8
_WORD = re.compile(r"[^\W\d_]{2,}")
_ADDRESS_PART = re.compile(r"[/?#&=;:]")
_SEPARATOR = re.compile(r"[\W_]+")
_HIDING_CLASS = re.compile(
    r"(?:[a-z]+[-_:])?(?:hidden|invisible|hide|d-none|display-none|off-?screen|sr[-_]?only|opacity-0"
    r"|text-(?:transparent|white|black|current|\w+-\d+)|[wh]-0|size-0|overflow-hidden|collapse|clip"
    r"|screen-?reader(?:-text|-only)?|visually-?hidden|a11y-hidden)"
)
# Style declarations that cannot hide anything. All others count as hiding: colours, positions, filters, functions,
# variables, escapes, and unknown properties.
_SIZE = r"(?:0|auto|\d{1,2}(?:px|pt|%)|(?:\d|\d?\.\d{1,3})r?em)"  # of margins and padding: small, not negative
_LARGE = r"(?:auto|(?:1[6-9]|[2-9]\d|[1-9]\d{2,3})px|(?:[2-9]|[1-9]\d)(?:\.\d+)?r?em|(?:[2-9]\d|100)%)"
_LINE = r"(?:none|solid|dashed|dotted|double|inset|outset|ridge|groove)"
_EDGE = rf"(?:0|(?:\d|1\d)(?:px|pt)?|thin|medium|{_LINE}|[#][0-9a-f]{{3,6}}|black|gray|grey|silver)"
_SIDE = r"(?:-(?:top|bottom|left|right))?"
_FONT = r"""(?:serif|sans-serif|monospace|system-ui|arial|helvetica|georgia|verdana|menlo|monaco|consolas|courier
    |['"]?(?:courier\ new|times\ new\ roman)['"]?)"""
_HARMLESS = re.compile(
    rf"""text-align(?:-last)?:(?:left|right|center|justify|start|end)
    |vertical-align:(?:top|middle|bottom|baseline|sub|super|text-top|text-bottom)
    |float:(?:left|right|none) |clear:(?:left|right|both|none)
    |(?:max-|min-)?(?:width|height):{_LARGE} |max-width:none |min-(?:width|height):0
    |margin{_SIDE}:{_SIZE}(?:\ {_SIZE}){{0,3}} |padding{_SIDE}:{_SIZE}(?:\ {_SIZE}){{0,3}}
    |border{_SIDE}:{_EDGE}(?:\ {_EDGE}){{0,2}} |border-radius:{_SIZE}
    |border-collapse:(?:collapse|separate) |border-spacing:{_SIZE} |table-layout:auto
    |font-weight:(?:normal|bold|bolder|lighter|[1-9]00) |font-style:(?:normal|italic|oblique)
    |font-size:(?:1[0-9]|[2-6]\d)(?:px|pt)|font-size:(?:0\.[7-9]\d?|[1-4](?:\.\d+)?)r?em|font-size:(?:[7-9]\d|[1-3]\d\d)%
    |font-size:(?:small|medium|large|x-large|smaller|larger)
    |font-family:{_FONT}(?:,\ ?{_FONT}){{0,5}}
    |text-decoration:(?:none|underline|line-through) |text-transform:(?:none|uppercase|lowercase|capitalize)
    |list-style(?:-type)?:(?:none|disc|circle|square|decimal|lower-alpha|upper-alpha|lower-roman|upper-roman)
    |white-space:(?:normal|nowrap|pre|pre-wrap|pre-line)
    |display:(?:block|inline|inline-block|flex|inline-flex|list-item|table|table-row|table-cell|inline-table)
    """,
    re.VERBOSE,
)
_BLANKS = re.compile(r"\s*([:,;])\s*|\s+")
# Sizes of text, relative to the usual 16 pixels. Elements inside each other multiply them; absolute sizes do not.
_SMALLER = {"small": 0.83, "sub": 0.83, "sup": 0.83, "h5": 0.83, "h6": 0.67, "rt": 0.7}
_FONT_SIZES = {"1": 0.63, "2": 0.81, "-1": 0.81} | {f"-{size}": 0.63 for size in range(2, 8)}
_FONT_SIZE = re.compile(r"font-size\s*:\s*(?:(\d*\.?\d+)(px|pt|rem|em|%)|(smaller|small)\b)")
_UNITS = {"px": 1 / 16, "pt": 1 / 12, "rem": 1.0, "em": 1.0, "%": 0.01}
_READABLE = 0.6  # three elements that make text smaller


def find_hidden_html(
    pieces: Iterable[tuple[int, str]], text: str, alts: Iterable[tuple[int, str]] = ()
) -> Iterator[HiddenText]:
    """Find text that a browser does not display in ``pieces`` of HTML, each with its offset in ``text``.

    A hidden element may begin in one piece and end in another. Hidden text inside it is not reported again.
    ``alts`` are the texts of other images, which count with those in HTML.
    """
    hiding: _Hiding | None = None
    rows = _Rows(text)
    sizes = _Sizes()
    alts = list(alts)
    for piece in pieces:
        offset, html = piece
        for match in _MARKUP.finditer(html):
            group = match.lastgroup or ""
            if group in _MARKUP_KINDS:
                yield HiddenText(_MARKUP_KINDS[group], offset + match.start(), one_line(match[group]))
                continue
            tag = _read_tag(match, offset)
            kind = None if tag.closes else _hiding_kind(tag)
            if sizes.after(tag) < _READABLE:
                kind = kind or HiddenKind.HIDDEN_STYLE
            if tag.name == "img" and "alt" in tag.attributes:
                alts.append((tag.start, one_line(tag.attributes["alt"])))
            if not match["end"]:
                yield HiddenText(HiddenKind.UNCLOSED_TAG, tag.start, one_line(match[0]))
            elif tag.closes or HiddenKind.UNRENDERED not in (kind, hiding and hiding.kind):  # reported as a whole
                yield from rows.after(tag, offset + match.end())
                yield from _hidden_attributes(tag)
            if hiding is not None:
                hiding = hiding.after(tag)
                if not hiding.depth:
                    yield from hiding.report(text, piece, match.start())
                    hiding = None
            elif kind is not None and tag.name in _VOID:
                if tag.pairs:
                    yield HiddenText(kind, tag.start, one_line(match[0]))
            elif kind is not None:
                hiding = _Hiding(kind, tag, piece, match.end())
    yield from rows.report()
    yield from rows.report_totals()
    if hiding is not None:
        yield from hiding.report(text, (len(text), ""), 0)
    alts.sort()
    words = list(dict.fromkeys(alt for _, alt in alts if alt))
    if sum(map(count_words, words)) > _MOST_ALT_WORDS:
        yield HiddenText(HiddenKind.ALT, alts[0][0], " | ".join(words))


def count_words(text: str) -> int:
    """The number of words of letters in ``text``. Hyphens and other punctuation separate words."""
    return len(_WORD.findall(text))


def has_address_words(address: str) -> bool:
    """Whether an address contains prose. Pages do not display addresses."""
    plain = unquote(address)
    if len(address.split()) >= _MANY_WORDS or len(plain.split()) >= _MORE_WORDS or plain.startswith("data:"):
        return True
    for part in _ADDRESS_PART.split(plain):
        if sum(len(word) > 1 and word.isalpha() for word in _SEPARATOR.split(part)) > _MOST_ADDRESS_WORDS:
            return True
    return False


def count_name_parts(name: str) -> int:
    """The number of words in an identifier, including words in camel case."""
    return len(_NAME_PART.findall(name))


class _Tag(NamedTuple):
    name: str
    start: int
    closes: bool
    attributes: dict[str, str]
    pairs: list[tuple[str, str]]  # including repeated names, which a browser ignores


class _Hiding(NamedTuple):
    """An element that is not displayed, where its content begins, and how many elements of its name are open."""

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

    def report(self, text: str, last: tuple[int, str], end: int) -> Iterator[HiddenText]:
        offset, html = self.piece
        inside = html[self.begins : end]
        if last is not self.piece:
            inside = html[self.begins :] + text[offset + len(html) : last[0]] + last[1][:end]
        content = one_line(_SUMMARY.sub("", inside) if self.kind is HiddenKind.CLOSED else inside)
        if self.kind is HiddenKind.UNRENDERED:
            content = " ".join((*map(_format_attribute, self.tag.pairs), *([content] if content else ())))
        elif self.kind is HiddenKind.HIDDEN_STYLE and not content:  # it may cover something
            content = one_line(html[self.tag.start - offset : self.begins])
        if content:
            yield HiddenText(self.kind, self.tag.start, content)


class _Rows:
    """Words in tags: the names of unknown tags, identifiers and addresses.

    One such tag is a placeholder or a marker. Many of them can form sentences: with nothing displayed between
    them, or spread over the text.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._start = self._end = -1
        self._words: list[str] = []  # of unknown tags
        self._names: list[str] = []  # identifiers and addresses
        self._at = self._shown = 0  # the end of the last tag, and the number of words displayed before it
        self._open: dict[str, list[tuple[str, int]]] = {}  # words, and the number before the tag, by name
        self._starts: dict[str, int] = {}  # of unknown tags, by their words
        self._empty: set[str] = set()  # closed without a word inside
        self._reported: set[str] = set()

    def after(self, tag: _Tag, end: int) -> Iterator[HiddenText]:
        self._shown += count_words(self._text[self._at : tag.start])
        self._at = end
        if self._end >= 0 and (tag.name == "img" or self._text[self._end : tag.start].strip()):
            yield from self.report()
        is_known = tag.name in _SHOWN or tag.name in ("http:", "https:") or "@" in tag.name
        if tag.closes or (is_known and not tag.pairs):
            self._end = end if self._end >= 0 else -1
            if self._open.get(tag.name):
                words, shown = self._open[tag.name].pop()
                if shown == self._shown:
                    self._empty.add(words)
            return
        if self._end < 0:
            self._start = tag.start
        self._end = end
        if is_known:
            self._names += [value for name, value in tag.pairs if name in _NAMES or name in ("href", "cite")]
            return
        words = " ".join((tag.name, *(name for name, _ in tag.pairs)))
        self._words.append(words)
        self._starts.setdefault(words, tag.start)
        self._open.setdefault(tag.name, []).append((words, self._shown))

    def report(self) -> Iterator[HiddenText]:
        words, names = self._words, self._names
        self._words, self._names, self._end = [], [], -1
        sentence = " ".join(words)
        one_tag = any(len(tag.split()) >= _MANY_WORDS for tag in words)
        if one_tag or len(words) >= _MORE_WORDS or count_words(sentence) > _MORE_WORDS:
            yield HiddenText(HiddenKind.TAG_WORDS, self._start, sentence)
            self._reported.update(words)
        if len(names) >= _MANY_NAMES:
            yield HiddenText(HiddenKind.ATTRIBUTE, self._start, one_line(" ".join(names)))

    def report_totals(self) -> Iterator[HiddenText]:
        """Report three different tags around nothing, or too many words in all tags."""
        around_nothing = self._empty.union(words for tags in self._open.values() for words, _ in tags)
        found = [words for words in self._starts if words not in self._reported and count_words(words)]
        alone = [words for words in found if words in around_nothing]
        if sum(map(count_words, found)) <= _MOST_TAG_WORDS:
            found = alone if len(alone) >= _MANY_WORDS else []
        if found:
            yield HiddenText(HiddenKind.TAG_WORDS, self._starts[found[0]], " ".join(found))


class _Sizes:
    """The size of text inside the open elements."""

    def __init__(self) -> None:
        self._stack: list[tuple[str, float]] = []
        self._names: Counter[str] = Counter()

    def after(self, tag: _Tag) -> float:
        """The size of text in the element that ``tag`` opens."""
        outer = self._stack[-1][1] if self._stack else 1.0
        if tag.closes:
            while self._names[tag.name]:
                name, _ = self._stack.pop()
                self._names[name] -= 1
                if name == tag.name:
                    break
            return 1.0
        size = outer * _SMALLER.get(tag.name, 1.0)
        if tag.name == "font":
            size = _FONT_SIZES.get(tag.attributes.get("size", "").strip(), size)
        for number, unit, word in _FONT_SIZE.findall(tag.attributes.get("style", "").lower()):
            if number:
                size = float(number) * _UNITS[unit] * (outer if unit in ("em", "%") else 1.0)
            else:
                size = 0.81 if word == "small" else outer * 0.83
        if tag.name not in _VOID and (size != outer or self._names[tag.name]):
            self._stack.append((tag.name, size))
            self._names[tag.name] += 1
        return size


def _read_tag(match: re.Match[str], offset: int) -> _Tag:
    pairs = [
        (name.lower(), unescape("".join(values))) for name, *values in _ATTRIBUTE.findall(match["attributes"])
    ]
    attributes = dict(reversed(pairs))  # a browser uses the first of two
    return _Tag(match["name"].lower(), offset + match.start(), bool(match["close"]), attributes, pairs)


def _format_attribute(pair: tuple[str, str]) -> str:
    name, value = pair
    return f"{name}={one_line(value)}" if value.strip() else name


def _hidden_attributes(tag: _Tag) -> Iterator[HiddenText]:
    """Text in the attributes of a tag, except usual values."""
    found: list[str] = []
    seen: set[str] = set()
    is_unknown = tag.name not in _SHOWN and tag.name not in _UNRENDERED
    for name, value in tag.pairs:
        if name in seen or tag.closes:  # a browser ignores both
            found.append(_format_attribute((name, value)))
        elif name == "alt" and tag.name == "img":
            pass  # counted with those of other images
        elif name in _ADDRESSES:
            if any(map(has_address_words, _addresses(name, value))):
                yield HiddenText(HiddenKind.LINK_WORDS, tag.start, one_line(unquote(value)))
        elif is_unknown and not value.strip():
            pass  # reported with the name of the tag
        elif not _is_allowed(name, value):
            found.append(_format_attribute((name, value)))
        seen.add(name)
    if found and not (is_unknown and count_words(" ".join(found)) < _MORE_WORDS):
        yield HiddenText(HiddenKind.ATTRIBUTE, tag.start, " ".join(found))


def _addresses(name: str, value: str) -> list[str]:
    """The addresses in ``srcset``, or the whole value if it is not such a list."""
    sources = _SOURCE.findall(value) if name == "srcset" else []
    return sources if sources and not _SOURCE.sub("", value).strip() else [value]


def _is_allowed(name: str, value: str) -> bool:
    if name == "style":  # whether it hides is checked elsewhere; here, whether it contains prose
        return all(
            count_words(part) < _MORE_WORDS
            for each in value.split(";")
            if not is_plain_style(each)
            for part in each.split(":")
        )
    if name in _COLOURS:
        return len(value.split()) == 1 and len(value) <= _LONGEST_NAME and count_name_parts(value) <= _MOST_PARTS
    if name in _NAMES:
        names = value.split()
        words = sum(len(word) > 1 and word.isalpha() for word in names)
        return (
            len(names) <= (_MOST_CLASSES if name == "class" else 1)
            and words < _MORE_WORDS
            and all(map(_is_short_name, names))
        )
    if name not in _ALLOWED:
        return name == "title" and value == ""
    return value.lower() == name or _ALLOWED[name].fullmatch(value.strip()) is not None


def _is_short_name(name: str) -> bool:
    return len(name.encode(errors="replace")) <= _LONGEST_NAME and count_name_parts(name) <= _MOST_PARTS


def _hiding_kind(tag: _Tag) -> HiddenKind | None:
    attributes = tag.attributes
    if not attributes.keys().isdisjoint(("hidden", "popover")):
        return HiddenKind.HIDDEN_ATTRIBUTE
    if tag.name in _UNRENDERED:
        return HiddenKind.UNRENDERED
    if not is_plain_style(attributes.get("style", "")) or not attributes.keys().isdisjoint(_COLOURS):
        return HiddenKind.HIDDEN_STYLE
    if any(map(_HIDING_CLASS.fullmatch, attributes.get("class", "").lower().split())):
        return HiddenKind.HIDDEN_CLASS
    if tag.name == "details" and ("open" not in attributes or "name" in attributes):
        return HiddenKind.CLOSED
    return None


def is_plain_style(style: str) -> bool:
    """Whether no declaration of ``style`` can hide the element."""
    plain = _BLANKS.sub(lambda match: match[1] or " ", style.strip().lower())
    return all(_HARMLESS.fullmatch(each.strip()) for each in plain.split(";") if each)
