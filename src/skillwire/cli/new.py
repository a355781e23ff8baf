"""``skillwire new``: makes the folder of a new skill, with a SKILL.md that passes ``check --strict``."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from skillwire.cli.command import FILE, JSON, Arguments, Exit, argument, option, verb
from skillwire.cli.printer import Printer, visible
from skillwire.errors import FormatError, StoreError

_DESCRIPTION = "Explains how to do one task, step by step. Use when someone asks for {title}."
_BODY = """\
# {title}

Describe the result in one sentence, and who needs it.

## Procedure

1. Look at the existing files before you change anything.
2. Do the task. Name exact commands, files and limits.
3. Check the result, and report how you checked it.

## When to stop and ask

- Something is missing, or two instructions contradict each other.
- A step would delete data, spend money or send a message.

## Example

Input: what a person might write.

Output: what a good answer looks like.
"""


@verb(
    "Make the folder NAME with a SKILL.md: a name, a description, and a structure to fill in.",
    argument("name", "NAME", "lower-case letters, digits and single hyphens, such as customer-refunds"),
    option(
        "--in",
        "folder",
        type=FILE,
        default=Path(),
        metavar="DIR",
        help="the folder of your skills (default: the current folder)",
    ),
    option("--description", metavar="TEXT", help="what the skill does, and when to use it"),
    JSON,
    examples="""\
  skillwire new customer-refunds
  skillwire new customer-refunds --in ./skills --description 'Decides refunds. Use when customers want money back.'

exit codes: 0 made, 2 usage, or the folder exists
""",
)
def command(arguments: Arguments, printer: Printer) -> int:
    """Make a skill."""
    from skillwire.skill.coreyaml import format_text
    from skillwire.skill.frontmatter import is_name, suggest_name

    name: str = arguments.name
    if not is_name(name):
        raise FormatError(
            "name-invalid",
            f"the name {name!r:.80} is not 1-64 characters of a-z, 0-9 and single hyphens",
            f"write: skillwire new {suggest_name(name)}",
        )
    title = name.replace("-", " ").capitalize()
    description = arguments.description or _DESCRIPTION.format(title=title.lower())
    folder: Path = arguments.folder / name
    fields = f"name: {format_text(name)}\ndescription: {format_text(description)}\n"
    text = f"---\n{fields}---\n\n{_BODY.format(title=title)}"
    try:
        os.makedirs(folder)
        (folder / "SKILL.md").write_text(text, encoding="utf-8")
    except FileExistsError as error:
        message = f"{str(folder)!r:.200} exists already"
        raise FormatError("folder-exists", message, "choose another name, or another folder: --in DIR") from error
    except OSError as error:
        message = f"{str(folder)!r:.200} cannot be made: {error.strerror}"
        raise StoreError("write-failed", message, "choose another folder: --in DIR") from error
    file = str(folder / "SKILL.md")
    printer.result({"name": name, "file": file}, f"created {visible(file)}")
    where = shlex.quote(str(arguments.folder))
    printer.talk(f"write it, then check it: skillwire check {shlex.quote(str(folder))}")
    printer.talk(f"serve it:                skillwire serve {where} --http auto")
    return Exit.OK
