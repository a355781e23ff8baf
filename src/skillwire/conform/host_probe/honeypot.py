"""The bait: four servers with correct skills, wrong entries, unlisted files, foreign links and an endless list.

Every mistake that a host can make here shows on the wire. The bytes of files are always correct. Entries,
capabilities and lists are falsified in the response.
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
ENOUGH = 50  # repetitions of a cursor before the list ends

_GUIDE_BODY = """\
Follow [the steps](references/steps.md). There is [more](references/unlisted.md), and another skill at
skill://vault/SKILL.md. Settings of this machine are in [this file](file:///etc/hostname).
"""


@dataclass(frozen=True, slots=True)
class BaitServer:
    """One server. ``settings`` is its declaration of the extension; ``None`` is a server without skills."""

    label: str
    skills: tuple[Skill, ...] = ()
    settings: dict[str, Any] | None = field(default_factory=dict[str, Any])
    repeats: bool = False

    def falsified(self, method: str, result: dict[str, Any]) -> dict[str, Any]:
        """The falsified result of a method."""
        match method:
            case "initialize" | "server/discover":
                return {**result, "capabilities": self._declared(as_object(result.get("capabilities")))}
            case "skills/list":
                skills = [falsified_entry(as_object(entry)) for entry in as_list(result.get("skills"))]
                more = {"nextCursor": REPEATED} if self.repeats else {}
                return {**result, "skills": skills, **more}
            case "skills/get":
                return {**result, "skill": falsified_entry(as_object(result.get("skill")))}
            case _:
                return result

    def _declared(self, capabilities: dict[str, Any]) -> dict[str, Any]:
        extensions = as_object(capabilities.get("extensions"))
        rest = {key: value for key, value in capabilities.items() if key != "extensions"}
        if self.settings is None:
            return rest
        return {**rest, "extensions": {key: dict(self.settings) for key in extensions}}


def falsified_entry(entry: Entry) -> Entry:
    """The entry with its falsification, if it has one."""
    falsify = _FALSIFICATIONS.get(entry.get("uri", ""))
    return entry if falsify is None else falsify(entry)


def _with_file(entry: Entry, uri: str, **fields: Any) -> Entry:
    files = [{**file, **fields} if file["uri"] == uri else file for file in entry["resources"]]
    return {**entry, "resources": files}


_FALSIFICATIONS: dict[str, Callable[[Entry], Entry]] = {
    GUIDE: lambda entry: {**entry, "resources": [file for file in entry["resources"] if file["uri"] != UNLISTED]},
    WRONG_DIGEST: lambda entry: _with_file(entry, WRONG_DIGEST, digest=digest_of(b"something else")),
    WRONG_SIZE: lambda entry: _with_file(entry, WRONG_SIZE, size=7),
    WRONG_FRONTMATTER: lambda entry: {
        **entry,
        "frontmatter": {**entry["frontmatter"], "description": "Has this description in its entry."},
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

FIRST = BaitServer(
    "watched",
    (
        _skill("guide", "How to do the usual thing.", _GUIDE_BODY, steps="", background="", unlisted=""),
        _skill("generated", "Generated on each read."),
        _skill("spare", "Bait of a conformance run; do not load it."),
        _skill("wrong-digest", "Does not match the digest in its entry."),
        _skill("wrong-frontmatter", "Has a different description in its file."),
        _skill("wrong-size", "Does not match the size in its entry."),
    ),
    {"directoryRead": True},
)
SECOND = BaitServer("watched-second", (_skill("partner", "Belongs to another server."), _SECRET))
PLAIN = BaitServer("watched-plain", settings=None)
REPEATING = BaitServer("watched-repeating", (_skill("again", "Its list never ends."),), repeats=True)
SERVERS = (FIRST, SECOND, PLAIN, REPEATING)
LABELS = {server.label: server for server in SERVERS}
