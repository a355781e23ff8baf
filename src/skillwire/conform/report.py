"""A report for programs: JSON, and JUnit's XML, which every CI shows. Field names are stable."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from skillwire.conform.outcome import Verdict

if TYPE_CHECKING:
    from skillwire.conform.outcome import Finding, Report, Result, Section


def as_json(report: Report, version: str) -> dict[str, Any]:
    """Everything."""
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
                "results": [_result(result) for result in section.results] if section.spoken else [],
            }
            for section in report.sections
        ],
    }


def _result(result: Result) -> dict[str, Any]:
    return {
        "rule": result.rule.id,
        "title": result.rule.title,
        "verdict": str(result.verdict),
        "held": result.checked,
        "failed": result.failed,
        "warned": result.warned,
        "reason": result.reason,
        "proof": result.proof,
        "findings": [_finding(finding, result) for finding in result.findings],
    }


def _finding(finding: Finding, result: Result) -> dict[str, Any]:
    return {
        "severity": "warning" if finding.is_warning else "failure",
        "message": finding.message,
        "hint": result.rule.fix,
        "part": finding.part,
        "evidence": finding.evidence,
    }


def as_junit(report: Report) -> str:
    """One suite for each section, one case for each rule."""
    suites = ElementTree.Element("testsuites", name=f"skillwire conform {report.kind}")
    for section in report.sections:
        if section.spoken:
            suites.append(_suite(report, section))
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _suite(report: Report, section: Section) -> ElementTree.Element:
    counts = {verdict: sum(result.verdict is verdict for result in section.results) for verdict in Verdict}
    suite = ElementTree.Element(
        "testsuite",
        name=f"{report.kind} {section.name}",
        tests=str(len(section.results)),
        failures=str(counts[Verdict.FAIL]),
        errors="0",
        skipped=str(counts[Verdict.NOT_OFFERED] + counts[Verdict.NOT_CHECKED]),
    )
    for result in section.results:
        suite.append(_case(report, section, result))
    return suite


def _case(report: Report, section: Section, result: Result) -> ElementTree.Element:
    name = f"{result.rule.id} {result.rule.title}"
    case = ElementTree.Element("testcase", classname=f"skillwire.{report.kind}.{section.name}", name=_legal(name))
    if result.verdict is Verdict.FAIL:
        first = next(finding for finding in result.findings if not finding.is_warning)
        failure = ElementTree.SubElement(case, "failure", message=_legal(first.message), type=result.rule.id)
        failure.text = _legal(_details(result))
    elif result.verdict in (Verdict.NOT_OFFERED, Verdict.NOT_CHECKED):
        reason = f"{result.verdict}: {result.reason}"
        ElementTree.SubElement(case, "skipped", message=_legal(reason))
    elif result.verdict is Verdict.WARNING:
        ElementTree.SubElement(case, "system-out").text = _legal(_details(result))
    return case


def _details(result: Result) -> str:
    """The findings with their evidence, and what to do."""
    parts = [f"to do: {result.rule.fix}"]
    for finding in result.findings:
        parts.append(finding.message)
        if finding.part is not None:
            parts.append(f"meant: {json.dumps(finding.part, ensure_ascii=False)}")
        if finding.evidence is not None:
            parts.append(json.dumps(finding.evidence, indent=1, ensure_ascii=False))
    return "\n".join(parts)


def _legal(text: str) -> str:
    """XML knows no control characters and no half characters, in no spelling."""
    return "".join(c if c.isprintable() or c in "\n\t" else f"<U+{ord(c):04X}>" for c in text)
