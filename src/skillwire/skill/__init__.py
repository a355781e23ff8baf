"""The rules of the format as pure functions: bytes in, values out. No I/O, no clock, no SDK.

frontmatter · coreyaml    SKILL.md and its YAML (F1–F6)
declarations              fields for dialects that know skills by name, and their arguments (P1–P3, P6)
uri                       URIs and containment (U1–U7)
entry                     digests, and entries: the claims of a server about a skill (E1–E5)
verify                    comparison of bytes with an entry (V1, V2, V4)
approval · review         what an approval covers, and the facts a person sees before deciding (A1–A6)
archive                   packing and unpacking (I2, I3)
model                     skill lists for models
check · markdown          problems in a skill's text (U6)
hidden · hidden_html      text that people do not see and models read (B6)
diagnostics               every kind of problem, with its rule
"""

from skillwire.skill.diagnostics import KINDS as KINDS
from skillwire.skill.diagnostics import Diagnostic as Diagnostic
from skillwire.skill.entry import DYNAMIC as DYNAMIC
from skillwire.skill.entry import Partial as Partial
from skillwire.skill.entry import Resource as Resource
from skillwire.skill.entry import SkillEntry as SkillEntry
from skillwire.skill.entry import build_entry as build_entry
from skillwire.skill.entry import digest_of as digest_of
from skillwire.skill.entry import parse_entry as parse_entry
from skillwire.skill.frontmatter import Json as Json
from skillwire.skill.frontmatter import SkillDocument as SkillDocument
from skillwire.skill.frontmatter import parse_skill_md as parse_skill_md
from skillwire.skill.uri import SkillUri as SkillUri
from skillwire.skill.uri import format_uri as format_uri
from skillwire.skill.uri import parse_uri as parse_uri
