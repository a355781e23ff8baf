"""``skillwire read``: one file of a skill, verified, on stdout."""

from __future__ import annotations

import sys
from base64 import b64encode
from typing import TYPE_CHECKING, Any

from skillwire.cli.exits import Exit
from skillwire.cli.parsing import add_verb
from skillwire.cli.targets import TARGET_HELP, add_target_options, run_on_targets
from skillwire.errors import FormatError

if TYPE_CHECKING:
    import argparse

    from skillwire.catalog.contract import Catalog, SkillFile
    from skillwire.cli.parsing import Verbs
    from skillwire.cli.printer import Printer

TARGETS = 1
_EXAMPLES = """\
examples:
  skillwire read ./skills acme/billing/refunds/SKILL.md
  skillwire read https://skills.example.com/mcp skill://logo/assets/logo.png > logo.png
"""


def add_arguments(verbs: Verbs) -> None:
    """Describe the verb to the parser."""
    parser = add_verb(
        verbs,
        "read",
        "read one file of a skill, verified",
        "Write one file of a skill to stdout, byte for byte, if it is what the skill's entry says.",
        _EXAMPLES,
    )
    parser.add_argument("target", metavar="TARGET", help=TARGET_HELP)
    parser.add_argument("uri", metavar="URI", help="the file's URI, or its path such as acme/refunds/SKILL.md")
    parser.add_argument(
        "--unverified",
        action="store_true",
        help="also read what the server gives no digest for; nothing vouches for it",
    )
    add_target_options(parser)


def run(arguments: argparse.Namespace, printer: Printer) -> int:
    """Read."""
    return run_on_targets(arguments, printer, _read, allow_unverified=arguments.unverified)


async def _read(catalog: Catalog, arguments: argparse.Namespace, printer: Printer) -> int:
    from skillwire.cli.resolve import as_uri

    file = await catalog.read_file(as_uri(arguments.uri))
    if arguments.json:
        printer.json(_document(file, verified=not arguments.unverified))
    elif sys.stdout.isatty():
        _show(file, printer)
    else:
        sys.stdout.buffer.write(file.data)
        sys.stdout.buffer.flush()
    return Exit.OK


def _document(file: SkillFile, *, verified: bool) -> dict[str, Any]:
    from skillwire.skill.digest import digest_of

    facts = {"uri": file.uri, "size": len(file.data), "digest": digest_of(file.data), "verified": verified}
    try:
        return {**facts, "text": file.data.decode()}
    except UnicodeDecodeError:
        return {**facts, "base64": b64encode(file.data).decode()}


def _show(file: SkillFile, printer: Printer) -> None:
    """On a terminal: text, with whatever would act on the terminal spelled out."""
    from skillwire.cli.printer import visible

    try:
        printer.data(visible(file.data.decode().removesuffix("\n")))
    except UnicodeDecodeError as error:
        raise FormatError(
            "not-text", f"{file.uri!r:.200} is not text ({len(file.data)} bytes)", "send it to a file: > FILE"
        ) from error
