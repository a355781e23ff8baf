"""Markdown of strangers as HTML that is safe to look at.

HTML in it is text. Links go where ``link`` says, and those that leave say so to the browser (no referrer, no
opener). Nothing is loaded from elsewhere: an image of another place becomes a link with its words. What rendering
would hide is shown below the text (B6), as ``check`` finds it. Everything passes a sanitiser at
the end, so that a mistake here, or in the reader, is not enough.

Rendering takes up to a second for a text made to be slow, so a large text is rendered once and kept by its digest.
What has more markup than that is shown as it is written.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from functools import cache
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from markupsafe import Markup

from skillwire.limits import KIB, MIB
from skillwire.skill.markdown import is_tame, read_markdown
from skillwire.web.escape import visible
from skillwire.web.highlight import LANGUAGES, code, snippet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.token import Token

    Link = Callable[[str], str | None]

OUTWARD = "noreferrer nofollow noopener"
_DEEPEST = 20
_MARKUP = re.compile(r"(?:\n+|\*+|_+|`+|\|+|>+|#+|-+|\++|~+|\[|<|&)")  # what takes the reader's time
_MOST_MARKUP = 20_000
_KEPT_FROM = 8 * KIB
_MOST_KEPT = 32 * MIB
_ANCHOR = "md-"  # before every id, so that no heading takes the name of a part of the page
_STAYS = re.compile(r"/(?!/)|[#?]")
_LEAVES = re.compile(r"(?:https?|mailto):", re.IGNORECASE)
_ALIGNED = re.compile(r"text-align:(left|right|center)")
_CAPTION = Markup('<div class="caption">{}</div>')  # a renderer keeps the words after a fence to itself
_FIND = Markup('<li><mark class="hidden" data-kind="{}">{}: {}</mark></li>')
_FINDS_SHOWN = 50
_TAGS = {
    "a", "blockquote", "br", "code", "div", "em", "h2", "h3", "h4", "h5", "h6", "hr", "img", "li", "mark", "ol",
    "p", "pre", "s", "section", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_ATTRIBUTES: dict[str, set[str]] = {
    "a": {"href", "rel", "class", "title"},
    "img": {"src", "alt", "loading"},
    "mark": {"class", "data-kind", "title"},
    "ol": {"start"},
    "pre": {"class", "tabindex"},
    "table": {"tabindex"},
    **{tag: {"class"} for tag in ("code", "div", "p", "section", "span", "td", "th")},
    **{f"h{level}": {"id"} for level in range(2, 7)},
}


def markdown(text: str, *, link: Link, image: Link | None = None) -> Markup:
    """``text`` as HTML. ``link`` says where a link goes, ``None`` if it is to be shown as text.

    ``image`` says where an image of the skill can be had; those of which it says ``None`` become links. Headings
    begin one level below the page's own.
    """
    text = text.encode(errors="backslashreplace").decode()  # halves of characters: the sanitiser takes none
    if not is_tame(text) or sum(1 for _ in _MARKUP.finditer(text)) > _MOST_MARKUP:
        return _as_written(text)
    if len(text) < _KEPT_FROM:
        return _rendered(text, link, image)
    return _rendered_texts.get(text, link, image)


def _rendered(text: str, link: Link, image: Link | None) -> Markup:
    reader, env = _reader(), dict[str, Any]()
    tokens = reader.parse(text, env)
    if any(token.level >= _DEEPEST - 2 for token in tokens):  # there the reader gives up
        return _as_written(text)
    _Rewriting(link, image).blocks(tokens)
    html = reader.renderer.render(tokens, reader.options, env)
    return _sanitised(html + str(_unshown(text)))


class _Kept(NamedTuple):
    html: Markup
    links: dict[str, str | None]
    images: dict[str, str | None]


class _RenderedTexts:
    """Rendered texts by digest, the one used last at the end. Each was made for the places its links had then."""

    def __init__(self) -> None:
        self._lock = Lock()  # pages are made in threads; two of them do not render the same text
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()
        self._size = 0

    def get(self, text: str, link: Link, image: Link | None) -> Markup:
        digest = sha256(text.encode()).digest() + bytes([image is None])
        with self._lock:
            kept = self._kept.pop(digest, None)
            if kept is not None:
                self._size -= len(kept.html)
            if kept is None or not (_agrees(link, kept.links) and _agrees(image, kept.images)):
                links, images = dict[str, str | None](), dict[str, str | None]()
                html = _rendered(text, _noted(link, links), None if image is None else _noted(image, images))
                kept = _Kept(html, links, images)
            self._kept[digest] = kept
            self._size += len(kept.html)
            while self._size > _MOST_KEPT:
                self._size -= len(self._kept.popitem(last=False)[1].html)
        return kept.html


_rendered_texts = _RenderedTexts()


def _noted(ask: Link, notes: dict[str, str | None]) -> Link:
    def noting(target: str) -> str | None:
        if target not in notes:
            notes[target] = ask(target)
        return notes[target]

    return noting


def _agrees(ask: Link | None, notes: dict[str, str | None]) -> bool:
    """Whether every target that was asked for leads where it led then."""
    return ask is None or all(ask(target) == place for target, place in notes.items())


def _as_written(text: str) -> Markup:
    note = "This text is too large, or nests too deep, to be rendered. It is shown as it is written."
    return Markup('<p class="notice">{}</p>{}').format(note, code(text, ""))


@cache
def _reader() -> MarkdownIt:
    from markdown_it import MarkdownIt  # late: only pages need it

    reader = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST})
    return reader.enable(["table", "strikethrough"])


def _sanitised(html: str) -> Markup:
    import nh3  # late: only pages need it

    return Markup(  # noqa: S704 - this is the sanitiser
        nh3.clean(html, tags=_TAGS, attributes=_ATTRIBUTES, url_schemes={"http", "https", "mailto"}, link_rel=None)
    )


class _Rewriting:
    """Changes the reader's tokens in place: what is not safe or not seen becomes HTML that is."""

    def __init__(self, link: Link, image: Link | None) -> None:
        self._link = link
        self._image = image
        self._taken: dict[str, int] = {}

    def blocks(self, tokens: Sequence[Token]) -> None:
        for place, token in enumerate(tokens):
            if token.type == "inline":
                self._pieces(token.children or [])
            elif token.type in ("fence", "code_block"):
                self._code(token)
            elif token.type in ("heading_open", "heading_close"):
                token.tag = f"h{min(int(token.tag[1]) + 1, 6)}"
                if token.type == "heading_open":
                    token.attrSet("id", self._name(words_of(tokens[place + 1].children or [])))
            elif token.type == "table_open":
                token.attrSet("tabindex", "0")  # a wide one scrolls by itself, also with keys
            elif token.type in ("td_open", "th_open"):
                aligned = _ALIGNED.match(str(token.attrs.pop("style", "")))
                if aligned:
                    token.attrSet("class", f"align-{aligned[1]}")

    def _code(self, token: Token) -> None:
        words = token.info.strip()
        said = Markup("") if words.lower() in LANGUAGES or not words else _CAPTION.format(visible(words))
        token.type, token.content = "html_block", str(said + snippet(token.content, words.partition(" ")[0]))

    def _pieces(self, pieces: Sequence[Token]) -> None:
        opened: list[bool] = []
        for piece in pieces:
            if piece.type == "text" and not (piece.content.isascii() and piece.content.isprintable()):
                _become(piece, visible(piece.content))
            elif piece.type == "code_inline":
                _become(piece, Markup("<code>{}</code>").format(visible(piece.content)))
            elif piece.type == "image":
                _become(piece, self._picture(str(piece.attrGet("src") or ""), words_of(piece.children or [])))
            elif piece.type == "link_open":
                html = self._opening(piece)
                opened.append(bool(html))
                _become(piece, html)
            elif piece.type == "link_close":
                _become(piece, Markup("</a>") if opened.pop() else Markup(""))

    def _opening(self, piece: Token) -> Markup:
        target, title = self._where(str(piece.attrGet("href") or "")), str(piece.attrGet("title") or "")
        return Markup("") if target is None else _anchor(target, title)

    def _picture(self, source: str, words: str) -> Markup:
        """An image of the skill; one of another place is a link that says what it is."""
        place = None if self._image is None else self._image(source)
        if place is not None and _STAYS.match(place):
            return Markup('<img src="{}" alt="{}" loading="lazy">').format(place, words)
        shown = Markup("image: {}").format(visible(words or source or "without a name"))
        target = self._where(source)
        if target is None:
            return Markup('<span class="image">{}</span>').format(shown)
        return _anchor(target, source) + shown + Markup("</a>")

    def _where(self, target: str) -> str | None:
        """Where a link goes: a place of ours, or one on the web. Nothing else is a link."""
        place = self._link(target)
        if place is None or not (_STAYS.match(place) or _LEAVES.match(place)):
            return None
        return f"#{_ANCHOR}{_slug(place[1:])}" if place.startswith("#") else place

    def _name(self, words: str) -> str:
        slug = _ANCHOR + _slug(words)
        count = self._taken.get(slug, 0)
        self._taken[slug] = count + 1
        return f"{slug}-{count}" if count else slug


def words_of(pieces: Sequence[Token]) -> str:
    """What a reader sees of some pieces of a text."""
    return "".join(
        words_of(piece.children) if piece.children else " " if "break" in piece.type else piece.content
        for piece in pieces
        if piece.type in ("text", "code_inline", "image", "softbreak", "hardbreak")
    )


def _become(piece: Token, html: Markup) -> None:
    piece.type, piece.content, piece.children = "html_inline", str(html), None


def _anchor(target: str, title: str) -> Markup:
    rel = "" if _STAYS.match(target) else Markup(' rel="{}" class="outward"').format(OUTWARD)
    said = Markup(' title="{}"').format(title) if title else ""
    return Markup('<a href="{}"{}{}>').format(target, rel, said)


def _slug(words: str) -> str:
    """The anchor of a heading, as it is made nearly everywhere."""
    return re.sub(r"[^\w -]", "", words.strip().lower()).replace(" ", "-")


def _unshown(text: str) -> Markup:
    """What a rendered page does not show and a model reads, below the text."""
    finds = read_markdown(text).hidden
    if not finds:
        return Markup("")
    items = [_FIND.format(find.kind, find.kind.words, visible(find.says)) for find in finds[:_FINDS_SHOWN]]
    if len(finds) > _FINDS_SHOWN:
        items.append(Markup("<li>and {} more</li>").format(len(finds) - _FINDS_SHOWN))
    note = "Rendered Markdown does not show these parts, and a model reads them:"
    return Markup('<section class="notice"><p>{}</p><ul>{}</ul></section>').format(note, Markup("").join(items))
