"""``skillwire read``: writes one verified file of a skill to stdout."""

from __future__ import annotations

import sys
from base64 import b64encode
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from skillwire.cli.command import Arguments, Exit, argument, flag, verb
from skillwire.cli.printer import Printer, visible
from skillwire.cli.targets import (
    TARGET,
    TARGET_OPTIONS,
    as_uri,
    resolve_skill,
    run_on_targets,
    target_text,
    uri_by_name,
)
from skillwire.errors import FormatError, NotFoundError

if TYPE_CHECKING:
    from skillwire.catalog.contract import Catalog, SkillFile


@verb(
    "Write one file of a skill to stdout, byte for byte, after checking it against the entry of the skill.",
    TARGET,
    argument("uri", "FILE", "a skill, whose SKILL.md is read; a file such as refunds/notes.md; a path; a URI"),
    flag("--unverified", help="also read a file without a digest, which cannot be verified"),
    *TARGET_OPTIONS,
    targets=1,
    examples="""\
  skillwire read ./skills refunds                               its SKILL.md
  skillwire read ./skills refunds/templates/reply.md
  skillwire read https://skills.example.com/mcp skill://logo/assets/logo.png > logo.png
""",
)
def command(arguments: Arguments, printer: Printer) -> int:
    """Read a file."""
    return run_on_targets(arguments, printer, _read, allow_unverified=arguments.unverified)


async def _read(catalog: Catalog, arguments: Arguments, printer: Printer) -> int:
    file = await _find(catalog, arguments)
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


async def _find(catalog: Catalog, arguments: Arguments) -> SkillFile:
    """Read the file at a URI or path. Its first word can also be the name of a skill."""
    uri: str = arguments.uri
    place = target_text(arguments)
    if "/" not in uri.strip("/"):
        return await catalog.read_file((await resolve_skill(catalog, uri, place=place)).uri)
    try:
        return await catalog.read_file(as_uri(uri))
    except NotFoundError as error:
        by_name = await uri_by_name(catalog, uri)
        if by_name is not None:
            with suppress(NotFoundError):
                return await catalog.read_file(by_name)
        error.hint = f"see the files: skillwire list --tree {place}"
        raise


def _document(file: SkillFile, *, verified: bool) -> dict[str, Any]:
    from skillwire.skill.entry import digest_of

    facts = {"uri": file.uri, "size": len(file.data), "digest": digest_of(file.data), "verified": verified}
    try:
        return {**facts, "text": file.data.decode()}
    except UnicodeDecodeError:
        return {**facts, "base64": b64encode(file.data).decode()}
