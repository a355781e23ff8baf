"""skillwire: Agent Skills over MCP.

These names are the ones that programs start with. These modules hold the other public names:

skillwire.types      the types of parameters and results
skillwire.errors     every error that skillwire raises
skillwire.lowlevel   the parts for your own host, client or catalog
skillwire.testing    a pytest suite for your own catalog
skillwire.adapters   one module for each agent framework

Names are loaded when they are first used, so ``import skillwire`` does not import the SDK.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillwire.catalog.archive import ArchiveCatalog as ArchiveCatalog
    from skillwire.catalog.check import check_path as check_path
    from skillwire.catalog.contract import Catalog as Catalog
    from skillwire.catalog.directory import DirectoryCatalog as DirectoryCatalog
    from skillwire.catalog.files import FilesCatalog as FilesCatalog
    from skillwire.catalog.git import GitCatalog as GitCatalog
    from skillwire.catalog.memory import MemoryCatalog as MemoryCatalog
    from skillwire.catalog.memory import Skill as Skill
    from skillwire.catalog.union import CombinedCatalog as CombinedCatalog
    from skillwire.catalog.union import Mount as Mount
    from skillwire.client.connect import connect as connect
    from skillwire.errors import SkillwireError as SkillwireError
    from skillwire.gateway.gateway import open_gateway as open_gateway
    from skillwire.host.approvals import Answer as Answer
    from skillwire.host.approvals import ApprovalRequest as ApprovalRequest
    from skillwire.host.approvals import Policy as Policy
    from skillwire.host.approvals import Rule as Rule
    from skillwire.host.desk import ask_at_desk as ask_at_desk
    from skillwire.host.host import SkillHost as SkillHost
    from skillwire.limits import Limits as Limits
    from skillwire.server.callers import Caller as Caller
    from skillwire.server.skills import Skills as Skills
    from skillwire.skill.diagnostics import Diagnostic as Diagnostic
    from skillwire.skill.entry import SkillEntry as SkillEntry
    from skillwire.skill.entry import SkillMeta as SkillMeta
    from skillwire.web.catalog.site import catalog_page as catalog_page

__version__ = "0.1.0"

_HOMES = {
    # serve skills
    "Skills": "server.skills",
    "Skill": "catalog.memory",
    "SkillMeta": "skill.entry",
    "Caller": "server.callers",
    "catalog_page": "web.catalog.site",
    # where skills are
    "Catalog": "catalog.contract",
    "DirectoryCatalog": "catalog.directory",
    "ArchiveCatalog": "catalog.archive",
    "GitCatalog": "catalog.git",
    "MemoryCatalog": "catalog.memory",
    "FilesCatalog": "catalog.files",
    "CombinedCatalog": "catalog.union",
    "Mount": "catalog.union",
    # use skills
    "connect": "client.connect",
    "SkillEntry": "skill.entry",
    "SkillHost": "host.host",
    "Answer": "host.approvals",
    "ApprovalRequest": "host.approvals",
    "Policy": "host.approvals",
    "Rule": "host.approvals",
    "ask_at_desk": "host.desk",
    "open_gateway": "gateway.gateway",
    # everywhere
    "check_path": "catalog.check",
    "Diagnostic": "skill.diagnostics",
    "Limits": "limits",
    "SkillwireError": "errors",
}

__all__ = [*_HOMES, "__version__"]  # pyright: ignore[reportUnsupportedDunderAll] - a test compares both lists


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'skillwire' has no attribute {name!r}")
    return getattr(import_module(f"skillwire.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
