"""Servers that are wrong as a whole: that never answer, never end, send too much, or have no skills at all.

Each run ends with a report or an error of ours, within its bounds; none hangs, and none ends in a traceback.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from adversarial.adversary import HostileServer
from adversarial.speaking import Raw, Refusal, drip, endless, once, silence, to_message
from conform.changing import drop, error, instead, message_of, result_of
from conform.spoiling import report_of, rules
from rotation import rotated_settings
from rules import rule
from skillwire.client.servers import CommandServer, UrlServer
from skillwire.conform.report import Verdict, as_json, as_junit
from skillwire.conform.server import check_server
from skillwire.conform.session import Bounds
from skillwire.errors import NotFoundError, UpstreamError
from skillwire.limits import MIB
from skillwire.skill import digest_of
from trees import skill_md

if TYPE_CHECKING:
    from adversarial.adversary import Era, Transport
    from skillwire.conform.report import Report

pytestmark = pytest.mark.anyio

PATIENT = Bounds(seconds=100, call_seconds=60, pages=5)
SETTINGS = [(transport, era) for transport in ("http", "stdio") for era in ("legacy", "modern")]


@pytest.fixture(params=rotated_settings(SETTINGS))
def server(request: pytest.FixtureRequest) -> HostileServer:
    return holding(*request.param)


class ByHand(HostileServer):
    """A server written by hand that keeps the rules, but for what a test takes from it."""

    def honest(self, method: str, params: dict[str, Any]) -> Any:
        if "cursor" in params or (method == "skills/get" and not isinstance(params.get("uri"), str)):
            return Refusal()
        answer = super().honest(method, params)
        if method == "resources/read" and isinstance(answer, dict):
            answer["contents"][0]["mimeType"] = "text/markdown"
        return answer


def holding(transport: Transport = "http", era: Era = "modern") -> HostileServer:
    hostile = ByHand(transport, era)
    hostile.add("flat", {"SKILL.md": skill_md("flat"), "notes.md": b"notes\n"})
    return hostile


async def report_on(server: HostileServer, bounds: Bounds = PATIENT, **options: Any) -> Report:
    async with server.serving() as target:
        place = UrlServer(target) if isinstance(target, str) else CommandServer(tuple(target))
        return await check_server(place, eras=(server.era,), bounds=bounds, **options)


def hasty(server: HostileServer) -> Bounds:
    """Bounds that wait for half a second, but not before the server has introduced itself."""
    bounds = replace(PATIENT)

    def shorten(params: dict[str, Any]) -> None:
        object.__setattr__(bounds, "call_seconds", 0.5)

    server.answers["server/discover"] = server.answers["initialize"] = shorten
    return bounds


async def test_a_server_that_was_written_by_hand_keeps_the_rules(server: HostileServer) -> None:
    """The tests below take one thing from it."""
    report = await report_on(server)
    assert rules(report) == set()
    assert rules(report, Verdict.PASS) >= {"BASE", "K1", "L1", "L3", "E1", "E2", "E3", "G1", "R1", "R2"}


@rule("B4")
async def test_a_server_that_never_answers_a_listing_is_reported(server: HostileServer) -> None:
    """Three requests without an answer are enough."""
    server.answers["skills/list"] = silence
    report = await report_on(server, hasty(server))
    assert "BASE" in rules(report)
    [section] = report.sections
    assert section.note
    assert {result.reason for result in section.results if result.rule.id == "R2"} == {section.note}


@rule("B1")
async def test_a_server_that_sends_for_ever_is_reported(server: HostileServer) -> None:
    server.answers["skills/list"] = Raw(endless)
    report = await report_on(server)
    assert "BASE" in rules(report)
    [section] = report.sections
    messages = [finding.message for result in section.results for finding in result.findings]
    assert any(str(64 * MIB) in message for message in messages)


@rule("B4")
async def test_a_server_that_drips_is_reported(server: HostileServer) -> None:
    server.answers["skills/list"] = Raw(drip)
    assert "BASE" in rules(await report_on(server, hasty(server)))


async def test_a_server_that_says_what_is_not_json_is_reported(server: HostileServer) -> None:
    server.answers["skills/get"] = Raw(once(b'{"jsonrpc": "2.0", "id": '))
    assert "BASE" in rules(await report_on(server, hasty(server)))


@rule("B3")
async def test_pages_without_an_end_are_left_at_the_bound(server: HostileServer) -> None:
    asked: list[Any] = []

    def page(params: dict[str, Any]) -> Any:
        asked.append(params.get("cursor"))
        if not str(params.get("cursor", "page-0")).startswith("page-"):
            return Refusal()
        return {"skills": [], "nextCursor": f"page-{len(asked)}"}

    server.answers["skills/list"] = page
    report = await report_on(server)
    assert rules(report) == set()
    assert rules(report, Verdict.WARNING) == {"L3"}
    assert len(asked) < 15


async def test_a_server_that_dies_is_reported(server: HostileServer) -> None:
    def die(params: dict[str, Any]) -> Any:
        server.hang_up()
        return silence(None)

    server.answers["skills/get"] = die
    report = await report_on(server)
    assert rules(report) == {"BASE"}


@rule("B4")
async def test_everything_ends_when_the_time_is_over() -> None:
    """Also if each request may take longer."""
    server = holding()
    server.answers["skills/get"] = silence
    report = await report_on(server, Bounds(seconds=2, call_seconds=60))
    assert "2 " in report.sections[0].note


async def test_a_server_that_is_not_there_is_an_error() -> None:
    with pytest.raises(UpstreamError) as caught:
        await check_server(UrlServer("http://127.0.0.1:9/mcp"), bounds=PATIENT)
    assert caught.value.reference == "not-mcp"


async def test_a_program_that_is_no_server_is_an_error() -> None:
    with pytest.raises(UpstreamError) as ended:
        await check_server(CommandServer(("true",)), bounds=PATIENT)
    assert ended.value.reference == "not-mcp"
    with pytest.raises(NotFoundError) as missing:
        await check_server(CommandServer(("no-such-program-anywhere",)), bounds=PATIENT)
    assert missing.value.reference == "command-failed"


async def test_a_page_on_the_web_is_no_server() -> None:
    server = HostileServer()
    server.path = "/elsewhere"
    async with server.serving() as target:
        with pytest.raises(UpstreamError, match="404"):
            await check_server(UrlServer(str(target).replace("elsewhere", "mcp")), bounds=PATIENT)


@rule("K1")
async def test_a_server_without_skills_has_not_kept_the_rules(server: HostileServer) -> None:
    """Nothing is checked, and that is said."""
    server.capabilities = {"resources": {}}
    server.answers["skills/list"] = Refusal(-32601, "unknown method")
    report = await report_on(server)
    assert rules(report) == {"K1"}
    assert rules(report, Verdict.PASS) <= {"BASE", "R4"}


@rule("K1")
async def test_the_extension_served_without_being_declared_breaks_a_rule(server: HostileServer) -> None:
    server.capabilities = {"resources": {}}
    report = await report_on(server)
    assert rules(report) == {"K1"}
    assert "skills/list" in report.sections[0].results[1].findings[0].message


async def test_a_dialect_that_is_required_and_missing_is_a_failure() -> None:
    assert rules(await report_of(required="extension")) == set()
    assert rules(await report_of(required="native")) == {"M1"}


@rule("F2")
async def test_a_name_that_breaks_the_format_is_a_failure() -> None:
    server = holding()
    server.add("Bad_Name", {"SKILL.md": skill_md("Bad_Name")})
    assert rules(await report_on(server)) == {"F2"}


@rule("F1")
async def test_a_skill_md_without_frontmatter_is_a_failure() -> None:
    server, text = holding(), b"no frontmatter\n"
    server.files["skill://flat/SKILL.md"] = text
    server.entries[0]["resources"][0].update(digest=digest_of(text), size=len(text))
    assert rules(await report_on(server)) == {"F1"}


@rule("E6")
async def test_a_skill_that_is_too_large_for_some_hosts_is_a_warning() -> None:
    server = holding()
    server.add("many", {"SKILL.md": skill_md("many"), **{f"{number}.txt": b"" for number in range(512)}})
    report = await report_on(server, rules=("E6",))
    assert rules(report) == set()
    assert rules(report, Verdict.WARNING) == {"E6"}


async def test_a_server_that_prints_to_its_stdout_is_told_so() -> None:
    """BASE: on stdio there are messages on stdout, and nothing else."""
    server = holding("stdio")

    async def chatty(request_id: Any) -> Any:
        yield b"completing...\n"
        yield to_message(request_id, Refusal(-32601, "unknown method"))

    server.answers["skillwire-conform/unknown"] = Raw(chatty)
    report = await report_on(server)
    assert rules(report) == {"BASE"}
    assert "completing..." in report.sections[0].results[0].findings[0].message


async def test_what_a_server_repeats_of_a_secret_is_shown_to_nobody() -> None:
    """Neither headers nor what stands in the address come into a report."""
    server = holding()

    def telling(params: dict[str, Any]) -> Any:
        return Refusal(-32603, f"you sent {server.asked[-1].headers['authorization']} and q-s3cret")

    server.answers["skills/get"] = telling
    server.path = "/mcp?key=q-s3cret"
    async with server.serving() as target:
        place = UrlServer(str(target), {"Authorization": "Bearer h-s3cret"})
        report = await check_server(place, eras=("modern",), bounds=PATIENT)
    assert rules(report) == {"G1"}
    text = json.dumps(as_json(report, "1")) + as_junit(report)
    assert "you sent " in text
    assert "s3cret" not in text


FAULTS = [
    ("/sep-2076", "P1", result_of("skills/list", lambda result: result["skills"][0].update(description=7))),
    ("/sep-2076", "P2", result_of("skills/get", lambda result: result.update(instructions="---\nname: x\n---\n"))),
    ("/sep-2076", "P2", instead(lambda asked, params: "nothing" in str(params.get("name")), error(-32603))),
    ("/sep-2076", "P4", message_of("resources/read", lambda message: {**drop_result(message), **error(-32602)})),
    (
        "/sep-2076",
        "P3",
        result_of("skills/list", lambda result: result["skills"][0].update(dependencies={"tools": ["absent"]})),
    ),
    ("/native", "M1", result_of("skills/list", lambda result: result["skills"][0].update(description=7))),
    ("/native", "M2", result_of("skills/activate", drop("instructions"))),
    ("/native", "M2", result_of("skills/activate", lambda result: result["tools"].append({"name": "no-schema"}))),
]

IDS = [
    "sep-2076-P1-description",
    "sep-2076-P2-instructions",
    "sep-2076-P2-unknown-name",
    "sep-2076-P4-unreadable-file",
    "sep-2076-P3-missing-dependency",
    "native-M1-description",
    "native-M2-no-instructions",
    "native-M2-tool-without-schema",
]


def drop_result(message: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key not in ("result", "error")}


@pytest.mark.parametrize(("path", "rule", "spoil"), FAULTS, ids=IDS)
async def test_a_fault_in_a_dialect_of_names_breaks_its_rule_alone(path: str, rule: str, spoil: Any) -> None:
    assert rules(await report_of(spoil, path)) == {rule}
