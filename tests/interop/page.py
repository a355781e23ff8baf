"""``docs/explanation/interop.md`` from the results of a run (``matrix.json``): tables for each part, then why."""

from __future__ import annotations

import json
import tomllib
from textwrap import fill
from typing import TYPE_CHECKING

from interop.cells import FEATURES, PEERS, ROUND, SETTINGS, Cell
from interop.explained import EXPLANATIONS, Kind
from interop.running import HERE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from interop.cells import Peer, Role

ROOT = HERE.parents[1]
RESULTS = HERE / "matrix.json"
PAGE = ROOT / "docs" / "explanation" / "interop.md"

INTRODUCTION = """\
# Interoperability

Tests that we write share our mistakes. So released programs of other projects, at pinned versions, are run against
ours, in both directions, over stdio and Streamable HTTP, in both protocol eras: *modern* is 2026-07-28, *legacy*
2025-11-25. `make test-interop` runs everything, and fails if this page differs. `make interop-matrix` writes it.

A registry meets the Inspector, the clients of the TypeScript SDK and of FastMCP, and `npx skills`, with the stable
version, a pin and a channel. `npx skills` also installs from a static export. These are not in the tables.

For each of our parts, one table has the complete round by transport and era, and another the features of the
served skills.

- **pass**: everything that was checked works, to the last byte.
- **partial**, **not offered**: the peer does it in another way, or not at all. The link has the reason.
- **defect**: the peer breaks a rule. `tests/interop/defects.py` has lines that show it, and a test runs them. Our
  side then refuses wrong bytes and accepts everything else.
"""

BAR = r"\|"  # one that does not end a cell
ROLES: dict[Role, tuple[str, str]] = {
    "server": (
        "Our server, their clients",
        "`skillwire serve`; the clients list, get and read everything, and verify what they can.",
    ),
    "client": (
        "Our client, their servers",
        "`connect(…)` detects the dialect, lists and gets skills, and reads and verifies every file.",
    ),
    "host": (
        "Our host, their servers",
        "`SkillHost` lists skills, a person approves them, and it loads them and reads every file.",
    ),
}


def load() -> set[Cell]:
    """The cells that the last written run had."""
    return {Cell(*cell) for cell in json.loads(RESULTS.read_text())}


def save(cells: Iterable[Cell]) -> None:
    """Keep the cells of a run, and write the page."""
    lines = ",\n".join(json.dumps(cell) for cell in sorted(cells))
    RESULTS.write_text(f"[\n{lines}\n]\n")
    PAGE.write_text(render(set(cells)))


def render(cells: set[Cell]) -> str:
    """The whole page."""
    parts = [INTRODUCTION, _versions()]
    for role, (title, words) in ROLES.items():
        parts.append(f"## {title}\n\n{words}\n")
        parts.append(_by_setting(role, cells))
        groups: dict[tuple[str, ...], list[str]] = {}
        for name, peer in PEERS[role].items():
            groups.setdefault(peer.features, []).append(name)
        parts += [_by_feature(role, names, features, cells) for features, names in groups.items()]
    parts += [_explanations("defect"), _explanations("partial"), _explanations("not offered")]
    return "\n".join(parts)


def _versions() -> str:
    node = json.loads((HERE / "peers" / "package.json").read_text())["dependencies"]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["interop"]
    pinned = [
        *(HERE / "peers" / "fast-agent.txt").read_text().split(),
        *(ROOT / "constraints.txt").read_text().split(),
    ]
    python = {*extras, *(line for line in pinned if line.startswith(("mcp==", "fast-agent-mcp==")))}
    named = [f"{name} {wanted.removeprefix('npm:@olaservo/ext-skills@')}" for name, wanted in node.items()]
    named += [requirement.replace("==", " ") for requirement in python]
    text = ", ".join(sorted(named, key=lambda name: name.lstrip("@").lower()))
    return fill(f"With {text}.", 115, break_on_hyphens=False) + "\n"


def _by_setting(role: Role, cells: set[Cell]) -> str:
    columns = [f"{transport} {era}" for transport, era in SETTINGS]
    rows = [["", *columns]]
    for name, peer in PEERS[role].items():
        of_peer = [cell for cell in cells if cell[:2] == (role, name) and cell.feature in ROUND]
        rows.append(
            [peer.title, *(_word(peer, column, (c for c in of_peer if c.setting == column)) for column in columns)]
        )
    return _table(rows)


def _by_feature(role: Role, names: Sequence[str], features: Sequence[str], cells: set[Cell]) -> str:
    rows = [["", *(PEERS[role][name].title for name in names)]]
    for feature in features:
        found = {
            name: [cell for cell in cells if cell[:2] == (role, name) and cell.feature == feature]
            for name in names
        }
        rows.append([FEATURES[feature], *(_word(PEERS[role][name], feature, found[name]) for name in names)])
    return _table(rows)


def _word(peer: Peer, column: str, cells: Iterable[Cell]) -> str:
    """One cell of a table: the worst that was found there, with a link to each reason."""
    if column in peer.absent:
        return _link("not offered", [peer.absent[column]])
    cells = list(cells)
    if not cells:
        return f"not run here: needs {peer.needs}"
    notes = sorted({cell.note for cell in cells if cell.note})
    kinds: list[Kind] = ["defect", "partial", "not offered"]
    words = [_link(kind, those) for kind in kinds if (those := [n for n in notes if EXPLANATIONS[n].kind == kind])]
    return "; ".join(words) or "pass"


def _link(word: str, notes: Sequence[str]) -> str:
    first, *others = notes
    return " ".join([f"[{word}](#{first})", *(f"[{number}](#{note})" for number, note in enumerate(others, 2))])


def _table(rows: list[list[str]]) -> str:
    head, *body = [f"| {' | '.join(cell.replace('|', BAR) for cell in row)} |" for row in rows]
    return "\n".join([head, "|" + "---|" * len(rows[0]), *body]) + "\n"


TITLES: dict[Kind, str] = {
    "defect": "Defects of peers",
    "partial": "In another way",
    "not offered": "Not offered",
}


def _explanations(kind: Kind) -> str:
    parts = [f"## {TITLES[kind]}\n"]
    for name, explained in EXPLANATIONS.items():
        if explained.kind == kind:
            rule = f" Breaks {explained.rule}." if explained.rule else ""
            text = fill(f"**{explained.title}.**{rule} {explained.text}", 115, break_on_hyphens=False)
            parts.append(f'<a id="{name}"></a>\n{text}\n')
    return "\n".join(parts)
