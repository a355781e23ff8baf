"""The table of the host's rules, their tests and what came of them: docs/host-conformance.md.

    .venv/bin/python tests/host/conformance.py > docs/host-conformance.md     run the tests, then write the table
    .venv/bin/python tests/host/conformance.py --collect                      the table if all of them passed

A test proves the rules that its docstring begins with. ``test_conformance.py`` fails if the table is not what the
tests say: a rule that no test proves, a test that is gone, a test that came.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/host-conformance.md"
OURS = ("tests/host", "tests/adversarial/host")
SOURCES = (*OURS, "tests/unit/host")
ITSELF = "tests/host/test_conformance.py"
CITED = re.compile(r"[A-Z]\d+b?(?:, [A-Z]\d+b?)*(?=[:\s]|\Z)")

RULES = {
    "V1": "Every retrieved file is checked against its entry's size and digest; a mismatch is never used",
    "V2": "Reads resolve only to URIs in the held entry; an unlisted file equals a mismatch",
    "V3": "The recovery from a mismatch is a fresh `skills/get`, which, being different, revokes the approval",
    "V4": "The frontmatter of `SKILL.md` is compared field by field with the entry's",
    "V5": "Nothing is fetched ahead of need: not on connect, not on listing, not on approval",
    "V6": "A digest match is consistency, not trust, and is never presented as trust",
    "V7": "Dynamic skills are declined by default, allowed by explicit choice, never under a persisted approval",
    "W1": "The window opens when the host's loading path puts `SKILL.md` in the context, until that leaves it",
    "W2": "A plain `resources/read` of a `SKILL.md` is not a load: no approval, no window, no standing",
    "W3": "A directory read never extends the manifest",
    "A1": "A persisted approval is bound to the full set of (URI, digest) seen, for (server label, URI)",
    "A2": "A later entry with another set (rotated, added, removed) revokes it",
    "A3": "A nested skill needs its own approval; its frontmatter has no effect before that",
    "A4": "`allowed-tools` and any other widening field is ignored unless that grant was approved for that skill",
    "A5": "Running code while acting on a skill needs its approval; hooks and scripts are ignored or gated",
    "O1": "Servers are known by host-assigned labels, never by their own name",
    "O2": "Skill content enters the context tagged with its origin and never looks like a local skill",
    "O3": "A skill causes no read on another origin without a per-call approval, nor of `file:` in any spelling",
    "N1": "Colliding names are qualified; nothing is dropped, preferred or shadowed silently",
    "C1": "Verified content is cached by digest; on a hit the bytes are hashed again",
    "C2": "The cache lies outside every directory that hosts scan for skills, and stays MCP-origin for ever",
    "C3": "Paths encode the server label and the URI; removing a server removes its content",
    "B1": "Sizes are capped before decoding and while reading",
    "B2": "A byte budget per server",
    "B3": "A cap on pages and entries, and a stop at a cursor that repeats",
    "B4": "A time limit on every call",
    "B5": "Case-fold and Unicode-normal collisions on disk are refused",
    "B6": "Text that hides instructions is shown to the person before approval",
}
HEAD = """\
# Which test proves which rule of the host

Generated from the tests by `tests/host/conformance.py`, not written by hand: a test proves the rules that its
docstring begins with, and a test fails if this page is not what the tests say.

| rule | what it says | tests | result |
|---|---|---|---|
"""


@dataclass(eq=False)
class Found:
    """The tests, by file and name: which rules each proves, how many cases it has, and what came of them."""

    proves: dict[str, tuple[str, ...]] = field(default_factory=dict)
    cases: Counter[str] = field(default_factory=Counter)
    results: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            name = item.nodeid.partition("[")[0]
            if isinstance(item, pytest.Function) and not name.startswith(ITSELF):
                self.proves[name] = cited(item.function.__doc__ or "")
                self.cases[name] += 1

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.results[report.nodeid.partition("[")[0]].add(report.outcome)

    def of(self, rule: str) -> list[str]:
        return sorted(name for name, rules in self.proves.items() if rule in rules)


def cited(docstring: str) -> tuple[str, ...]:
    """The ids that a docstring begins with."""
    match = CITED.match(docstring.strip())
    return tuple(match.group().split(", ")) if match else ()


def find(*, run: bool) -> Found:
    """Collect the tests, and run them if that is wanted, in this process."""
    found = Found()
    sources = [source for source in SOURCES if (ROOT / source).is_dir()]
    options = ["-q", "-W", "error", f"--rootdir={ROOT}", "-p", "no:xdist", *sources]
    options += ["--deselect", ITSELF] if run else ["--collect-only"]
    os.chdir(ROOT)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = pytest.main(options, plugins=[found])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        sys.exit(f"the tests cannot be collected:\n{said.getvalue()}")
    if not run:
        found.results |= {name: {"passed"} for name in found.proves}
    return found


def render(found: Found) -> str:
    """The page."""
    rows, lists = [], []
    for rule, text in RULES.items():
        tests = found.of(rule)
        cases = sum(found.cases[test] for test in tests)
        outcomes = set[str]().union(*(found.results.get(test, {"passed"}) for test in tests))
        result = "passes" if outcomes == {"passed"} else ", ".join(sorted(outcomes)) or "no test"
        rows.append(f"| [{rule}](#{rule.lower()}) | {text} | {len(tests)} ({cases} cases) | {result} |\n")
        lists.append(f"\n## {rule}\n\n{text}.\n{listed(tests)}")
    return HEAD + "".join(rows) + "".join(lists)


def listed(tests: list[str]) -> str:
    """The tests of one rule, file by file."""
    lines: list[str] = []
    by_file: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        file, _, name = test.partition("::")
        by_file[file].append(name)
    for file, names in by_file.items():
        lines.append(f"\n[{file}](../{file})\n\n")
        lines += [f"- `{name}`\n" for name in names]
    return "".join(lines)


def main() -> int:
    """Print the page; 1 if a test failed or a rule has none."""
    found = find(run="--collect" not in sys.argv[1:])
    page = render(found)
    sys.stdout.write(page)
    failed = [name for name, results in found.results.items() if results - {"passed"}]
    return 1 if failed or not all(map(found.of, RULES)) else 0


if __name__ == "__main__":
    sys.exit(main())
