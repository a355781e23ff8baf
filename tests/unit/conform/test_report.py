"""Verdicts: a rule that was not seen never passes, and one failure fails a rule."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from skillwire.conform.report import ConformanceRule, Exchange, Ledger, Report, Section, Verdict, as_json, as_junit

RULE = ConformanceRule("L1", "a title", "how it is seen", "what to do")
EXCHANGE = Exchange({"method": "skills/list"}, {"result": {}})


@pytest.fixture
def ledger() -> Ledger:
    return Ledger([RULE])


def verdict(ledger: Ledger) -> Verdict:
    [result] = ledger.results()
    return result.verdict


def test_what_nobody_looked_at_is_not_checked(ledger: Ledger) -> None:
    assert verdict(ledger) is Verdict.NOT_CHECKED


def test_what_is_not_there_is_not_offered(ledger: Ledger) -> None:
    ledger.not_offered(["L1"], "there is none")
    assert verdict(ledger) is Verdict.NOT_OFFERED


def test_what_held_once_passes_and_keeps_its_first_proof(ledger: Ledger) -> None:
    ledger.passed("L1", EXCHANGE)
    ledger.passed("L1", Exchange({"method": "other"}))
    ledger.not_offered(["L1"], "too late")
    assert verdict(ledger) is Verdict.PASS
    assert ledger.results()[0].proof == {"request": {"method": "skills/list"}, "answer": {"result": {}}}


def test_a_warning_is_more_than_a_pass_and_a_failure_more_than_both(ledger: Ledger) -> None:
    ledger.passed("L1")
    ledger.warned("L1", "hm")
    assert verdict(ledger) is Verdict.WARNING
    ledger.failed("L1", "no")
    ledger.passed("L1")
    assert verdict(ledger) is Verdict.FAIL


def test_a_rule_that_was_not_asked_for_is_not_kept(ledger: Ledger) -> None:
    ledger.failed("D1", "no")
    ledger.passed("D1")
    assert not ledger.includes("D1")
    assert verdict(ledger) is Verdict.NOT_CHECKED


def test_findings_are_counted_beyond_those_that_are_kept(ledger: Ledger) -> None:
    for number in range(1000):
        ledger.failed("L1", f"number {number}")
    [result] = ledger.results()
    assert result.failed == 1000
    assert len(result.findings) == 10


def test_a_failure_after_many_warnings_is_in_the_report(ledger: Ledger) -> None:
    for number in range(20):
        ledger.warned("L1", f"number {number}")
    ledger.failed("L1", "no")
    [failure] = ElementTree.fromstring(as_junit(report(ledger))).iter("failure")
    assert failure.get("message") == "no"


def report(ledger: Ledger) -> Report:
    return Report("server", "somewhere", (Section("modern", ledger.results()),))


def test_a_report_has_failed_only_where_a_rule_is_broken(ledger: Ledger) -> None:
    ledger.warned("L1", "hm")
    assert not report(ledger).has_failed()
    assert report(ledger).has_failed(strict=True)


def test_an_era_that_is_not_spoken_counts_for_nothing(ledger: Ledger) -> None:
    silent = Report("server", "somewhere", (Section("legacy", ledger.results(), "why", spoken=False),))
    assert not any(silent.count(verdict) for verdict in Verdict)
    assert as_json(silent, "1")["sections"][0]["results"] == []
    assert "<testsuite " not in as_junit(silent)


def test_junit_is_xml_whatever_a_server_said(ledger: Ledger) -> None:
    """Control characters, half characters and markup are text."""
    hostile = "]]></failure>\x00\x1b[31m\ud800 & <b>"
    ledger.failed("L1", hostile, Exchange({"method": hostile}, {"result": {hostile: hostile}}), hostile)
    text = as_junit(report(ledger))
    [case] = ElementTree.fromstring(text.encode("utf-8")).iter("testcase")
    failure = case.find("failure")
    assert failure is not None
    assert failure.get("message", "").startswith("]]></failure><U+0000><U+001B>[31m\\ud800 & <b>")
    json.dumps(as_json(report(ledger), "1"), ensure_ascii=False).encode()  # a file can hold it
    assert RULE.fix in (failure.text or "")


def test_junit_counts_what_it_shows(ledger: Ledger) -> None:
    suite = ElementTree.fromstring(as_junit(report(ledger)).encode()).find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("1", "0", "1")
