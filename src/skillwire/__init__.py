"""skillwire: Agent Skills over MCP. The public names, and nothing else.

Names are loaded when they are first used, so that ``import skillwire.skill`` and ``skillwire --help`` do not
pay for the SDK.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillwire.catalog.changes import Change as Change
    from skillwire.catalog.check import check_path as check_path
    from skillwire.catalog.claims import Mount as Mount
    from skillwire.catalog.combined import CombinedCatalog as CombinedCatalog
    from skillwire.catalog.contract import Catalog as Catalog
    from skillwire.catalog.contract import DirectoryChild as DirectoryChild
    from skillwire.catalog.contract import Page as Page
    from skillwire.catalog.contract import SkillFile as SkillFile
    from skillwire.catalog.directory import DirectoryCatalog as DirectoryCatalog
    from skillwire.catalog.generated import GeneratedCatalog as GeneratedCatalog
    from skillwire.catalog.memory import MemoryCatalog as MemoryCatalog
    from skillwire.catalog.memory import Skill as Skill
    from skillwire.catalog.package import PackageCatalog as PackageCatalog
    from skillwire.errors import FormatError as FormatError
    from skillwire.errors import LimitError as LimitError
    from skillwire.errors import NotFoundError as NotFoundError
    from skillwire.errors import ProtocolError as ProtocolError
    from skillwire.errors import SkillwireError as SkillwireError
    from skillwire.errors import UpstreamError as UpstreamError
    from skillwire.limits import Limits as Limits
    from skillwire.server.skills import Skills as Skills
    from skillwire.skill.diagnostics import Diagnostic as Diagnostic
    from skillwire.skill.entry import Resource as Resource
    from skillwire.skill.entry import SkillEntry as SkillEntry
    from skillwire.skill.entry import SkillMeta as SkillMeta

__version__ = "0.1.0"

_HOMES = {
    "Catalog": "catalog.contract",
    "Change": "catalog.changes",
    "CombinedCatalog": "catalog.combined",
    "Diagnostic": "skill.diagnostics",
    "DirectoryCatalog": "catalog.directory",
    "DirectoryChild": "catalog.contract",
    "FormatError": "errors",
    "GeneratedCatalog": "catalog.generated",
    "LimitError": "errors",
    "Limits": "limits",
    "MemoryCatalog": "catalog.memory",
    "Mount": "catalog.claims",
    "NotFoundError": "errors",
    "PackageCatalog": "catalog.package",
    "Page": "catalog.contract",
    "ProtocolError": "errors",
    "Resource": "skill.entry",
    "Skill": "catalog.memory",
    "SkillEntry": "skill.entry",
    "SkillFile": "catalog.contract",
    "SkillMeta": "skill.entry",
    "Skills": "server.skills",
    "SkillwireError": "errors",
    "UpstreamError": "errors",
    "check_path": "catalog.check",
}

__all__ = [*_HOMES, "__version__"]  # pyright: ignore[reportUnsupportedDunderAll] - a test compares both lists


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'skillwire' has no attribute {name!r}")
    return getattr(import_module(f"skillwire.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
