"""``skillwire pull``: copies a skill into a folder, verified, completely or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from skillwire.cli.command import Arguments, Exit, Verbs, add_verb
from skillwire.cli.printer import Printer, counted, size_of, visible
from skillwire.cli.targets import SKILL_HELP, TARGET_HELP, add_target_options, run_on_targets

if TYPE_CHECKING:
    from skillwire.catalog.contract import Catalog

TARGETS = 1
_EXAMPLES = """\
examples:
  skillwire pull https://skills.example.com/mcp refunds ./skills      makes ./skills/refunds
  skillwire pull refunds ./skills --force -- npx some-mcp-server
"""


def add_arguments(verbs: Verbs) -> None:
    """Add the parser of the verb."""
    parser = add_verb(
        verbs,
        "pull",
        run,
        "copy a skill into a folder, verified",
        "Read every file of a skill, check each against the entry of the skill, then write DIR/NAME in one step.",
        _EXAMPLES,
    )
    parser.add_argument("target", metavar="TARGET", help=TARGET_HELP)
    parser.add_argument("skill", metavar="SKILL", help=SKILL_HELP)
    parser.add_argument(
        "folder", metavar="DIR", type=Path, help="the folder that will contain the folder of the skill"
    )
    parser.add_argument("--force", action="store_true", help="replace an existing folder")
    add_target_options(parser)


def run(arguments: Arguments, printer: Printer) -> int:
    """Copy a skill."""
    return run_on_targets(arguments, printer, _pull)


async def _pull(catalog: Catalog, arguments: Arguments, printer: Printer) -> int:
    from skillwire.catalog.export import export_skill
    from skillwire.catalog.names import find_skill

    entry = await find_skill(catalog, arguments.skill)
    with printer.progress("Reading", "files") as count:
        written = await export_skill(catalog, entry, arguments.folder, replace=arguments.force, on_file=count)
    folder, files, size = str(written.folder), list(written.files), written.size
    if arguments.json:
        printer.json({"uri": entry.uri, "folder": folder, "files": files, "size": size})
    else:
        printer.talk(
            f"wrote {visible(folder)}: {counted(len(files), 'file')}, {size_of(size)}, verified against"
            f" {visible(entry.uri)} (this proves consistency, not trust)"
        )
    return Exit.OK
