"""``skillwire skills``: what a model would see, how a person stands to it, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillwire.cli.exits import Exit
from skillwire.cli.hosting import add_host_options, line, run_with_host, say_troubles
from skillwire.cli.parsing import add_verb

if TYPE_CHECKING:
    import argparse

    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer
    from skillwire.host.host import Host
    from skillwire.host.results import SkillStatus
    from skillwire.skill.model import TokenEstimate

_EXAMPLES = """\
examples:
  skillwire skills                          of the origins that were added
  skillwire skills --config .mcp.json --folder ./skills
  skillwire skills --prompt                 the very text for the model's system prompt

statuses: local (your folder, needs no approval), approved, unapproved, changed (another content was approved),
revoked (the yes to it was taken back), declined (disabled: not in the prompt), dynamic (nothing about it can be
verified)

exit codes: 0 every origin answered, 1 some did not or left skills out, 2 usage
"""


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "skills",
        "show what a model would see of all origins",
        "Show the skills of all origins by the names that a model would see, with their status and about how"
        " many tokens they cost to list and to load. Nothing of them is read.",
        _EXAMPLES,
    )
    parser.add_argument("--prompt", action="store_true", help="the catalog prompt, as the model would get it")
    add_host_options(parser)


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """Show the skills."""
    return run_with_host(arguments, printer, _skills)


async def _skills(host: Host, arguments: argparse.Namespace, printer: Printer) -> int:
    if arguments.prompt:
        _print_prompt(host.catalog_prompt(), arguments, printer)
    else:
        about = {(skill.origin.label, skill.entry.uri): skill.entry.description for skill in host.names.skills}
        rows = [(status, about.get((status.origin, status.uri), "")) for status in await host.skills()]
        if arguments.json:
            printer.json({"skills": [_document(*row) for row in rows], "origins": _origins(host)})
        else:
            _print(rows, printer)
            _say_total([status for status, _ in rows], host, printer)
    return Exit.PROBLEMS if say_troubles(host.origins, printer) else Exit.OK


def _print_prompt(prompt: str, arguments: argparse.Namespace, printer: Printer) -> None:
    import sys

    from skillwire.cli.printer import visible

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


def _origins(host: Host) -> dict[str, str]:
    return {origin.label: origin.state for origin in host.origins}


def _print(rows: list[tuple[SkillStatus, str]], printer: Printer) -> None:
    cells = [
        (line(status.name), line(status.origin), status.status, _cost(status.tokens), line(description))
        for status, description in rows
    ]
    printer.table(("skill", "origin", "status", "tokens", "what for"), cells)


def _cost(tokens: TokenEstimate) -> str:
    return f"{tokens.listed}/{'?' if tokens.loaded is None else tokens.loaded}"


def _say_total(statuses: list[SkillStatus], host: Host, printer: Printer) -> None:
    from skillwire.cli.printer import counted

    if not list(host.origins):
        printer.talk("there are no origins; add one: skillwire origins add LABEL URL")
        return
    total = sum(status.tokens.listed for status in statuses)
    printer.talk(f"{counted(len(statuses), 'skill')}, ~{total:,} tokens to list them all")
