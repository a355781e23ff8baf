"""Untrusted Markdown as safe HTML: CommonMark with GitHub's tables, task lists, alerts and footnotes.

HTML in the text is escaped. ``link`` chooses the target of every link, and external links have no referrer and no
opener. Nothing is loaded from other servers: an external image becomes a link. Content that rendering would hide
is shown below the text (B6), as ``check`` finds it. A sanitizer processes the result, so that one mistake here or
in the parser is not enough for an attack.

Rendering can take up to a second for a text that is made to be slow, so the HTML of large texts is cached by
digest. A text with even more markup is shown as source.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from functools import cache
from hashlib import sha256
from threading import Lock
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from skillwire.limits import KIB, MIB
from skillwire.skill.markdown import is_tame, read_markdown
from skillwire.web.escape import visible
from skillwire.web.highlight import LANGUAGES, code, snippet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

    LinkTo = Callable[[str], str | None]

EXTERNAL_REL = "noreferrer nofollow noopener"
_DEEPEST = 20
_MARKUP = re.compile(r"(?:\n+|\*+|_+|`+|\|+|>+|#+|-+|\++|~+|\[|<|&)")  # determines the time of the parser
_MAX_MARKUP = 20_000
_CACHED_FROM = 8 * KIB
_MAX_CACHED = 32 * MIB
_ANCHOR = "md-"  # prefix of every id, so that no heading has the id of a part of the page
_STAYS = re.compile(r"/(?!/)|[#?]")
_LEAVES = re.compile(r"(?:https?|mailto):", re.IGNORECASE)
_ALIGNED = re.compile(r"text-align:(left|right|center)")
_CAPTION = Markup('<div class="caption">{}</div>')  # rendering would hide the info string of a fence
_REFERENCE = Markup('<sup><a href="#{}fn-{}">{}</a></sup>')
_FIND = Markup('<li><mark class="hidden" data-kind="{}">{}: {}</mark></li>')
_MAX_FINDS = 50
_TASK = re.compile(r"\[([ xX])\](?=\s)")
_ALERT = re.compile(r"\[!(note|tip|important|warning|caution)\]\s*$", re.IGNORECASE)
_NOTE = re.compile(r"\[\^([^\]\s]{1,80})\]")
_HEADING = re.compile(r'<h([23]) id="([^"]+)">(.*?)</h\1>', re.DOTALL)
_TAGS = {
    "a", "blockquote", "br", "code", "div", "em", "h2", "h3", "h4", "h5", "h6", "hr", "img", "li", "mark", "ol",
    "p", "pre", "s", "section", "span", "strong", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_ATTRIBUTES: dict[str, set[str]] = {
    "a": {"href", "rel", "class", "title"},
    "img": {"src", "alt", "loading"},
    "mark": {"class", "data-kind", "title"},
    "ol": {"start"},
    "pre": {"class", "tabindex"},
    "table": {"tabindex"},
    **{tag: {"class"} for tag in ("blockquote", "code", "div", "p", "section", "span", "strong", "td", "th")},
    **{tag: {"class", "id"} for tag in ("li", "sup")},
    **{f"h{level}": {"id"} for level in range(2, 7)},
}


def table_of_contents(html: Markup) -> list[tuple[int, str, str]]:
    """The level, the anchor and the words of each main heading of rendered Markdown."""
    found = _HEADING.findall(str(html))
    return [(int(level), name, Markup(words).striptags()) for level, name, words in found]  # noqa: S704


def markdown(text: str, *, link: LinkTo, image: LinkTo | None = None, with_hidden: bool = True) -> Markup:
    """Render ``text``. ``link`` returns the target of a link, or ``None`` to show it as text.

    ``image`` returns the address of an image of the skill, or ``None`` to show it as a link. Headings start one
    level below the heading of the page. Without ``with_hidden``, the page has to list the hidden text itself.
    """
    image = image or (lambda source: None)  # each becomes a link  # noqa: ARG005
    text = text.encode(errors="backslashreplace").decode()  # lone surrogates, which the sanitizer rejects
    if not is_tame(text) or sum(1 for _ in _MARKUP.finditer(text)) > _MAX_MARKUP:
        return _as_source(text)
    if len(text) < _CACHED_FROM:
        return _rendered(text, link, image, with_hidden=with_hidden)
    return _render_cache.get(text, link, image, with_hidden=with_hidden)


def _rendered(text: str, link: LinkTo, image: LinkTo, *, with_hidden: bool) -> Markup:
    parser, env = _parser(), dict[str, Any]()
    tokens = parser.parse(text, env)
    if any(token.level >= _DEEPEST - 2 for token in tokens):  # the parser stops there
        return _as_source(text)
    rewriter, notes = _TokenRewriter(link, image), list[str]()
    rewriter.blocks(tokens)
    html = parser.renderer.render(tokens, parser.options, env)
    for number, (label, note) in enumerate(env.get("notes", ()), 1):  # all of them, so that none is hidden
        inline = parser.parseInline(note, env)
        rewriter.blocks(inline)
        back = Markup('<li id="{}fn-{}">').format(
            _ANCHOR, _slug(label) if number == _number(label, env) else number
        )
        notes.append(f"{back}{parser.renderer.render(inline, parser.options, env)}</li>")
    if notes:
        html += f'<section class="footnotes"><ol>{"".join(notes)}</ol></section>'
    return _sanitized(html + (str(_hidden_parts(text)) if with_hidden else ""))


class _Targets(dict[str, "str | None"]):
    """The answers of ``ask``, as far as a text asked for them."""

    def __init__(self, ask: LinkTo) -> None:
        super().__init__()
        self._ask = ask

    def __missing__(self, target: str) -> str | None:
        return self.setdefault(target, self._ask(target))

    def agrees(self, ask: LinkTo) -> bool:
        """Whether ``ask`` still gives the same answers."""
        return all(ask(target) == place for target, place in self.items())


class _RenderCache:
    """A cache of rendered texts by digest. An entry is valid as long as its links have the same targets."""

    def __init__(self) -> None:
        self._lock = Lock()  # pages are rendered in threads; only one renders a text
        self._entries: OrderedDict[bytes, tuple[Markup, _Targets, _Targets]] = OrderedDict()
        self.size = 0

    def get(self, text: str, link: LinkTo, image: LinkTo, *, with_hidden: bool) -> Markup:
        digest = sha256(text.encode()).digest() + bytes([with_hidden])
        with self._lock:
            html, links, images = self._entries.pop(digest, (Markup(""), _Targets(link), _Targets(image)))
            self.size -= len(html)
            if not html or not (links.agrees(link) and images.agrees(image)):
                links, images = _Targets(link), _Targets(image)
                html = _rendered(text, links.__getitem__, images.__getitem__, with_hidden=with_hidden)
            self._entries[digest] = html, links, images
            self.size += len(html)
            while self.size > _MAX_CACHED:
                self.size -= len(self._entries.popitem(last=False)[1][0])
        return html


_render_cache = _RenderCache()


def _as_source(text: str) -> Markup:
    note = "This text is too large or nested too deeply to render. It is shown as source."
    return Markup('<p class="notice">{}</p>{}').format(note, code(text, ""))


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # late: only pages need it

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST})
    parser.block.ruler.before("reference", "note", _note_block, {"alt": ["paragraph"]})
    parser.inline.ruler.before("link", "note", _note_reference)
    return parser.enable(["table", "strikethrough"])


def _note_block(state: StateBlock, begin: int, end: int, silent: bool) -> bool:
    """``[^label]: text``, until an empty line. The text is stored in ``env``."""
    line = state.src[state.bMarks[begin] + state.tShift[begin] : state.eMarks[begin]]
    match = _NOTE.match(line)
    if match is None or not line.startswith(":", match.end()) or state.is_code_block(begin):
        return False
    if not silent:
        after = begin + 1
        while (
            after < end
            and not state.isEmpty(after)
            and not _NOTE.match(state.getLines(after, after + 1, 99, False))
        ):
            after += 1
        lines = [line[match.end() + 1 :], state.getLines(begin + 1, after, 99, False)]
        state.env.setdefault("notes", []).append((match[1], " ".join(lines).strip()))
        state.line = after
    return True


def _note_reference(state: StateInline, silent: bool) -> bool:
    match = _NOTE.match(state.src, state.pos)
    number = _number(match[1], state.env) if match else 0
    if match is None or not number:
        return False
    if not silent:
        token = state.push("html_inline", "", 0)
        token.content = str(_REFERENCE.format(_ANCHOR, _slug(match[1]), number))
    state.pos = match.end()
    return True


def _number(label: str, env: Any) -> int:
    """The number of the first footnote with this label; 0 if there is none."""
    return next((at for at, (name, _) in enumerate(env.get("notes", ()), 1) if name == label), 0)


def _sanitized(html: str) -> Markup:
    import nh3  # late: only pages need it

    return Markup(  # noqa: S704 - this is the sanitizer
        nh3.clean(html, tags=_TAGS, attributes=_ATTRIBUTES, url_schemes={"http", "https", "mailto"}, link_rel=None)
    )


class _TokenRewriter:
    """Changes the tokens of the parser in place, so that unsafe or invisible content becomes safe HTML."""

    def __init__(self, link: LinkTo, image: LinkTo) -> None:
        self._link = link
        self._image = image
        self._taken: dict[str, int] = {}

    def blocks(self, tokens: Sequence[Token]) -> None:
        for place, token in enumerate(tokens):
            if token.type == "inline":
                self._pieces(token.children or [])
                self._tasks_and_alerts(tokens[max(place - 2, 0) : place], token.children or [])
            elif token.type in ("fence", "code_block"):
                self._code(token)
            elif token.type in ("heading_open", "heading_close"):
                token.tag = f"h{min(int(token.tag[1]) + 1, 6)}"
                if token.type == "heading_open":
                    token.attrSet("id", self._name(words_of(tokens[place + 1].children or [])))
            elif token.type == "table_open":
                token.attrSet("tabindex", "0")  # a wide table scrolls, also with the keyboard
            elif token.type in ("td_open", "th_open"):
                aligned = _ALIGNED.match(str(token.attrs.pop("style", "")))
                if aligned:
                    token.attrSet("class", f"align-{aligned[1]}")

    def _tasks_and_alerts(self, before: Sequence[Token], pieces: list[Token]) -> None:
        """The first paragraph of a list item or a quote may begin with a mark."""
        if len(before) < 2 or before[1].type != "paragraph_open" or not pieces or pieces[0].type != "text":
            return
        first, outer = pieces[0], before[0]
        if outer.type == "list_item_open" and (task := _TASK.match(first.content)):
            outer.attrSet("class", "task")
            mark = "☐" if task[1] == " " else "☑"
            _become(
                first, Markup('<span class="box">{}</span>{}').format(mark, visible(first.content[task.end() :]))
            )
        elif outer.type == "blockquote_open" and (alert := _ALERT.match(first.content)):
            outer.attrSet("class", f"alert alert-{alert[1].lower()}")
            _become(first, Markup("<strong>{}</strong>").format(alert[1].capitalize()))
            if len(pieces) > 1 and pieces[1].type == "softbreak":
                pieces[1].type = "hardbreak"

    def _code(self, token: Token) -> None:
        info = token.info.strip()
        caption = Markup("") if info.lower() in LANGUAGES or not info else _CAPTION.format(visible(info))
        token.type, token.content = "html_block", str(caption + snippet(token.content, info.partition(" ")[0]))

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
        """An image of the skill, or a link for an external image."""
        place = self._image(source)
        if place is not None and _STAYS.match(place):
            return Markup('<img src="{}" alt="{}" loading="lazy">').format(place, words)
        shown = Markup("image: {}").format(visible(words or source or "unnamed"))
        target = self._where(source)
        if target is None:
            return Markup('<span class="image">{}</span>').format(shown)
        return _anchor(target, source) + shown + Markup("</a>")

    def _where(self, target: str) -> str | None:
        """The target of a link: a page of this site or an address on the web; ``None`` for others."""
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
    """The visible text of inline tokens."""
    return "".join(
        words_of(piece.children) if piece.children else " " if "break" in piece.type else piece.content
        for piece in pieces
        if piece.type in ("text", "code_inline", "image", "softbreak", "hardbreak")
    )


def _become(piece: Token, html: Markup) -> None:
    piece.type, piece.content, piece.children = "html_inline", str(html), None


def _anchor(target: str, title: str) -> Markup:
    rel = "" if _STAYS.match(target) else Markup(' rel="{}" class="outward"').format(EXTERNAL_REL)
    attribute = Markup(' title="{}"').format(title) if title else ""
    return Markup('<a href="{}"{}{}>').format(target, rel, attribute)


def _slug(words: str) -> str:
    """The anchor of a heading, in the common format."""
    return re.sub(r"[^\w -]", "", words.strip().lower()).replace(" ", "-")


def _hidden_parts(text: str) -> Markup:
    """A list of the content that rendering hides and a model reads."""
    finds = read_markdown(text).hidden
    if not finds:
        return Markup("")
    items = [_FIND.format(find.kind, find.kind.label, visible(find.text)) for find in finds[:_MAX_FINDS]]
    if len(finds) > _MAX_FINDS:
        items.append(Markup("<li>and {} more</li>").format(len(finds) - _MAX_FINDS))
    note = "A model reads these parts, but rendered Markdown hides them:"
    return Markup('<section class="notice"><p>{}</p><ul>{}</ul></section>').format(note, Markup("").join(items))
