"""Diagnostics: problems of a skill or a tree, with their place, their rule and a fix.

``KINDS`` lists every kind of problem. A kind is an ``error`` if it breaks a rule, a ``warning`` if it is only
likely to cause trouble, and a ``note`` if it is usually intended. If ``refuses`` is true, a server does not serve
the skill (F7: few kinds do).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from skillwire.errors import FormatError

Severity = Literal["error", "warning", "note"]


class Position(NamedTuple):
    """A place in a text, counted from 1."""

    line: int
    column: int


class Kind(NamedTuple):
    """The rule, severity, effect and title of one reference."""

    rule: str
    severity: Severity
    refuses: bool
    title: str


KINDS: dict[str, Kind] = {
    # SKILL.md cannot be read
    "frontmatter-missing": Kind("F1", "error", True, "SKILL.md does not begin with frontmatter"),
    "frontmatter-unclosed": Kind("F1", "error", True, "The frontmatter has no closing line"),
    "frontmatter-empty": Kind("F1", "error", True, "The frontmatter holds no fields"),
    "frontmatter-not-mapping": Kind("F1", "error", True, "The frontmatter is not a mapping of fields"),
    "frontmatter-too-large": Kind("B1", "error", True, "The frontmatter is too large"),
    "encoding-invalid": Kind("F6", "error", True, "SKILL.md is not UTF-8"),
    "yaml-invalid": Kind("F1", "error", True, "The frontmatter is not valid YAML"),
    "yaml-alias": Kind("F4", "error", True, "The frontmatter uses anchors or aliases"),
    "yaml-tag": Kind("F4", "error", True, "The frontmatter uses tags"),
    "yaml-key": Kind("F4", "error", True, "A key of the frontmatter is not text"),
    "yaml-duplicate-key": Kind("F4", "error", True, "A key of the frontmatter is written twice"),
    "yaml-number": Kind("F4", "error", True, "JSON cannot express a number"),
    "yaml-too-deep": Kind("B1", "error", True, "The frontmatter is nested too deeply"),
    # Fields
    "name-missing": Kind("F2", "error", True, "The name is missing"),
    "name-invalid": Kind("F2", "error", True, "The name has invalid characters"),
    "name-mismatch": Kind("U3", "error", True, "The name differs from the name of the folder"),
    "description-missing": Kind("F3", "error", True, "The description is missing"),
    "description-blank": Kind("F3", "error", False, "The description is blank"),
    "description-too-long": Kind("F3", "error", False, "The description is too long"),
    "license-invalid": Kind("F3", "error", False, "The license is not text"),
    "compatibility-invalid": Kind("F3", "error", False, "The compatibility is not a short text"),
    "metadata-invalid": Kind("F3", "error", False, "A value of the metadata is not text"),
    "allowed-tools-invalid": Kind("F3", "error", False, "The allowed tools are not one line of text"),
    "declared-invalid": Kind("P6", "warning", False, "A field for other dialects is invalid"),
    # Content
    "body-empty": Kind("F1", "warning", False, "The skill has no instructions below the frontmatter"),
    "link-broken": Kind("U6", "error", False, "A link points to a file that does not exist"),
    "link-outside": Kind("U6", "error", False, "A link leaves the skill's folder"),
    "hidden-text": Kind("B6", "warning", False, "Hidden text that people do not see and models read"),
    "hidden-placeholder": Kind("B6", "note", False, "Short comments that look like placeholders of a template"),
    # Files and folders
    "skill-file-missing": Kind("F1", "error", True, "A skill has no SKILL.md"),
    "skill-file-case": Kind("F1", "error", True, "The name SKILL.md has the wrong case"),
    "skill-file-kind": Kind("F1", "error", True, "SKILL.md is not a regular file"),
    "over-limit": Kind("E6", "warning", False, "The skill is larger than hosts are required to accept"),
    "too-large": Kind("B1", "error", True, "The skill is too large to serve"),
    "too-deep": Kind("B1", "error", True, "Folders are nested too deeply"),
    "too-many-entries": Kind("B1", "error", True, "The tree has too many files"),
    "link-skipped": Kind("E4", "warning", False, "A symbolic link inside the tree was skipped"),
    "link-escape": Kind("E4", "error", False, "A symbolic link leaves the tree"),
    "special-file": Kind("B1", "warning", False, "A device, pipe or socket was skipped"),
    "file-name-invalid": Kind("U7", "error", True, "A file name cannot be part of a URI"),
    "path-collision": Kind("B5", "error", True, "Two names differ only in case or Unicode form"),
    "unreadable": Kind("R2", "error", True, "A file or folder could not be read"),
    "vanished": Kind("R2", "warning", False, "A file disappeared while it was being read"),
    "settings-invalid": Kind("R4", "error", False, "The file skillwire.toml has unknown keys or wrong values"),
    "settings-unmatched": Kind("R4", "warning", False, "The file skillwire.toml names an unknown skill"),
    # Archives
    "archive-refused": Kind("I3", "error", True, "An archive has forbidden content"),
    "archive-too-large": Kind("I3", "error", True, "An archive is too large, or unpacks to too much"),
    # Catalogs
    "catalog-collision": Kind("N1", "warning", False, "Two sources have a skill at the same path"),
    "generator-failed": Kind("R2", "error", True, "The function that generates the skill failed"),
    # Servers
    "dependency-missing": Kind("P3", "warning", False, "A skill depends on something its server does not offer"),
    "entry-invalid": Kind("E1", "error", True, "A server lists an entry that breaks a rule"),
    "entry-repeated": Kind("E5", "error", True, "A server lists the same URI twice"),
    "entry-type-unknown": Kind("I1", "warning", False, "An index has an entry of an unknown type"),
    "entry-template": Kind("I1", "warning", False, "A server lists a template instead of a skill"),
    "listing-partial": Kind("B3", "error", True, "A server's listing exceeds the limits"),
    "child-invalid": Kind("D1", "error", True, "A server lists something in a directory that is outside it"),
    # Gateways
    "upstream-away": Kind("L2", "error", True, "An upstream cannot be reached and was never listed"),
    "upstream-stale": Kind("L2", "warning", False, "An upstream does not respond; its last listing is served"),
    "upstream-partial": Kind("B3", "warning", False, "An upstream did not list all of its skills"),
    "approval-missing": Kind("A1", "error", True, "A skill is waiting for approval"),
    "snapshot-failed": Kind("V7", "warning", False, "A skill could not be read completely, so it stays dynamic"),
}


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem. ``file`` is a path inside the checked tree; ``source`` is the affected line of text.

    ``broken`` is the id of the rule if it differs from that of the kind. ``other`` is the path of another skill
    that the message names: callers that may not see that skill do not get the diagnostic. ``detail`` is a finer
    classification for programs: the ``HiddenKind`` of ``hidden-text``. ``listed`` is false for a skill that would
    not be listed: callers that do not know the skill do not get the diagnostic.
    """

    reference: str
    message: str
    hint: str
    file: str
    line: int | None = None
    column: int | None = None
    source: str | None = None
    skill: str | None = None
    broken: str = ""
    other: str | None = None
    detail: str = ""
    listed: bool = True

    @property
    def kind(self) -> Kind:
        """The kind of the reference."""
        return KINDS[self.reference]

    @property
    def rule(self) -> str:
        """The id of the rule that is broken."""
        return self.broken or self.kind.rule

    @property
    def severity(self) -> Severity:
        """``error``, ``warning`` or ``note``."""
        return self.kind.severity

    @property
    def refuses(self) -> bool:
        """Whether a server does not serve the skill because of it."""
        return self.kind.refuses

    def under(self, folder: str) -> Diagnostic:
        """The diagnostic for a tree that is mounted at ``folder``."""
        skill = f"{folder}/{self.skill}" if self.skill else self.skill
        other = f"{folder}/{self.other}" if self.other else self.other
        return replace(self, file=f"{folder}/{self.file}" if self.file else folder, skill=skill, other=other)


def from_error(error: FormatError, file: str) -> Diagnostic:
    """The diagnostic for an error that reading ``file`` raised."""
    return Diagnostic(error.reference, error.message, error.hint, file=file, line=error.line, column=error.column)
