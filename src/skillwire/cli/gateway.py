"""``skillwire gateway``: many servers and folders as one MCP server, guarded by a policy."""

from __future__ import annotations

import argparse
import logging
import os
import signal
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillwire.cli.banner import say_how_to_connect, say_how_to_start
from skillwire.cli.exits import Exit
from skillwire.cli.hosting import seconds, state_of
from skillwire.cli.parsing import add_verb
from skillwire.cli.reporting import Reporter
from skillwire.cli.serving import (
    add_serving_options,
    check_serving,
    is_open,
    log_access,
    page_address_of,
    page_of,
    parse_address,
    read_instructions,
    skills_of,
)
from skillwire.errors import StoreError
from skillwire.limits import MIB

if TYPE_CHECKING:
    import socket
    from collections.abc import Generator

    from anyio.abc import TaskStatus

    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer
    from skillwire.gateway.gateway import Gateway
    from skillwire.gateway.plan import Plan
    from skillwire.server.access import Access
    from skillwire.server.signals import StopSignals
    from skillwire.server.skills import Skills

_EXAMPLES = """\
examples:
  skillwire gateway --config servers.json                 every server of the file, on stdio
  skillwire gateway --config servers.json ./skills --http 8000
  skillwire gateway --policy gateway.toml --http 8000     which skills, and who has to have said yes
  skillwire review acme:skill://refunds/SKILL.md --config servers.json

Skills are at skill://LABEL/PATH/SKILL.md. Only skills are carried; tools and prompts stay where they are.
"""
_GOODBYE_SECONDS = 5.0


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "gateway",
        "make many servers and folders one MCP server",
        "Serve the skills of many MCP servers and folders as one, verified on the way. What is said to you goes to"
        " stderr.",
        _EXAMPLES,
    )
    add = parser.add_argument
    add("paths", metavar="FOLDER", nargs="*", help="a folder of skills, labelled by its name")
    add("--config", type=Path, metavar="FILE", help="an mcpServers file: every server in it is an upstream")
    add("--policy", type=Path, metavar="FILE", help="a gateway.toml; see docs/gateway.md")
    add(
        "--state",
        type=Path,
        metavar="DIR",
        help="approvals, listings and verified content (default: that of 'skillwire approve')",
    )
    add("--renew-snapshots", action="store_true", help="take every snapshot of a skill without digests anew")
    add(
        "--wait", type=seconds, default=10.0, metavar="SECONDS", help="before it is said who is away (default: 10)"
    )
    add_serving_options(parser)


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """Serve until stdin closes or the process is told to stop."""
    address = None if arguments.http is None else parse_address(arguments.http)
    check_serving(arguments)
    import anyio  # late, like the imports below: only once the words are understood

    from skillwire.gateway.plan import plan_gateway

    folders = [Path(path) for path in arguments.paths]
    plan = plan_gateway(policy=arguments.policy, config=arguments.config, folders=folders)
    plan = replace(
        plan, renews_snapshots=arguments.renew_snapshots, state=arguments.state, is_public=address is not None
    )
    for name in ("mcp", "httpx2"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what matters of it is said by us
    with _naming_state():
        if address is None:
            anyio.run(_serve_stdio, arguments, printer, plan)
            return Exit.OK
        from skillwire.server.signals import StopSignals

        signals = StopSignals()
        signals.install()
        anyio.run(_serve_http, arguments, printer, plan, address, signals)
    return Exit.OK


@contextmanager
def _naming_state() -> Generator[None]:
    """A home that cannot be used is no reason to be without a gateway."""
    try:
        yield
    except StoreError as error:
        error.hint = f"{error.hint}; another folder is named with --state DIR"
        raise


async def _serve_stdio(arguments: argparse.Namespace, printer: Printer, plan: Plan) -> None:
    import anyio

    from skillwire.gateway.gateway import open_gateway
    from skillwire.server.skills import serve_stdio

    async with open_gateway(plan, state_of(arguments)) as gateway:
        server = _server(gateway, _skills(gateway, arguments, None), arguments, None)
        async with anyio.create_task_group() as group:
            await group.start(_leave_on_signal, gateway)  # before the first word: it may be answered by a signal
            say_how_to_start(_with_files(arguments), printer)
            group.start_soon(_talk, gateway, arguments, printer)
            await serve_stdio(server)
            group.cancel_scope.cancel()


async def _serve_http(
    arguments: argparse.Namespace, printer: Printer, plan: Plan, address: tuple[str, int], signals: StopSignals
) -> None:
    import anyio

    from skillwire.gateway.gateway import open_gateway
    from skillwire.server.access import read_access
    from skillwire.server.http import HttpOptions, HttpServer, listen, url_of

    access = None if arguments.access is None else read_access(arguments.access)
    listener: socket.socket = listen(*address)
    anybody = is_open(listener, access)
    async with open_gateway(plan, state_of(arguments)) as gateway:
        skills = _skills(gateway, arguments, access)
        may_approve = bool(plan.policy.approvers) and not anybody
        server = _server(gateway, skills, arguments, access, tells=not anybody)
        asks = plan.policy.mode == "admit" and not plan.policy.read_only and may_approve
        room = arguments.replay * MIB
        options = HttpOptions(access, arguments.public_url, asks=asks, replay_bytes=room)
        page = page_of(skills, arguments, access, url_of(listener))
        http = HttpServer(server, listener, options, catalog=lambda: gateway.catalog, page=page)
        log_access(arguments)
        say_how_to_connect(
            arguments, http.url, printer, is_open=anybody, page=page_address_of(arguments, http.url)
        )
        if plan.policy.approvers and anybody:
            printer.talk("note: 'approvers' in the policy has no effect without --access: clients have no names")
        async with anyio.create_task_group() as group:
            group.start_soon(_talk, gateway, arguments, printer)
            await http.run(signals)
            group.cancel_scope.cancel()
    printer.talk("stopped")


def _skills(gateway: Gateway, arguments: argparse.Namespace, access: Access | None) -> Skills:
    return skills_of(gateway.catalog, arguments, access, watch=False)  # the gateway follows its upstreams itself


def _server(
    gateway: Gateway,
    skills: Skills,
    arguments: argparse.Namespace,
    access: Access | None,
    *,
    tells: bool = True,
) -> Any:
    """The server. ``tells``: clients learn which skills wait for approval, and may be asked for it."""
    from skillwire.gateway.elicitation import attach_elicitation
    from skillwire.server.access import Policy
    from skillwire.server.notifications import everything
    from skillwire.server.skills import build_server

    server = build_server(skills, name=arguments.name, instructions=read_instructions(arguments.instructions))
    if tells:
        attach_elicitation(server, gateway, lambda: everything if access is None else Policy(access).sees())
    return server


async def _talk(gateway: Gateway, arguments: argparse.Namespace, printer: Printer) -> None:
    """Say what is served when every upstream has answered or failed, and from then on what becomes of them."""
    reporter = Reporter(gateway, printer)
    await gateway.settle(arguments.wait)
    await reporter.say_all()
    await reporter.watch()


async def _leave_on_signal(gateway: Gateway, *, task_status: TaskStatus[None]) -> None:
    """A thread waits in a read of stdin that cannot be interrupted: close the upstreams and exit.

    The handlers stay until the process ends. Hosts close stdin, and send a signal if that takes long.
    """
    import asyncio

    received, loop = asyncio.Event(), asyncio.get_running_loop()

    def handle(number: int, frame: object) -> None:  # noqa: ARG001 - the shape of a signal handler
        with suppress(RuntimeError):  # the loop is closed: the process ends already
            loop.call_soon_threadsafe(received.set)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
    task_status.started()
    await received.wait()
    await gateway.stop(_GOODBYE_SECONDS)
    os._exit(Exit.OK)


def _with_files(arguments: argparse.Namespace) -> argparse.Namespace:
    """The same words, with every file among the paths: a host starts us from wherever it is."""
    files = [arguments.config, arguments.policy, arguments.state]
    paths = [*arguments.paths, *(str(file) for file in files if file is not None)]
    return argparse.Namespace(**{**vars(arguments), "paths": paths})
