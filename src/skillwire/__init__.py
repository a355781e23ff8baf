"""skillwire: Agent Skills over MCP. The public names, and nothing else.

Names are loaded when they are first used, so that ``import skillwire.skill`` and ``skillwire --help`` do not
pay for the SDK.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillwire.catalog.archive import ArchiveCatalog as ArchiveCatalog
    from skillwire.catalog.check import check_path as check_path
    from skillwire.catalog.combined import CombinedCatalog as CombinedCatalog
    from skillwire.catalog.combined import Mount as Mount
    from skillwire.catalog.contract import Catalog as Catalog
    from skillwire.catalog.contract import Change as Change
    from skillwire.catalog.contract import ChangeFeed as ChangeFeed
    from skillwire.catalog.contract import ChangeStream as ChangeStream
    from skillwire.catalog.contract import DirectoryChild as DirectoryChild
    from skillwire.catalog.contract import Page as Page
    from skillwire.catalog.contract import SkillFile as SkillFile
    from skillwire.catalog.contract import WrapperCatalog as WrapperCatalog
    from skillwire.catalog.cursor import page_of as page_of
    from skillwire.catalog.directory import DirectoryCatalog as DirectoryCatalog
    from skillwire.catalog.directory import package_catalog as package_catalog
    from skillwire.catalog.files import FilesCatalog as FilesCatalog
    from skillwire.catalog.generated import GeneratedCatalog as GeneratedCatalog
    from skillwire.catalog.memory import MemoryCatalog as MemoryCatalog
    from skillwire.catalog.memory import Skill as Skill
    from skillwire.client.connect import Discovered as Discovered
    from skillwire.client.connect import SkillsExtension as SkillsExtension
    from skillwire.client.connect import connect as connect
    from skillwire.client.connect import discover_and_build_catalog as discover_and_build_catalog
    from skillwire.client.connect import list_many as list_many
    from skillwire.client.dialects.named import Activation as Activation
    from skillwire.client.dialects.named import NamedSkill as NamedSkill
    from skillwire.client.entry_table import Refresh as Refresh
    from skillwire.client.remote import RemoteCatalog as RemoteCatalog
    from skillwire.client.skills import Listing as Listing
    from skillwire.client.skills import SkillsClient as SkillsClient
    from skillwire.client.skills import UnverifiedFile as UnverifiedFile
    from skillwire.errors import ApprovalError as ApprovalError
    from skillwire.errors import FormatError as FormatError
    from skillwire.errors import LimitError as LimitError
    from skillwire.errors import NotFoundError as NotFoundError
    from skillwire.errors import OriginError as OriginError
    from skillwire.errors import ProtocolError as ProtocolError
    from skillwire.errors import SkillwireError as SkillwireError
    from skillwire.errors import StoreError as StoreError
    from skillwire.errors import UpstreamError as UpstreamError
    from skillwire.errors import VerificationError as VerificationError
    from skillwire.gateway.gateway import Gateway as Gateway
    from skillwire.gateway.gateway import open_gateway as open_gateway
    from skillwire.host.approvals import Answer as Answer
    from skillwire.host.approvals import ApprovalRequest as ApprovalRequest
    from skillwire.host.approvals import Policy as Policy
    from skillwire.host.approvals import Rule as Rule
    from skillwire.host.conversation import Conversation as Conversation
    from skillwire.host.desk import ask_at_desk as ask_at_desk
    from skillwire.host.host import SkillHost as SkillHost
    from skillwire.host.results import LoadedFile as LoadedFile
    from skillwire.host.results import LoadedSkill as LoadedSkill
    from skillwire.host.results import OriginStatus as OriginStatus
    from skillwire.host.results import Refusal as Refusal
    from skillwire.host.results import SkillStatus as SkillStatus
    from skillwire.host.results import ToolResult as ToolResult
    from skillwire.limits import Limits as Limits
    from skillwire.server.access import Access as Access
    from skillwire.server.access import read_access as read_access
    from skillwire.server.callers import Caller as Caller
    from skillwire.server.dialect import Dialects as Dialects
    from skillwire.server.http import DialectPaths as DialectPaths
    from skillwire.server.http import WebApp as WebApp
    from skillwire.server.skills import Skills as Skills
    from skillwire.skill.approval import Approval as Approval
    from skillwire.skill.diagnostics import Diagnostic as Diagnostic
    from skillwire.skill.digest import digest_of as digest_of
    from skillwire.skill.entry import Partial as Partial
    from skillwire.skill.entry import Resource as Resource
    from skillwire.skill.entry import SkillEntry as SkillEntry
    from skillwire.skill.entry import SkillMeta as SkillMeta
    from skillwire.skill.entry import build_entry as build_entry
    from skillwire.skill.frontmatter import SkillDocument as SkillDocument
    from skillwire.skill.frontmatter import parse_skill_md as parse_skill_md
    from skillwire.skill.model import READ_RESOURCE_TOOL as READ_RESOURCE_TOOL
    from skillwire.skill.model import READ_SKILL_TOOL as READ_SKILL_TOOL
    from skillwire.skill.model import TokenEstimate as TokenEstimate
    from skillwire.skill.model import build_catalog as build_catalog
    from skillwire.skill.model import build_summary as build_summary
    from skillwire.skill.model import estimate_tokens as estimate_tokens
    from skillwire.skill.review import Review as Review
    from skillwire.skill.uri import SkillUri as SkillUri
    from skillwire.skill.uri import format_uri as format_uri
    from skillwire.skill.uri import parse_uri as parse_uri
    from skillwire.skill.uri import skill_md_uri as skill_md_uri
    from skillwire.skill.verify import VerifiedFile as VerifiedFile
    from skillwire.skill.verify import VerifiedSkill as VerifiedSkill
    from skillwire.web.catalog.site import catalog_page as catalog_page

__version__ = "0.1.0"

_HOMES = {
    "Access": "server.access",
    "Activation": "client.dialects.named",
    "Answer": "host.approvals",
    "Approval": "skill.approval",
    "ApprovalError": "errors",
    "ApprovalRequest": "host.approvals",
    "ArchiveCatalog": "catalog.archive",
    "Caller": "server.callers",
    "Catalog": "catalog.contract",
    "Change": "catalog.contract",
    "ChangeFeed": "catalog.contract",
    "ChangeStream": "catalog.contract",
    "CombinedCatalog": "catalog.combined",
    "Conversation": "host.conversation",
    "Diagnostic": "skill.diagnostics",
    "DialectPaths": "server.http",
    "Dialects": "server.dialect",
    "DirectoryCatalog": "catalog.directory",
    "DirectoryChild": "catalog.contract",
    "Discovered": "client.connect",
    "FilesCatalog": "catalog.files",
    "FormatError": "errors",
    "Gateway": "gateway.gateway",
    "GeneratedCatalog": "catalog.generated",
    "LimitError": "errors",
    "Limits": "limits",
    "Listing": "client.skills",
    "LoadedFile": "host.results",
    "LoadedSkill": "host.results",
    "MemoryCatalog": "catalog.memory",
    "Mount": "catalog.combined",
    "NamedSkill": "client.dialects.named",
    "NotFoundError": "errors",
    "OriginError": "errors",
    "OriginStatus": "host.results",
    "Page": "catalog.contract",
    "Partial": "skill.entry",
    "Policy": "host.approvals",
    "ProtocolError": "errors",
    "READ_RESOURCE_TOOL": "skill.model",
    "READ_SKILL_TOOL": "skill.model",
    "Refresh": "client.entry_table",
    "Refusal": "host.results",
    "RemoteCatalog": "client.remote",
    "Resource": "skill.entry",
    "Review": "skill.review",
    "Rule": "host.approvals",
    "Skill": "catalog.memory",
    "SkillDocument": "skill.frontmatter",
    "SkillEntry": "skill.entry",
    "SkillFile": "catalog.contract",
    "SkillHost": "host.host",
    "SkillMeta": "skill.entry",
    "SkillStatus": "host.results",
    "SkillUri": "skill.uri",
    "Skills": "server.skills",
    "SkillsClient": "client.skills",
    "SkillsExtension": "client.connect",
    "SkillwireError": "errors",
    "StoreError": "errors",
    "TokenEstimate": "skill.model",
    "ToolResult": "host.results",
    "UnverifiedFile": "client.skills",
    "UpstreamError": "errors",
    "VerificationError": "errors",
    "VerifiedFile": "skill.verify",
    "VerifiedSkill": "skill.verify",
    "WebApp": "server.http",
    "WrapperCatalog": "catalog.contract",
    "ask_at_desk": "host.desk",
    "build_catalog": "skill.model",
    "build_entry": "skill.entry",
    "build_summary": "skill.model",
    "catalog_page": "web.catalog.site",
    "check_path": "catalog.check",
    "connect": "client.connect",
    "digest_of": "skill.digest",
    "discover_and_build_catalog": "client.connect",
    "estimate_tokens": "skill.model",
    "format_uri": "skill.uri",
    "list_many": "client.connect",
    "open_gateway": "gateway.gateway",
    "package_catalog": "catalog.directory",
    "page_of": "catalog.cursor",
    "parse_skill_md": "skill.frontmatter",
    "parse_uri": "skill.uri",
    "read_access": "server.access",
    "skill_md_uri": "skill.uri",
}

__all__ = [*_HOMES, "__version__"]  # pyright: ignore[reportUnsupportedDunderAll] - a test compares both lists


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'skillwire' has no attribute {name!r}")
    return getattr(import_module(f"skillwire.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
