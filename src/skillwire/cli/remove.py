"""``skillwire remove``: removes an installed skill from the folders of agents, if it is unchanged."""

from __future__ import annotations

from typing import Any

from skillwire.cli.command import JSON, Arguments, Exit, argument, flag, verb
from skillwire.cli.install_session import (
    AGENT,
    AGENT_DIR,
    SCOPE,
    backups,
    recover_first,
    scope_of,
    show_backups,
)
from skillwire.cli.printer import Printer, line
from skillwire.errors import SkillwireError


@verb(
    "Remove the files that skills.lock.json records, if they are unchanged. Nothing else is touched.",
    argument("skills", "SKILL…", "an installed skill", nargs=-1, required=True),
    flag("--force", help="also remove edited files; a copy is kept"),
    AGENT,
    AGENT_DIR,
    SCOPE,
    JSON,
    examples="""\
  skillwire remove refunds
  skillwire remove refunds --agent cursor       keep it for the other agents
  skillwire remove refunds --global --force     remove it although it was edited; a copy is kept

exit codes: 0 removed, 1 something was refused, 2 usage
""",
)
def command(arguments: Arguments, printer: Printer) -> int:
    """Remove skills."""
    from skillwire.install.installation import remove, require_skill
    from skillwire.install.lock import require_lock

    scope = scope_of(arguments)
    agents = [*arguments.agent, *(scope.key_of(folder) for folder in arguments.agent_dir)]
    recover_first(scope, printer, agents)
    lock = require_lock(scope.lock_path)
    for name in arguments.skills:  # an unknown skill fails before anything is removed
        require_skill(lock, name)
    done: list[dict[str, Any]] = []
    for name in dict.fromkeys(arguments.skills):
        try:
            outcome = remove(scope, name, agents, backups(force=arguments.force))
        except SkillwireError as error:
            printer.error(error)
            done.append({"skill": name, "state": "refused", "reference": error.reference})
            continue
        done.append({"skill": name, "state": "removed", "from": list(outcome.written)})
        show_backups(outcome, printer)
        for agent in outcome.unreached:
            printer.talk(f"nothing was removed for {line(agent)}: its folder cannot be used from here")
        for label in outcome.written:
            printer.data(f"removed {line(label)}/{line(name)}")
    printer.json({"skills": done})
    return Exit.PROBLEMS if any(each["state"] == "refused" for each in done) else Exit.OK
