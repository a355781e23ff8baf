"""The rules that skillwire keeps, by id, and the marker that ties a test to the rules it proves.

    @rule("V1", "C1")
    def test_a_cached_file_is_hashed_again() -> None: ...

- ``pytest --rule V1`` runs the tests of one rule.
- ``test_rules.py`` fails for a rule without a test. An unknown id stops the collection.
- ``python tests/rules.py > conformance.md`` writes the page for a release: each rule and its tests.

The ids are those of the protocol notes: F format, U URIs, K capabilities, E entries, L G R D S T methods,
V verification, W acting window, A approval, O N origins and names, C cache, B bounds, I index, P sep-2076,
M native, X fallback, Z local safety and public endpoints.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

rule = pytest.mark.rule

RULES = {
    "F1": "A skill is a directory with SKILL.md at its root, which begins with YAML frontmatter",
    "F2": "name: 1-64 of a-z, 0-9 and single inner hyphens, equal to the directory's name",
    "F3": "description, license, compatibility, metadata and allowed-tools have their types and lengths",
    "F4": "Frontmatter has the meaning of the YAML 1.2 core schema",
    "F5": "The last line break before the closing --- belongs to the YAML",
    "F6": "BOM, CRLF, non-ASCII text and a missing final newline survive",
    "F7": "One bad skill never fails the catalog; the report names the file, the rule and the fix",
    "U1": "skill://<skill-path>/<file-path>; SKILL.md is always explicit",
    "U2": "A skill's root is its URI without /SKILL.md and without a trailing slash",
    "U3": "The last segment of the skill path equals the name",
    "U4": "The first segment is the authority; it is never resolved on a network and keeps its case",
    "U5": "Any scheme may carry skills; nothing is a skill because of its scheme",
    "U6": "Relative references resolve against the directory of their SKILL.md and cannot leave the skill",
    "U7": "Segments are compared decoded; dots, empty ones, encoded slashes and control characters are refused",
    "K1": "A server declares the extension, directoryRead if it has it, and resources",
    "K2": "A client calls only what the server declared",
    "K3": "A client declares the extension too",
    "E1": "An entry is {uri, frontmatter, resources}",
    "E2": 'resources is the complete list of {uri, digest, size}, or "dynamic"; anything else is invalid',
    "E2b": "The generation before (no size, no resources) is read, never sent",
    "E3": "digest is sha256 over the raw bytes; size is their length",
    "E4": "Every resource is inside the skill; a nested skill's files are listed in the enclosing skill too",
    "E5": "Identity is (server label, uri); names are labels",
    "E6": "Skills up to 512 resources and 16 MiB are accepted; servers warn above that",
    "L1": "skills/list is paginated; an entry is never split",
    "L2": "A listing may be empty or partial; nested skills appear flat",
    "L3": "A cursor is opaque and survives changes; a bad one is -32602",
    "G1": "skills/get answers for every skill served, listed or not; otherwise -32602",
    "R1": "resources/read returns text for UTF-8, base64 otherwise, with the right MIME type",
    "R2": "resources/read returns what the current entry describes, also while files change",
    "R3": "Resources carry audience, priority, lastModified and size",
    "R4": "_meta keys have a reverse-domain prefix; the one for skills is accepted",
    "D1": "resources/directory/read lists direct children, paginated; a file or unknown URI is -32602",
    "S1": "Changes are noticed without a restart and subscribers are notified",
    "T1": "Resource templates for supporting files are wired to completion",
    "V1": "Every retrieved file is checked against its entry's size and digest; a mismatch is never used",
    "V2": "While acting on a skill, reads resolve only to URIs in the held entry",
    "V3": "The recovery from a mismatch is a fresh skills/get, which, being different, revokes the approval",
    "V4": "The frontmatter of SKILL.md is compared field by field with the entry's",
    "V5": "Nothing is fetched ahead of need",
    "V6": "A digest match is consistency, not trust, and is never presented as trust",
    "V7": "Dynamic skills are declined by default and never loaded under a persisted approval",
    "W1": "The window opens when the host puts SKILL.md in the context and closes when that leaves it",
    "W2": "A plain resources/read of a SKILL.md is not a load",
    "W3": "A directory read never extends the manifest",
    "A1": "A persisted approval is bound to the full set of (uri, digest), for (server label, uri)",
    "A2": "A later entry with another set revokes it",
    "A3": "A nested skill needs its own approval",
    "A4": "allowed-tools and other widening fields are ignored unless that grant was approved",
    "A5": "Running code while acting on a skill needs that skill's approval",
    "A6": "An approval also binds the entry's frontmatter; a mismatch with SKILL.md revokes it",
    "O1": "Servers are known by host-assigned labels, never by their own name",
    "O2": "Skill content enters the context tagged with its origin and never looks like a local skill",
    "O3": "A skill causes no read on another origin without a per-call approval, nor of file: in any spelling",
    "N1": "Colliding names are qualified; nothing is dropped, preferred or shadowed silently",
    "C1": "Verified content is cached by digest; on a hit the bytes are hashed again",
    "C2": "The cache is outside every directory that hosts scan, and its content stays MCP-origin",
    "C3": "Paths encode the server label and the URI; removing a server removes its content",
    "B1": "Sizes and the number of JSON values are capped before decoding and while reading",
    "B2": "A byte budget per server",
    "B3": "A cap on pages, entries and time; a stop at a cursor or a page that repeats",
    "B4": "A time limit on every call",
    "B5": "Case-fold and Unicode-normal collisions on disk are refused",
    "B6": "Text that hides instructions can be seen before approval, and check reports it",
    "I1": "skill://index.json in two generations; one document serves both",
    "I2": "Archives have SKILL.md at the root and equal the individual files",
    "I3": "Unpacking refuses unsafe members before anything is written",
    "I4": "A missing index is not proof of no skills: resources/list is searched",
    "I5": "Mining server instructions for URIs is opt-in",
    "P1": "sep-2076: the skills capability and the shape of skills/list",
    "P2": "sep-2076: skills/get by name returns instructions; unknown names and missing arguments are -32602",
    "P3": "sep-2076: dependencies exist on the same server",
    "P4": "sep-2076: files are readable with resources/read and never executed automatically",
    "P5": "sep-2076: notifications/skills/list_changed",
    "P6": "sep-2076: the mapping from SKILL.md",
    "M1": "native: skills/list returns metadata, paginated",
    "M2": "native: skills/activate returns instructions and complete definitions of what is scoped",
    "M3": "native: scoped primitives are in no top-level list, and callable from activation to its end",
    "M4": "native: notifications/skills/list_changed",
    "M5": "native: an operator can leave scoped primitives listed",
    "X1": "fallback: tools to list, search, load and read skills",
    "X2": "fallback: one prompt per skill, with the same bytes and the origin stated",
    "Z1": "A project's files start, contact and expand nothing before the user allowed it on this machine",
    "Z2": "Skills go into folders of known agents or a folder that the user typed; never into repositories",
    "Z3": "No written tree is or contains a Git repository",
    "Z4": "approve shows the review and asks; without a terminal it requires the fingerprint",
    "Z5": "An approval given through a client counts for that client only, unless the operator named an approver",
    "Z6": "Clients are cheap: heads, bodies, idle time and each address's connections are bounded",
    "Z7": "Permissions are not shared between kinds of tokens",
}

TESTS = Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rule", action="append", metavar="ID", help="run only the tests of this rule, e.g. V1")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "rule(id, ...): the rules (tests/rules.py) that a test proves")
    for unknown in set(config.getoption("--rule") or ()) - RULES.keys():
        raise pytest.UsageError(f"unknown rule {unknown}: the rules are in tests/rules.py")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse unknown ids; with ``--rule``, keep only the tests of these rules."""
    wanted = set(config.getoption("--rule") or ())
    kept: list[pytest.Item] = []
    dropped: list[pytest.Item] = []
    for item in items:
        if published := getattr(getattr(item, "function", None), "rules", ()):  # of skillwire.testing
            item.add_marker(rule(*published))
        cited = {each for marker in item.iter_markers("rule") for each in marker.args}
        if unknown := cited - RULES.keys():
            raise pytest.UsageError(f"{item.nodeid}: unknown rules {sorted(unknown)}; see tests/rules.py")
        (kept if not wanted or wanted & cited else dropped).append(item)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept


def tests_by_rule() -> dict[str, list[str]]:
    """Each rule's tests as ``path::name``, read from the source of all test files."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in (*sorted(TESTS.rglob("test_*.py")), TESTS.parent / "src/skillwire/testing.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                for cited in _cited(node):
                    found[cited].append(f"{path.relative_to(TESTS.parent)}::{node.name}")
    return found


def _cited(test: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for decorator in test.decorator_list:
        if (
            isinstance(decorator, ast.Call)
            and isinstance(decorator.func, ast.Name)
            and decorator.func.id == "rule"
        ):
            yield from (argument.value for argument in decorator.args if isinstance(argument, ast.Constant))


def conformance_page() -> str:
    """Markdown: a table of the rules, then the tests of each."""
    found = tests_by_rule()
    rows = [f"| [{name}](#{name.lower()}) | {text} | {len(found[name])} |" for name, text in RULES.items()]
    parts = ["# Which tests prove which rule", "", "| rule | what it states | tests |", "|---|---|---|", *rows]
    for name, text in RULES.items():
        parts += ["", f"## {name}", "", f"{text}.", "", *(f"- `{test}`" for test in found[name])]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.stdout.write(conformance_page())
