"""Serving a catalog from the command line: the options of ``serve`` and ``gateway``, and their messages."""

from __future__ import annotations

import json
import logging
import os
import shlex
import socket
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillwire.cli.command import FILE, Arguments, flag, option
from skillwire.cli.printer import Printer, counted, ignored_text, visible
from skillwire.cli.targets import NO_SKILLS
from skillwire.errors import FormatError, NotFoundError
from skillwire.limits import MIB

if TYPE_CHECKING:
    from skillwire.bootstrap import ServerSettings
    from skillwire.catalog.contract import Catalog
    from skillwire.server.page import PageMaker

_LOOPBACK = "127.0.0.1"
_PORT = 8000
_MAX_INSTRUCTIONS = 64 * 1024
_MAX_KEY = 4096
_SHOWN = 20
_WARNED = ("over-limit", "settings-invalid", "settings-unmatched")  # E6, R4: a server warns about these
SERVING_OPTIONS = (
    option(
        "--http",
        metavar="[HOST:]PORT",
        help=f"serve over HTTP at /mcp (default host: {_LOOPBACK}); 'auto' is port 8000, or a free one",
    ),
    option("--name", default="skillwire", help="the name of the server"),
    option("--instructions", type=FILE, metavar="FILE", help="text about this server for the model"),
    option(
        "--page-size",
        type=click.IntRange(1, 1000),
        default=100,
        metavar="N",
        help="entries per page (default: 100)",
    ),
    option(
        "--ttl",
        type=click.IntRange(0, 86_400),
        default=0,
        metavar="SECONDS",
        help="how long responses may be cached (default: 0)",
    ),
    option(
        "--cache-scope",
        type=click.Choice(["private", "public"]),
        default="private",
        help="whether callers may share a cached response (default: private)",
    ),
    option(
        "--dialect",
        type=click.Choice(["extension", "sep-2076", "native"]),
        default="extension",
        help="the meaning of skills/list on stdio (default: extension); over HTTP each has its path below /mcp",
    ),
    option(
        "--fallback",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        help="who sees the plain tools and prompts: clients without the extension (auto), all, or none",
    ),
    option("--activation-key", type=FILE, metavar="FILE", help="native: at least 32 bytes that replicas share"),
    option(
        "--access",
        type=FILE,
        metavar="FILE",
        help="who may connect and see what (HTTP); see docs/reference/configuration.md",
    ),
    option("--public-url", metavar="URL", help="the address that clients use, if it differs (HTTP)"),
    option(
        "--replay",
        type=click.IntRange(0, 4096),
        default=128,
        metavar="MIB",
        help="memory of the response cache (HTTP; default: 128; 0: no cache)",
    ),
    flag("--access-log", help="print a line of JSON to stderr for each request (HTTP)"),
    flag("--no-page", help="serve no page for browsers (HTTP)"),
    flag("--verbose", help="also print the skills, and an entry for the configuration of an agent"),
    flag("--json", help="print the addresses as a JSON document once the server is ready (HTTP)"),
)


def check_serving(arguments: Arguments) -> tuple[str, int] | None:
    """Check the options, and return the address for HTTP, or ``None`` for stdio."""
    address = None if arguments.http is None else parse_address(arguments.http)
    if address is not None and arguments.dialect != "extension":
        raise FormatError(
            "option-needs-stdio", "--dialect is for stdio", f"over HTTP, connect to /mcp/{arguments.dialect}"
        )
    if address is None:
        for given in ("access", "public_url", "access_log", "no_page", "json"):
            if getattr(arguments, given):
                name = given.replace("_", "-")
                raise FormatError("option-needs-http", f"--{name} is for HTTP", "add --http 8000")
    if arguments.access is not None and arguments.cache_scope == "public":
        raise FormatError(
            "cache-not-public", "responses that depend on the caller cannot be public", "omit --cache-scope public"
        )
    return address


def parse_address(text: str) -> tuple[str, int]:
    """Parse ``8000``, ``0.0.0.0:8000``, ``[::1]:8000`` or ``auto``."""
    if text == "auto":
        return _LOOPBACK, _usual_port()
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and len(port) < 6 and int(port) < 65536):
        raise FormatError(
            "address-invalid", f"{text!r} is not [HOST:]PORT", "write --http 8000 or --http 0.0.0.0:8000"
        )
    return host.strip("[]") or _LOOPBACK, int(port)


def _usual_port() -> int:
    """Return 8000, or 0 for any free port if another program uses it."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((_LOOPBACK, _PORT))
        except OSError:
            return 0
    return _PORT


def settings_of(arguments: Arguments, **more: Any) -> ServerSettings:
    """Return the settings in ``arguments``, with the files that they name."""
    from skillwire.bootstrap import ServerSettings
    from skillwire.server.access import read_access

    return ServerSettings(
        name=arguments.name,
        instructions=_read_instructions(arguments.instructions),
        page_size=arguments.page_size,
        ttl_seconds=arguments.ttl,
        cache_scope=arguments.cache_scope,
        dialect=arguments.dialect,
        fallback=arguments.fallback,
        activation_key=_read_key(arguments.activation_key),
        access=None if arguments.access is None else read_access(arguments.access),
        public_url=arguments.public_url,
        replay_bytes=arguments.replay * MIB,
        **more,
    )


def _read_key(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        with path.open("rb") as file:
            return file.read(_MAX_KEY)
    except OSError as error:
        raise NotFoundError(
            "activation-key-unreadable",
            f"{path.name!r} cannot be read",
            f"make one: openssl rand -out {shlex.quote(str(path))} 32",
        ) from error


def _read_instructions(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        data = path.read_bytes()
        if len(data) <= _MAX_INSTRUCTIONS:
            return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(
            "instructions-unreadable", f"{path.name!r} cannot be read as text", "use a UTF-8 text file"
        ) from error
    raise FormatError("instructions-too-long", f"{path.name!r} is longer than 64 KiB", "shorten it")


def page_of(arguments: Arguments) -> PageMaker | None:
    """Return the function that makes the page for browsers; ``None`` with ``--no-page``."""
    if arguments.no_page:
        return None
    from skillwire.web.catalog.site import catalog_page

    return partial(catalog_page, unlisted=getattr(arguments, "unlisted", ()))  # 'gateway' has no such option


def enable_access_log(arguments: Arguments) -> None:
    """Print a line for each request if ``--access-log`` was given."""
    if arguments.access_log:
        logging.basicConfig(stream=sys.stderr, format="%(message)s")
        logging.getLogger("skillwire.access").setLevel(logging.INFO)


async def print_served(catalog: Catalog, printer: Printer, *, verbose: bool = False) -> None:
    """Print how many skills are served, and the problems of the others."""
    count = len(await catalog.suggest("", sys.maxsize))  # paths are in memory; loading all entries would be slow
    printer.talk(f"serving {counted(count, 'skill')}{'' if count else NO_SKILLS}")
    if verbose:
        for entry in (await catalog.list_skills(limit=_SHOWN)).items:
            printer.talk(f"  {visible(entry.uri)}")
        if count > _SHOWN:
            printer.talk(f"  … and {count - _SHOWN} more")
    for problem in await catalog.problems():
        if problem.refuses:
            printer.talk(f"not served: {visible(problem.file)}: {visible(problem.message)} [{problem.reference}]")
        elif problem.reference in _WARNED:
            printer.talk(f"warning: {visible(problem.file)}: {visible(problem.message)} [{problem.reference}]")
        elif problem.reference == "catalog-collision":
            printer.talk(f"note: {visible(problem.message)}")
    ignored = await catalog.ignored()
    if ignored:
        printer.talk(ignored_text(ignored))


def print_start_help(arguments: Arguments, printer: Printer) -> None:
    """On stdio: print how an agent starts this process."""
    command = str(Path(sys.argv[0]).absolute())
    files = [*arguments.paths, str(arguments.instructions), str(arguments.activation_key)]
    typed = [word for word in sys.argv[1:] if word != "--verbose"]
    words = [_portable_word(word) if word in files else word for word in typed]
    if arguments.paths == ["."] and "." not in typed:  # an agent starts it in another folder
        words.append(os.getcwd())
    start = shlex.join([command, *words])
    printer.talk(f"connect an agent: skillwire connect --agent claude-code{_name_option(arguments)} -- {start}")
    if arguments.verbose:
        printer.talk("or write this entry into its configuration:")
        entry = {"mcpServers": {arguments.name: {"command": command, "args": words}}}
        printer.talk(json.dumps(entry, indent=2))
    printer.talk("serving MCP on stdin and stdout (Ctrl-C stops; --verbose shows more)")


def _name_option(arguments: Arguments) -> str:
    """Return the option that gives the server in the agent the name that it has here."""
    return "" if arguments.name == "skillwire" else f" --name {shlex.quote(arguments.name)}"


def _portable_word(word: str) -> str:
    """Return a path or a repository as an absolute address, for a command that runs in another folder."""
    from skillwire.catalog.git_source import is_git_source, parse_git_source

    return f"git+{parse_git_source(word)}" if is_git_source(word) else str(Path(word).absolute())


def print_connect_help(arguments: Arguments, url: str, printer: Printer, *, is_open: bool) -> None:
    """Over HTTP: print the page, a command that lists the skills, and how an agent connects."""
    from skillwire.install.agents import TOKEN, http_commands, http_entry
    from skillwire.web.catalog.site import page_address

    address, token = arguments.public_url or url, arguments.access is not None
    page = None if arguments.no_page else page_address(url, arguments.public_url)
    printer.json({"url": address, "page": page})
    if page is not None:
        printer.talk(f"open in a browser: {page}")
    header = f' --header "Authorization: {TOKEN}"' if token else ""
    printer.talk(f"list the skills:   skillwire list {shlex.quote(address)}{header}")
    with_token = http_commands(arguments.name, address, token=True)["claude-code"]
    connect = f"skillwire connect {shlex.quote(address)} --agent claude-code{_name_option(arguments)}"
    printer.talk(f"connect an agent:  {with_token if token else connect}")
    if arguments.verbose:
        printer.talk("or write this entry into its configuration:")
        printer.talk(json.dumps({"mcpServers": {arguments.name: http_entry(address, token=token)}}, indent=2))
        printer.talk(f"one request, without a client: {_curl(address)}")
        printer.talk(
            f"clients of older proposals: {address}/sep-2076 and {address}/native (docs/explanation/dialects.md)"
        )
    if is_open:
        printer.talk("note: every machine that reaches this address can read all skills; --access restricts this")
    printer.talk(f"listening at {address} (Ctrl-C stops; --verbose shows more)")


def _curl(url: str) -> str:
    """Return a command with one self-contained request of the stateless era."""
    version = "2026-07-28"
    meta = {"protocolVersion": version, "clientInfo": {"name": "curl", "version": "1"}, "clientCapabilities": {}}
    params = {"_meta": {f"io.modelcontextprotocol/{key}": value for key, value in meta.items()}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "skills/list", "params": params}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": version,
        "Mcp-Method": "skills/list",
    }
    words = [word for name, value in headers.items() for word in ("-H", f"{name}: {value}")]
    return shlex.join(["curl", "-s", url, *words, "-d", json.dumps(body, separators=(",", ":"))])
