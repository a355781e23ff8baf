"""``--installed``: what ``list`` and ``verify`` say of the skills in the lock. No server is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillwire.amounts import counted
from skillwire.cli.exits import Exit
from skillwire.cli.hosting import line, listed
from skillwire.cli.installation import add_scope_options, scope_of, server_text
from skillwire.errors import FormatError, SkillwireError

if TYPE_CHECKING:
    import argparse

    from skillwire.cli.printer import Printer
    from skillwire.install.lock import Installed
    from skillwire.install.places import Scope


def add_installed_options(parser: argparse.ArgumentParser, words: str) -> None:
    """``--installed``, and which lock is meant."""
    parser.add_argument("--installed", action="store_true", help=words)
    add_scope_options(parser)


def is_about_installed(arguments: argparse.Namespace) -> bool:
    """Whether it is; ``FormatError`` if it is about nothing, or about two things."""
    if arguments.installed == (arguments.target is not None):
        raise FormatError(
            "argument-invalid", "either a TARGET or --installed is needed", "name a folder or a server"
        )
    return arguments.installed


def list_installed(arguments: argparse.Namespace, printer: Printer) -> int:
    """Every installed skill: for whom, from where, when and by whom."""
    from skillwire.install.lock import Lock
    from skillwire.install.lock_file import read_lock

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


def verify_installed(arguments: argparse.Namespace, printer: Printer) -> int:
    """Drift: every folder of every installed skill, compared with the lock."""
    from skillwire.install.lock_file import demand_lock

    scope = scope_of(arguments)
    lock = demand_lock(scope.lock_path)
    found = [each for name in sorted(lock.skills) for each in _rows(scope, lock.skills[name])]
    wrong = [each for each in found if each["state"] != "ok"]
    if arguments.json:
        printer.json({"folders": found})
        return Exit.PROBLEMS if wrong else Exit.OK
    for each in wrong:
        printer.data(f"{each['state'].upper()} {line(each['folder'])}/{line(each['skill'])}")
        for words in each["details"]:
            printer.data(f"    {line(words)}")
    verdict = f"{len(wrong)} are not what the lock says" if wrong else "all as the lock says"
    where = f"{len(lock.skills)} installed in {counted(len(found), 'place')}"
    printer.talk(f"{where}: {verdict} (that is consistency, not trust)")
    return Exit.PROBLEMS if wrong else Exit.OK


def _rows(scope: Scope, skill: Installed) -> list[dict[str, Any]]:
    """How a skill lies in each of its folders. One that cannot be looked at does not hide the others."""
    from skillwire.install.drift import installed_states

    try:
        found = installed_states(scope, skill)
    except SkillwireError as error:
        details = [error.message, error.hint]
        return [{"skill": skill.name, "folder": "?", "state": "unknown", "details": details}]
    return [
        {"skill": skill.name, "folder": each.place.label, "state": each.state, "details": list(each.details)}
        for each in found
    ]
