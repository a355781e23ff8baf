"""``skillwire mirror``: copies skills of any place into a namespace of a registry, in quarantine.

Only missing files are uploaded, and a repeat finishes an interruption. Another person has to approve each version
before readers see it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from skillwire.cli.command import COMMAND, Arguments, Exit, TargetPlace, argument, flag, option, verb
from skillwire.cli.printer import Printer, counted, line
from skillwire.cli.registry_session import STATE, registry_of
from skillwire.cli.targets import (
    TARGET_OPTIONS,
    print_problems,
    problems_json,
    resolve_skill,
    run_on_targets,
    target_text,
)
from skillwire.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from skillwire.catalog.contract import Catalog
    from skillwire.registry.mirror import Mirrored, MirrorSource
    from skillwire.skill import SkillEntry

_WORDS = {
    "published": "published",
    "waits": "waits for review {review}",
    "unchanged": "unchanged",
    "refused": "refused",
    "gone": "gone: the upstream no longer lists it",
}


@verb(
    "Copy the skills of TARGET into a namespace of a registry. Another person approves each version before readers"
    " see it.",
    argument("target", "TARGET", "where the skills are: see 'skillwire list --help'", type=TargetPlace()),
    argument("skills", "[SKILL]…", "only these: names, paths or URIs (default: all)", nargs=-1),
    option("--namespace", metavar="NAMESPACE", help="where: acme, or acme/upstream for a folder in it"),
    option(
        "--channel", default="stable", metavar="NAME", help="the channel that gets the versions (default: stable)"
    ),
    flag("--no-review", help="publish at once, unless the namespace is reviewed"),
    option("--to", "registry", metavar="URL", help="the registry (default: where you signed in last)"),
    STATE,
    *TARGET_OPTIONS,
    targets=1,
    examples="""\
  skillwire mirror acme/skills@v1 --namespace vendor     a Git repository, into vendor/…
  skillwire mirror https://skills.example.com/mcp --namespace vendor
  skillwire mirror ./skills refunds --namespace acme/copies

Repeat it to get what has changed. A skill keeps its path, below the namespace. To approve: skillwire registry
reviews. Skills that the upstream no longer has stay, and are reported.

exit codes: 0 everything is copied, 1 some are refused or gone, 2 usage, or no response
""",
)
def command(arguments: Arguments, printer: Printer) -> int:
    """Mirror a catalog."""
    if arguments.namespace is None:
        raise FormatError("namespace-missing", "it is not clear where to copy", "add --namespace NAME")
    registry_of(arguments)  # fails before anything is read
    return run_on_targets(arguments, printer, _mirror)


async def _mirror(catalog: Catalog, arguments: Arguments, printer: Printer) -> int:
    from skillwire.registry.client import RegistryClient
    from skillwire.registry.mirror import Mirror

    url, token = registry_of(arguments)
    async with RegistryClient.open(url, token) as client:
        mirror = Mirror(
            client,
            arguments.namespace,
            _upstream(catalog, arguments),
            channel=arguments.channel,
            quarantine=not arguments.no_review,
        )
        with printer.progress("Copying", "skills") as count:
            done = await mirror.copy(catalog, _entries(catalog, arguments), count)
        problems = [problem for problem in await catalog.problems() if problem.refuses]
        if not arguments.skills and not problems:  # an incomplete listing proves nothing (L2)
            done += await mirror.gone({each.path for each in done})
    if arguments.json:
        printer.json({"skills": [_document(each) for each in done], "problems": problems_json(problems)})
    else:
        _print(done, printer)
        print_problems(problems, printer)
    is_whole = not problems and all(each.outcome not in ("refused", "gone") for each in done)
    return Exit.OK if is_whole else Exit.PROBLEMS


async def _entries(catalog: Catalog, arguments: Arguments) -> AsyncIterator[SkillEntry]:
    if arguments.skills:
        for text in dict.fromkeys(arguments.skills):
            yield await resolve_skill(catalog, text, place=target_text(arguments))
        return
    async for entry in catalog.entries():
        yield entry


def _upstream(catalog: Catalog, arguments: Arguments) -> MirrorSource:
    """Return the address that each version records, without secrets and without paths of this machine."""
    from skillwire.catalog.git_source import parse_git_source
    from skillwire.client.servers import address_of, target_kind
    from skillwire.registry.mirror import MirrorSource

    if arguments.target == COMMAND:
        return MirrorSource(f"command {address_of(list(arguments.commands[0]))}")
    kind = target_kind(arguments.target)
    if kind == "git":
        source = parse_git_source(arguments.target)
        address = f"repository {source.name}" if source.is_local else str(source)
        return MirrorSource(address, {"commit": catalog.commit} if catalog.commit else {})
    if kind == "path":
        return MirrorSource(f"folder {os.path.basename(os.path.realpath(arguments.target))}")
    return MirrorSource(address_of(arguments.target))


def _document(done: Mirrored) -> dict[str, Any]:
    error = done.error
    return {
        "path": done.path,
        "outcome": done.outcome,
        "version": done.version or None,
        "review": done.review,
        "note": done.note,
        "error": None
        if error is None
        else {"reference": error.reference, "message": error.message, "hint": error.hint},
    }


def _print(done: Sequence[Mirrored], printer: Printer) -> None:
    rows: list[tuple[str, ...]] = []
    for each in done:
        words = _WORDS[each.outcome].format(review=each.review)
        if each.error is not None:
            words += f": {each.error.message} [{each.error.reference}]"
        elif each.note and each.outcome != "waits":
            words += f": {each.note}"
        rows.append((line(each.path), line(each.version), line(words)))
    if rows:
        printer.table(("skill", "version", "state"), rows)
    printer.talk(counted(len(done), "skill"))
    if any(each.outcome == "waits" for each in done):
        printer.talk("approve them as another person: skillwire registry reviews")
