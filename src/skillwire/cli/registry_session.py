"""What the verbs of a registry share: its address, the stored sign-ins, and opening its client.

The tokens are in ``registries.json`` in the state folder, which only the user can read. ``SKILLWIRE_TOKEN`` and
``SKILLWIRE_REGISTRY`` override it, for programs such as CI.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skillwire.cli.command import JSON, Arguments, DatabasePlace, VerbWork, option, run_async
from skillwire.cli.host_session import state_of
from skillwire.errors import FormatError, StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from skillwire.cli.printer import Printer

STATE = option(
    "--state",
    type=DatabasePlace(),
    metavar="DIR",
    help="the state folder (default: $XDG_STATE_HOME/skillwire, or ~/.local/state/skillwire)",
)
TOKEN_VARIABLE = "SKILLWIRE_TOKEN"  # noqa: S105 - the name of a variable
REGISTRY_VARIABLE = "SKILLWIRE_REGISTRY"
REGISTRY_OPTIONS = (
    option("--registry", metavar="URL", help="the registry (default: where you signed in last)"),
    STATE,
    JSON,
)


@dataclass(slots=True)
class Logins:
    """The registries where the user signed in, with their tokens, and the last of them."""

    path: Path
    tokens: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    last: str = ""

    def save(self) -> None:
        """Write the file, for the user only."""
        from skillwire.install.transaction import replace_file

        document = {"registries": {url: {"token": token} for url, token in self.tokens.items()}, "last": self.last}
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(self.path, json.dumps(document, indent=2).encode(), mode=0o600)


def folder_of(arguments: Arguments) -> Path:
    """Return the state folder, which has the sign-ins, and a registry without ``--database``."""
    state = state_of(arguments)
    if isinstance(state, str):
        raise FormatError(
            "state-not-folder",
            "--state must be a folder here: it has your sign-ins, and a registry without --database",
            "write --state DIR; a registry serves a database with: skillwire registry --database URL",
        )
    return state


def read_logins(arguments: Arguments) -> Logins:
    """Read the stored sign-ins."""
    return _read_logins(folder_of(arguments))


def _read_logins(folder: Path) -> Logins:
    path = folder / "registries.json"
    try:
        document: Any = json.loads(path.read_bytes())
        tokens = {str(url): str(each["token"]) for url, each in document["registries"].items()}
        return Logins(path, tokens, str(document["last"]))
    except FileNotFoundError:
        return Logins(path)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise StoreError(
            "logins-unreadable", f"{path.name!r} cannot be read", "sign in again: skillwire registry login URL"
        ) from error


def registry_of(arguments: Arguments) -> tuple[str, str | None]:
    """Return the address of the registry, and the token for it."""
    from skillwire.registry.client import registry_url

    logins = read_logins(arguments)
    given = arguments.registry or os.environ.get(REGISTRY_VARIABLE) or logins.last
    if not given:
        raise FormatError(
            "registry-unset",
            "no registry is given, and you are not signed in to one",
            "sign in: skillwire registry login URL",
        )
    url = registry_url(given)
    return url, os.environ.get(TOKEN_VARIABLE) or logins.tokens.get(url)


def stored_token(arguments: Arguments, url: str) -> str | None:
    """Return the token for the registry at ``url``, which the user typed or has allowed.

    It is sent only to the scheme, host and port where the user signed in (Z1). The variables are for programs, and
    count only together.
    """
    from skillwire.registry.client import is_at_registry, registry_url
    from skillwire.store.place import USER, state_folder

    given, token = os.environ.get(REGISTRY_VARIABLE), os.environ.get(TOKEN_VARIABLE)
    if given and token and is_at_registry(url, registry_url(given)):
        return token
    logins = _read_logins(state_folder(getattr(arguments, "state", None) or USER))
    found = [registry for registry in logins.tokens if is_at_registry(url, registry)]
    return logins.tokens[max(found, key=len)] if found else None


def run_with_registry(arguments: Arguments, printer: Printer, work: VerbWork) -> int | None:
    """Open the client of the registry, pass it to ``work``, and return its exit code."""

    async def run() -> int | None:
        from skillwire.registry.client import RegistryClient

        url, token = registry_of(arguments)
        async with RegistryClient.open(url, token) as client:
            return await work(client, arguments, printer)

    return run_async(run)
