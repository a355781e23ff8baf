"""The messages of a gateway on stderr: served skills, waiting skills, how to approve them, and changes."""

from __future__ import annotations

import io
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import pytest
from rich.console import Console

from gateway.stage import SECONDS, gateway_of, hostile, source
from host.stage import make_dynamic
from rules import rule
from skillwire.cli.gateway import Reporter
from skillwire.cli.printer import Printer
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from skillwire.gateway.gateway import Gateway

pytestmark = pytest.mark.anyio
WANTED = '[upstream.acme]\nmaterialize = ["flat"]\n'


class Talk:
    """The messages so far."""

    def __init__(self) -> None:
        self._said = io.StringIO()
        self.printer = Printer(stderr=Console(file=self._said, width=1000))

    @property
    def lines(self) -> list[str]:
        return [line.strip() for line in self._said.getvalue().splitlines()]

    async def until(self, pattern: str) -> re.Match[str]:
        with anyio.fail_after(SECONDS):
            while not (found := re.search(pattern, self._said.getvalue())):
                await anyio.lowlevel.checkpoint()
        return found


@asynccontextmanager
async def talk_of(gateway: Gateway) -> AsyncIterator[Talk]:
    talk = Talk()
    reporter = Reporter(gateway, talk.printer)
    await reporter.print_all()
    async with anyio.create_task_group() as group:
        group.start_soon(reporter.watch)
        yield talk
        group.cancel_scope.cancel()


@rule("S1")
async def test_the_number_of_skills_is_reported_after_each_change(state: Path) -> None:
    server = hostile()
    async with gateway_of(state, {"acme": server}) as gateway, talk_of(gateway) as talk:
        assert len(talk.lines) == 2
        assert re.match("acme: 1 skill", talk.lines[0])
        server.add("second", {"SKILL.md": skill_md("second")})
        await source(gateway, "acme").refresh()
        await talk.until("acme: 2 skills.*\n")
        assert len(talk.lines) == 3


@rule("A1", "V7")
async def test_the_fingerprint_of_a_snapshot_is_reported_when_it_is_taken(state: Path) -> None:
    """Before that, the skill was reported as waiting, without a command."""
    server, taking = hostile(), anyio.Event()
    make_dynamic(server)
    server.answers["resources/read"] = lambda params: after(taking)
    policy = f'mode = "admit"\n{WANTED}'
    async with gateway_of(state, {"acme": server}, policy) as gateway, talk_of(gateway) as talk:
        await talk.until("'flat'.*'acme'")
        assert not any("sha256:" in line for line in talk.lines)
        taking.set()
        await talk.until("'flat'.*'acme'.*fingerprint = 'sha256:[0-9a-f]{64}'")


async def after(event: anyio.Event) -> None:
    await event.wait()


@rule("U3", "V7")
async def test_a_snapshot_that_cannot_be_taken_is_reported(state: Path) -> None:
    server = hostile()
    make_dynamic(server)
    server.files["skill://flat/SKILL.md"] = skill_md("another")
    async with gateway_of(state, {"acme": server}, WANTED) as gateway, talk_of(gateway) as talk:
        await talk.until(r"skill://flat/SKILL.md.*acme.*\[name-mismatch\]")


@rule("E5")
async def test_problems_that_differ_only_in_their_place_are_all_reported(state: Path) -> None:
    server = hostile()
    server.add("second", {"SKILL.md": skill_md("second")})
    server.entries *= 2
    async with gateway_of(state, {"acme": server}) as gateway, talk_of(gateway) as talk:
        for name in ("flat", "second"):
            assert len([line for line in talk.lines if name in line]) == 1
