"""Files of a skill in a browser: their headers, and how a page shows them.

A file is never a document of this site: it is a download or a raster image, and always sandboxed, so that HTML in
a skill cannot run. Pages show text, highlighted, Markdown, rendered or as source, and images.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import quote

from markupsafe import Markup

from skillwire.errors import FormatError
from skillwire.limits import DEFAULT_LIMITS, MIB
from skillwire.skill.uri import is_within, parse_uri, resolve_reference, skill_root
from skillwire.web.highlight import code, snippet
from skillwire.web.markdown import markdown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from skillwire.skill import SkillEntry
    from skillwire.skill.uri import SkillUri
    from skillwire.web.markdown import LinkTo

FILE_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}
MAX_FILES = 200  # of a list or a tree
_MAX_TEXT = MIB  # larger files are downloaded
_MAX_IMAGE = 16 * MIB  # larger, because an image is not rendered here
_WEB = ("http://", "https://", "mailto:")
_MARKDOWN = ("md", "markdown", "mdx")
_FRONTMATTER = re.compile(r"---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
# Image formats that cannot contain scripts. SVG can, so it is shown as text.
_IMAGES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
}


def image_type(name: str) -> str | None:
    """The media type of a safe image, by file name; ``None`` for other files."""
    return _IMAGES.get(name.rpartition(".")[2].lower())


def file_headers(name: str) -> dict[str, str]:
    """The headers for the bytes of a file: an image or a download, never a document."""
    image = image_type(name)
    disposition = "inline" if image else "attachment"
    return {
        **FILE_HEADERS,
        "Content-Type": image or "application/octet-stream",
        "Content-Disposition": f"{disposition}; filename*=UTF-8''{quote(name.rpartition('/')[2], safe='')}",
    }


def skill_links(
    entry: SkillEntry, file: SkillUri, url_of: Callable[[SkillUri], str | None], *, outward: bool = False
) -> LinkTo:
    """The targets of links in a file of a skill: ``url_of`` a file of the skill; ``None`` shows them as text.

    With ``outward``, addresses on the web are links too.
    """
    root = skill_root(parse_uri(entry.uri))

    def link(target: str) -> str | None:
        if target.startswith("#") or (outward and target.lower().startswith(_WEB)):
            return target
        try:
            place = resolve_reference(root, file, target)
        except FormatError:
            return None
        if place is None or not is_within(root, place):
            return None
        is_known = not entry.is_complete or entry.resource(str(place)) is not None
        return url_of(place) if is_known else None

    return link


class TreeNode(NamedTuple):
    """A file with its address, or a folder with its nodes."""

    name: str
    path: str
    url: str = ""
    nodes: list[TreeNode] | None = None


def file_tree(files: Iterable[tuple[str, str]]) -> list[TreeNode]:
    """The files, as paths and addresses, as a tree: files before folders."""
    root: list[TreeNode] = []
    folders: dict[str, list[TreeNode]] = {"": root}
    for path, url in sorted(files, key=lambda file: (file[0] != "SKILL.md", file[0].count("/"), file[0])):
        parent, at = root, ""
        *names, name = path.split("/")
        for each in names:
            at = f"{at}/{each}" if at else each
            if at not in folders:
                folders[at] = []
                parent.append(TreeNode(each, at, nodes=folders[at]))
            parent = folders[at]
        parent.append(TreeNode(name, path, url))
    return root


class FileView(NamedTuple):
    """How a page shows a file."""

    kind: Literal["text", "prose", "image", "bytes", "empty", "large"]
    html: Markup | None = None
    lines: int = 0
    is_markdown: bool = False


def max_shown_size(name: str) -> int:
    """The largest size at which the file ``name`` is shown."""
    return _MAX_TEXT if image_type(name) is None else _MAX_IMAGE


def file_view(
    data: bytes,
    name: str,
    *,
    link: LinkTo,
    image: LinkTo | None = None,
    as_text: bool = False,
    is_review: bool = False,
) -> FileView:
    """The view of the file ``name``; with ``as_text``, Markdown is shown as source.

    A review shows all text that it examines, also if it is longer or has zero bytes. Otherwise one zero byte would
    hide a file from the person who approves it.
    """
    if not data:
        return FileView("empty")
    if image_type(name) is not None:
        return FileView("image" if len(data) <= _MAX_IMAGE else "large")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return FileView("bytes")
    if b"\x00" in data and not is_review:
        return FileView("bytes")
    if len(data) > (DEFAULT_LIMITS.max_checked_text if is_review else _MAX_TEXT):
        return FileView("large")
    is_markdown = name.rpartition(".")[2].lower() in _MARKDOWN
    if is_markdown and not as_text:
        fields = _FRONTMATTER.match(text)  # Markdown would read it as a heading
        head = snippet(fields[1], "yaml") if fields else Markup("")
        body = text[fields.end() :] if fields else text
        return FileView("prose", head + markdown(body, link=link, image=image), is_markdown=True)
    lines = text.removesuffix("\n")
    return FileView("text", code(lines, name), lines.count("\n") + 1, is_markdown)
