"""What a page knows of the server that it belongs to: what it serves, what it is called, where it is reached."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from skillwire.server.http import MCP_PATH

if TYPE_CHECKING:
    from starlette.requests import Request

    from skillwire.server.page import Sessions
    from skillwire.server.skills import Skills

_HOST = re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?\Z")


@dataclass(frozen=True, slots=True)
class Site:
    """One server and its page."""

    skills: Skills
    name: str
    url: str  # of the protocol, by the address that is listened at
    public_url: str | None = None  # of the protocol, for clients
    sessions: Sessions | None = None
    unlisted: tuple[str, ...] = ()  # globs of paths

    @property
    def base(self) -> str:
        """Where the page is, before every path: where a proxy has put the protocol, the page is beside it."""
        path = urlsplit(self.public_url).path if self.public_url else ""
        return path.removesuffix(MCP_PATH) if path.endswith(MCP_PATH) else ""

    @property
    def needs_token(self) -> bool:
        """Whether callers have to say who they are."""
        return self.sessions is not None

    def url_for(self, request: Request) -> str:
        """The protocol's address as whoever asks reaches it."""
        host = request.headers.get("host", "")
        if self.public_url or not _HOST.match(host):
            return self.public_url or self.url
        return f"{request.url.scheme}://{host}{MCP_PATH}"

    def is_own_form(self, request: Request) -> bool:
        """Whether a form was sent by a page of ours: by its origin, or by what the browser says of it (CSRF)."""
        origin = request.headers.get("origin", "")
        public = urlsplit(self.public_url or "")
        ours = {f"{scheme}://{request.headers.get('host', '')}" for scheme in ("http", "https")}
        if self.public_url:
            ours.add(f"{public.scheme}://{public.netloc}")
        return origin in ours and request.headers.get("sec-fetch-site", "same-origin") == "same-origin"


def page_address(url: str, public_url: str | None) -> str:
    """Where people open the page of a server whose protocol is at ``url``."""
    if public_url is not None and urlsplit(public_url).path.endswith(MCP_PATH):
        return f"{public_url.removesuffix(MCP_PATH)}/"
    return f"{url.removesuffix(MCP_PATH)}/"
