"""What a run found out: a verdict for each rule, with what proves it.

A rule passes only if something was seen that could have broken it. What was not there to be looked at is ``not
offered``; what could not be looked at, and why, is ``not checked``. Neither is ever a pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from skillwire.conform.evidence import Exchange, Redactor, legible, shortened

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MAX_FINDINGS = 10
Kind: TypeAlias = Literal["server", "host"]


class Verdict(StrEnum):
    """How a rule came out."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    WARNING = "warning"
    NOT_OFFERED = "not offered"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule by its id: what it says, how it is looked at, what to do where it is broken."""

    id: str
    title: str
    how: str
    fix: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that breaks a rule, or may: ``evidence`` is the request and the answer, ``part`` what is meant."""

    message: str
    evidence: Mapping[str, Any] | None = None
    part: Any = None
    is_warning: bool = False


@dataclass(slots=True)
class Result:
    """What became of one rule."""

    rule: Rule
    checked: int = 0  # how often it held
    failed: int = 0
    warned: int = 0
    reason: str = ""
    offered: bool = True
    proof: Mapping[str, Any] | None = None  # an exchange in which it held
    findings: list[Finding] = field(default_factory=list[Finding])

    @property
    def verdict(self) -> Verdict:
        """Broken once is broken."""
        if self.failed:
            return Verdict.FAIL
        if self.warned:
            return Verdict.WARNING
        if self.checked:
            return Verdict.PASS
        return Verdict.NOT_CHECKED if self.offered else Verdict.NOT_OFFERED


class Ledger:
    """Where checks write down what they see. Rules that were not asked for are not kept."""

    def __init__(self, rules: Iterable[Rule], redact: Redactor | None = None) -> None:
        self._results = {rule.id: Result(rule) for rule in rules}
        self._redact = redact or Redactor()

    def results(self) -> tuple[Result, ...]:
        """One for each rule, in the rules' order."""
        return tuple(self._results.values())

    def wants(self, *rules: str) -> bool:
        """Whether any of ``rules`` was asked for."""
        return any(rule in self._results for rule in rules)

    def held(self, rule: str, exchange: Exchange | None = None) -> None:
        """The rule was looked at, and holds."""
        result = self._results.get(rule)
        if result is not None:
            result.checked += 1
            if result.proof is None and exchange is not None:
                result.proof = self._redact.shown(exchange)

    def broken(self, rule: str, message: str, exchange: Exchange | None = None, part: Any = None) -> None:
        """The rule does not hold."""
        result = self._results.get(rule)
        if result is not None:
            result.failed += 1
            self._keep(result, message, exchange, part, is_warning=False)

    def doubtful(self, rule: str, message: str, exchange: Exchange | None = None, part: Any = None) -> None:
        """Something that is allowed, and that a person should know."""
        result = self._results.get(rule)
        if result is not None:
            result.warned += 1
            self._keep(result, message, exchange, part, is_warning=True)

    def expect(
        self, rule: str, holds: bool, message: str, exchange: Exchange | None = None, part: Any = None
    ) -> bool:
        """``held`` or ``broken``; which of them is returned."""
        if holds:
            self.held(rule, exchange)
        else:
            self.broken(rule, message, exchange, part)
        return holds

    def absent(self, rules: Iterable[str], reason: str) -> None:
        """There is nothing that the rules are about."""
        for result in self._untouched(rules):
            result.offered, result.reason = False, reason

    def unchecked(self, rules: Iterable[str], reason: str) -> None:
        """The rules could not be looked at; a reason that was given before stays."""
        for result in self._untouched(rules):
            if not result.reason:
                result.reason = reason

    def _untouched(self, rules: Iterable[str]) -> list[Result]:
        found = [self._results[rule] for rule in rules if rule in self._results]
        return [result for result in found if not (result.checked or result.failed or result.warned)]

    def _keep(
        self, result: Result, message: str, exchange: Exchange | None, part: Any, *, is_warning: bool
    ) -> None:
        if len(result.findings) < _MAX_FINDINGS:
            evidence = None if exchange is None else self._redact.shown(exchange)
            part = None if part is None else shortened(self._redact(part))
            result.findings.append(Finding(legible(self._redact(message)), evidence, part, is_warning))


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a run: an era of a server's protocol, or all that was seen of a host."""

    name: str
    results: tuple[Result, ...]
    note: str = ""  # what a person should know of it
    spoken: bool = True  # whether there was anything to look at


@dataclass(frozen=True, slots=True)
class Report:
    """A whole run."""

    kind: Kind
    target: str
    sections: tuple[Section, ...]
    notes: tuple[str, ...] = ()

    def count(self, verdict: Verdict) -> int:
        """How many rules came out so, over all sections that were spoken."""
        return sum(
            1
            for section in self.sections
            if section.spoken
            for result in section.results
            if result.verdict is verdict
        )

    def has_failed(self, *, strict: bool = False) -> bool:
        """Whether any rule is broken; with ``strict`` warnings count too."""
        return bool(self.count(Verdict.FAIL) or (strict and self.count(Verdict.WARNING)))
