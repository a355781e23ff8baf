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


class DiagnosticKind(NamedTuple):
    """The rule, severity, effect and title of one reference."""

    rule: str
    severity: Severity
    refuses: bool
    title: str


KINDS: dict[str, DiagnosticKind] = {
    # SKILL.md cannot be read
    "frontmatter-missing": DiagnosticKind("F1", "error", True, "SKILL.md does not begin with frontmatter"),
    "frontmatter-unclosed": DiagnosticKind("F1", "error", True, "The frontmatter has no closing line"),
    "frontmatter-empty": DiagnosticKind("F1", "error", True, "The frontmatter holds no fields"),
    "frontmatter-not-mapping": DiagnosticKind("F1", "error", True, "The frontmatter is not a mapping of fields"),
    "frontmatter-too-large": DiagnosticKind("B1", "error", True, "The frontmatter is too large"),
    "encoding-invalid": DiagnosticKind("F6", "error", True, "SKILL.md is not UTF-8"),
    "yaml-invalid": DiagnosticKind("F1", "error", True, "The frontmatter is not valid YAML"),
    "yaml-alias": DiagnosticKind("F4", "error", True, "The frontmatter uses anchors or aliases"),
    "yaml-tag": DiagnosticKind("F4", "error", True, "The frontmatter uses tags"),
    "yaml-key": DiagnosticKind("F4", "error", True, "A key of the frontmatter is not text"),
    "yaml-duplicate-key": DiagnosticKind("F4", "error", True, "A key of the frontmatter is written twice"),
    "yaml-number": DiagnosticKind("F4", "error", True, "JSON cannot express a number"),
    "yaml-too-deep": DiagnosticKind("B1", "error", True, "The frontmatter is nested too deeply"),
    # Fields
    "name-missing": DiagnosticKind("F2", "error", True, "The name is missing"),
    "name-invalid": DiagnosticKind("F2", "error", True, "The name has invalid characters"),
    "name-mismatch": DiagnosticKind("U3", "error", True, "The name differs from the name of the folder"),
    "description-missing": DiagnosticKind("F3", "error", True, "The description is missing"),
    "description-blank": DiagnosticKind("F3", "error", False, "The description is blank"),
    "description-too-long": DiagnosticKind("F3", "error", False, "The description is too long"),
    "license-invalid": DiagnosticKind("F3", "error", False, "The license is not text"),
    "compatibility-invalid": DiagnosticKind("F3", "error", False, "The compatibility is not a short text"),
    "metadata-invalid": DiagnosticKind("F3", "error", False, "A value of the metadata is not text"),
    "allowed-tools-invalid": DiagnosticKind("F3", "error", False, "The allowed tools are not one line of text"),
    "declared-invalid": DiagnosticKind("P6", "warning", False, "A field for other dialects is invalid"),
    # Content
    "body-empty": DiagnosticKind("F1", "warning", False, "The skill has no instructions below the frontmatter"),
    "link-broken": DiagnosticKind("U6", "error", False, "A link points to a file that does not exist"),
    "link-outside": DiagnosticKind("U6", "error", False, "A link leaves the skill's folder"),
    "hidden-text": DiagnosticKind("B6", "warning", False, "Hidden text that people do not see and models read"),
    "hidden-placeholder": DiagnosticKind(
        "B6", "note", False, "Short comments that look like placeholders of a template"
    ),
    # Files and folders
    "skill-file-missing": DiagnosticKind("F1", "error", True, "A skill has no SKILL.md"),
    "skill-file-case": DiagnosticKind("F1", "error", True, "The name SKILL.md has the wrong case"),
    "skill-file-kind": DiagnosticKind("F1", "error", True, "SKILL.md is not a regular file"),
    "over-limit": DiagnosticKind("E6", "warning", False, "The skill is larger than hosts are required to accept"),
    "too-large": DiagnosticKind("B1", "error", True, "The skill is too large to serve"),
    "too-deep": DiagnosticKind("B1", "error", True, "Folders are nested too deeply"),
    "too-many-entries": DiagnosticKind("B1", "error", True, "The tree has too many files"),
    "link-skipped": DiagnosticKind("E4", "warning", False, "A symbolic link inside the tree was skipped"),
    "link-escape": DiagnosticKind("E4", "error", False, "A symbolic link leaves the tree"),
    "special-file": DiagnosticKind("B1", "warning", False, "A device, pipe or socket was skipped"),
    "file-name-invalid": DiagnosticKind("U7", "error", True, "A file name cannot be part of a URI"),
    "path-collision": DiagnosticKind("B5", "error", True, "Two names differ only in case or Unicode form"),
    "unreadable": DiagnosticKind("R2", "error", True, "A file or folder could not be read"),
    "vanished": DiagnosticKind("R2", "warning", False, "A file disappeared while it was being read"),
    "settings-invalid": DiagnosticKind(
        "R4", "error", False, "The file skillwire.toml has unknown keys or wrong values"
    ),
    "settings-unmatched": DiagnosticKind("R4", "warning", False, "The file skillwire.toml names an unknown skill"),
    # Archives
    "archive-refused": DiagnosticKind("I3", "error", True, "An archive has forbidden content"),
    "archive-too-large": DiagnosticKind("I3", "error", True, "An archive is too large, or unpacks to too much"),
    # Catalogs
    "catalog-collision": DiagnosticKind("N1", "warning", False, "Two sources have a skill at the same path"),
    "generator-failed": DiagnosticKind("R2", "error", True, "The function that generates the skill failed"),
    # Servers
    "dependency-missing": DiagnosticKind(
        "P3", "warning", False, "A skill depends on something its server does not offer"
    ),
    "entry-invalid": DiagnosticKind("E1", "error", True, "A server lists an entry that breaks a rule"),
    "entry-repeated": DiagnosticKind("E5", "error", True, "A server lists the same URI twice"),
    "entry-type-unknown": DiagnosticKind("I1", "warning", False, "An index has an entry of an unknown type"),
    "entry-template": DiagnosticKind("I1", "warning", False, "A server lists a template instead of a skill"),
    "listing-partial": DiagnosticKind("B3", "error", True, "A server's listing exceeds the limits"),
    "child-invalid": DiagnosticKind(
        "D1", "error", True, "A server lists something in a directory that is outside it"
    ),
    # Gateways
    "upstream-away": DiagnosticKind("L2", "error", True, "An upstream cannot be reached and was never listed"),
    "upstream-stale": DiagnosticKind(
        "L2", "warning", False, "An upstream does not respond; its last listing is served"
    ),
    "upstream-partial": DiagnosticKind("B3", "warning", False, "An upstream did not list all of its skills"),
    "approval-missing": DiagnosticKind("A1", "error", True, "A skill is waiting for approval"),
    "snapshot-failed": DiagnosticKind(
        "V7", "warning", False, "A skill could not be read completely, so it stays dynamic"
    ),
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
    def kind(self) -> DiagnosticKind:
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
