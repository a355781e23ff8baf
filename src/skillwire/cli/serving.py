"""Serving a catalog from the command line: the options that ``serve`` and ``gateway`` share."""

from __future__ import annotations

import argparse
import logging
import re
import sys
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from skillwire.errors import FormatError, NotFoundError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from skillwire.catalog.contract import Catalog
    from skillwire.server.access import Access
    from skillwire.server.page import Page
    from skillwire.server.skills import Skills

LOOPBACK = "127.0.0.1"
_DIALECT_HELP = "what skills/list means on stdio (default: extension); over HTTP each has its path below /mcp"
_FALLBACK_HELP = "who sees the plain tools and prompts: who lacks the extension (auto), everybody, or nobody"
_REPLAY_HELP = "memory for answers that are sent again while nothing changes (HTTP; default: 128; 0: none)"
_MAX_INSTRUCTIONS = 64 * 1024
_MAX_KEY = 4096


def add_serving_options(parser: argparse.ArgumentParser) -> None:
    """How a catalog is served, whatever it is."""
    add = parser.add_argument
    add("--http", metavar="[HOST:]PORT", help=f"serve over HTTP at /mcp (default host: {LOOPBACK})")
    add("--name", default="skillwire", help="the name the server gives itself")
    add("--instructions", type=Path, metavar="FILE", help="text for the model about this server")
    add("--page-size", type=_number(1, 1000), default=100, metavar="N", help="entries per page (default: 100)")
    add("--ttl", type=_number(0, 86_400), default=0, metavar="SECONDS", help="how long answers keep (default: 0)")
    add("--cache-scope", choices=("private", "public"), default="private", help="who may share a cached answer")
    add("--dialect", choices=("extension", "sep-2076", "native"), default="extension", help=_DIALECT_HELP)
    add("--fallback", choices=("auto", "always", "never"), default="auto", help=_FALLBACK_HELP)
    add("--activation-key", type=Path, metavar="FILE", help="native: at least 32 bytes that replicas share")
    add("--access", type=Path, metavar="FILE", help="who may come in and see what (HTTP); see docs/serve.md")
    add("--public-url", metavar="URL", help="how clients reach the server, if not by its address (HTTP)")
    add("--replay", type=_number(0, 4096), default=128, metavar="MIB", help=_REPLAY_HELP)
    add("--access-log", action="store_true", help="a line of JSON on stderr for each request (HTTP)")
    add("--no-page", action="store_true", help="no page for people beside the protocol (HTTP)")


def skills_of(
    catalog: Catalog,
    arguments: argparse.Namespace,
    access: Access | None,
    *,
    scheme: str = "skill",
    watch: bool = True,
    keep_listed: bool = False,
) -> Skills:
    """``catalog`` as it is to be served."""
    from skillwire.server.access import Policy  # late, like the imports below: only once the words are understood
    from skillwire.server.endpoints import Dialects
    from skillwire.server.skills import Skills
    from skillwire.wire.extension import Freshness

    return Skills(
        catalog,
        scheme=scheme,
        page_size=arguments.page_size,
        freshness=Freshness(arguments.ttl * 1000, arguments.cache_scope),
        watch=watch,
        viewer=None if access is None else Policy(access),
        dialects=Dialects(
            arguments.dialect,
            arguments.fallback,
            keep_listed=keep_listed,
            activation_key=_activation_key(arguments.activation_key),
        ),
    )


def page_of(skills: Skills, arguments: argparse.Namespace, access: Access | None, url: str) -> Page | None:
    """The page for people, unless it was turned off."""
    if arguments.no_page:
        return None
    from skillwire.web.catalog.site import catalog_page

    return catalog_page(
        skills,
        name=arguments.name,
        url=url,
        public_url=arguments.public_url,
        access=access,
        unlisted=getattr(arguments, "unlisted", ()),  # 'gateway' has no such option
    )


def page_address_of(arguments: argparse.Namespace, url: str) -> str | None:
    """Where people open it."""
    if arguments.no_page:
        return None
    from skillwire.web.catalog.site import page_address

    return page_address(url, arguments.public_url)


def log_access(arguments: argparse.Namespace) -> None:
    """A line for each request, if it was asked for."""
    if arguments.access_log:
        logging.basicConfig(stream=sys.stderr, format="%(message)s")
        logging.getLogger("skillwire.access").setLevel(logging.INFO)


def parse_address(text: str) -> tuple[str, int]:
    """``8000``, ``0.0.0.0:8000`` or ``[::1]:8000``."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and len(port) < 6 and int(port) < 65536):
        raise FormatError(
            "address-invalid", f"{text!r} is not [HOST:]PORT", "write --http 8000 or --http 0.0.0.0:8000"
        )
    return host.strip("[]") or LOOPBACK, int(port)


def is_open(listener: socket.socket, access: Access | None) -> bool:
    """Whether whoever comes by is let in: from other machines, and without a token."""
    return access is None and not ip_address(listener.getsockname()[0]).is_loopback


def check_serving(arguments: argparse.Namespace) -> None:
    """Refuse options that do not go together."""
    if arguments.public_url is not None and not re.fullmatch(
        r"https?://[A-Za-z0-9.:\[\]-]+(/\S*)?", arguments.public_url
    ):
        raise FormatError("url-invalid", f"{arguments.public_url!r} is not a URL", "write --public-url https://…")
    if arguments.http is not None and arguments.dialect != "extension":
        raise FormatError(
            "option-needs-stdio", "--dialect is for stdio", f"over HTTP, connect to /mcp/{arguments.dialect}"
        )
    if arguments.http is None:
        for option in ("access", "public_url", "access_log", "no_page"):
            if getattr(arguments, option):
                name = option.replace("_", "-")
                raise FormatError("option-needs-http", f"--{name} is for HTTP", "add --http 8000")
    if arguments.access is not None and arguments.cache_scope == "public":
        raise FormatError(
            "cache-not-public", "what differs from caller to caller is never public", "drop --cache-scope public"
        )


def _activation_key(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            return file.read(_MAX_KEY)
    except OSError as error:
        raise NotFoundError(
            "activation-key-unreadable",
            f"{path.name!r} cannot be read",
            "make one: openssl rand -out activation.key 32",
        ) from error


def read_instructions(path: Path | None) -> str | None:
    """The text of ``--instructions``."""
    if path is None:
        return None
    try:
        data = path.read_bytes()
        if len(data) <= _MAX_INSTRUCTIONS:
            return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(
            "instructions-unreadable", f"{path.name!r} cannot be read as text", "give a UTF-8 text file"
        ) from error
    raise FormatError("instructions-too-long", f"{path.name!r} is longer than 64 KiB", "shorten it")


def _number(low: int, high: int) -> Callable[[str], int]:

    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low} to {high}")
        return int(text)

    return parse
