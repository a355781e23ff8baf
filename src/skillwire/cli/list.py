"""``skillwire list``: lists the skills of a folder or a server, or the installed ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.cli.command import Arguments, Exit, Verbs, add_verb
from skillwire.cli.install_session import add_installed_options, is_about_installed, scope_of, server_text
from skillwire.cli.printer import Printer, counted, line, listed, size_of, visible
from skillwire.cli.targets import TARGET_HELP, add_target_options, print_problems, problems_json, run_on_targets

if TYPE_CHECKING:
    from skillwire.catalog.contract import Catalog
    from skillwire.skill import SkillEntry

TARGETS = 1
_EXAMPLES = """\
examples:
  skillwire list ./skills
  skillwire list https://skills.example.com/mcp --header 'Authorization: Bearer …'
  skillwire list my-server                       a label from .mcp.json, Claude Desktop, Cursor or VS Code
  skillwire list -- npx some-mcp-server ./skills
  skillwire list --installed --global
  skillwire list ./skills --json > before.json   to compare later with skillwire diff before.json ./skills
"""


def add_arguments(verbs: Verbs) -> None:
    """Add the parser of the verb."""
    parser = add_verb(
        verbs,
        "list",
        run,
        "list the skills of a folder or a server",
        "List the skills of a folder or a server with path, files, size and description.",
        _EXAMPLES,
    )
    parser.add_argument("target", metavar="TARGET", nargs="?", help=TARGET_HELP)
    add_installed_options(parser, "list the skills in skills.lock.json, without connecting to servers")
    add_target_options(parser)


def run(arguments: Arguments, printer: Printer) -> int:
    """List skills."""
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
    if arguments.json:
        from skillwire.catalog.listing import entry_to_document

        skills = [entry_to_document(entry) for entry in entries]
        printer.json({"skills": skills, "problems": problems_json(problems)})
    else:
        rows = [
            (visible(each.path), _files(each), size_of(each.size) if each.size else "", line(each.description))
            for each in entries
        ]
        printer.table(("skill", "files", "size", "description"), rows)
        print_problems(problems, printer)
        gaps = sorted({gap for entry in entries for gap in entry.gaps if not entry.is_dynamic})
        if gaps:
            printer.talk(f"not stated by the server: {', '.join(gaps)}")
        printer.talk(counted(len(entries), "skill"))
    return Exit.PROBLEMS if problems else Exit.OK


def _files(entry: SkillEntry) -> str:
    if entry.is_dynamic:
        return "dynamic"
    return str(len(entry.files)) if entry.is_complete else f"{len(entry.files)}+"


def _list_installed(arguments: Arguments, printer: Printer) -> int:
    from skillwire.install.lock import Lock, read_lock

    lock = read_lock(scope_of(arguments).lock_path) or Lock()
    skills = [lock.skills[name] for name in sorted(lock.skills)]
    if arguments.json:
        printer.json({"skills": [{"name": skill.name, **skill.to_json()} for skill in skills]})
        return Exit.OK
    rows = [
        (line(skill.name), listed(skill.agents), skill.at, line(skill.by), line(server_text(skill.server)))
        for skill in skills
    ]
    if rows:
        printer.table(("skill", "agents", "installed", "by", "from"), rows)
    printer.talk(f"{len(rows)} installed")
    return Exit.OK
