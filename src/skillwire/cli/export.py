"""``skillwire export``: writes skills as a static site for any web server, which other installers read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from skillwire.cli.command import FILE, Arguments, Exit, argument, verb
from skillwire.cli.printer import Printer, counted, line, size_of, visible
from skillwire.cli.targets import (
    NO_SKILLS,
    OPTIONAL_TARGET,
    TARGET_OPTIONS,
    print_problems,
    problems_json,
    run_on_targets,
)

if TYPE_CHECKING:
    from skillwire.catalog.contract import Catalog


@verb(
    "Write the skills of TARGET as a static site: for each skill a well-known index and a zip file, which"
    " 'npx skills' and other installers read from any web server. Every file is verified first.",
    argument("folder", "DIR", "the folder of the site: new, empty, or written by an earlier export", type=FILE),
    OPTIONAL_TARGET,
    *TARGET_OPTIONS,
    targets=1,
    within=run_on_targets,
    examples="""\
  skillwire export site ./skills
  skillwire export site acme/skills@v1                   a Git repository
  skillwire export site https://skills.example.com/mcp   a server or a registry

Put DIR on a web server. Then: npx skills add https://HOST/acme/refunds. Up to 100 skills are also in an index at
the root. The same skills give the same bytes; an earlier export in DIR is replaced as a whole.

exit codes: 0 everything was written, 1 some skills cannot be, 2 usage, or no response
""",
)
async def command(catalog: Catalog, arguments: Arguments, printer: Printer) -> int:
    """Export a catalog."""
    from skillwire.catalog.static_site import MOST_IN_ROOT, write_site

    with printer.progress("Exporting", "skills") as count:
        site = await write_site(catalog, arguments.folder, on_skill=count)
    problems = [problem for problem in await catalog.problems() if problem.refuses]
    folder, found = str(Path(arguments.folder)), len(site.archives)
    if arguments.json:
        refused = [
            {"uri": uri, "reference": error.reference, "message": error.message, "hint": error.hint}
            for uri, error in site.refused.items()
        ]
        printer.json(
            {
                "folder": folder,
                "skills": [{"path": path, "digest": digest} for path, digest in site.archives.items()],
                "bytes": site.size,
                "refused": refused,
                "problems": problems_json(problems),
            }
        )
        return Exit.PROBLEMS if refused or problems else Exit.OK
    printer.data(f"wrote {visible(folder)}: {counted(found, 'skill')}, {size_of(site.size)}")
    for uri, error in site.refused.items():
        printer.talk(f"not exported: {visible(uri)[:300]}: {line(error.message)} [{error.reference}]")
    print_problems(problems, printer)
    if not found:
        printer.talk(f"no skills here{NO_SKILLS}")
    elif found > MOST_IN_ROOT:
        printer.talk(f"more than {MOST_IN_ROOT} skills: there is no index at the root; each skill has its own")
    return Exit.PROBLEMS if site.refused or problems else Exit.OK
