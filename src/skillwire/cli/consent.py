"""What the user allowed on this machine: servers that a project's files name (Z1), folders that they typed (Z2).

Each permission is one file in the state folder, called by the digest of what was allowed; its text is what was
allowed. To take the permission back, remove the file.
"""

from __future__ import annotations

import json
import os
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from skillwire.cli.hosting import default_state, line
from skillwire.cli.prompts import can_ask, confirm
from skillwire.errors import ApprovalError, StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skillwire.bootstrap import Consent
    from skillwire.cli.printer import Printer

_LONGEST = 2000
_LARGEST_ENTRY = 4000  # characters: a person reads all of it
_LAST = ("cwd", "env", "headers", "args", "command", "url")  # what decides stands next to the question


def ask_for_servers(printer: Printer, flag: str, *, is_given: bool) -> Consent:
    """Ask once for each file, label and entry. ``flag`` is the option that allows it beforehand."""

    async def consent(file: Path, label: str, entry: Mapping[str, Any]) -> None:
        from skillwire.client.servers import written_place

        if is_given or is_allowed(server_record(file, label, entry)):
            return
        place = _cut(written_place(entry))
        if can_ask():
            printer.talk(f"{line(str(file))}, which came with the project, names this server:")
            if len(json.dumps(dict(entry))) > _LARGEST_ENTRY:
                raise ApprovalError(
                    "server-not-allowed",
                    f"the entry in {file.name!r:.200} is too long to be reviewed here",
                    f"read it in the file, then run the command again with --config {shlex.quote(str(file))}",
                    rule="Z1",
                )
            for key, value in sorted(
                entry.items(), key=lambda item: _LAST.index(item[0]) if item[0] in _LAST else -1
            ):
                printer.talk(f"  {_cut(key)}: {_cut(json.dumps(value, ensure_ascii=False))}")
            if await confirm(f"Use {place} from now on?", printer):
                allow(server_record(file, label, entry))
                return
        raise ApprovalError(
            "server-not-allowed",
            f"{file.name!r:.200} names a server that you did not allow on this machine: {place}",
            f"look at it, then run the command again with {flag}",
            rule="Z1",
        )

    return consent


def _cut(text: str) -> str:
    shown = line(text)
    more = len(shown) - _LONGEST
    return f"{shown[:_LONGEST]} … and {more:,} characters more" if more > 0 else shown


def server_record(file: Path, label: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """What is allowed: this entry in this file. A command may mean another program in another project."""
    return {"file": os.path.realpath(file), "label": label, "entry": dict(entry)}


def is_allowed(what: Mapping[str, Any]) -> bool:
    """Whether the user allowed exactly this before."""
    return _record(what).is_file()


def allow(what: Mapping[str, Any]) -> None:
    """Remember that the user allowed this. Without a place to remember it, they are asked again."""
    from skillwire.install.transaction import replace_file

    with suppress(StoreError):
        replace_file(_record(what), _canonical(what), mode=0o600)


def _record(what: Mapping[str, Any]) -> Path:
    from skillwire.skill.digest import digest_of

    return default_state() / "allowed" / digest_of(_canonical(what)).removeprefix("sha256:")


def _canonical(what: Mapping[str, Any]) -> bytes:
    return (json.dumps(what, indent=2, sort_keys=True) + "\n").encode()
