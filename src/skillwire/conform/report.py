"""A report: one verdict for each rule, with evidence, and its JSON and JUnit forms.

A rule passes only if the run saw something that could have broken it. ``not offered`` means that the program lacks
the feature. ``not checked`` means that the run could not check it, and the reason explains why. Neither is a pass.

Evidence is a request and its response, shortened and without secrets. HTTP headers are not recorded, so no token
that we send can appear in a report. ``Redactor`` removes secrets that a server repeats in a response.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast
from xml.etree import ElementTree

from skillwire.client.bounds import as_object

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Message: TypeAlias = dict[str, Any]
ReportKind: TypeAlias = Literal["server", "host"]

_MAX_TEXT = 200
_MAX_ITEMS = 4
_MAX_KEYS = 24
_MAX_DEPTH = 10
_SHORTEST_SECRET = 4
_MAX_FINDINGS = 10  # of a rule, and as many warnings: a failure is never left without its finding


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its response, or the reason why there is no readable response."""

    request: Message
    answer: Any = None
    problem: str = ""

    @property
    def method(self) -> str:
        """The method of the request."""
        return str(self.request.get("method", ""))

    @property
    def result(self) -> Message | None:
        """The result, if the response has one and it is an object."""
        result: object = as_object(self.answer).get("result")
        return cast("Message", result) if isinstance(result, dict) else None

    @property
    def code(self) -> int | None:
        """The error code, if the response is an error."""
        code: object = as_object(as_object(self.answer).get("error")).get("code")
        return code if isinstance(code, int) and not isinstance(code, bool) else None

    @property
    def is_error(self) -> bool:
        """Whether the response is an error, well formed or not."""
        return "error" in as_object(self.answer)

    @property
    def summary(self) -> str:
        """The outcome in a few words."""
        if self.problem:
            return self.problem
        if self.is_error:
            return f"error {self.code}"
        return "a result" if self.result is not None else "no result"


def shorten(value: Any, depth: int = _MAX_DEPTH) -> Any:
    """``value`` in a readable size: long text is cut, and long lists show their first items."""
    match value:
        case str() if len(value) > _MAX_TEXT:
            return f"{_printable(value[:_MAX_TEXT])}… ({len(value):,} characters)"
        case str():
            return _printable(value)
        case list() | dict() if depth == 0:
            return "…"
        case list():
            items = cast("list[Any]", value)
            more = [f"… and {len(items) - _MAX_ITEMS:,} more"] if len(items) > _MAX_ITEMS else []
            return [*(shorten(item, depth - 1) for item in items[:_MAX_ITEMS]), *more]
        case dict():
            fields = cast("dict[str, Any]", value)
            more = {"…": f"{len(fields) - _MAX_KEYS:,} more"} if len(fields) > _MAX_KEYS else {}
            first = list(fields)[:_MAX_KEYS]
            return {_printable(key[:_MAX_TEXT]): shorten(fields[key], depth - 1) for key in first} | more
        case _:
            return value


def _printable(text: str) -> str:
    """``text`` with lone surrogates escaped: JSON can carry them, a file cannot."""
    return text.encode(errors="backslashreplace").decode()


class Redactor:
    """Replaces the secrets that a server was given."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        words = {word for secret in secrets for word in (secret, secret.rpartition(" ")[2])}
        self._secrets = sorted((word for word in words if len(word) >= _SHORTEST_SECRET), key=len, reverse=True)

    def __call__(self, value: Any) -> Any:
        """Return ``value`` without the secrets."""
        match value:
            case str():
                for secret in self._secrets:
                    value = value.replace(secret, "[hidden]")
                return value
            case list():
                return [self(item) for item in cast("list[Any]", value)]
            case dict():
                return {self(key): self(item) for key, item in cast("dict[str, Any]", value).items()}
            case _:
                return value

    def evidence(self, exchange: Exchange) -> dict[str, Any]:
        """Return the exchange as evidence for a report."""
        answer = {"problem": exchange.problem} if exchange.answer is None else exchange.answer
        return {"request": shorten(self(exchange.request)), "answer": shorten(self(answer))}


class Verdict(StrEnum):
    """The outcome of one rule."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    WARNING = "warning"
    NOT_OFFERED = "not offered"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class ConformanceRule:
    """A rule: its id, title, how it is checked, and how to fix a violation."""

    id: str
    title: str
    how: str
    fix: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One violation or warning. ``evidence`` is the request and the response, ``part`` the relevant part of it."""

    message: str
    evidence: Mapping[str, Any] | None = None
    part: Any = None
    is_warning: bool = False


@dataclass(slots=True)
class Result:
    """The result of one rule."""

    rule: ConformanceRule
    checked: int = 0  # number of passes
    failed: int = 0
    warned: int = 0
    reason: str = ""
    offered: bool = True
    proof: Mapping[str, Any] | None = None  # an exchange that passed
    findings: list[Finding] = field(default_factory=list[Finding])

    @property
    def verdict(self) -> Verdict:
        """One failure fails the rule."""
        if self.failed:
            return Verdict.FAIL
        if self.warned:
            return Verdict.WARNING
        if self.checked:
            return Verdict.PASS
        return Verdict.NOT_CHECKED if self.offered else Verdict.NOT_OFFERED


class Ledger:
    """Collects the results of checks. Results of rules that are not part of the run are dropped."""

    def __init__(self, rules: Iterable[ConformanceRule], redact: Redactor | None = None) -> None:
        self._results = {rule.id: Result(rule) for rule in rules}
        self._redact = redact or Redactor()

    def results(self) -> tuple[Result, ...]:
        """One result for each rule, in the order of the rules."""
        return tuple(self._results.values())

    def includes(self, *rules: str) -> bool:
        """Whether any of ``rules`` is part of the run."""
        return any(rule in self._results for rule in rules)

    def passed(self, rule: str, exchange: Exchange | None = None) -> None:
        """Record that the rule was checked and holds."""
        result = self._results.get(rule)
        if result is not None:
            result.checked += 1
            if result.proof is None and exchange is not None:
                result.proof = self._redact.evidence(exchange)

    def failed(self, rule: str, message: str, exchange: Exchange | None = None, part: Any = None) -> None:
        """Record a violation."""
        if rule in self._results:
            self._results[rule].failed += 1
            self._add_finding(rule, message, exchange, part, is_warning=False)

    def warned(self, rule: str, message: str, exchange: Exchange | None = None, part: Any = None) -> None:
        """Record something that is allowed but that the author should know."""
        if rule in self._results:
            self._results[rule].warned += 1
            self._add_finding(rule, message, exchange, part, is_warning=True)

    def expect(
        self, rule: str, holds: bool, message: str, exchange: Exchange | None = None, part: Any = None
    ) -> bool:
        """Record a pass or a failure, and return ``holds``."""
        if holds:
            self.passed(rule, exchange)
        else:
            self.failed(rule, message, exchange, part)
        return holds

    def not_offered(self, rules: Iterable[str], reason: str) -> None:
        """Record that the program does not offer the feature of the rules."""
        for result in self._without_outcome(rules):
            result.offered, result.reason = False, reason

    def not_checked(self, rules: Iterable[str], reason: str) -> None:
        """Record that the rules could not be checked. An earlier reason stays."""
        for result in self._without_outcome(rules):
            result.reason = result.reason or reason

    def _without_outcome(self, rules: Iterable[str]) -> list[Result]:
        found = [self._results[rule] for rule in rules if rule in self._results]
        return [result for result in found if not (result.checked or result.failed or result.warned)]

    def _add_finding(
        self, rule: str, message: str, exchange: Exchange | None, part: Any, *, is_warning: bool
    ) -> None:
        findings = self._results[rule].findings
        if sum(finding.is_warning == is_warning for finding in findings) < _MAX_FINDINGS:
            evidence = None if exchange is None else self._redact.evidence(exchange)
            part = None if part is None else shorten(self._redact(part))
            findings.append(Finding(_printable(self._redact(message)), evidence, part, is_warning))


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a run: an era of the protocol, or everything that a host did."""

    name: str
    results: tuple[Result, ...]
    note: str = ""
    spoken: bool = True  # False if the server does not support this era of the protocol

    def count(self, verdict: Verdict) -> int:
        """The number of rules with this verdict; none if the era was not spoken."""
        return sum(result.verdict is verdict for result in self.results) if self.spoken else 0


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a whole run."""

    kind: ReportKind
    target: str
    sections: tuple[Section, ...]
    notes: tuple[str, ...] = ()

    def count(self, verdict: Verdict) -> int:
        """The number of rules with this verdict in all sections."""
        return sum(section.count(verdict) for section in self.sections)

    def has_failed(self, *, strict: bool = False) -> bool:
        """Whether any rule failed; with ``strict``, warnings count too."""
        return bool(self.count(Verdict.FAIL) or (strict and self.count(Verdict.WARNING)))


def as_json(report: Report, version: str) -> dict[str, Any]:
    """The report as a JSON document. Field names are stable."""
    return {
        "tool": {"name": "skillwire", "version": version},
        "kind": report.kind,
        "target": report.target,
        "counts": {str(verdict): report.count(verdict) for verdict in Verdict},
        "notes": list(report.notes),
        "sections": [
            {
                "name": section.name,
                "spoken": section.spoken,
                "note": section.note,
                "results": [_result_json(result) for result in section.results] if section.spoken else [],
            }
            for section in report.sections
        ],
    }


def _result_json(result: Result) -> dict[str, Any]:
    return {
        "rule": result.rule.id,
        "title": result.rule.title,
        "verdict": str(result.verdict),
        "held": result.checked,
        "failed": result.failed,
        "warned": result.warned,
        "reason": result.reason,
        "proof": result.proof,
        "findings": [
            {
                "severity": "warning" if finding.is_warning else "failure",
                "message": finding.message,
                "hint": result.rule.fix,
                "part": finding.part,
                "evidence": finding.evidence,
            }
            for finding in result.findings
        ],
    }


def as_junit(report: Report) -> str:
    """The report as JUnit XML: one suite for each section, one case for each rule."""
    suites = ElementTree.Element("testsuites", name=f"skillwire conform {report.kind}")
    for section in report.sections:
        if section.spoken:
            suite = ElementTree.SubElement(
                suites,
                "testsuite",
                name=f"{report.kind} {section.name}",
                tests=str(len(section.results)),
                failures=str(section.count(Verdict.FAIL)),
                errors="0",
                skipped=str(section.count(Verdict.NOT_OFFERED) + section.count(Verdict.NOT_CHECKED)),
            )
            for result in section.results:
                _add_case(suite, f"skillwire.{report.kind}.{section.name}", result)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _add_case(suite: ElementTree.Element, classname: str, result: Result) -> None:
    name = _xml_text(f"{result.rule.id} {result.rule.title}")
    case = ElementTree.SubElement(suite, "testcase", classname=classname, name=name)
    details = [f"fix: {result.rule.fix}"]
    for finding in result.findings:
        details.append(finding.message)
        if finding.part is not None:
            details.append(f"part: {json.dumps(finding.part, ensure_ascii=False)}")
        if finding.evidence is not None:
            details.append(json.dumps(finding.evidence, indent=1, ensure_ascii=False))
    match result.verdict:
        case Verdict.FAIL:
            message = next(finding.message for finding in result.findings if not finding.is_warning)
            failure = ElementTree.SubElement(case, "failure", message=_xml_text(message), type=result.rule.id)
            failure.text = _xml_text("\n".join(details))
        case Verdict.WARNING:
            ElementTree.SubElement(case, "system-out").text = _xml_text("\n".join(details))
        case Verdict.NOT_OFFERED | Verdict.NOT_CHECKED:
            ElementTree.SubElement(case, "skipped", message=_xml_text(f"{result.verdict}: {result.reason}"))
        case Verdict.PASS:
            pass


def _xml_text(text: str) -> str:
    """``text`` without the characters that XML cannot contain in any spelling."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"<U+{ord(c):04X}>" for c in text)
