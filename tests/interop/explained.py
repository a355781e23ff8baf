"""Why a cell of the matrix is not plainly ``pass``, for every one that is not.

A *defect* is a peer's: it names the rule that it breaks and has a few lines that show it (``defects.py``), which
``test_reproductions.py`` runs. The rest are choices that are the peer's to make, or things that it does not have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from interop.honest import TRAITS

if TYPE_CHECKING:
    from collections.abc import Iterable

Kind = Literal["defect", "partial", "not offered"]


@dataclass(frozen=True)
class Explanation:
    """What a reader of the matrix wants to know about one remark."""

    kind: Kind
    title: str
    text: str
    rule: str = ""


def _defect(rule: str, title: str, text: str) -> Explanation:
    return Explanation("defect", title, text, rule)


EXPLANATIONS: dict[str, Explanation] = {
    # What peers do not have, or do in another way.
    "conformance-http-only": Explanation(
        "not offered",
        "The conformance suite speaks HTTP only",
        "It is given a URL, or starts a client with one. It knows no server on stdio.",
    ),
    "conformance-first-skill": Explanation(
        "partial",
        "The directory scenario looks into the first listed skill",
        "`sep-2640-skills-directory` fails if that skill has no folder. With a tree whose first skill has "
        "one, it passes.",
    ),
    "no-directories": Explanation(
        "not offered",
        "Clients and servers without `resources/directory/read`",
        "FastMCP, fast-agent's installer and Agent Framework never ask for a directory, and FastMCP serves "
        "none. The method is optional (K2): our client does not ask a server that does not declare it.",
    ),
    "plain-resources": Explanation(
        "not offered",
        "Plain resources",
        "A server without the extension has neither directories nor a word for generated skills. A client "
        "that knows no skills does not ask for directories.",
    ),
    "nothing-generated": Explanation(
        "not offered", "FastMCP's providers generate nothing", "They serve files, so no entry says `dynamic`."
    ),
    "nothing-promised": Explanation(
        "partial",
        "Resources that are registered by hand",
        "Nothing says which bytes they have, so nothing can be verified, and an approval would bind nothing. Our "
        "client reads them unverified, our host declines them by default (V7); by an explicit choice, everything "
        "is loaded and read.",
    ),
    "fastmcp-modern-only": Explanation(
        "partial",
        "FastMCP has skills in the stateless era only",
        "In the handshake era its client refuses to ask for skills and reads plain resources, which works; "
        "its server serves the shape without the extension.",
    ),
    "fastmcp-old-depth": Explanation(
        "not offered",
        "FastMCP's older shape knows one level of folders",
        "A skill in a folder of a folder is not found, so there are no prefixes, and no name can be at two paths.",
    ),
    "reserved-name": Explanation(
        "partial",
        "A file called `_manifest`",
        "FastMCP keeps that name for itself: the extension's server drops the skill, the older shape "
        "answers with its own manifest, which is refused as a mismatch. Every other odd name comes through.",
    ),
    "ext-skills-0.12-generation": Explanation(
        "partial",
        "Generated skills of the generation before",
        "There, a generated skill is an entry without `resources`. Where no other entry says that a server is "
        "of that generation, it is what today's rules call invalid (E2): our client does not list it and says "
        "why. It can be read, unverified, by its URI.",
    ),
    "fast-agent-portable-names": Explanation(
        "partial",
        "fast-agent installs only names that every system has",
        'A file name with `<>:"|?*`, or one that ends in a space or a dot, is refused, and one such name in a '
        "listing costs the whole listing. Names beyond ASCII, with spaces, `+`, `=` and `&` are installed.",
    ),
    "fast-agent-grants": Explanation(
        "partial",
        "fast-agent removes `allowed-tools`",
        "After everything is verified, it rewrites a `SKILL.md` that asks for tools, without that field (A4). "
        "All other files are installed to the last byte.",
    ),
    # Defects, each shown in defects.py.
    "ext-skills-bom": _defect(
        "F6",
        "ext-skills and a byte order mark",
        "Frontmatter must begin at the first byte: the server drops such a skill, the client declines it.",
    ),
    "ext-skills-kept": _defect(
        "F5",
        "ext-skills and `|+`",
        "The last line break before the closing `---` is cut off before the YAML is read, so a block that "
        "keeps its line breaks loses one. Its entries then differ from the file, and its "
        "client declines honest ones.",
    ),
    "ext-skills-names": _defect(
        "U7",
        "ext-skills and names that need encoding",
        "The server looks for a file of the encoded name. 0.14 says that there is none; 0.12 answers with "
        "prose, as to any URI it does not know. Our client refuses that as a mismatch.",
    ),
    "ext-skills-text": _defect(
        "R1",
        "ext-skills and text that is not UTF-8",
        "What has the suffix of a text is sent as text, with replacement characters for what is not UTF-8. "
        "The bytes are others than promised, and are refused.",
    ),
    "ext-skills-0.12-large": _defect(
        "E2",
        "ext-skills 0.12 drops large files",
        "The list of a skill's files is not complete: one of 5 MiB is missing.",
    ),
    "fastmcp-yaml": _defect(
        "F4",
        "FastMCP reads YAML 1.1",
        "`on` becomes true, `1:30` becomes 90, and a skill with a date is dropped. The entry differs from the "
        "file, and our client refuses it.",
    ),
    "fastmcp-block": _defect(
        "F5",
        "FastMCP and a block that ends the frontmatter",
        "The last line break is lost, from `|` as from `|+`. The entry differs from the file.",
    ),
    "fastmcp-description": _defect(
        "R1",
        "FastMCP lists other descriptions in the handshake era",
        "Its server without the extension describes a skill as `Skill: NAME`, which is all that a model sees "
        "before it wants the skill. Then our host asks for it, shows the author's words to the person, and "
        "everything is loaded and read.",
    ),
    "fastmcp-old-text": _defect(
        "F6",
        "FastMCP's older shape rewrites text",
        "Line ends become `\\n`, so the bytes are others than its own manifest says; a text that is not UTF-8 "
        "is an internal error.",
    ),
    "python-sdk-text": _defect(
        "F6",
        "The Python SDK's `FileResource` rewrites text",
        "A byte order mark is dropped, line ends become `\\n`, and a text that is not UTF-8 is an internal "
        "error. Where an index promised a digest, our client refuses the bytes; without a "
        "digest it cannot know.",
    ),
    "inspector-kept": _defect(
        "F5",
        "MCP Inspector and `|+`",
        "It cuts the frontmatter before its last line break and reports a difference that is not there.",
    ),
    "conformance-kept": _defect(
        "F5",
        "The conformance suite and `|+`",
        "The same as the Inspector's: `sep-2640-entry-frontmatter-identical` fails.",
    ),
    "fast-agent-yaml": _defect(
        "F4", "fast-agent reads YAML 1.1", "It compares its reading with the entry and declines an honest skill."
    ),
    "fast-agent-bom": _defect(
        "F6",
        "fast-agent and a byte order mark",
        "It does not find the frontmatter behind it and declines the skill.",
    ),
    "agent-framework-names": _defect(
        "U7",
        "Agent Framework does not encode names",
        "It puts a file's name into a URI unchanged: `#`, `?` and `%` then mean something else.",
    ),
    "agent-framework-empty": _defect(
        "R1", "Agent Framework and empty files", "A file of no bytes is read as `None`, as if there were no file."
    ),
}

_EXT_SKILLS = {
    "bom": "ext-skills-bom",
    "kept": "ext-skills-kept",
    "bytes": "ext-skills-text",
    "names": "ext-skills-names",
}
_FILE_RESOURCE = dict.fromkeys(("crlf", "bom", "bytes"), "python-sdk-text")

# By server: the explanation for each feature that it has otherwise.
NOTES: dict[str, dict[str, str]] = {
    "typescript": {},
    "ext-skills": _EXT_SKILLS,
    "ext-skills-0.12": {
        **_EXT_SKILLS,
        "limits": "ext-skills-0.12-large",
        "generated": "ext-skills-0.12-generation",
    },
    "fastmcp": {
        "yaml": "fastmcp-yaml",
        "block": "fastmcp-block",
        "kept": "fastmcp-block",
        "names": "reserved-name",
    },
    "fastmcp-old": {
        "crlf": "fastmcp-old-text",
        "bytes": "fastmcp-old-text",
        "nested": "fastmcp-old-depth",
        "shared": "fastmcp-old-depth",
        "names": "reserved-name",
    },
    "bare-python": _FILE_RESOURCE,
    "bare-typescript": {},
    "index": {"bom": "python-sdk-text"},
}


def hurt(paths: Iterable[str]) -> set[str]:
    """The features that fail with some paths of the disputed tree."""
    folders = {path.partition("/")[0] for path in paths}
    return {TRAITS[folder] for folder in folders if folder in TRAITS}


def disputed(peer: str) -> set[str]:
    """The features of the disputed tree that a server is said to have otherwise."""
    return NOTES[peer].keys() & set(TRAITS.values())
