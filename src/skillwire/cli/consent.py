"""Permissions of the user on this machine: servers from files of a project (Z1), and folders that they typed (Z2).

Each permission is a file in the state folder. It contains the allowed entry as JSON, and its name is the digest of
that text. Deleting the file withdraws the permission.
"""

from __future__ import annotations

import json
import os
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from skillwire.cli.printer import Printer, cut_line, line
from skillwire.cli.prompts import can_ask, confirm
from skillwire.errors import ApprovalError, StoreError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from skillwire.bootstrap import Consent

_LONGEST = 2000
_LARGEST_ENTRY = 4000  # characters: a user can read all of it
_SHOWN_LAST = ("cwd", "env", "headers", "args", "command", "url")  # the most important is next to the question


def ask_for_servers(printer: Printer, flag: str, *, is_given: bool) -> Consent:
    """Return a function that asks once for each file, label and entry. ``flag`` is the option that allows them."""

    async def consent(file: Path, label: str, entry: Mapping[str, Any]) -> None:
        from skillwire.client.servers import written_place

        if is_given or is_allowed(server_record(file, label, entry)):
            return
        place = cut_line(written_place(entry), _LONGEST)
        if can_ask():
            printer.talk(f"{line(str(file))}, a file of this project, names this server:")
            if len(json.dumps(dict(entry))) > _LARGEST_ENTRY:
                raise ApprovalError(
                    "server-not-allowed",
                    f"the entry in {file.name!r:.200} is too long to review here",
                    f"read the file, then run the command again with --config {shlex.quote(str(file))}",
                    rule="Z1",
                )
            for key, value in sorted(
                entry.items(), key=lambda item: _SHOWN_LAST.index(item[0]) if item[0] in _SHOWN_LAST else -1
            ):
                text = cut_line(json.dumps(value, ensure_ascii=False), _LONGEST)
                printer.talk(f"  {cut_line(key, _LONGEST)}: {text}")
            if await confirm(f"Use {place} from now on?", printer):
                allow(server_record(file, label, entry))
                return
        raise ApprovalError(
            "server-not-allowed",
            f"{file.name!r:.200} names a server that you have not allowed on this machine: {place}",
            f"review it, then run the command again with {flag}",
            rule="Z1",
        )

    return consent


def server_record(file: Path, label: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the permission for one entry in one file. The same command may be another program elsewhere."""
    return {"file": os.path.realpath(file), "label": label, "entry": dict(entry)}


def is_allowed(permission: Mapping[str, Any]) -> bool:
    """Return whether the user has allowed exactly this."""
    return _path_of(permission).is_file()


def allow(permission: Mapping[str, Any]) -> None:
    """Store a permission. If that fails, the user is asked again next time."""
    from skillwire.install.transaction import replace_file

    with suppress(StoreError):
        replace_file(_path_of(permission), _canonical(permission), mode=0o600)


def forget(permission: Mapping[str, Any]) -> None:
    """Remove a permission."""
    with suppress(OSError):
        _path_of(permission).unlink()


def _path_of(permission: Mapping[str, Any]) -> Path:
    from skillwire.skill.entry import digest_of
    from skillwire.store.place import state_folder

    return state_folder() / "allowed" / digest_of(_canonical(permission)).removeprefix("sha256:")


def _canonical(permission: Mapping[str, Any]) -> bytes:
    return (json.dumps(permission, indent=2, sort_keys=True) + "\n").encode()
