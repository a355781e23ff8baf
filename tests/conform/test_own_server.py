"""Our own server keeps every rule, in both eras, over stdio and HTTP, in every dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conform.spoiling import TREE, rules, serving
from rules import rule
from skillwire.client.servers import CommandServer, UrlServer
from skillwire.conform.report import Verdict
from skillwire.conform.rules import NATIVE, SEP_2076, SERVER_RULES
from skillwire.conform.server import check_server
from starting import skillwire_command
from trees import write_tree

if TYPE_CHECKING:
    from pathlib import Path

    from skillwire.conform.report import Report

pytestmark = pytest.mark.anyio

CHECKED = set(SERVER_RULES) - {"S1", *SEP_2076, *NATIVE}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for skill in TREE:
        write_tree(tmp_path, skill.tree())
    return tmp_path


def command(root: Path, *words: str) -> CommandServer:
    return CommandServer((*skillwire_command(), "serve", str(root), *words))


def check_all_kept(report: Report) -> None:
    assert [section.spoken for section in report.sections] == [True, True]
    assert rules(report) == rules(report, Verdict.WARNING) == set()
    for section in report.sections:
        kept = {result.rule.id for result in section.results if result.verdict is Verdict.PASS}
        unseen = set() if section.name == "modern" else {"R4"}  # in the handshake era there is no _meta to look at
        assert kept == CHECKED - unseen
        for result in section.results:
            assert result.proof if result.verdict is Verdict.PASS else result.reason


@rule("K1", "L1", "L3")
async def test_every_rule_is_kept_over_stdio(root: Path) -> None:
    """E1-E6, U1, U3, U7, F1-F6, G1, R1-R4, D1, T1, I1, I2."""
    check_all_kept(await check_server(command(root)))


async def test_every_rule_is_kept_over_http() -> None:
    """The same."""
    async with serving() as url:
        check_all_kept(await check_server(UrlServer(url)))


@rule("P1", "P2", "P4", "M1", "M2")
@pytest.mark.parametrize(
    ("dialect", "kept"), [("sep-2076", {"P1", "P2", "P4"}), ("native", {"M1", "M2"})], ids=["sep-2076", "native"]
)
async def test_the_dialects_that_know_skills_by_name_are_kept(root: Path, dialect: str, kept: set[str]) -> None:
    report = await check_server(command(root, "--dialect", dialect))
    assert rules(report) == set()
    assert rules(report, Verdict.PASS) == kept | {"BASE", "R4"}


async def test_a_rule_alone_is_looked_at_alone() -> None:
    async with serving() as url:
        report = await check_server(UrlServer(url), rules=("D1", "K1"))
    assert [[result.rule.id for result in section.results] for section in report.sections] == [["K1", "D1"]] * 2
    assert rules(report, Verdict.PASS) == {"K1", "D1"}
