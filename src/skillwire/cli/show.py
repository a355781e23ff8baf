"""``skillwire show``: shows all claims about one skill, and its token cost for a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.cli.command import Arguments, Exit, Verbs, add_verb
from skillwire.cli.printer import Printer, counted, size_of, visible
from skillwire.cli.targets import SKILL_HELP, TARGET_HELP, add_target_options, run_on_targets

if TYPE_CHECKING:
    from skillwire.catalog.contract import Catalog
    from skillwire.skill import SkillEntry, SkillUri

TARGETS = 1
_EXAMPLES = """\
examples:
  skillwire show ./skills refunds
  skillwire show https://skills.example.com/mcp skill://acme/billing/refunds/SKILL.md
  skillwire show refunds -- npx some-mcp-server ./skills
"""


def add_arguments(verbs: Verbs) -> None:
    """Add the parser of the verb."""
    parser = add_verb(
        verbs,
        "show",
        run,
        "show everything about one skill",
        "Show the claims about one skill: fields, files, digests, and the estimated tokens.",
        _EXAMPLES,
    )
    parser.add_argument("target", metavar="TARGET", help=TARGET_HELP)
    parser.add_argument("skill", metavar="SKILL", help=SKILL_HELP)
    add_target_options(parser)


def run(arguments: Arguments, printer: Printer) -> int:
    """Show a skill."""
    return run_on_targets(arguments, printer, _show)


async def _show(catalog: Catalog, arguments: Arguments, printer: Printer) -> int:
    from skillwire.catalog.listing import entry_to_document
    from skillwire.catalog.names import find_skill  # late: it imports anyio
    from skillwire.skill.model import estimate_tokens

    entry = await find_skill(catalog, arguments.skill)
    if arguments.json:
        printer.json({**entry_to_document(entry), "tokens": estimate_tokens(entry)._asdict()})
    else:
        _print(entry, printer)
    return Exit.OK


def _print(entry: SkillEntry, printer: Printer) -> None:
    import json

    from skillwire.skill.model import estimate_tokens
    from skillwire.skill.uri import parse_uri, skill_root

    printer.data(f"uri: {visible(entry.uri)}")
    for key, value in entry.frontmatter.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        printer.data(f"{visible(key)}: {visible(' '.join(text.split()))}")
    tokens = estimate_tokens(entry)
    everything = "" if tokens.everything is None else f", ~{tokens.everything} with all files"
    loaded = "" if tokens.loaded is None else f", ~{tokens.loaded} to load"
    printer.data(f"tokens: ~{tokens.listed} to list{loaded}{everything}")
    if entry.gaps:
        printer.data(f"not stated: {', '.join(sorted(entry.gaps))}")
    if entry.is_dynamic:
        printer.data("files: generated on every read; they cannot be verified")
        return
    more = "" if entry.is_complete else ", possibly more"
    printer.data(f"files: {counted(len(entry.files), 'file')}{more}, {size_of(entry.size)}")
    root = skill_root(parse_uri(entry.uri))
    rows = [
        (
            visible(_place(root, file.uri)),
            "" if file.size is None else size_of(file.size),
            file.digest or "no digest",
        )
        for file in entry.files
    ]
    printer.table(("file", "size", "digest"), rows)


def _place(root: SkillUri, uri: str) -> str:
    """Return the path of a file in its skill, or its URI if it is outside, as for skills known by name."""
    from skillwire.skill.uri import is_within, parse_uri

    file = parse_uri(uri)
    return "/".join(file.segments[len(root.segments) :]) if is_within(root, file) else uri
