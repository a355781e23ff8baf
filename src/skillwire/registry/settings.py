"""The settings file of a registry: issuers of web tokens, and who administers it.

    admins = ["group:corp/platform"]

    [[issuer]]
    label = "corp"
    issuer = "https://login.example.com"
    audience = "https://skills.example.com"
    jwks = "https://login.example.com/keys.json"
    groups = "groups"

    [[issuer]]
    label = "ci"
    issuer = "https://token.actions.githubusercontent.com"
    audience = "https://skills.example.com"
    jwks = "https://token.actions.githubusercontent.com/.well-known/jwks"

A subject of the first issuer is the principal ``jwt:corp/SUBJECT``, and its groups are ``group:corp/NAME``: two
issuers choose their names independently (Z7). A single issuer needs no label; then they are ``jwt:SUBJECT`` and
``group:NAME``.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from skillwire.errors import FormatError, NotFoundError
from skillwire.server.access import first_mistake

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Issuer:
    """An issuer of web tokens. ``groups`` is the claim with the groups of a person, if its tokens have one."""

    issuer: str
    audience: str
    jwks: str
    label: str = ""
    groups: str = ""

    def principal(self, kind: str, name: str) -> str:
        """The name of a subject or a group as a principal."""
        return f"{kind}:{self.label}/{name}" if self.label else f"{kind}:{name}"


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """The contents of a settings file."""

    issuers: tuple[Issuer, ...] = ()
    admins: frozenset[str] = frozenset()


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Issuer(_Part):
    issuer: Annotated[str, StringConstraints(pattern=r"^https?://[A-Za-z0-9.:\[\]-]+(/\S*)?$")]
    audience: Annotated[str, StringConstraints(min_length=1)]
    jwks: Annotated[str, StringConstraints(pattern=r"^https?://[A-Za-z0-9.:\[\]-]+(/\S*)?$")]
    label: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]{0,40}$")] = ""
    groups: str = ""


class _File(_Part):
    issuer: list[_Issuer] = []
    admins: list[Annotated[str, StringConstraints(pattern=r"^(user|jwt|group):\S+$")]] = []


def read_settings(path: Path) -> RegistrySettings:
    """Read a settings file. The ``FormatError`` names the invalid part."""
    try:
        file = _File.model_validate(tomllib.loads(path.read_text()))
    except OSError as error:
        raise NotFoundError(
            "registry-settings-unknown",
            f"the settings {path.name!r} cannot be read",
            "give the path of a TOML file",
        ) from error
    except ValidationError as error:
        raise _invalid(first_mistake(error)) from error
    except ValueError as error:
        raise _invalid(f"it is not TOML: {error}") from error
    issuers = tuple(Issuer(**each.model_dump()) for each in file.issuer)
    for value in ("label", "issuer"):
        if len({getattr(each, value) for each in issuers}) < len(issuers):
            raise _invalid(f"two issuers have the same {value}; give each its own")
    if len(issuers) > 1 and not all(each.label for each in issuers):
        raise _invalid('several issuers need labels; write label = "…" for each')
    return RegistrySettings(issuers, frozenset(file.admins))


def _invalid(message: str) -> FormatError:
    return FormatError(
        "registry-settings-invalid",
        f"the settings of the registry are invalid: {message}",
        "docs/reference/registry.md shows a settings file",
    )
