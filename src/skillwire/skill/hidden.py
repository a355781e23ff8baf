"""Text that a person does not see and a model does (B6).

Unicode tag characters spell ASCII invisibly; control characters, and those that turn the direction of writing,
make text read differently from what it says; zero-width characters and variation selectors in a run, or spread
over ordinary letters, carry bits. Of HTML, lists say what is certainly shown: elements, attributes with their
values, and declarations of a style (``style.py``). Everything else is reported with its kind and what it says, so
that the person who approves has read it too. Hidden parts of Markdown itself: ``markdown.py``.
"""

from __future__ import annotations

import re
from enum import StrEnum
from html import unescape
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote

from skillwire.skill.style import is_plain_style

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
    LOST_CELL = "lost-cell", "cells beyond the columns of a table"
    CODE_INFO = "code-info", "words after the language of a code block"
    YAML_COMMENT = "yaml-comment", "a comment in the frontmatter"
    UNREAD = "unread", "too large, or nested too deep, to look for all hidden text in it"
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
# These join letters of their own scripts. After other letters most fonts draw nothing.
_STACKERS = (
    "\u1039\u17d2\u1a60\u2d7f\U00010a3f\U00011133\U000113d0\U0001193e\U00011a47\U00011a99\U00011d45"
    "\U00011d97\U0001bc9d\U0001da9b-\U0001da9f\U0001daa1-\U0001daaf"
)
# Controls of C1, notes between lines, and what is no character.
_UNASSIGNED = (
    "\x80-\x9f\ufff9-\ufffb\ufdd0-\ufdef\ufffe\uffff\U0001fffe\U0001ffff\U0002fffe\U0002ffff\U0003fffe\U0003ffff"
)
_PRIVATE = "\ue000-\uf8ff"  # only a font of its own shows them; one alone may be an icon
_OTHERS = f"{_UNASSIGNED}{_PRIVATE}\u2028\u2029\ud800-\udfff"
_PATTERN = re.compile(
    f"(?P<tag>[{_TAGS}]+)"
    f"|(?P<control>[{_CONTROLS}]+)"
    f"|(?P<bidi>[{_BIDI}]+)"
    # An emoji may join a selector to one zero-width joiner; three in a row mean nothing visible.
    f"|(?P<selector>[{_SELECTORS}]{{2,}})"
    f"|(?P<zero>[{_WIDTHLESS}{_JOINERS}{_SELECTORS}]{{3,}}|[{_WIDTHLESS}{_JOINERS}]{{2,}})"
    f"|(?P<stacker>[{_STACKERS}]{{3,}})"
    f"|(?P<filler>[{_FILLERS}])"
    f"|(?P<unassigned>[{_UNASSIGNED}]+)"
    f"|(?P<private>[{_PRIVATE}]{{2,}})"
    # Tabs and blanks in turn can spell bits. An editor leaves only tabs before blanks, or blanks before tabs.
    r"|(?P<blanks>(?<![^\S\r\n])(?!(?: *+\t*+|\t*+ *+)(?:[\r\n]|\Z))[^\S\r\n]{3,}+(?=[\r\n]|\Z))"
)
# Where no script and no emoji has them: joiners after letters of an alphabet that does not join (Latin, Greek,
# Cyrillic, Armenian, Georgian) or at the start of a line, selectors after what has no variants. A digit has one in
# a keycap. A soft hyphen and the two marks of direction have their use there.
_LATIN = (
    " -~\u00a0-\u02af\u0370-\u058f\u10a0-\u10ff\u1c80-\u1cbf\u1d00-\u1dbf\u1e00-\u1fff"
    "\u2c60-\u2d2f\ua640-\ua69d\ua720-\ua7ff"
)
_STRAY = (
    f"(?<![^{_LATIN}\\n\\t])(?:[{_JOINERS}{_STACKERS}\u034f\u180b-\u180f\u200b\u2060-\u2064\u206a-\u206f\u2800\ufe00-\ufe0d]"
    "|(?<![\u00a9\u00ae])(?:\ufe0e|\ufe0f(?!\u20e3))|\ufeff)"
    "|[\ufe00-\ufe0d\U000e0100-\U000e01ef]"  # a few choose glyphs of ideographs and symbols; many carry bits
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
# The first summary, as long as it is plain.
_SUMMARY = re.compile(
    r"\A\s*+<summary>(?:[^<]|</?(?:b|strong|i|em|code|kbd|h[1-6]|br)\s*/?>)*+</summary\s*>", re.IGNORECASE
)
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
)
# What HTML knows, in two lists. The content of the first is in sight, whatever surrounds it. Nothing is certain of
# the others: controls, drawings and formulas, what scripts open, what browsers have given up. An element
# of neither is a placeholder or a mark for the model: browsers show its content, and not its name.
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
# These hold text only: a tag inside means nothing.
_RAW = frozenset({"iframe", "noembed", "noframes", "noscript", "script", "style", "textarea", "title", "xmp"})
# Attributes, and the values they have. Any other attribute, and any other value, says something to a model only.
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
_FEW_WORDS = 2
_MANY_WORDS = 3
_MORE_WORDS = 4
_MANY_NAMES = 6
_MOST_ALT_WORDS = 8
_MOST_ADDRESS_WORDS = 8
_WORD = re.compile(r"[^\W\d_]{2,}")
_ADDRESS_PART = re.compile(r"[/?#&=;:]")
_SEPARATOR = re.compile(r"[\W_]+")
_HIDING_CLASS = re.compile(
    r"(?:[a-z]+[-_:])?(?:hidden|invisible|hide|d-none|display-none|off-?screen|sr[-_]?only|opacity-0"
    r"|text-(?:transparent|white|black|current|\w+-\d+)|[wh]-0|size-0|overflow-hidden|collapse|clip"
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
    rows = _Rows(text)
    for piece in pieces:
        offset, html = piece
        for match in _MARKUP.finditer(html):
            group = match.lastgroup or ""
            if group in _MARKUP_KINDS:
                yield HiddenText(_MARKUP_KINDS[group], offset + match.start(), one_line(match[group]))
                continue
            tag = _read_tag(match, offset)
            kind = None if tag.closes else _hiding_kind(tag)
            if not match["end"]:
                yield HiddenText(HiddenKind.UNCLOSED_TAG, tag.start, one_line(match[0]))
            elif tag.closes or HiddenKind.UNRENDERED not in (kind, hiding and hiding.kind):  # those are told whole
                yield from rows.after(tag, offset + match.end())
                yield from _hidden_attributes(tag)
            if hiding is not None:
                hiding = hiding.after(tag)
                if not hiding.depth:
                    yield from hiding.told(text, piece, match.start())
                    hiding = None
            elif kind is not None and tag.name in _VOID:
                if tag.pairs:
                    yield HiddenText(kind, tag.start, one_line(match[0]))
            elif kind is not None:
                hiding = _Hiding(kind, tag, piece, match.end())
    yield from rows.told()
    if hiding is not None:
        yield from hiding.told(text, (len(text), ""), 0)


def count_words(text: str) -> int:
    """How many words of letters ``text`` has; hyphens and the like separate them."""
    return len(_WORD.findall(text))


def has_address_words(address: str) -> bool:
    """Whether an address says more than where something is. No page shows it."""
    plain = unquote(address)
    if len(address.split()) >= _MANY_WORDS or len(plain.split()) >= _MORE_WORDS or plain.startswith("data:"):
        return True
    for part in _ADDRESS_PART.split(plain):
        if sum(len(word) > 1 and word.isalpha() for word in _SEPARATOR.split(part)) > _MOST_ADDRESS_WORDS:
            return True
    return False


def count_name_parts(name: str) -> int:
    """Of how many words an identifier is made, also with capitals between them."""
    return len(_NAME_PART.findall(name))


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
        said = one_line(_SUMMARY.sub("", inside) if self.kind is HiddenKind.CLOSED else inside)
        if self.kind is HiddenKind.UNRENDERED:
            said = " ".join((*map(_say, self.tag.pairs), *([said] if said else ())))
        elif self.kind is HiddenKind.HIDDEN_STYLE and not said:  # it may cover something
            said = one_line(html[self.tag.start - offset : self.begins])
        if said:
            yield HiddenText(self.kind, self.tag.start, said)


class _Rows:
    """What tags in a row say, with nothing shown between them: one is a placeholder or an anchor, many speak."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._start = self._end = -1
        self._words: list[str] = []  # of tags that no browser knows
        self._names: list[str] = []  # identifiers and addresses

    def after(self, tag: _Tag, end: int) -> Iterator[HiddenText]:
        if self._end >= 0 and (tag.name == "img" or self._text[self._end : tag.start].strip()):
            yield from self.told()
        is_known = tag.name in _SHOWN or tag.name in ("http:", "https:") or "@" in tag.name
        if tag.closes or (is_known and not tag.pairs):
            self._end = end if self._end >= 0 else -1
            return
        if self._end < 0:
            self._start = tag.start
        self._end = end
        if is_known:
            self._names += [value for name, value in tag.pairs if name in _NAMES or name in ("href", "cite")]
        else:
            self._words.append(" ".join((tag.name, *(name for name, _ in tag.pairs))))

    def told(self) -> Iterator[HiddenText]:
        words, names = self._words, self._names
        self._words, self._names, self._end = [], [], -1
        said = " ".join(words)
        one_tag = any(len(said.split()) >= _MANY_WORDS for said in words)
        if one_tag or len(words) >= _MORE_WORDS or count_words(said) > _MORE_WORDS:
            yield HiddenText(HiddenKind.TAG_WORDS, self._start, said)
        if len(names) >= _MANY_NAMES:
            yield HiddenText(HiddenKind.ATTRIBUTE, self._start, one_line(" ".join(names)))


def _read_tag(match: re.Match[str], offset: int) -> _Tag:
    pairs = [
        (name.lower(), unescape("".join(values))) for name, *values in _ATTRIBUTE.findall(match["attributes"])
    ]
    attributes = dict(reversed(pairs))  # of two, a browser takes the first
    return _Tag(match["name"].lower(), offset + match.start(), bool(match["close"]), attributes, pairs)


def _say(pair: tuple[str, str]) -> str:
    name, value = pair
    return f"{name}={one_line(value)}" if value.strip() else name


def _hidden_attributes(tag: _Tag) -> Iterator[HiddenText]:
    """What the attributes of a tag say, beside what belongs there."""
    found: list[str] = []
    seen: set[str] = set()
    is_unknown = tag.name not in _SHOWN and tag.name not in _UNRENDERED
    for name, value in tag.pairs:
        if name in seen or tag.closes:  # a browser ignores both
            found.append(_say((name, value)))
        elif name == "alt" and tag.name == "img":
            if is_long_alt(value):
                yield HiddenText(HiddenKind.ALT, tag.start, one_line(value))
        elif name in _ADDRESSES:
            if any(map(has_address_words, _addresses(name, value))):
                yield HiddenText(HiddenKind.LINK_WORDS, tag.start, one_line(unquote(value)))
        elif is_unknown and not value.strip():
            pass  # told with the tag's name
        elif not _is_allowed(name, value):
            found.append(_say((name, value)))
        seen.add(name)
    if found and not (is_unknown and count_words(" ".join(found)) < _MORE_WORDS):
        yield HiddenText(HiddenKind.ATTRIBUTE, tag.start, " ".join(found))


def _addresses(name: str, value: str) -> list[str]:
    """The addresses in ``srcset``, or all of it where it is no such list."""
    sources = _SOURCE.findall(value) if name == "srcset" else []
    return sources if sources and not _SOURCE.sub("", value).strip() else [value]


def _is_allowed(name: str, value: str) -> bool:
    if name == "style":  # it hides, or not; but it may also be prose
        return all(
            count_words(said) < _MORE_WORDS
            for each in value.split(";")
            if not is_plain_style(each)
            for said in each.split(":")
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
