"""``skillwire registry``: serves a registry, and works with one: versions, roles, tokens, reviews.

``skillwire publish`` is in ``publish.py``. The actions for the machine of the database are here: ``serve``,
``admin`` and ``fsck``. The others use the HTTP API.
"""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

from skillwire.cli import registry_access, registry_skills
from skillwire.cli.command import (
    FILE,
    JSON,
    Arguments,
    DatabasePlace,
    Exit,
    Noun,
    flag,
    option,
    repeated,
    run_async,
    silence_libraries,
    verb,
)
from skillwire.cli.printer import Printer, counted, line
from skillwire.cli.registry_session import STATE, folder_of
from skillwire.cli.server_session import enable_access_log, parse_address

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from skillwire.registry.contract import RegistryStore

DATABASE = option(
    "--database",
    type=DatabasePlace(),
    metavar="URL",
    help="postgresql://…, for any number of replicas (default: a file in --state)",
)


@verb(
    "Serve a registry over HTTP: MCP at /mcp, and the API at /v1.",
    DATABASE,
    option("--http", default="8000", metavar="[HOST:]PORT", help="where to listen (default: 127.0.0.1:8000)"),
    option("--public-url", metavar="URL", help="the address that clients use, if it differs"),
    option("--settings", type=FILE, metavar="FILE", help="issuers of web tokens, and administrators"),
    repeated(
        "--proxy", metavar="ADDRESS", help="believe the X-Forwarded-For of this proxy, for the log (repeatable)"
    ),
    option("--name", default="skillwire", help="the name of the server"),
    flag("--access-log", help="print a line of JSON to stderr for each request"),
    STATE,
    flag("--json", help="print the address as a JSON document once the server is ready"),
    examples="""\
  skillwire registry                                     at http://127.0.0.1:8000, in the state folder
  skillwire registry --database postgresql://db/skills --http 0.0.0.0:8000 --public-url https://skills.example.com

The first start prints the token of an administrator, once. The settings are in docs/reference/registry.md.
""",
)
def _serve(arguments: Arguments, printer: Printer) -> int:
    import anyio  # late, like the imports below: invalid options need none of them

    from skillwire.registry.settings import RegistrySettings, read_settings
    from skillwire.server.signals import StopSignals

    address = parse_address(arguments.http)
    settings = RegistrySettings() if arguments.settings is None else read_settings(arguments.settings)
    silence_libraries()
    signals = StopSignals()
    signals.install()
    anyio.run(_serve_http, arguments, printer, address, settings, signals)
    printer.talk("stopped")
    return Exit.OK


async def _serve_http(
    arguments: Arguments, printer: Printer, address: tuple[str, int], settings: Any, signals: Any
) -> None:
    from skillwire.bootstrap import open_registry
    from skillwire.registry.app import RegistryOptions
    from skillwire.registry.identity import parse_network
    from skillwire.server.http import HttpServer, listen
    from skillwire.web.registry.site import registry_page

    options = RegistryOptions(
        settings,
        arguments.name,
        public_url=arguments.public_url,
        proxies=tuple(map(parse_network, arguments.proxy)),
        page=registry_page,
    )
    with listen(*address) as listener:
        async with open_registry(arguments.database, folder_of(arguments), options) as registry:
            token = None if settings.admins else await registry.first_administrator()
            server = HttpServer(registry.web_app(), listener)
            enable_access_log(arguments)
            mcp = arguments.public_url or server.url
            url = mcp.removesuffix("/mcp")
            if arguments.json:
                printer.json({"url": url, "mcp": f"{url}/mcp", "token": token})
                sys.stdout.flush()
            elif token is not None:
                printer.talk(f"token of the administrator (shown only once): {token}")
            printer.talk(f"sign in:         skillwire registry login {shlex.quote(url)}")
            printer.talk(f"list the skills: skillwire list {shlex.quote(url)}/mcp")
            printer.talk(f"listening at {url} (Ctrl-C stops)")
            await server.run(signals)


@verb(
    "Make a token of an administrator, on the machine of the database: for the first one, or if all were lost.",
    DATABASE,
    STATE,
    JSON,
    examples="""\
  skillwire registry admin
  skillwire registry admin | skillwire registry login http://127.0.0.1:8000
""",
)
def _admin(arguments: Arguments, printer: Printer) -> None:
    from skillwire.registry.app import make_administrator

    async def work(store: RegistryStore) -> None:
        token = await make_administrator(store, only_first=False)
        if not arguments.json:
            printer.talk("token of an administrator (shown only once):")
        printer.result({"token": token}, str(token))

    _with_store(arguments, work)


@verb(
    "Hash every file again and check every reference, on the machine of the database.",
    DATABASE,
    STATE,
    JSON,
    examples="""\
  skillwire registry fsck

exit codes: 0 nothing found, 1 faults, 2 usage, or no database
""",
)
def _fsck(arguments: Arguments, printer: Printer) -> int:
    faults: list[dict[str, str]] = []

    async def work(store: RegistryStore) -> None:
        async for fault in store.check():
            faults.append({"reference": fault.what, "where": fault.where, "message": fault.message})
            if not arguments.json:
                printer.data(f"{line(fault.where)}: {line(fault.message)} [{fault.what}]")

    _with_store(arguments, work)
    if arguments.json:
        printer.json({"faults": faults})
    printer.talk(counted(len(faults), "fault"))
    return Exit.PROBLEMS if faults else Exit.OK


def _with_store(arguments: Arguments, work: Callable[[RegistryStore], Awaitable[None]]) -> None:
    async def run() -> None:
        from skillwire.bootstrap import open_registry

        async with open_registry(arguments.database, folder_of(arguments)) as registry:
            await work(registry.store)

    run_async(run)


command = Noun(
    "Serve a registry of skills (the default), or work with one. Publish with 'skillwire publish'.",
    {"serve": _serve, **registry_access.VERBS, **registry_skills.VERBS, "admin": _admin, "fsck": _fsck},
    default="serve",
)
