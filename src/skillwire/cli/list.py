"""``skillwire list``: lists the skills of a place, the installed ones, or those that a model would see."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from skillwire.cli.command import COMMAND, Arguments, Exit, flag, verb
from skillwire.cli.host_session import FOLDER, STATE, print_incomplete, run_with_host
from skillwire.cli.install_session import SCOPE, is_about_installed, scope_of, server_text
from skillwire.cli.printer import Printer, counted, ignored_text, line, listed, size_of, visible
from skillwire.cli.targets import (
    NO_SKILLS,
    OPTIONAL_TARGET,
    TARGET_OPTIONS,
    print_problems,
    problems_json,
    run_on_targets,
)
from skillwire.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.tree import Tree

    from skillwire.catalog.contract import Catalog
    from skillwire.host.host import SkillHost
    from skillwire.host.results import SkillStatus
    from skillwire.skill import SkillEntry

_ORIGIN_SECONDS = 10.0


@verb(
    "List the skills of a place with path, files, size and description.",
    OPTIONAL_TARGET,
    flag("--tree", help="draw the skills with their files and sizes"),
    flag("--installed", help="list the skills in skills.lock.json, without connecting to servers"),
    SCOPE,
    flag(
        "--origins", help="list the skills of all your origins: name, status and tokens, as a model would see them"
    ),
    flag("--prompt", help="with --origins: print the exact text for the system prompt of a model"),
    STATE,
    FOLDER,
    *TARGET_OPTIONS,
    targets=1,
    examples="""\
  skillwire list                                 the current folder
  skillwire list ./skills --tree                 with all files
  skillwire list acme/skills@v1#team             a Git repository on GitHub, at a tag, a folder of it
  skillwire list localhost:8000                  a server; /mcp is tried too
  skillwire list https://skills.example.com/mcp --header 'Authorization: Bearer …'
  skillwire list my-server                       a label from .mcp.json, Claude Desktop, Cursor or VS Code
  skillwire list -- npx some-mcp-server ./skills
  skillwire list --installed --global
  skillwire list --origins                       the skills that a model would see
  skillwire list ./skills --json > before.json   to compare later with skillwire diff before.json ./skills

With --origins, a status is local (your folder, needs no approval), approved, unapproved, changed (since it was
approved), revoked (the approval was withdrawn), declined (disabled, not in the prompt) or dynamic (cannot be
verified).

exit codes: 0 everything is listed, 1 something cannot be listed, 2 usage, or no response
""",
)
def command(arguments: Arguments, printer: Printer) -> int | None:
    """List skills."""
    if arguments.origins or arguments.prompt:
        if arguments.target is not None or arguments.installed:
            raise FormatError(
                "argument-invalid",
                "--origins lists all your origins, and takes no TARGET",
                "write: skillwire list --origins",
            )
        arguments.timeout = _ORIGIN_SECONDS if arguments.timeout is None else arguments.timeout
        return run_with_host(arguments, printer, _list_origins)
    if is_about_installed(arguments):
        return _list_installed(arguments, printer)
    return run_on_targets(arguments, printer, _list)


async def _list(catalog: Catalog, arguments: Arguments, printer: Printer) -> int:
    entries: list[SkillEntry] = []
    with printer.progress("Listing", "skills") as count:
        async for entry in catalog.entries():
            entries.append(entry)
            count(len(entries))
    problems = [problem for problem in await catalog.problems() if problem.refuses]
    from skillwire.catalog.listing import entry_to_document  # late: not needed if the server does not respond

    printer.json({"skills": [entry_to_document(each) for each in entries], "problems": problems_json(problems)})
    if arguments.tree:
        printer.data(_draw(entries, arguments.target or "."))
        files = {file.uri: file.size or 0 for entry in entries for file in entry.files}
        total = size_of(sum(files.values()))
        printer.data(f"{counted(len(entries), 'skill')}, {counted(len(files), 'file')}, {total}")
    else:
        _print_table(entries, printer)
    print_problems(problems, printer)
    if arguments.tree and (ignored := await catalog.ignored()):
        printer.talk(ignored_text(ignored))
    if gaps := sorted({gap for entry in entries for gap in entry.gaps if not entry.is_dynamic}):
        printer.talk(f"not stated by the server: {', '.join(gaps)}")
    if arguments.target is None and not entries:
        printer.talk(f"no skills here{NO_SKILLS}")
    elif not arguments.tree:
        printer.talk(counted(len(entries), "skill"))
    return Exit.PROBLEMS if problems else Exit.OK


def _print_table(entries: Sequence[SkillEntry], printer: Printer) -> None:
    """Print a row for each skill, with its version if a registry states one."""
    from skillwire.skill.version_status import version_status

    states = [version_status(each) for each in entries]
    has_versions = any(status.number for status in states)
    rows = [
        (
            visible(each.path),
            *([line(status.number)] if has_versions else []),
            _files(each),
            size_of(each.size) if each.size else "",
            ("(deprecated) " if status.deprecated else "") + line(each.description),
        )
        for each, status in zip(entries, states, strict=True)
    ]
    printer.table(("skill", *(["version"] if has_versions else []), "files", "size", "description"), rows)


def _files(entry: SkillEntry) -> str:
    if entry.is_dynamic:
        return "dynamic"
    return str(len(entry.files)) if entry.is_complete else f"{len(entry.files)}+"


def _draw(entries: Sequence[SkillEntry], title: str) -> Tree:
    """Draw the skills with their files. A branch is made when its first file is added."""
    from rich.text import Text
    from rich.tree import Tree

    from skillwire.skill.uri import parse_uri

    root = Tree(Text(visible(title) if title != COMMAND else "server", style="bold"))
    skills, branches = {entry.path: entry for entry in entries}, {"": root}

    def branch(path: str) -> Tree:
        if path not in branches:
            above, _, name = path.rpartition("/")
            entry = skills.get(path)
            if entry is None:
                label = Text(f"{visible(name)}/", style="blue")
            else:
                facts = f"  {counted(len(entry.files), 'file')}, {size_of(entry.size)}"
                label = Text.assemble((visible(name), "bold green"), (facts, "dim"))
            branches[path] = branch(above).add(label)
        return branches[path]

    drawn = set[str]()
    for entry in entries:
        branch(entry.path)
        for file in entry.files:
            path = parse_uri(file.uri).path
            if path not in drawn:  # the files of a nested skill are also files of the enclosing one
                drawn.add(path)
                folder, _, name = path.rpartition("/")
                size = "" if file.size is None else f"  {size_of(file.size)}"
                branch(folder).add(Text.assemble(visible(name), (size, "dim")))
    return root


def _list_installed(arguments: Arguments, printer: Printer) -> int:
    from skillwire.install.lock import Lock, read_lock

    lock = read_lock(scope_of(arguments).lock_path) or Lock()
    skills = [lock.skills[name] for name in sorted(lock.skills)]
    printer.json({"skills": [{"name": skill.name, **skill.to_json()} for skill in skills]})
    rows = [
        (line(skill.name), listed(skill.agents), skill.at, line(skill.by), line(server_text(skill.server)))
        for skill in skills
    ]
    if rows:
        printer.table(("skill", "agents", "installed", "by", "from"), rows)
    printer.talk(f"{len(rows)} installed")
    return Exit.OK


async def _list_origins(host: SkillHost, arguments: Arguments, printer: Printer) -> int:
    """List the skills that a model would see, with their status and token cost. No file is read."""
    if arguments.prompt:
        prompt = host.catalog_prompt()
        printer.json({"prompt": prompt})
        if sys.stdout.isatty():
            printer.data(visible(prompt.removesuffix("\n")))
        elif not arguments.json:
            sys.stdout.write(prompt)
    else:
        descriptions = {(s.origin.label, s.entry.uri): s.entry.description for s in host.names.skills}
        rows = [(status, descriptions.get((status.origin, status.uri), "")) for status in await host.skills()]
        origins = {origin.label: origin.state for origin in host.registry}
        printer.json({"skills": [_status_json(*row) for row in rows], "origins": origins})
        _print_statuses(rows, host, printer)
    return Exit.PROBLEMS if print_incomplete(host.registry, arguments, printer) else Exit.OK


def _status_json(status: SkillStatus, description: str) -> dict[str, Any]:
    return {
        "name": status.name,
        "origin": status.origin,
        "uri": status.uri,
        "status": status.status,
        "grants": sorted(status.grants),
        "tokens": status.tokens._asdict(),
        "description": description,
    }


def _print_statuses(rows: list[tuple[SkillStatus, str]], host: SkillHost, printer: Printer) -> None:
    cells: list[tuple[str, ...]] = []
    for status, description in rows:
        cost = f"{status.tokens.listed}/{'?' if status.tokens.loaded is None else status.tokens.loaded}"
        cells.append((line(status.name), line(status.origin), status.status, cost, line(description)))
    printer.table(("skill", "origin", "status", "tokens", "description"), cells)
    if not list(host.registry):
        printer.talk("no origins; add one: skillwire origins add LABEL URL")
        return
    total = sum(status.tokens.listed for status, _ in rows)
    printer.talk(f"{counted(len(rows), 'skill')}, ~{total:,} tokens to list them all")
