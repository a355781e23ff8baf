"""``skillwire remove``: an installed skill out of agents' folders, if it is still what was written there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillwire.cli.exits import Exit
from skillwire.cli.hosting import line
from skillwire.cli.installation import (
    JSON_HELP,
    add_agent_options,
    add_scope_options,
    backups,
    scope_of,
    stamp,
    tidy_first,
)
from skillwire.cli.parsing import add_verb
from skillwire.errors import SkillwireError

if TYPE_CHECKING:
    import argparse

    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer

_EXAMPLES = """\
examples:
  skillwire remove refunds
  skillwire remove refunds --agent cursor       stays for the other agents
  skillwire remove refunds --global --force     although it was edited; a copy is kept

exit codes: 0 removed, 1 something was refused, 2 usage
"""


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "remove",
        "remove an installed skill",
        "Remove what skills.lock.json says was written, if it is still that. Nothing else is touched.",
        _EXAMPLES,
    )
    parser.add_argument("skills", metavar="SKILL", nargs="+", help="an installed skill")
    parser.add_argument("--force", action="store_true", help="also if it was edited by hand; a copy is kept")
    add_agent_options(parser)
    add_scope_options(parser)
    parser.add_argument("--json", action="store_true", help=JSON_HELP)


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """Remove."""
    from skillwire.install.installation import demand_skill, remove
    from skillwire.install.lock_file import demand_lock

    scope = scope_of(arguments)
    agents = [*arguments.agent, *(scope.key_of(folder) for folder in arguments.agent_dir)]
    tidy_first(scope, printer, agents)
    lock = demand_lock(scope.lock_path)
    for name in arguments.skills:  # a wrong word ends it before anything is done, as for update
        demand_skill(lock, name)
    done: list[dict[str, Any]] = []
    for name in dict.fromkeys(arguments.skills):
        try:
            outcome = remove(scope, name, agents, force=arguments.force, backups=backups(), stamp=stamp())
        except SkillwireError as error:
            printer.error(error)
            done.append({"skill": name, "state": "refused", "reference": error.reference})
            continue
        done.append({"skill": name, "state": "removed", "from": list(outcome.written)})
        for place in outcome.backups:
            printer.talk(f"what was changed there is kept in {line(str(place))}")
        for agent in outcome.unreached:
            printer.talk(f"nothing was removed for {line(agent)}, whose folder cannot be used from here")
        if not arguments.json:
            for label in outcome.written:
                printer.data(f"removed {line(label)}/{line(name)}")
    if arguments.json:
        printer.json({"skills": done})
    return Exit.PROBLEMS if any(each["state"] == "refused" for each in done) else Exit.OK
