"""``skillwire skills``: shows the skills that a model would see, with their status and token cost."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from skillwire.cli.command import Arguments, Exit, Verbs, add_verb
from skillwire.cli.host_session import add_host_options, print_incomplete, run_with_host
from skillwire.cli.printer import Printer, counted, line, visible

if TYPE_CHECKING:
    from skillwire.host.host import SkillHost
    from skillwire.host.results import SkillStatus

_EXAMPLES = """\
examples:
  skillwire skills                          with the stored origins
  skillwire skills --config .mcp.json --folder ./skills
  skillwire skills --prompt                 the exact text for the system prompt of a model

statuses: local (your folder, needs no approval), approved, unapproved, changed (since it was approved), revoked
(the approval was withdrawn), declined (disabled, not in the prompt), dynamic (cannot be verified)

exit codes: 0 all listings are complete, 1 some are not, 2 usage
"""


def add_arguments(verbs: Verbs) -> None:
    """Add the parser of the verb."""
    parser = add_verb(
        verbs,
        "skills",
        run,
        "show the skills that a model would see",
        "Show the skills of all origins by the names that a model would see, with their status and the estimated"
        " tokens to list and to load them. No file is read.",
        _EXAMPLES,
    )
    parser.add_argument("--prompt", action="store_true", help="print the catalog prompt for the model")
    add_host_options(parser)


def run(arguments: Arguments, printer: Printer) -> int:
    """Show the skills."""
    return run_with_host(arguments, printer, _skills)


async def _skills(host: SkillHost, arguments: Arguments, printer: Printer) -> int:
    if arguments.prompt:
        _print_prompt(host.catalog_prompt(), arguments, printer)
    else:
        descriptions = {(s.origin.label, s.entry.uri): s.entry.description for s in host.names.skills}
        rows = [(status, descriptions.get((status.origin, status.uri), "")) for status in await host.skills()]
        if arguments.json:
            origins = {origin.label: origin.state for origin in host.registry}
            printer.json({"skills": [_document(*row) for row in rows], "origins": origins})
        else:
            _print(rows, host, printer)
    return Exit.PROBLEMS if print_incomplete(host.registry, arguments, printer) else Exit.OK


def _print_prompt(prompt: str, arguments: Arguments, printer: Printer) -> None:
    if arguments.json:
        printer.json({"prompt": prompt})
    elif sys.stdout.isatty():
        printer.data(visible(prompt.removesuffix("\n")))
    else:
        sys.stdout.write(prompt)


def _document(status: SkillStatus, description: str) -> dict[str, Any]:
    return {
        "name": status.name,
        "origin": status.origin,
        "uri": status.uri,
        "status": status.status,
        "grants": sorted(status.grants),
        "tokens": status.tokens._asdict(),
        "description": description,
    }


def _print(rows: list[tuple[SkillStatus, str]], host: SkillHost, printer: Printer) -> None:
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
