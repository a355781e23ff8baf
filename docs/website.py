"""Makes the documentation site: ``make docs``.

The pages of this folder, the documents of the project's root, and pages that are generated from the code are put
into ``build/docs``. Zensical turns them into ``build/site``, and fails on every broken link and anchor. Nothing
generated is committed, so nothing can be out of date.
"""

from __future__ import annotations

import ast
import os
import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import click
from messages import message_page

from skillwire.cli.command import Noun, Verb
from skillwire.cli.explain import all_references, reports_of
from skillwire.cli.main import GROUPS, _main
from skillwire.conform.rules import HOST_RULES, SERVER_RULES
from skillwire.install.agents import AGENTS, CONFIGS
from skillwire.limits import Limits
from skillwire.skill import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
STAGED = ROOT / "build" / "docs"
MOVED = {  # documents of the root, and their places in the site
    "ARCHITECTURE.md": "explanation/architecture.md",
    "SECURITY.md": "explanation/promises.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s:]+)(#[^)\s]*)?\)")
_CODE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
_UNITS = ((1024**2, "MiB"), (1024, "KiB"))


def generated() -> dict[str, str]:
    """Return every generated page by its path in the site."""
    return {
        "reference/command-line.md": _command_line(),
        "reference/problems.md": _problems(),
        "reference/agents.md": _agents(),
        "reference/conformance-rules.md": _conformance(),
        "reference/limits.md": _limits(),
        "reference/messages.md": anyio.run(message_page),
    }


def stage() -> None:
    """Put all pages into ``build/docs``, with links that work there."""
    shutil.rmtree(STAGED, ignore_errors=True)
    shutil.copytree(DOCS / "pictures", STAGED / "pictures")
    pages = {page.relative_to(ROOT).as_posix(): page.read_text() for page in sorted(DOCS.rglob("*.md"))}
    places = {path: path.removeprefix("docs/") for path in pages} | MOVED
    pages |= {path: (ROOT / path).read_text() for path in MOVED}
    made = generated()
    places |= {f"docs/{path}": path for path in made}
    pages |= {f"docs/{path}": text for path, text in made.items()}
    for path, text in pages.items():
        target = STAGED / places[path]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(_relinked(text, path, places))


def _relinked(text: str, path: str, places: dict[str, str]) -> str:
    """Return ``text`` with its links to other pages as they are in the site; files of the project become code."""

    def place(match: re.Match[str]) -> str:
        picture, words, target, anchor = match[1], match[2], match[3], match[4] or ""
        found = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
        if found in places:
            found = places[found]
        elif found.startswith("docs/pictures/"):
            found = found.removeprefix("docs/")
        elif (ROOT / found).exists():
            return words if words.startswith("`") else f"{words} (`{found}`)"
        else:
            return match[0]  # a broken link: the build fails
        here = posixpath.dirname(places[path])
        return f"{picture}[{words}]({posixpath.relpath(found, here or '.')}{anchor})"

    parts = _CODE.split(text)
    return "".join(part if number % 2 else _LINK.sub(place, part) for number, part in enumerate(parts))


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head), ["---"] * len(list(head)), *(list(row) for row in rows)]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def _command_line() -> str:
    text = [
        "# Command line\n\nThis page is generated from the parser. `skillwire VERB --help` prints the same.\n\n"
        "Exit codes: 0 done, 1 refused or problems found, 2 a wrong argument or no response, 130 interrupted.\n"
    ]
    root = click.Context(_main, info_name="skillwire")
    for title, verbs in GROUPS.items():
        text.append(f"\n## {title}\n")
        for name in verbs:
            command = _main.get_command(root, name)
            assert command is not None
            text += _verb(command, click.Context(command, info_name=name, parent=root), 3)
    return "".join(text)


def _verb(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    yield f"\n{'#' * level} {context.command_path}\n\n{_escaped(command.help or '')}\n"
    if isinstance(command, Noun):
        for name in command.list_commands(context):
            action = command.get_command(context, name)
            assert action is not None
            yield from _verb(action, click.Context(action, info_name=name, parent=context), level + 1)
        return
    yield f"\n```text\n{' '.join([context.command_path, *command.collect_usage_pieces(context)])}\n```\n\n"
    records = [record for param in command.get_params(context) if (record := param.get_help_record(context))]
    yield _table(("argument or option", "meaning"), ((f"`{left}`", _escaped(right)) for left, right in records))
    if isinstance(command, Verb):
        examples = re.sub("^  ", "", command.examples, flags=re.MULTILINE).strip()
        yield f'\n```text title="Examples"\n{examples}\n```\n'


def _escaped(text: str) -> str:
    return re.sub(r"([<>{}\[\]*_])", r"\\\1", " ".join(text.split()))


def _problems() -> str:
    sources = [path.read_text() for path in sorted((ROOT / "src/skillwire").rglob("*.py"))]
    reports: dict[str, list[tuple[str, str, str]]] = {}
    for report in reports_of(sources):
        reports.setdefault(report.reference, []).append((report.message, report.hint, report.rule))
    kinds = _table(
        ("reference", "rule", "severity", "served", "meaning"),
        (
            (f"`{name}`", kind.rule, kind.severity, "no" if kind.refuses else "yes", _escaped(kind.title))
            for name, kind in KINDS.items()
        ),
    )

    def row(name: str) -> tuple[str, str, str, str]:
        messages, hints, rules = (
            list(dict.fromkeys(filter(None, part))) for part in zip(*reports[name], strict=True)
        )
        return (
            f"`{name}`",
            " ".join(rules),
            "; ".join(map(_escaped, messages[:2])),
            "; ".join(map(_escaped, hints[:2])),
        )

    errors = _table(
        ("reference", "rule", "message", "what to do"),
        (row(name) for name in all_references() if name in reports and name not in KINDS),
    )
    return (
        "# Problems and errors\n\nEvery message ends with its reference in brackets. `skillwire explain REFERENCE` "
        "prints the same text as this page, which is generated from the code. `…` stands for a name, a number or a "
        "path.\n\n## Problems of skills\n\nAn *error* breaks a rule, a *warning* is likely to cause trouble, a *note* "
        f"is usually intended. A skill that is not *served* is absent from every listing.\n\n{kinds}\n## Errors\n\n{errors}"
    )


def _agents() -> str:
    folders = _table(
        ("agent", "in a project", "for every project"),
        ((f"`{agent.id}`", f"`{agent.project}`", f"`{agent.everywhere}`") for agent in AGENTS.values()),
    )

    def places(paths: Iterable[str]) -> str:
        return ", ".join(f"`{path}`" for path in paths) or "none"

    files = _table(
        ("agent", "in a project", "for every project", "servers are in"),
        (
            (f"`{name}`", places(config.project), places(config.everywhere), f"`{'.'.join(config.keys)}`")
            for name, config in CONFIGS.items()
        ),
    )
    return (
        "# Agents\n\nThis page is generated from the code.\n\n## Folders for skills\n\n`skillwire add --agent AGENT` "
        "installs into these folders. Agents with the same folder share its content. The table follows the most used "
        "installer in November 2026; not every vendor documents these folders. If one has moved, use `--agent-dir FOLDER`.\n\n"
        "`CLAUDE_CONFIG_DIR`, `CODEX_HOME`, `COPILOT_HOME`, `HERMES_HOME` and `XDG_CONFIG_HOME` move the folders as "
        f"they do for the agents.\n\n{folders}\n## Configuration files\n\n`skillwire connect --agent AGENT` writes to "
        "the first of these files that exists. They were compared with the documentation of the vendors in November 2026.\n\n"
        f"{files}"
    )


def _conformance() -> str:
    head = ("rule", "title", "check")
    server, host = (
        _table(head, ((f"`{rule.id}`", _escaped(rule.title), _escaped(rule.how)) for rule in rules.values()))
        for rules in (SERVER_RULES, HOST_RULES)
    )
    return (
        "# Conformance rules\n\nThe rules that `skillwire conform` checks, generated from the code.\n\n"
        f"## Rules for servers\n\n{server}\n## Rules for hosts\n\n{host}"
    )


def _limits() -> str:
    """Every field of ``Limits``, with the comments beside and above it."""
    source = (ROOT / "src/skillwire/limits.py").read_text()
    lines = source.splitlines()
    [fields] = [
        node.body for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == "Limits"
    ]
    defaults, text = (
        Limits(),
        [
            "# Limits\n\nThe fields of `Limits`, generated from the code. Pass your own to `connect`, "
            "`SkillHost.open` and the catalogs.\n"
        ],
    )
    rows: list[tuple[str, str, str]] = []

    def flush() -> None:
        if rows:
            text.append("\n" + _table(("field", "default", "note"), rows))
            rows.clear()

    above = 0
    for node in fields:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            above = node.end_lineno or 0
            continue
        comments = [line.strip("# ") for line in lines[above : node.lineno - 1] if line.strip().startswith("#")]
        if comments:
            flush()
            text.append(f"\n{_escaped(' '.join(comments))}\n")
        beside = lines[(node.end_lineno or 0) - 1].partition("  # ")[2]
        rows.append(
            (f"`{node.target.id}`", _amount(node.target.id, getattr(defaults, node.target.id)), _escaped(beside))
        )
        above = node.end_lineno or 0
    flush()
    return "".join(text)


def _amount(name: str, value: object) -> str:
    if isinstance(value, int) and name.endswith("bytes"):
        for size, unit in _UNITS:
            if value >= size and value % size == 0:
                return f"{value // size} {unit}"
    return (
        f"{value:,} s"
        if name.endswith("seconds")
        else f"{value:,}"
        if isinstance(value, int | float)
        else str(value)
    )


def build() -> int:
    """Build the site; the exit code."""
    stage()
    command = [str(Path(sys.executable).parent / "zensical"), "build", "--clean", "--strict"]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, check=False)
    if done.returncode == 0:
        print(f"open {(ROOT / 'build/site/index.html').as_uri()}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(build())
