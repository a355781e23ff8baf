"""``skillwire read``: writes one verified file of a skill to stdout."""

from __future__ import annotations

import sys
from base64 import b64encode
from typing import TYPE_CHECKING, Any

from skillwire.cli.command import Arguments, Exit, Verbs, add_verb
from skillwire.cli.printer import Printer, visible
from skillwire.cli.targets import TARGET_HELP, add_target_options, as_uri, run_on_targets
from skillwire.errors import FormatError

if TYPE_CHECKING:
    from skillwire.catalog.contract import Catalog, SkillFile

TARGETS = 1
_EXAMPLES = """\
examples:
  skillwire read ./skills acme/billing/refunds/SKILL.md
  skillwire read https://skills.example.com/mcp skill://logo/assets/logo.png > logo.png
"""


def add_arguments(verbs: Verbs) -> None:
    """Add the parser of the verb."""
    parser = add_verb(
        verbs,
        "read",
        run,
        "read one file of a skill, verified",
        "Write one file of a skill to stdout, byte for byte, after checking it against the entry of the skill.",
        _EXAMPLES,
    )
    parser.add_argument("target", metavar="TARGET", help=TARGET_HELP)
    parser.add_argument(
        "uri", metavar="URI", help="the URI of the file, or its path such as acme/refunds/SKILL.md"
    )
    parser.add_argument(
        "--unverified",
        action="store_true",
        help="also read a file without a digest, which cannot be verified",
    )
    add_target_options(parser)


def run(arguments: Arguments, printer: Printer) -> int:
    """Read a file."""
    return run_on_targets(arguments, printer, _read, allow_unverified=arguments.unverified)


async def _read(catalog: Catalog, arguments: Arguments, printer: Printer) -> int:
    file = await catalog.read_file(as_uri(arguments.uri))
    if arguments.json:
        printer.json(_document(file, verified=not arguments.unverified))
    elif not sys.stdout.isatty():
        sys.stdout.buffer.write(file.data)
        sys.stdout.buffer.flush()
    else:
        try:
            printer.data(visible(file.data.decode().removesuffix("\n")))
        except UnicodeDecodeError as error:
            raise FormatError(
                "not-text", f"{file.uri!r:.200} is not text ({len(file.data)} bytes)", "write it to a file: > FILE"
            ) from error
    return Exit.OK


def _document(file: SkillFile, *, verified: bool) -> dict[str, Any]:
    from skillwire.skill.digest import digest_of

    facts = {"uri": file.uri, "size": len(file.data), "digest": digest_of(file.data), "verified": verified}
    try:
        return {**facts, "text": file.data.decode()}
    except UnicodeDecodeError:
        return {**facts, "base64": b64encode(file.data).decode()}
