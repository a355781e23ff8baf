"""The facts about a skill that a person sees before approving it (A3–A5, B6).

The entry has the files, which of them are scripts, the requested tools, and hidden text in fields and names. Files
that the caller has read add the hidden text and the external links in them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import unquote

from skillwire.errors import FormatError
from skillwire.skill.approval import tool_grant
from skillwire.skill.hidden import HiddenFind, HiddenKind, find_hidden_characters
from skillwire.skill.markdown import read_text
from skillwire.skill.uri import SKILL_MD, parse_uri, reference_kind, resolve_reference, skill_root

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from skillwire.skill.entry import SkillEntry
    from skillwire.skill.frontmatter import Json
    from skillwire.skill.markdown import Link

LinkKind: TypeAlias = Literal["web", "machine", "outside"]

_RUNNABLE = (
    ".py", ".sh", ".bash", ".zsh", ".fish", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".ps1", ".bat",
    ".cmd", ".exe", ".dll", ".so", ".dylib", ".jar", ".wasm", ".lua", ".r", ".go", ".rs", ".c", ".app",
    ".scpt", ".command",
)  # fmt: skip
# Fields that give a skill more rights in some hosts, without hyphens, underscores and capitals.
_WIDENING = frozenset(
    {"allowedtools", "hooks", "permissions", "permissionmode", "mcpservers", "model", "agent", "agents"}
)
_MAX_FINDS = 50
_EXCERPT = 160
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://[^\s<>\"'`\\)\]}|]+", re.IGNORECASE)
_MAX_LINKS = 200
_MAX_PLACES = 5
_ORDER: dict[LinkKind, int] = {"machine": 0, "outside": 1, "web": 2}


@dataclass(frozen=True, slots=True)
class ExternalLink:
    """A link that leaves the skill: to the web, to a file of the machine, or out of its folder."""

    target: str
    kind: LinkKind
    places: tuple[str, ...] = ()
    count: int = 0

    @property
    def decoded(self) -> str:
        """The target with its percent-encoded characters, which a model can read, decoded."""
        return unquote(self.target)


@dataclass(frozen=True, slots=True)
class Review:
    """Facts about one skill, for a person."""

    uri: str
    name: str
    description: str
    files: tuple[tuple[str, int | None], ...]
    size: int
    scripts: tuple[str, ...]
    tools: tuple[str, ...]  # as grants: see ``tool_grant``
    widening: Mapping[str, Json]
    nested: tuple[str, ...]
    hidden: tuple[HiddenFind, ...]
    gaps: tuple[str, ...]
    links: tuple[ExternalLink, ...] = ()
    text: str | None = None  # the source of ``SKILL.md``, if it was read for the review


def review_entry(entry: SkillEntry) -> Review:
    """The facts in the entry."""
    paths = [(file.path or file.uri, file.size) for file in entry.files]
    names = [find for path, _ in paths for find in _hidden_in(path, f"the name {path!r:.80}")]
    return Review(
        uri=entry.uri,
        name=entry.name,
        description=entry.description,
        files=tuple(paths),
        size=entry.size,
        scripts=tuple(path for path, _ in paths if _is_script(path)),
        tools=tuple(map(tool_grant, requested_tools(entry))),
        widening={key: value for key, value in entry.frontmatter.items() if _is_widening(key)},
        nested=tuple(path for path, _ in paths if path.endswith(f"/{SKILL_MD}")),
        hidden=_bounded([*_hidden_fields(entry.frontmatter), *names]),
        gaps=tuple(sorted(entry.gaps)),
    )


def with_text(review: Review, path: str, text: str) -> Review:
    """The review with the hidden text and links in one of the skill's files, and the source of ``SKILL.md``."""
    finds: list[HiddenFind] = []
    facts = read_text(path, text)
    for item in facts.hidden[: _MAX_FINDS + 1]:
        line = text.count("\n", 0, item.offset) + 1
        finds.append(HiddenFind(item.kind, f"{path}:{line}", _excerpt(item.text)))
    links = {link.target: link for link in review.links}
    for target, kind, offset in _external_links(review.uri, facts.links, text):
        link = links.get(target, ExternalLink(target, kind))
        if not link.count and len(links) >= _MAX_LINKS:
            finds.insert(0, HiddenFind(HiddenKind.LINKS, path))
            break
        place = (f"{path}:{text.count(chr(10), 0, offset) + 1}",) if link.count < _MAX_PLACES else ()
        links[target] = replace(link, places=link.places + place, count=link.count + 1)
    return replace(
        review,
        hidden=_bounded([*review.hidden, *finds]),
        links=tuple(sorted(links.values(), key=lambda link: (_ORDER[link.kind], link.target))),
        text=text if path == SKILL_MD else review.text,
    )


def with_nested(review: Review, path: str, fields: Mapping[str, Json] | None) -> Review:
    """The review with the requests of a nested skill, which is active too if the whole folder is installed.

    ``fields`` is ``None`` if they could not be parsed. An agent may be more lenient, so a person should look.
    """
    wider: dict[str, Json] = {f"{path}: fields": "cannot be read; look at the file"}
    if fields is not None:
        wider = {f"{path}: {key}": value for key, value in fields.items() if _is_widening(key)}
    return replace(review, widening={**review.widening, **wider})


def with_unread(review: Review, path: str) -> Review:
    """The review with a note that the file at ``path`` is too large to be searched for hidden text."""
    return replace(review, hidden=_bounded([*review.hidden, HiddenFind(HiddenKind.UNREAD, path)]))


def requested_tools(entry: SkillEntry) -> tuple[str, ...]:
    """The tools in ``allowed-tools`` (A4): a request, never a grant."""
    value = entry.frontmatter.get("allowed-tools")
    if isinstance(value, str):
        return tuple(dict.fromkeys(_split_tools(value)))
    if isinstance(value, list):
        return tuple(dict.fromkeys(str(item) for item in value))
    return ()


def _split_tools(text: str) -> Iterator[str]:
    """Split at spaces and commas, except inside parentheses: ``Bash(git add:*)`` is one tool."""
    word, depth = "", 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth <= 0 and (character.isspace() or character == ","):
            if word:
                yield word
            word, depth = "", 0
        else:
            word += character
    if word:
        yield word


def _is_script(path: str) -> bool:
    path = path.lower()
    return path.endswith(_RUNNABLE) or path.startswith("scripts/") or "/scripts/" in path


def _is_widening(key: str) -> bool:
    return key.replace("-", "").replace("_", "").lower() in _WIDENING


def _external_links(skill: str, links: Iterable[Link], text: str) -> Iterator[tuple[str, LinkKind, int]]:
    """The links of a text that leave the skill, and every other URL in it, with offsets."""
    seen: set[str] = set()
    for link in links:
        kind = _link_kind(skill, link.target)
        if kind is not None:
            seen.add(link.target)
            yield link.target, kind, link.offset
    own = f"{parse_uri(skill).scheme}:"
    for match in _URL.finditer(text):
        address = match.group().rstrip(".,;:!?*_")
        if address not in seen and not address.lower().startswith(own):
            yield address, "machine" if address.lower().startswith("file:") else "web", match.start()


def _link_kind(skill: str, target: str) -> LinkKind | None:
    kind = reference_kind(target)
    if kind == "machine":
        return "machine"
    if kind == "elsewhere":
        return None if not target.strip() or target.strip().startswith("#") else "web"
    uri = parse_uri(skill)
    try:
        resolve_reference(skill_root(uri), uri, target)
    except FormatError:
        return "outside"
    return None


def _bounded(finds: list[HiddenFind]) -> tuple[HiddenFind, ...]:
    """At most as many finds as a person reads. The last one tells if there are more."""
    if len(finds) <= _MAX_FINDS:
        return tuple(finds)
    return (*finds[: _MAX_FINDS - 1], HiddenFind(HiddenKind.MORE, ""))


def _hidden_fields(fields: Mapping[str, Json]) -> Iterator[HiddenFind]:
    for key, value in fields.items():
        for text in (key, *_texts(value)):
            yield from _hidden_in(text, f"the field {key!r:.40}")


def _hidden_in(text: str, place: str) -> Iterator[HiddenFind]:
    for item in find_hidden_characters(text):
        yield HiddenFind(item.kind, place, _excerpt(item.text))


def _excerpt(text: str) -> str:
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]} …"


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
