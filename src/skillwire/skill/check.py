"""Checks the text of a skill: links (U6), hidden text (B6), an empty body.

The caller passes the text of a file and the names of all files and folders of the skill.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillwire.errors import FormatError
from skillwire.skill.diagnostics import Diagnostic
from skillwire.skill.hidden import HiddenKind
from skillwire.skill.markdown import read_text
from skillwire.skill.uri import DEFAULT_SCHEME, SkillUri, resolve_reference

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

_EXCERPT = 160
_MAX_FINDS = 200
_MAX_LINKS = 10_000


@dataclass(frozen=True, slots=True)
class SkillText:
    """One text file of a skill: ``skill`` is the skill's path, ``file`` the path inside it."""

    skill: str
    file: str
    text: str
    names: Container[str]
    """Paths of all files and folders of the skill; ``""`` is its root."""


def check_text(document: SkillText) -> Iterator[Diagnostic]:
    """Every problem in one text file of a skill."""
    facts = read_text(document.file, document.text)
    lines = _Lines(document.text)
    for item in facts.hidden[:_MAX_FINDS]:
        excerpt = item.text if len(item.text) <= _EXCERPT else f"{item.text[:_EXCERPT]} …"
        message = f"{item.kind.label}: {excerpt}" if excerpt else item.kind.label
        hint = "remove it, or move it into text that readers of the skill can see"
        yield _at(document, lines, item.offset, "hidden-text", message, hint, item.kind)
    if len(facts.hidden) > _MAX_FINDS:
        message = f"and {len(facts.hidden) - _MAX_FINDS} more of the same kinds in this file"
        offset = facts.hidden[_MAX_FINDS].offset
        yield _at(document, lines, offset, "hidden-text", message, "look at the whole file", HiddenKind.MORE)
    for link in facts.links[:_MAX_LINKS]:
        problem = _link_problem(document, link.target)
        if problem is not None:
            yield _at(document, lines, link.offset, *problem)


def check_body(skill: str, body: str, line: int) -> Iterator[Diagnostic]:
    """A warning if the skill has no instructions."""
    if not body.strip():
        yield Diagnostic(
            "body-empty",
            "SKILL.md has no text below the frontmatter",
            "write the instructions the agent should follow",
            file=f"{skill}/SKILL.md",
            line=line,
            skill=skill,
        )


def source_line(text: str, line: int) -> str | None:
    """Line number ``line`` of ``text``."""
    lines = text.split("\n", line)
    return lines[line - 1].rstrip("\r") if len(lines) >= line else None


def _link_problem(document: SkillText, target: str) -> tuple[str, str, str] | None:
    root = SkillUri(DEFAULT_SCHEME, tuple(document.skill.split("/")))
    bases = [SkillUri(root.scheme, (*root.segments, *document.file.split("/")))]
    if document.file != "SKILL.md":  # many authors write all links relative to the skill's root
        bases.append(SkillUri(root.scheme, (*root.segments, "SKILL.md")))
    problem: tuple[str, str, str] | None = None
    for base in bases:
        try:
            resolved = resolve_reference(root, base, target)
        except FormatError as error:
            problem = problem or (error.reference, error.message, error.hint)
            continue
        if resolved is None:
            return None
        path = "/".join(resolved.segments[len(root.segments) :])
        if path in document.names:
            return None
        problem = (
            "link-broken",
            f"the skill has no file {path!r:.200}",
            "fix the link, or add the file (names are case-sensitive)",
        )
    return problem


class _Lines:
    """Converts offsets to lines and columns."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0, *(index + 1 for index, character in enumerate(text) if character == "\n")]
        self._sources: dict[int, str] = {}  # shared by all problems in one line

    def at(self, offset: int) -> tuple[int, int, str]:
        line = bisect.bisect_right(self._starts, offset)
        start = self._starts[line - 1]
        if line not in self._sources:
            end = self._text.find("\n", start)
            self._sources[line] = self._text[start : end if end >= 0 else None].rstrip("\r")
        return line, offset - start + 1, self._sources[line]


def _at(
    document: SkillText, lines: _Lines, offset: int, reference: str, message: str, hint: str, detail: str = ""
) -> Diagnostic:
    line, column, source = lines.at(offset)
    file = f"{document.skill}/{document.file}"
    return Diagnostic(reference, message, hint, file, line, column, source, document.skill, detail=detail)
