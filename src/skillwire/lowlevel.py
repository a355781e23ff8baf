"""The parts that ``Skills``, ``connect`` and ``SkillHost`` are made of, for your own host, client or catalog.

Most programs do not need this module.
"""

from skillwire.catalog.contract import WrapperCatalog as WrapperCatalog
from skillwire.catalog.cursor import page_of as page_of
from skillwire.catalog.directory import package_catalog as package_catalog
from skillwire.catalog.functions import GeneratedCatalog as GeneratedCatalog
from skillwire.client.connect import SkillsExtension as SkillsExtension
from skillwire.client.connect import discover_and_build_catalog as discover_and_build_catalog
from skillwire.client.connect import list_many as list_many
from skillwire.search.index import SearchIndex as SearchIndex
from skillwire.server.access import read_access as read_access
from skillwire.skill.entry import build_entry as build_entry
from skillwire.skill.entry import digest_of as digest_of
from skillwire.skill.frontmatter import parse_skill_md as parse_skill_md
from skillwire.skill.model import READ_RESOURCE_TOOL as READ_RESOURCE_TOOL
from skillwire.skill.model import READ_SKILL_TOOL as READ_SKILL_TOOL
from skillwire.skill.model import build_catalog as build_catalog
from skillwire.skill.model import build_summary as build_summary
from skillwire.skill.model import estimate_tokens as estimate_tokens
from skillwire.skill.uri import format_uri as format_uri
from skillwire.skill.uri import parse_uri as parse_uri
from skillwire.skill.uri import skill_md_uri as skill_md_uri
