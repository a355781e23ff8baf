"""Each rule for hosts, kept and broken, by the requests that show it; unprovoked rules have no verdict."""

from __future__ import annotations

from typing import Any

import pytest

from rules import rule
from skillwire.conform import honeypot
from skillwire.conform.honeypot import FIRST, PLAIN, REPEATING, SECOND, ObservedRequest
from skillwire.conform.report import Ledger, Verdict
from skillwire.conform.rules import HOST_RULES
from skillwire.conform.verdicts import judge

GUIDED = [f"skill://{skill.path}/SKILL.md" for skill in FIRST.skills]


def seen(
    method: str,
    origin: honeypot.BaitServer = FIRST,
    *,
    given: list[str] | None = None,
    more: str | None = None,
    **params: Any,
) -> ObservedRequest:
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return ObservedRequest(origin.label, method, params, True, given or [], more, request, {"result": {}})


def opened(origin: honeypot.BaitServer = FIRST) -> ObservedRequest:
    return seen("server/discover", origin)


def listed(origin: honeypot.BaitServer = FIRST, **params: Any) -> ObservedRequest:
    return seen("skills/list", origin, given=GUIDED, **params)


def got(uri: str) -> ObservedRequest:
    return seen("skills/get", given=[uri], uri=uri)


def read(uri: str, origin: honeypot.BaitServer = FIRST) -> ObservedRequest:
    return seen("resources/read", origin, uri=uri)


def verdicts(*requests: ObservedRequest) -> dict[str, Verdict]:
    ledger = Ledger(HOST_RULES.values())
    judge(requests, ledger)
    return {result.rule.id: result.verdict for result in ledger.results()}


START = (opened(), listed())
MORE = "skill://{}/references/more.md"

KEPT = {
    "K2": START,
    "K3": START,
    "L3": (opened(), listed(more="abc"), listed(cursor="abc")),
    "B3": (opened(REPEATING), listed(REPEATING), listed(REPEATING, cursor="again")),
    "V1": (*START, read(honeypot.WRONG_DIGEST)),
    "V2": (*START, read(honeypot.GUIDE), read(honeypot.MENTIONED)),
    "V3": (*START, read(honeypot.WRONG_SIZE), got(honeypot.WRONG_SIZE), read(honeypot.WRONG_SIZE)),
    "V4": (*START, read(honeypot.WRONG_FRONTMATTER)),
    "V5": START,
    "V7": (*START, got(honeypot.GENERATED), read(honeypot.GUIDE)),
    "W3": (*START, seen("resources/directory/read", uri=honeypot.GUIDE_REFERENCES)),
    "O3": (*START, opened(SECOND), read(honeypot.GUIDE)),
}

BROKEN = [
    pytest.param("K2", (listed(), opened()), id="K2-listed-before-opening"),
    pytest.param("K2", (opened(PLAIN), seen("skills/get", PLAIN, uri=honeypot.GUIDE)), id="K2-undeclared-get"),
    pytest.param(
        "K2",
        (opened(SECOND), seen("resources/directory/read", SECOND, uri="skill://partner")),
        id="K2-undeclared-directory-read",
    ),
    pytest.param("L3", (opened(), listed(more="abc"), listed(cursor="abcd")), id="L3-other-cursor"),
    pytest.param(
        "B3",
        (opened(REPEATING), listed(REPEATING), *(listed(REPEATING, cursor="again") for _ in range(3))),
        id="B3-cursor-repeats",
    ),
    pytest.param("V1", (opened(), read(honeypot.GUIDE)), id="V1-read-without-an-entry"),
    pytest.param(
        "V1",
        (*START, read(honeypot.WRONG_DIGEST), read(MORE.format("wrong-digest"))),
        id="V1-after-a-wrong-digest",
    ),
    pytest.param(
        "V1", (*START, read(honeypot.WRONG_SIZE), read(MORE.format("wrong-size"))), id="V1-after-a-wrong-size"
    ),
    pytest.param("V2", (*START, read(honeypot.GUIDE), read(honeypot.UNLISTED)), id="V2-unlisted-file"),
    pytest.param("V2", (*START, read(honeypot.GUIDE), read("skill://guide/README.md")), id="V2-guessed-file"),
    pytest.param("V3", (*START, read(honeypot.WRONG_DIGEST), read(honeypot.WRONG_DIGEST)), id="V3-read-again"),
    pytest.param(
        "V4",
        (*START, read(honeypot.WRONG_FRONTMATTER), read(MORE.format("wrong-frontmatter"))),
        id="V4-after-a-wrong-frontmatter",
    ),
    pytest.param("V5", (*START, read(honeypot.SPARE)), id="V5-spare-skill"),
    pytest.param("V5", (*START, read(honeypot.MENTIONED)), id="V5-file-before-its-skill"),
    pytest.param("O3", (*START, read("FILE:///etc/hostname")), id="O3-file"),
    pytest.param(
        "O3", (*START, read(honeypot.GUIDE), opened(SECOND), read(honeypot.VAULT, SECOND)), id="O3-other-origin"
    ),
]


def test_every_duty_is_shown_kept() -> None:
    assert KEPT.keys() == HOST_RULES.keys()


@pytest.mark.parametrize("duty", KEPT)
def test_a_duty_is_kept(duty: str) -> None:
    found = verdicts(*KEPT[duty])
    assert found[duty] is Verdict.PASS
    assert Verdict.FAIL not in found.values()


@pytest.mark.parametrize(("duty", "requests"), BROKEN)
def test_a_duty_is_broken_and_no_other(duty: str, requests: tuple[ObservedRequest, ...]) -> None:
    found = verdicts(*requests)
    assert {rule for rule, verdict in found.items() if verdict is Verdict.FAIL} == {duty}


@rule("W3", "V2")
def test_a_file_that_only_a_directory_showed_breaks_two_duties() -> None:
    """It is not listed, and it was found where nothing becomes listed."""
    shown = seen("resources/directory/read", uri=honeypot.GUIDE_REFERENCES)
    found = verdicts(*START, read(honeypot.GUIDE), shown, read(honeypot.UNLISTED))
    assert {rule for rule, verdict in found.items() if verdict is Verdict.FAIL} == {"V2", "W3"}


@rule("K3")
def test_a_client_that_declares_nothing_is_seen_in_both_eras() -> None:
    """With the request, or in the handshake before it."""
    silent = ObservedRequest(FIRST.label, "skills/list", {}, False)
    assert verdicts(opened(), silent)["K3"] is Verdict.FAIL
    handshake = ObservedRequest(FIRST.label, "initialize", {}, False)
    later = ObservedRequest(FIRST.label, "skills/list", {}, None)
    assert verdicts(handshake, later)["K3"] is Verdict.FAIL
    assert verdicts(ObservedRequest(FIRST.label, "initialize", {}, True), later)["K3"] is Verdict.PASS


@pytest.mark.parametrize(
    ("duty", "requests"),
    [
        ("K2", (opened(PLAIN), seen("skills/list", PLAIN))),
        ("V5", (*START, read(honeypot.GUIDE), read(honeypot.UNMENTIONED))),
        ("V7", (*START, read(honeypot.GENERATED))),
    ],
    ids=["K2", "V5", "V7"],
)
def test_what_a_person_may_have_wanted_is_a_warning(duty: str, requests: tuple[ObservedRequest, ...]) -> None:
    assert verdicts(*requests)[duty] is Verdict.WARNING


def test_a_host_that_only_connects_has_kept_nothing_but_its_calm() -> None:
    assert set(verdicts(opened(PLAIN)).values()) == {Verdict.PASS, Verdict.NOT_CHECKED}
    assert verdicts(opened())["V5"] is Verdict.NOT_CHECKED
    assert set(verdicts().values()) == {Verdict.NOT_CHECKED}
