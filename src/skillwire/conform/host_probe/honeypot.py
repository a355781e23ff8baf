"""The bait: four origins with skills that tell the truth, lie, hide files, point elsewhere, or never end.

Everything a host may do wrong here shows on the wire. The bytes are always honest; the entries are spoiled on
their way out, and so are the capabilities and the listing of the origins that lie in those.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skillwire.catalog.memory import Skill
from skillwire.client.shapes import as_list, as_object
from skillwire.skill.digest import digest_of
from skillwire.skill.entry import SkillMeta
from skillwire.skill.uri import format_uri, skill_md_uri

if TYPE_CHECKING:
    from collections.abc import Callable

    Entry = dict[str, Any]

GUIDE = skill_md_uri("guide")
GUIDE_REFERENCES = format_uri("guide/references")
MENTIONED = format_uri("guide/references/steps.md")
UNMENTIONED = format_uri("guide/references/background.md")
UNLISTED = format_uri("guide/references/unlisted.md")
SPARE = skill_md_uri("spare")
WRONG_DIGEST = skill_md_uri("wrong-digest")
WRONG_SIZE = skill_md_uri("wrong-size")
WRONG_FRONTMATTER = skill_md_uri("wrong-frontmatter")
GENERATED = skill_md_uri("generated")
VAULT = skill_md_uri("vault")
REPEATED = "again"
ENOUGH = 50  # times that a cursor is repeated before the listing ends after all

_GUIDE_BODY = """\
Follow [the steps](references/steps.md). There is [more](references/unlisted.md), and another skill at
skill://vault/SKILL.md. Settings of this machine are in [this file](file:///etc/hostname).
"""


@dataclass(frozen=True, slots=True)
class Origin:
    """One server. ``settings`` is what it declares of the extension; ``None`` is a server without skills."""

    label: str
    skills: tuple[Skill, ...] = ()
    settings: dict[str, Any] | None = field(default_factory=dict[str, Any])
    repeats: bool = False

    def spoiled(self, method: str, result: dict[str, Any]) -> dict[str, Any]:
        """``result`` as this origin gives it."""
        match method:
            case "initialize" | "server/discover":
                return {**result, "capabilities": self._declared(as_object(result.get("capabilities")))}
            case "skills/list":
                skills = [spoiled_entry(as_object(entry)) for entry in as_list(result.get("skills"))]
                more = {"nextCursor": REPEATED} if self.repeats else {}
                return {**result, "skills": skills, **more}
            case "skills/get":
                return {**result, "skill": spoiled_entry(as_object(result.get("skill")))}
            case _:
                return result

    def _declared(self, capabilities: dict[str, Any]) -> dict[str, Any]:
        extensions = as_object(capabilities.get("extensions"))
        rest = {key: value for key, value in capabilities.items() if key != "extensions"}
        if self.settings is None:
            return rest
        return {**rest, "extensions": {key: dict(self.settings) for key in extensions}}


def spoiled_entry(entry: Entry) -> Entry:
    """The entry with its lie, if it has one."""
    spoil = _LIES.get(entry.get("uri", ""))
    return entry if spoil is None else spoil(entry)


def _with_file(entry: Entry, uri: str, **fields: Any) -> Entry:
    files = [{**file, **fields} if file["uri"] == uri else file for file in entry["resources"]]
    return {**entry, "resources": files}


_LIES: dict[str, Callable[[Entry], Entry]] = {
    GUIDE: lambda entry: {**entry, "resources": [file for file in entry["resources"] if file["uri"] != UNLISTED]},
    WRONG_DIGEST: lambda entry: _with_file(entry, WRONG_DIGEST, digest=digest_of(b"something else")),
    WRONG_SIZE: lambda entry: _with_file(entry, WRONG_SIZE, size=7),
    WRONG_FRONTMATTER: lambda entry: {
        **entry,
        "frontmatter": {**entry["frontmatter"], "description": "Says one thing in its entry."},
    },
    GENERATED: lambda entry: {**entry, "resources": "dynamic"},
}


def _skill(path: str, description: str, body: str = "Do it.\n", **files: str) -> Skill:
    text = f"---\nname: {path}\ndescription: {description}\n---\n\n{body}"
    references = {f"references/{name}.md": f"# {name}\n" for name in files or {"more": ""}}
    return Skill(path, {"SKILL.md": text, **references})


_SECRET = Skill(
    "vault", {"SKILL.md": "---\nname: vault\ndescription: Unlisted.\n---\n\nx\n"}, SkillMeta(listed=False)
)

FIRST = Origin(
    "watched",
    (
        _skill("guide", "How to do the usual thing.", _GUIDE_BODY, steps="", background="", unlisted=""),
        _skill("generated", "Made anew on each read."),
        _skill("spare", "Needed by nobody, bait of a conformance run; do not load it."),
        _skill("wrong-digest", "Has other bytes than its entry says."),
        _skill("wrong-frontmatter", "Says another thing in its file."),
        _skill("wrong-size", "Has more bytes than its entry says."),
    ),
    {"directoryRead": True},
)
SECOND = Origin("watched-second", (_skill("partner", "Of another origin."), _SECRET))
PLAIN = Origin("watched-plain", settings=None)
REPEATING = Origin("watched-repeating", (_skill("again", "Listed for ever."),), repeats=True)
ORIGINS = (FIRST, SECOND, PLAIN, REPEATING)
LABELS = {origin.label: origin for origin in ORIGINS}
