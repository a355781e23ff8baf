"""Probed hosts: ours keeps every rule that it is provoked to break, a careless one breaks them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from conform.spoiling import rules
from rules import rule
from skillwire.conform.host import probe_host
from skillwire.conform.report import Verdict
from skillwire.conform.rules import HOST_RULES
from skillwire.errors import FormatError, NotFoundError, UpstreamError
from starting import python_command, skillwire_command

pytestmark = pytest.mark.anyio

HERE = Path(__file__).parent


def script(name: str) -> list[str]:
    return [*python_command(), str(HERE / name)]


@rule("K2", "K3", "L3", "B3", "V1", "V2", "V3", "V4", "V5", "O3")
@pytest.mark.parametrize("stdio", [False, True], ids=["http", "stdio"])
async def test_our_own_host_keeps_every_duty(stdio: bool) -> None:
    """Each was in danger."""
    report = await probe_host(script("good_host.py"), stdio=stdio, seconds=100)
    assert rules(report) == set()
    assert rules(report, Verdict.WARNING) == set()
    assert rules(report, Verdict.NOT_CHECKED) == {
        "V7",
        "W3",
    }  # it declines without asking, and lists from the entry
    assert rules(report, Verdict.PASS) == set(HOST_RULES) - {"V7", "W3"}


async def test_a_careless_host_breaks_every_duty() -> None:
    """And the report says with which request."""
    report = await probe_host(script("bad_host.py"), seconds=100)
    assert rules(report) == set(HOST_RULES) - {"V7"}
    assert rules(report, Verdict.WARNING) == {"V7"}
    for result in report.sections[0].results:
        assert result.findings[0].evidence is not None
        assert result.findings[0].evidence["request"]["method"]


@rule("V5")
async def test_a_host_that_only_lists_keeps_what_listing_can_break() -> None:
    """What was not seen is not kept."""
    words = [*skillwire_command(), "list", "{url}"]
    report = await probe_host(words, seconds=100)
    assert rules(report) == set()
    assert rules(report, Verdict.PASS) == {"K2", "K3", "L3", "V5"}
    assert rules(report, Verdict.NOT_CHECKED) == set(HOST_RULES) - {"K2", "K3", "L3", "V5"}


@rule("V5")
async def test_a_reader_of_everything_fetches_ahead_of_need() -> None:
    """Right for ``verify``, and wrong for a host."""
    report = await probe_host([*skillwire_command(), "verify", "{url}"], seconds=100)
    assert "V5" in rules(report)


async def test_a_command_that_never_connects_is_an_error() -> None:
    with pytest.raises(UpstreamError) as caught:
        await probe_host(["true"])
    assert caught.value.reference == "host-silent"


async def test_a_command_that_is_not_there_is_an_error() -> None:
    with pytest.raises(NotFoundError) as caught:
        await probe_host(["no-such-program-anywhere"])
    assert caught.value.reference == "command-failed"


async def test_a_duty_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(FormatError) as caught:
        await probe_host(["true"], rules=("Q1",))
    assert caught.value.reference == "rule-unknown"


async def test_a_command_that_does_not_end_is_ended() -> None:
    with pytest.raises(UpstreamError, match=r"0\.5") as caught:
        await probe_host(["sleep", "600"], seconds=0.5)
    assert caught.value.reference == "host-silent"
