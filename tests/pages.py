"""A page as a browser would read it, and what must never be in one of ours, whatever a skill says."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import urlsplit

OWN_SCRIPT = re.compile(r"[^?#:]*/static/[a-z]+\.js\?v=[0-9a-f]{12}\Z")
INSTALL = re.compile(
    r"(?:cursor://anysphere\.cursor-deeplink/mcp/install\?name=[\w-]+&config=|vscode:mcp/install\?)[\w%.-]+\Z"
)
NEVER = {"iframe", "object", "embed", "style", "base", "svg", "math", "frame", "applet", "noscript", "template"}


class Tag(NamedTuple):
    name: str
    attributes: dict[str, str]


class Page(HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.html = html
        self.tags: list[Tag] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(Tag(tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, name: str) -> list[dict[str, str]]:
        """The attributes of every tag called ``name``."""
        return [tag.attributes for tag in self.tags if tag.name == name]

    @property
    def links(self) -> list[str]:
        """Where its links go."""
        return [tag["href"] for tag in self.all("a") if "href" in tag]


def dangers(html: str) -> list[str]:
    """Whatever in a page could run, load from elsewhere, or lead somewhere by surprise."""
    page = Page(html)
    found = [f"<{tag.name}>" for tag in page.tags if tag.name in NEVER]
    for tag in page.tags:
        attributes = tag.attributes
        found += [
            f"{tag.name} {name}" for name in attributes if name.startswith("on") or name in ("style", "srcdoc")
        ]
        if tag.name == "script" and not OWN_SCRIPT.match(attributes.get("src", "")):
            found.append(f"script {attributes}")
        for name in ("href", "src", "action", "formaction", "srcset", "poster", "data", "xlink:href"):
            found += _strange(tag, name)
    return found


def _strange(tag: Tag, name: str) -> list[str]:
    value = tag.attributes.get(name)
    if value is None:
        return []
    place = urlsplit(value.strip())
    is_own = not place.scheme and not place.netloc
    is_safe_link = tag.name == "a" and place.scheme in ("http", "https", "mailto")
    is_install = tag.name == "a" and INSTALL.match(value) is not None
    if is_own or is_install or (is_safe_link and tag.attributes.get("rel") == "noreferrer nofollow noopener"):
        return []
    return [f"{tag.name} {name}={value}"]
