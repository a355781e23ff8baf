"""Text that a person does not see and a model does (B6).

Unicode tag characters spell ASCII invisibly; control characters, and those that turn the direction of writing,
make text read differently from what it says; zero-width characters and variation selectors in a run, or spread
over ordinary letters, carry bits. A rendered page shows neither comments, declarations and processing
instructions, nor elements that are hidden by their name, an attribute, their class or their style (``style.py``),
nor words in attributes and in tags that no browser knows. Each is reported with its kind and with what it says, so
that the person who approves has read it too. Hidden parts of Markdown itself: ``markdown.py``.
"""

from __future__ import annotations

import re
from enum import StrEnum
from html import unescape
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from skillwire.skill.style import hides, style_words

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
    SCATTERED = "scattered-characters", "invisible characters between ordinary letters"
    SINGLE = "invisible-character", "an invisible character"
    COMMENT = "html-comment", "an HTML comment"
    DECLARATION = "html-declaration", "an HTML declaration"
    INSTRUCTION = "processing-instruction", "a processing instruction"
    CDATA = "cdata", "a CDATA section"
    UNCLOSED_TAG = "unclosed-tag", "an HTML tag without an end"
    ATTRIBUTE = "attribute-text", "text in an HTML attribute"
    TAG_WORDS = "tag-words", "words in tags that browsers do not know"
    HIDDEN_ATTRIBUTE = "hidden-attribute", "an element hidden by an attribute"
    HIDDEN_STYLE = "hidden-style", "an element hidden by its style"
    HIDDEN_CLASS = "hidden-class", "an element hidden by its class"
    CLOSED = "closed-element", "text that is shown only after a click"
    UNRENDERED = "unrendered-element", "an element that browsers do not show"
    DEFINITION = "unused-definition", "a link definition that no link uses"
    TITLE = "link-title", "the title of a link"
    EMPTY_LINK = "empty-link", "a link without text"
    LINK_WORDS = "link-words", "words in the address or the label of a link"
    ALT = "alt-text", "a long text in place of an image"
    LOST_CELL = "lost-cell", "cells beyond the columns of a table"
    CODE_INFO = "code-info", "words after the language of a code block"
    YAML_COMMENT = "yaml-comment", "a comment in the frontmatter"
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
    "\U0001107f\U00013430-\U0001345f\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    # Planes without characters, what is unassigned beside the tags, and the private planes.
    "\U00040000-\U000e0000\U000e0080-\U000e00ff\U000e01f0-\U0010ffff"
)
# The last three: not characters, and private use, which only a font of its own shows.
_OTHERS = "\x80-\x9f\u2028\u2029\ufff9-\ufffb\ud800-\udfff\ufdd0-\ufdef\ue000-\uf8ff\U0001fffe\U0001ffff"
_PATTERN = re.compile(
    f"(?P<tag>[{_TAGS}]+)"
    f"|(?P<control>[{_CONTROLS}]+)"
    f"|(?P<bidi>[{_BIDI}]+)"
    # An emoji may join a selector to one zero-width joiner; three in a row mean nothing visible.
    f"|(?P<selector>[{_SELECTORS}]{{2,}})"
    f"|(?P<zero>[{_WIDTHLESS}{_JOINERS}{_SELECTORS}]{{3,}}|[{_WIDTHLESS}{_JOINERS}]{{2,}})"
    f"|(?P<filler>[{_FILLERS}])"
)
# Where no script and no emoji has them: joiners after Latin letters, selectors after what has no variants. A digit
# has one, the keycap. A soft hyphen and the two marks of direction have their use after Latin letters.
_LATIN = " -~\u00a0-\u024f\u1e00-\u1eff"
_IDEOGRAPHS = "\u2e80-\u9fff\uf900-\ufaff\U00016f00-\U00018dff\U0001b000-\U0001b2ff\U00020000-\U0003ffff"
_STRAY = (
    f"(?<=[{_LATIN}])(?:[{_JOINERS}\u034f\u180b-\u180f\u200b\u2060-\u2064\u206a-\u206f\u2800\ufe00-\ufe0d]"
    "|(?<![#*0-9\u00a9\u00ae])[\ufe0e\ufe0f]|\ufeff)"
    "|(?<=[\U0001f000-\U0001faff])[\ufe00-\ufe0d]"
    f"|(?<![{_IDEOGRAPHS}])[\U000e0100-\U000e01ef]"
)
_SCATTERED = re.compile(f"(?:{_STRAY})(?![{_SELECTORS}{_WIDTHLESS}{_JOINERS}])")
_FEW = 3
# One alone is often innocent, so that no check reports it; whoever shows text marks it all the same. Not the
# joiners and selectors that emoji and many scripts are written with.
_ANY = re.compile(f"{_PATTERN.pattern}|(?P<single>[{_WIDTHLESS}{_OTHERS}]|{_STRAY})")
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
_SUMMARY = re.compile(r"<summary\b.*?(?:</summary\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
)
# Browsers show nothing of these, or only what a script opens. Those in the second set hold text only: a tag inside
# means nothing. Inside an SVG or a formula, some more are not shown.
_UNRENDERED = frozenset({
    "audio", "canvas", "datalist", "frameset", "head", "iframe", "meter", "noembed", "noframes", "noscript",
    "object", "progress", "rp", "script", "style", "template", "title", "video",
})  # fmt: skip
_RAW = frozenset({"iframe", "noembed", "noframes", "noscript", "script", "style", "title"})
_DRAWINGS = frozenset({"math", "svg"})
_DRAWN = frozenset({"foreignobject", "mi", "mn", "mo", "ms", "mtext", "text"})
_UNDRAWN = frozenset({
    "annotation", "annotation-xml", "clippath", "defs", "desc", "filter", "lineargradient", "marker", "mask",
    "metadata", "pattern", "radialgradient", "symbol",
})  # fmt: skip
# Elements and attributes that a browser knows. What else a tag says, it says to a model only.
_ELEMENTS = frozenset(
    """a abbr acronym address animate area article aside b base basefont bdi bdo big blink blockquote body br
    button caption center circle cite code col colgroup data dd del details dfn dialog dir div dl dt ellipse em
    embed fieldset figcaption figure font footer foreignobject form frame frameset g
    h1 h2 h3 h4 h5 h6 header hgroup hr
    html i image img input ins kbd label legend li line link main map mark marquee math menu meta mfrac mi mn mo
    mrow msqrt msub msup mtext nav nobr ol optgroup option output p param path picture plaintext polygon polyline
    pre q rb rect ruby rt rtc s samp search section select semantics slot small source span stop strike strong sub
    summary sup svg switch table tbody td text textarea textpath tfoot th thead time tr track tspan tt u ul use var
    view wbr xmp""".split()  # noqa: SIM905 - a list of this length is read as words
) | _UNRENDERED | _UNDRAWN  # fmt: skip
_ATTRIBUTES = frozenset(
    """abbr accept accept-charset accesskey action align alink allow allowfullscreen alt archive async
    autocapitalize autocomplete autocorrect autofocus autoplay axis background bgcolor border bordercolor capture
    cellpadding cellspacing char charset checked cite class classid clear code codebase codetype color cols colspan
    compact content contenteditable controls controlslist coords crossorigin cx cy d data datetime declare decoding
    default defer dir dirname disabled download draggable dx dy enctype enterkeyhint face fetchpriority fill
    fill-opacity fill-rule for form formaction formenctype formmethod formnovalidate formtarget frame frameborder
    gradienttransform gradientunits headers height hidden high href hreflang hspace http-equiv id inert inputmode
    integrity is ismap itemid itemprop itemref itemscope itemtype kind label lang language link list loading loop
    low marginheight marginwidth markdown max maxlength media method min minlength multiple muted name nohref nonce
    noresize noshade novalidate nowrap object offset opacity open optimum part pathlength pattern ping placeholder
    playsinline points popover popovertarget poster preload preserveaspectratio profile r readonly referrerpolicy
    rel required rev reversed role rotate rows rowspan rules rx ry sandbox scheme scope scoped scrolling selected
    shape size sizes slot span spellcheck src srcdoc srclang srcset standby start step stop-color stop-opacity
    stroke stroke-dasharray stroke-linecap stroke-linejoin stroke-miterlimit stroke-opacity stroke-width style
    summary tabindex target text text-anchor title transform translate type usemap valign value values valuetype
    version viewbox vlink vspace width wrap x x1 x2 xlink:href xml:lang xml:space xmlns xmlns:xlink y y1 y2
    clip-path clip-rule display dominant-baseline fill-opacity filter font-family font-size font-style font-weight
    letter-spacing marker-end marker-start mask overflow property visibility""".split()  # noqa: SIM905 - a list of this length is read as words
)
# Attributes that hold several words as a rule: only ordinary words count, and not those that belong there.
_WORDY = frozenset({
    "allow", "class", "d", "font-family", "media", "points", "preserveaspectratio", "rel", "sandbox", "sizes",
    "srcset", "stroke-dasharray", "transform", "values", "viewbox",
})  # fmt: skip
_TOKENS = frozenset(
    """nofollow noopener noreferrer external ugc sponsored me tag author license screen print
    accelerometer autoplay camera fullscreen geolocation gyroscope microphone payment usb""".split()  # noqa: SIM905 - a list of this length is read as words
)
_FEW_WORDS = 2
_MANY_WORDS = 3
_MORE_WORDS = 4
_MOST_ALT_WORDS = 8
_EVENTS = frozenset(
    """onblur onchange onclick ondblclick onerror onfocus oninput onkeydown onkeypress onkeyup onload onmousedown
    onmouseenter onmouseleave onmousemove onmouseout onmouseover onmouseup onresize onscroll onsubmit
    ontoggle""".split()  # noqa: SIM905 - as above
)
_WORD = re.compile(r"[^\W\d_]{2,}")
# Attributes that are properties of CSS.
_PRESENTED = {
    "display": "display", "visibility": "visibility", "opacity": "opacity", "fill-opacity": "opacity",
    "font-size": "font-size", "letter-spacing": "letter-spacing", "color": "color", "bgcolor": "background",
}  # fmt: skip
_HEX = re.compile(r"[0-9a-fA-F]{3}(?:[0-9a-fA-F]{3})?")
_TYPED = frozenset({"", "button", "email", "number", "reset", "search", "submit", "tel", "text", "url"})
_HIDING_CLASS = re.compile(
    r"(?:[a-z]+[-_:])?(?:hidden|invisible|hide|d-none|display-none|off-?screen|sr[-_]?only|opacity-0|text-transparent"
    r"|screen-?reader(?:-text|-only)?|visually-?hidden|a11y-hidden)"
)


def find_hidden_characters(text: str) -> Iterator[HiddenText]:
    """Invisible and reordering characters, in any text."""
    for run in _runs(_PATTERN, text):
        yield HiddenText(run.kind, run.start, run.says)
    if text.isascii():
        return
    strays = list(_SCATTERED.finditer(text))
    if len(strays) >= _FEW:
        says = _spell("single", "".join(match[0] for match in strays))
        yield HiddenText(HiddenKind.SCATTERED, strays[0].start(), f"{len(strays)} of them: {says}")


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
    unknown = _UnknownTags(text)
    drawing = drawn = 0  # open drawings, and open elements in them whose text is shown
    last = 0
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
            elif hiding is None or hiding.tag.name not in _RAW:
                yield from unknown.after(tag, offset + match.end())
                yield from _hidden_attributes(tag)
            said = text[last : tag.start].strip() if drawing and not drawn and hiding is None else ""
            if said and "<" not in said:
                yield HiddenText(HiddenKind.UNRENDERED, last, one_line(said))
            last = offset + match.end()
            if drawing and tag.name in _DRAWN:
                drawn = max(drawn + (-1 if tag.closes else 1), 0)
            if tag.name in _DRAWINGS:
                drawing = max(drawing + (-1 if tag.closes else 1), 0)
            if hiding is not None:
                hiding = hiding.after(tag)
                if hiding.depth:
                    continue
                yield from hiding.told(text, piece, match.start())
                hiding = None
            elif not tag.closes and (kind := _hiding_kind(tag, drawing > 0)) is not None:
                if tag.name in _VOID:
                    yield HiddenText(kind, tag.start, one_line(match[0]))
                else:
                    hiding = _Hiding(kind, tag, piece, match.end())
    yield from unknown.told()
    if hiding is not None:
        yield from hiding.told(text, (len(text), ""), 0)


def count_words(text: str) -> int:
    """How many words of letters ``text`` has; hyphens and the like separate them."""
    return len(_WORD.findall(text))


def is_long_alt(words: str) -> bool:
    """Whether the text in place of an image is more than a name for it."""
    return count_words(words) > _MOST_ALT_WORDS


def one_line(text: str) -> str:
    """``text`` with every run of white space as one blank."""
    return " ".join(text.split())


class _Tag(NamedTuple):
    name: str
    start: int
    closes: bool
    attributes: dict[str, str]
    pairs: list[tuple[str, str]]  # also those that a browser ignores, since their name came before


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
        if self.kind is HiddenKind.CLOSED:
            inside = _SUMMARY.sub(" ", inside, count=1)
        shown = _TAG.sub(" ", inside) if self.kind in (HiddenKind.UNRENDERED, HiddenKind.CLOSED) else inside
        if shown.strip():
            yield HiddenText(self.kind, self.tag.start, one_line(inside))


class _UnknownTags:
    """Tags in a row that no browser knows: a page shows nothing of them. One is a placeholder, many are words."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._start = self._end = -1
        self._words: list[str] = []

    def after(self, tag: _Tag, end: int) -> Iterator[HiddenText]:
        if self._words and self._text[self._end : tag.start].strip():
            yield from self.told()
        if tag.name in _ELEMENTS or tag.closes or tag.name in ("http:", "https:") or "@" in tag.name:
            return
        if not self._words:
            self._start = tag.start
        self._words.append(" ".join((tag.name, *(name for name, _ in tag.pairs))))
        self._end = end

    def told(self) -> Iterator[HiddenText]:
        words, self._words = self._words, []
        said = " ".join(words)
        one_tag = any(len(said.split()) >= _MANY_WORDS for said in words)
        if one_tag or len(words) >= _MORE_WORDS or count_words(said) > _MORE_WORDS:
            yield HiddenText(HiddenKind.TAG_WORDS, self._start, said)


def _read_tag(match: re.Match[str], offset: int) -> _Tag:
    pairs = [
        (name.lower(), unescape("".join(values))) for name, *values in _ATTRIBUTE.findall(match["attributes"])
    ]
    attributes = dict(reversed(pairs))  # of two, a browser takes the first
    return _Tag(match["name"].lower(), offset + match.start(), bool(match["close"]), attributes, pairs)


def _hidden_attributes(tag: _Tag) -> Iterator[HiddenText]:
    """Words in the attributes of a tag, each with its name."""
    found: list[str] = []
    unknown: list[str] = []
    free: list[str] = []  # in which a tag may say what it likes
    seen: set[str] = set()
    for name, value in tag.pairs:
        said = f"{name}={one_line(value)}" if value.strip() else name
        if tag.closes or name in seen:  # a browser ignores both
            found.append(said)
        elif not _is_attribute(name):
            unknown.append(said)
        elif name.startswith(("aria-", "data-")):
            free.append(said)
        elif name == "alt" and tag.name in ("area", "img", "input"):
            if is_long_alt(value):
                yield HiddenText(HiddenKind.ALT, tag.start, one_line(value))
        elif name == "style":
            if count_words(style_words(value)) >= _MORE_WORDS:
                found.append(said)
        elif _has_words(tag, name, value):
            found.append(said)
        seen.add(name)
    if tag.name not in _ELEMENTS:  # the names are told with the tag's
        unknown = [said for said in unknown if len(said.partition("=")[2].split()) >= _MANY_WORDS]
    if count_words(" ".join(unknown)) >= _FEW_WORDS:
        found += unknown
    said_freely = " ".join(said.partition("=")[2] or said.partition("-")[2] for said in free)
    if len(said_freely.split()) >= _MANY_WORDS and count_words(said_freely) >= _MANY_WORDS:
        found += free
    if found:
        yield HiddenText(HiddenKind.ATTRIBUTE, tag.start, " ".join(found))


def _is_attribute(name: str) -> bool:
    prefix, dash, rest = name.partition("-")
    if dash and prefix in ("aria", "data"):
        return count_words(rest) < _MORE_WORDS
    return name in _ATTRIBUTES or name in _EVENTS


def _has_words(tag: _Tag, name: str, value: str) -> bool:
    if name == "title":
        return bool(value.strip())
    if name in ("placeholder", "value") and (
        tag.name == "textarea" or (tag.name == "input" and tag.attributes.get("type", "").lower() in _TYPED)
    ):
        return False
    pieces = value.split()
    if name not in _WORDY:
        return len(pieces) >= _MANY_WORDS
    words = [
        word
        for word in (piece.strip(".,;:!?()'\"").lower() for piece in pieces)
        if name == "class" or word not in _TOKENS
    ]
    plain = sum(len(word) > 1 and word.isalpha() for word in words)
    return plain >= _MORE_WORDS or any(count_words(word) > _MORE_WORDS for word in words if "/" not in word)


def _hiding_kind(tag: _Tag, in_drawing: bool) -> HiddenKind | None:
    attributes = tag.attributes
    if not attributes.keys().isdisjoint(("hidden", "popover")) or (
        tag.name == "input" and attributes.get("type", "").lower() == "hidden"
    ):
        return HiddenKind.HIDDEN_ATTRIBUTE
    presented = {_PRESENTED[name]: value for name, value in attributes.items() if name in _PRESENTED}
    if tag.name in ("text", "textpath", "tspan"):  # far to the right may be inside the drawing
        places = {"left": attributes.get("x", ""), "top": attributes.get("y", "")}
        presented |= {name: place for name, place in places.items() if place.lstrip().startswith("-")}
        fill = attributes.get("fill", "")
        presented["color"] = "transparent" if fill == "none" else fill
    elif tag.name == "svg":
        presented |= {name: attributes.get(name, "") for name in ("width", "height")}
    if tag.name == "body":
        presented["color"] = attributes.get("text", "")
    if _HEX.fullmatch(presented.get("color", "")):  # an attribute needs no '#'
        presented["color"] = f"#{presented['color']}"
    declared = ";".join(f"{name}:{value}" for name, value in presented.items())
    if hides(f"{attributes.get('style', '')};{declared}"):
        return HiddenKind.HIDDEN_STYLE
    if any(map(_HIDING_CLASS.fullmatch, attributes.get("class", "").lower().split())):
        return HiddenKind.HIDDEN_CLASS
    if tag.name in _UNRENDERED or (in_drawing and tag.name in _UNDRAWN):
        return HiddenKind.UNRENDERED
    if tag.name == "dialog" and "open" not in attributes:
        return HiddenKind.UNRENDERED
    if tag.name == "select" or (tag.name == "details" and "open" not in attributes):
        return HiddenKind.CLOSED
    return None


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
