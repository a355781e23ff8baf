"""``skillwire gateway``: serves many servers and folders as one MCP server, guarded by a policy."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from skillwire.cli.command import (
    FILE,
    Arguments,
    DatabasePlace,
    Exit,
    Seconds,
    TargetPlace,
    argument,
    flag,
    option,
    silence_libraries,
    verb,
)
from skillwire.cli.host_session import state_of
from skillwire.cli.printer import Printer, counted, line
from skillwire.cli.server_session import (
    SERVING_OPTIONS,
    check_serving,
    enable_access_log,
    page_of,
    print_connect_help,
    print_start_help,
    settings_of,
)
from skillwire.errors import StoreError

if TYPE_CHECKING:
    from anyio.abc import TaskStatus

    from skillwire.gateway.config import Plan
    from skillwire.gateway.gateway import Gateway, Upstream
    from skillwire.server.signals import StopSignals
    from skillwire.skill import Diagnostic

_GOODBYE_SECONDS = 5.0
_UPSTREAM_STATES = ("upstream-away", "upstream-stale", "upstream-partial")
_PAUSE_SECONDS = 2.0  # between two reports of the number of skills of an upstream


@verb(
    "Serve the verified skills of many MCP servers and folders as one server. Messages go to stderr.",
    argument("paths", "[FOLDER]…", "a folder of skills; its name is its label", nargs=-1, type=TargetPlace()),
    option("--config", type=FILE, metavar="FILE", help="an mcpServers file: every server in it is an upstream"),
    option("--policy", type=FILE, metavar="FILE", help="a gateway.toml; see docs/how-to/gateway.md"),
    option(
        "--state",
        type=DatabasePlace(),
        metavar="DIR",
        help="approvals, listings and verified content, or a postgresql:// URL that several gateways share"
        " (default: the one of 'skillwire approve')",
    ),
    flag("--renew-snapshots", help="renew every snapshot of a skill without digests"),
    option(
        "--timeout",
        type=Seconds(),
        default=10.0,
        metavar="SECONDS",
        help="how long to wait for servers before the first report (default: 10)",
    ),
    *SERVING_OPTIONS,
    examples="""\
  skillwire gateway --config servers.json                 all servers of the file, on stdio
  skillwire gateway --config servers.json ./skills --http 8000
  skillwire gateway --policy gateway.toml --http 8000     choose skills, and require approvals
  skillwire approvals show acme:skill://refunds/SKILL.md --config servers.json

Skills are at skill://LABEL/PATH/SKILL.md. Only skills are served; tools and prompts of the servers are not.
""",
)
def command(arguments: Arguments, printer: Printer) -> int:
    """Serve until stdin closes or the process is stopped."""
    address = check_serving(arguments)
    import anyio  # late, like the imports below: invalid options need none of them

    from skillwire.gateway.config import plan_gateway

    folders = [Path(path) for path in arguments.paths]
    plan = plan_gateway(policy=arguments.policy, config=arguments.config, folders=folders)
    plan = replace(
        plan, renews_snapshots=arguments.renew_snapshots, state=arguments.state, is_public=address is not None
    )
    silence_libraries()
    try:
        if address is None:
            anyio.run(_serve_stdio, arguments, printer, plan)
            return Exit.OK
        from skillwire.server.signals import StopSignals

        signals = StopSignals()
        signals.install()
        anyio.run(_serve_http, arguments, printer, plan, address, signals)
    except StoreError as error:  # a gateway can run without the home folder of its user
        from skillwire.store.place import is_url

        if not is_url(arguments.state):
            error.hint = f"{error.hint}; or use another folder: --state DIR"
        raise
    return Exit.OK


async def _serve_stdio(arguments: Arguments, printer: Printer, plan: Plan) -> None:
    import anyio

    from skillwire.bootstrap import build_stdio_server
    from skillwire.gateway.gateway import run_gateway
    from skillwire.server.skills import serve_stdio

    settings = settings_of(arguments, watch=False)  # the gateway follows its upstreams itself
    async with run_gateway(plan, state_of(arguments)) as gateway:
        server = build_stdio_server(gateway.catalog, settings, gateway)
        async with anyio.create_task_group() as group:
            await group.start(_exit_on_signal, gateway)  # before the first message, which may cause a signal
            print_start_help(_with_files(arguments), printer)
            group.start_soon(_report, gateway, arguments, printer)
            await serve_stdio(server)
            group.cancel_scope.cancel()


async def _serve_http(
    arguments: Arguments, printer: Printer, plan: Plan, address: tuple[str, int], signals: StopSignals
) -> None:
    import anyio

    from skillwire.bootstrap import build_http_server, is_open
    from skillwire.gateway.gateway import run_gateway
    from skillwire.server.http import listen

    settings = settings_of(arguments, watch=False)
    with listen(*address) as listener:
        anybody = is_open(listener, settings.access)
        async with run_gateway(plan, state_of(arguments)) as gateway:
            page = page_of(arguments)
            http = build_http_server(gateway.catalog, listener, settings, page=page, gateway=gateway)
            enable_access_log(arguments)
            print_connect_help(arguments, http.url, printer, is_open=anybody)
            if plan.policy.approvers and anybody:
                printer.talk(
                    "note: 'approvers' in the policy has no effect without --access: clients have no names"
                )
            async with anyio.create_task_group() as group:
                group.start_soon(_report, gateway, arguments, printer)
                await http.run(signals)
                group.cancel_scope.cancel()
    printer.talk("stopped")


async def _report(gateway: Gateway, arguments: Arguments, printer: Printer) -> None:
    """Print what is served once every upstream has responded or failed, and then every change."""
    reporter = Reporter(gateway, printer)
    await gateway.settle(arguments.timeout)
    await reporter.print_all()
    await reporter.watch()


async def _exit_on_signal(gateway: Gateway, *, task_status: TaskStatus[None]) -> None:
    """On a signal, close the upstreams and exit the process: a thread reads stdin, and cannot be interrupted.

    The handlers stay until the process ends, because a host closes stdin and then sends a signal if the process is
    slow to end.
    """
    import asyncio

    received, loop = asyncio.Event(), asyncio.get_running_loop()

    def handle(number: int, frame: object) -> None:  # noqa: ARG001 - the signature of a signal handler
        with suppress(RuntimeError):  # the loop is closed, and the process is ending
            loop.call_soon_threadsafe(received.set)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
    task_status.started()
    await received.wait()
    await gateway.stop(_GOODBYE_SECONDS)
    os._exit(Exit.OK)


def _with_files(arguments: Arguments) -> Arguments:
    """Add every file to ``paths``, which are printed as absolute paths: a host may start us in any folder."""
    from skillwire.store.place import is_url

    files = [arguments.config, arguments.policy, None if is_url(arguments.state) else arguments.state]
    paths = [*arguments.paths, *(str(file) for file in files if file is not None)]
    return Arguments(**{**vars(arguments), "paths": paths})


class Reporter:
    """Prints the state of all upstreams once, and then every change."""

    def __init__(self, gateway: Gateway, printer: Printer) -> None:
        self._gateway = gateway
        self._printer = printer
        self._printed: set[tuple[str, ...]] = set()
        self._counts: dict[str, int] = {}

    async def print_all(self) -> None:
        """Print the served skills, and the problems of the others."""
        for upstream in self._gateway.upstreams.values():
            await self._print_count(upstream, indent="  ")
        many = counted(len(self._gateway.upstreams), "upstream")
        self._printer.talk(f"serving {counted(sum(self._counts.values()), 'skill')} of {many}")
        for upstream in self._gateway.upstreams.values():
            await self._print_problems(upstream)

    async def watch(self) -> None:
        """Print changes of the upstreams and their skills, until cancelled."""
        import anyio

        async with anyio.create_task_group() as group:
            for upstream in self._gateway.upstreams.values():
                group.start_soon(self._watch_state, upstream)
                group.start_soon(self._watch_problems, upstream)
                group.start_soon(self._watch_count, upstream)

    async def _watch_state(self, upstream: Upstream) -> None:
        while upstream.remote is not None:
            await upstream.remote.next_state()
            self._printer.talk(f"{line(upstream.label)}: {describe(upstream)}")

    async def _watch_problems(self, upstream: Upstream) -> None:
        while True:
            decided = upstream.gate.decided()
            await self._print_problems(upstream)
            await decided.wait()

    async def _watch_count(self, upstream: Upstream) -> None:
        import anyio

        while True:
            decided = upstream.gate.decided()
            await self._print_count(upstream)
            await anyio.sleep(_PAUSE_SECONDS)
            await decided.wait()

    async def _print_count(self, upstream: Upstream, indent: str = "") -> None:
        """Print the number of served skills of an upstream if it changed."""
        count = len([entry async for entry in upstream.gate.entries()])
        if count != self._counts.get(upstream.label):
            self._counts[upstream.label] = count
            self._printer.talk(f"{indent}{line(upstream.label)}: {counted(count, 'skill')}, {describe(upstream)}")

    async def _print_problems(self, upstream: Upstream) -> None:
        """Print each problem when it appears, appears again, or gets another hint."""
        label = upstream.label
        problems = await upstream.gate.problems(for_operator=True)
        now = {(label, *_words(each)): each for each in problems if each.reference not in _UPSTREAM_STATES}
        for key in sorted(now.keys() - self._printed):
            each = now[key]
            if each.reference == "approval-missing":
                self._printer.talk(f"{line(each.message)}: {line(each.hint)}")
            elif each.reference == "snapshot-failed":
                self._printer.talk(f"{line(each.message)}; {line(each.hint)}")
            elif each.refuses:
                where = line(f"{label}/{each.file}")
                self._printer.talk(f"not served: {where}: {line(each.message)} [{each.reference}]")
        self._printed = {key for key in self._printed if key[0] != label} | now.keys()


def _words(problem: Diagnostic) -> tuple[str, str, str]:
    return problem.file, problem.message, problem.hint


def describe(upstream: Upstream) -> str:
    """Describe the state of an upstream."""
    source = upstream.remote
    if source is None:
        return "a folder"
    is_whole = source.error is None or source.error.reference != "listing-too-long"
    why = "" if source.error is None else f": {line(source.error.message)} [{source.error.reference}]"
    words = {
        "connecting": "no response yet",
        "complete": f"dialect {source.dialect}" if source.dialect else "offers no skills",
        "partial": "some of its entries cannot be used",
        "stale": "unreachable; its last listing is served" if is_whole else "its last complete listing is served",
        "unreachable": "unreachable, without a stored listing",
    }
    return f"{words[source.state]}{why}"
