"""Checks the text of a skill: links (U6), hidden text (B6), an empty body (F1).

The caller passes the text of a file and the names of all files and folders of the skill.
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from skillwire.errors import FormatError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.skill.diagnostics import Diagnostic
from skillwire.skill.frontmatter import find_frontmatter
from skillwire.skill.hidden import HiddenKind, HiddenText
from skillwire.skill.hidden_html import count_name_parts
from skillwire.skill.markdown import read_text
from skillwire.skill.uri import DEFAULT_SCHEME, SKILL_MD, SkillUri, resolve_reference

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

_EXCERPT = 160
_MAX_FINDS = 200
_MAX_LINKS = 10_000
_MOST_WORDS = 2  # of a placeholder, and of what such a comment can say
_MOST_PARTS = 4
_MOST_PLACEHOLDER_PARTS = 24  # of all placeholders of a file: more could be a text in pieces
_LONGEST_PLACEHOLDER = 40


@dataclass(frozen=True, slots=True)
class SkillText:
    """One text file of a skill: ``skill`` is the skill's path, ``file`` the path inside it."""

    skill: str
    file: str
    text: str
    names: Container[str]
    """Paths of all files and folders of the skill; ``""`` is its root."""


def check_skill(skill: str, files: Iterable[tuple[str, bytes]], names: Container[str]) -> Iterator[Diagnostic]:
    """Every problem in the text files of the skill at the path ``skill``. ``names`` are as in ``SkillText``."""
    for file, data in files:
        if len(data) <= DEFAULT_LIMITS.max_checked_text and b"\0" not in data:
            with suppress(UnicodeDecodeError):
                yield from check_text(SkillText(skill, file, data.decode(), names))


def check_text(document: SkillText) -> Iterator[Diagnostic]:
    """Every problem in one text file of a skill."""
    place = _Places(document)
    facts = read_text(document.file, document.text)
    placeholders = _placeholders(facts.hidden)
    hidden = [item for item in facts.hidden if item not in placeholders]
    for item in hidden[:_MAX_FINDS]:
        excerpt = item.text if len(item.text) <= _EXCERPT else f"{item.text[:_EXCERPT]} …"
        message = f"{item.kind.label}: {excerpt}" if excerpt else item.kind.label
        hint = "remove it, or move it into text that readers of the skill can see"
        yield place.problem(item.offset, "hidden-text", message, hint, item.kind)
    if len(hidden) > _MAX_FINDS:
        message = f"and {len(hidden) - _MAX_FINDS} more of the same kinds in this file"
        offset = hidden[_MAX_FINDS].offset
        yield place.problem(offset, "hidden-text", message, "look at the whole file", HiddenKind.MORE)
    if placeholders:
        words = ", ".join(dict.fromkeys(item.text for item in placeholders))
        hint = "this is fine for a template; pages do not display these comments"
        yield place.problem(placeholders[0].offset, "hidden-placeholder", f"short HTML comments: {words}", hint)
    for link in facts.links[:_MAX_LINKS]:
        problem = _link_problem(document, link.target)
        if problem is not None:
            yield place.problem(link.offset, *problem)
    if document.file == SKILL_MD:
        yield from _check_body(document)


def source_line(text: str, line: int) -> str | None:
    """Line number ``line`` of ``text``."""
    lines = text.split("\n", line)
    return lines[line - 1].rstrip("\r") if len(lines) >= line else None


def _placeholders(found: list[HiddenText]) -> list[HiddenText]:
    """The comments of a template, such as ``<!-- name -->``. None of them if they have many words together."""
    short = [
        item
        for item in found
        if item.kind is HiddenKind.COMMENT
        and item.text
        and len(item.text) <= _LONGEST_PLACEHOLDER
        and len(item.text.split()) <= _MOST_WORDS
        and count_name_parts(item.text) <= _MOST_PARTS
    ]
    parts = sum(map(count_name_parts, {item.text for item in short}))
    return short if parts <= _MOST_PLACEHOLDER_PARTS else []


def _check_body(document: SkillText) -> Iterator[Diagnostic]:
    data = document.text.encode(errors="surrogatepass")
    found = find_frontmatter(data)
    if found is not None and not data[found[2] :].decode(errors="surrogatepass").strip():
        yield Diagnostic(
            "body-empty",
            "SKILL.md has no text below the frontmatter",
            "write the instructions the agent should follow",
            file=f"{document.skill}/{SKILL_MD}",
            line=data.count(b"\n", 0, found[2]) + 1,
            skill=document.skill,
        )


def _link_problem(document: SkillText, target: str) -> tuple[str, str, str] | None:
    root = SkillUri(DEFAULT_SCHEME, tuple(document.skill.split("/")))
    bases = [SkillUri(root.scheme, (*root.segments, *document.file.split("/")))]
    if document.file != SKILL_MD:  # many authors write all links relative to the skill's root
        bases.append(SkillUri(root.scheme, (*root.segments, SKILL_MD)))
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


class _Places:
    """Makes diagnostics with the lines and columns of offsets."""

    def __init__(self, document: SkillText) -> None:
        self._document = document
        self._starts: list[int] = []  # of lines; made for the first problem
        self._lines: list[str] = []  # one text for all problems in a line

    def problem(self, offset: int, reference: str, message: str, hint: str, detail: str = "") -> Diagnostic:
        if not self._lines:
            self._lines = self._document.text.split("\n")
            self._starts = [0, *accumulate(len(line) + 1 for line in self._lines)]
        line = bisect_right(self._starts, offset, hi=len(self._lines))
        column = offset - self._starts[line - 1] + 1
        file, skill = f"{self._document.skill}/{self._document.file}", self._document.skill
        source = self._lines[line - 1].rstrip("\r")
        return Diagnostic(reference, message, hint, file, line, column, source, skill, detail=detail)
