"""Diagnostics: what is wrong with a skill or a tree, where, by which rule, and how to mend it.

``KINDS`` is the whole list. A kind is an ``error`` if it breaks a rule and a ``warning`` if it only makes
trouble likely; ``refuses`` says that a server leaves the skill out because of it (F7: few do).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from skillwire.errors import FormatError

Severity = Literal["error", "warning"]


class Position(NamedTuple):
    """A place in a text, counted from 1."""

    line: int
    column: int


class Kind(NamedTuple):
    """What one reference stands for."""

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
    "frontmatter-too-large": Kind("B1", "error", True, "The frontmatter is larger than we read"),
    "encoding-invalid": Kind("F6", "error", True, "SKILL.md is not UTF-8"),
    "yaml-invalid": Kind("F1", "error", True, "The frontmatter is not YAML"),
    "yaml-alias": Kind("F4", "error", True, "The frontmatter uses anchors or aliases"),
    "yaml-tag": Kind("F4", "error", True, "The frontmatter uses tags"),
    "yaml-key": Kind("F4", "error", True, "A key of the frontmatter is not text"),
    "yaml-duplicate-key": Kind("F4", "error", True, "A key of the frontmatter is written twice"),
    "yaml-number": Kind("F4", "error", True, "A number has no form in JSON"),
    "yaml-too-deep": Kind("B1", "error", True, "The frontmatter nests too deep"),
    # Fields
    "name-missing": Kind("F2", "error", True, "There is no name"),
    "name-invalid": Kind("F2", "error", True, "The name has characters it may not have"),
    "name-mismatch": Kind("U3", "error", True, "The name differs from the folder's"),
    "description-missing": Kind("F3", "error", True, "There is no description"),
    "description-blank": Kind("F3", "error", False, "The description is blank"),
    "description-too-long": Kind("F3", "error", False, "The description is too long"),
    "license-invalid": Kind("F3", "error", False, "The license is not text"),
    "compatibility-invalid": Kind("F3", "error", False, "The compatibility is not a short text"),
    "metadata-invalid": Kind("F3", "error", False, "The metadata holds something that is not text"),
    "allowed-tools-invalid": Kind("F3", "error", False, "The allowed tools are not one line of text"),
    "declared-invalid": Kind("P6", "warning", False, "A field that other dialects show has another shape"),
    # Content
    "body-empty": Kind("F1", "warning", False, "There are no instructions below the frontmatter"),
    "link-broken": Kind("U6", "error", False, "A link points at a file that the skill does not have"),
    "link-outside": Kind("U6", "error", False, "A link leaves the skill's folder"),
    "hidden-text": Kind("B6", "warning", False, "Text that a person does not see and a model does"),
    # Files and folders
    "skill-file-case": Kind("F1", "error", True, "SKILL.md is written in another case"),
    "skill-file-kind": Kind("F1", "error", True, "SKILL.md is not a regular file"),
    "over-limit": Kind("E6", "warning", False, "The skill is larger than every host must accept"),
    "too-large": Kind("B1", "error", True, "The skill is larger than we serve"),
    "too-deep": Kind("B1", "error", True, "Folders nest deeper than we look"),
    "too-many-entries": Kind("B1", "error", True, "The tree has more files than we look at"),
    "link-skipped": Kind("E4", "warning", False, "A symbolic link inside the tree was left out"),
    "link-escape": Kind("E4", "error", False, "A symbolic link leaves the tree"),
    "special-file": Kind("B1", "warning", False, "A device, pipe or socket was left out"),
    "file-name-invalid": Kind("U7", "error", True, "A file's name cannot be part of a URI"),
    "path-collision": Kind("B5", "error", True, "Two names differ only in case or Unicode form"),
    "unreadable": Kind("R2", "error", True, "A file or folder could not be read"),
    "vanished": Kind("R2", "warning", False, "A file went away while it was being read"),
    "settings-invalid": Kind("R4", "error", False, "The file skillwire.toml has unknown keys or wrong values"),
    "settings-unmatched": Kind("R4", "warning", False, "The file skillwire.toml names a skill that is not there"),
    # Archives
    "archive-refused": Kind("I3", "error", True, "An archive holds what may not be in one"),
    "archive-too-large": Kind("I3", "error", True, "An archive unpacks to more than we serve"),
    # Catalogs
    "catalog-collision": Kind("N1", "warning", False, "Two sources hold a skill at one path"),
    "generator-failed": Kind("R2", "error", True, "The function that makes the skill failed"),
    # Servers
    "dependency-missing": Kind("P3", "warning", False, "A skill depends on what its server does not offer"),
    "entry-invalid": Kind("E1", "error", True, "A server lists an entry that breaks a rule"),
    "entry-repeated": Kind("E5", "error", True, "A server lists one URI twice"),
    "entry-type-unknown": Kind("I1", "warning", False, "An index has an entry of a type that we do not know"),
    "entry-template": Kind("I1", "warning", False, "A server lists a template instead of a skill"),
    "listing-partial": Kind("B3", "error", True, "A server's listing did not end within the bounds"),
    "child-invalid": Kind("D1", "error", True, "A server lists something in a directory that is not inside it"),
    # Gateways
    "upstream-away": Kind("L2", "error", True, "An upstream cannot be reached and was never listed"),
    "upstream-stale": Kind("L2", "warning", False, "An upstream does not answer; its last listing is served"),
    "upstream-partial": Kind("B3", "warning", False, "An upstream did not list all of its skills"),
    "approval-missing": Kind("A1", "error", True, "A skill waits for a person's yes"),
    "snapshot-failed": Kind("V7", "warning", False, "A skill could not be read whole, so that it stays dynamic"),
}


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One problem. ``file`` is a path inside the tree that was checked; ``source`` is the line it is about.

    ``broken`` is the rule's id where the kind alone does not tell it. ``other`` is the path of another skill that
    the message names: whoever may not see that one is not told. ``detail`` divides a reference further, for
    programs: of ``hidden-text``, the ``HiddenKind``. ``listed`` is false for a skill that would not be listed: a
    caller who does not know it is not told of it.
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
        """What the reference stands for."""
        return KINDS[self.reference]

    @property
    def rule(self) -> str:
        """The id of the rule that is broken."""
        return self.broken or self.kind.rule

    @property
    def severity(self) -> Severity:
        """``error`` or ``warning``."""
        return self.kind.severity

    @property
    def refuses(self) -> bool:
        """Whether a server leaves the skill out for it."""
        return self.kind.refuses

    def under(self, folder: str) -> Diagnostic:
        """The same, for a tree that is mounted at ``folder``."""
        skill = f"{folder}/{self.skill}" if self.skill else self.skill
        other = f"{folder}/{self.other}" if self.other else self.other
        return replace(self, file=f"{folder}/{self.file}" if self.file else folder, skill=skill, other=other)


def from_error(error: FormatError, file: str) -> Diagnostic:
    """The diagnostic for an error that was raised while reading ``file``."""
    return Diagnostic(error.reference, error.message, error.hint, file=file, line=error.line, column=error.column)
