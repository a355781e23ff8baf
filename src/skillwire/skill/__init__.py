"""The rules of the format, pure: bytes in, values out. No IO, no clock, no SDK.

frontmatter · coreyaml   what a SKILL.md says (F1–F6)
uri                      where things are, and what stays inside what (U1–U7)
digest · entry · received   what is claimed about a skill (E1–E5)
verify                   what makes a claim true (V1, V2, V4)
archive                  a packed skill, unpacked in memory (I2, I3)
model                    what a model is told of skills
check · markdown · hidden   what is wrong with its text (U6, B6)
diagnostics              every kind of problem, with its rule
"""

from skillwire.skill.diagnostics import KINDS as KINDS
from skillwire.skill.diagnostics import Diagnostic as Diagnostic
from skillwire.skill.digest import digest_of as digest_of
from skillwire.skill.entry import DYNAMIC as DYNAMIC
from skillwire.skill.entry import Partial as Partial
from skillwire.skill.entry import Resource as Resource
from skillwire.skill.entry import SkillEntry as SkillEntry
from skillwire.skill.entry import build_entry as build_entry
from skillwire.skill.entry import parse_entry as parse_entry
from skillwire.skill.frontmatter import Json as Json
from skillwire.skill.frontmatter import SkillDocument as SkillDocument
from skillwire.skill.frontmatter import parse_skill_md as parse_skill_md
from skillwire.skill.uri import SkillUri as SkillUri
from skillwire.skill.uri import format_uri as format_uri
from skillwire.skill.uri import parse_uri as parse_uri
