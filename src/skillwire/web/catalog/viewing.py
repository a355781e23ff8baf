"""A file as a page shows it: text with line numbers, Markdown rendered, an image, or only what is known of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from skillwire.limits import MIB
from skillwire.web.headers import image_type
from skillwire.web.text import code, markdown

if TYPE_CHECKING:
    from markupsafe import Markup

    from skillwire.web.catalog.skill import Texts

_MOST_TEXT = MIB  # larger files are downloaded
_MOST_IMAGE = 16 * MIB  # a browser shows it and we do nothing but send it
_MARKDOWN = ("md", "markdown", "mdx")


class Shown(NamedTuple):
    """How a file is shown, and what of it."""

    kind: Literal["text", "prose", "image", "bytes", "empty", "large"]
    html: Markup | None = None
    lines: int = 0
    is_markdown: bool = False


def most_shown(name: str) -> int:
    """The size up to which a file that is called ``name`` is shown."""
    return _MOST_TEXT if image_type(name) is None else _MOST_IMAGE


def shown(data: bytes, name: str, texts: Texts, *, as_text: bool) -> Shown:
    """``data``, which is called ``name``, for a page; Markdown as it is written if ``as_text``."""
    if not data:
        return Shown("empty")
    if image_type(name) is not None:
        return Shown("image" if len(data) <= _MOST_IMAGE else "large")
    text = _text(data)
    if text is None:
        return Shown("bytes")
    if len(data) > _MOST_TEXT:
        return Shown("large")
    is_markdown = name.rpartition(".")[2].lower() in _MARKDOWN
    if is_markdown and not as_text:
        return Shown("prose", markdown(text, link=texts.link, image=texts.image), is_markdown=True)
    lines = text.removesuffix("\n")
    return Shown("text", code(lines, name), lines.count("\n") + 1, is_markdown)


def _text(data: bytes) -> str | None:
    """The text in ``data``: what is UTF-8 and has no zero bytes, as a person would say."""
    if b"\x00" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
