"""The facts about a skill that a person sees before approving it (A3–A5, B6), and their summary, ``Risk``.

The entry has the files, the requested tools, and hidden text in fields and names. Files that the caller has read
add hidden text, links, and scripts that only their first line or their mode reveals.

A link is an address on the web, a file of the machine, or a file outside the folder of the skill. Names of XML
namespaces and templates (``https://{host}/``) look like links. They are listed, but are not outside domains.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit

from skillwire.errors import FormatError, SkillwireError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.skill.approval import tool_grant
from skillwire.skill.frontmatter import parse_skill_md
from skillwire.skill.hidden import HiddenFind, HiddenKind, find_hidden_characters
from skillwire.skill.markdown import read_text
from skillwire.skill.model import estimate_tokens
from skillwire.skill.uri import SKILL_MD, parse_uri, reference_kind, resolve_reference, skill_root

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from skillwire.skill.entry import SkillEntry
    from skillwire.skill.frontmatter import Json
    from skillwire.skill.markdown import Link
    from skillwire.skill.model import TokenEstimate

LinkKind: TypeAlias = Literal["web", "machine", "outside", "template", "namespace"]

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
_ORDER: dict[LinkKind, int] = {"machine": 0, "outside": 1, "web": 2, "template": 3, "namespace": 4}
_NAMES: tuple[LinkKind, ...] = ("template", "namespace")  # they look like links
_PLACEHOLDER = re.compile(r"[{}$<>%*…]|\.\.\.")
_NAMESPACE = re.compile(
    r"(?:xmlns(?::[\w.-]+)?|(?:target)?namespace|(?:\w+:)?schemaLocation)\s*=\s*[\"']\s*$", re.I
)
# Only these hosts' owners can serve something there. Namespaces use the scheme http.
_NAMESPACE_HOSTS = frozenset(
    {
        "www.w3.org", "schemas.openxmlformats.org", "schemas.microsoft.com", "schemas.xmlsoap.org", "ns.adobe.com",
        "purl.oclc.org", "docs.oasis-open.org", "relaxng.org", "json-schema.org",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExternalLink:
    """A link that leaves the skill, or a name that looks like one."""

    target: str
    kind: LinkKind
    places: tuple[str, ...] = ()
    count: int = 0

    @property
    def decoded(self) -> str:
        """The target with its percent-encoded characters, which a model can read, decoded."""
        return unquote(self.target)

    @property
    def domain(self) -> str:
        """The host of an address on the web; for other schemes, such as ``tel:``, the scheme."""
        target = self.target.strip()
        try:
            parts = urlsplit(target)
            host = parts.hostname or (parts.path.rpartition("@")[2] if parts.scheme == "mailto" else "")
        except ValueError:  # an invalid address, such as a broken IPv6 host
            return target[:_EXCERPT]
        return (host or f"{parts.scheme}:").lower()


class Risk(NamedTuple):
    """What a person weighs before using a skill, with the evidence. ``unread`` files were not searched."""

    scripts: tuple[str, ...]
    tools: tuple[str, ...]
    domains: tuple[str, ...]
    hidden: tuple[HiddenFind, ...]
    tokens: TokenEstimate
    unread: int

    @property
    def is_low(self) -> bool:
        """Whether every file was searched, and nothing was found."""
        return not (self.scripts or self.tools or self.domains or self.hidden or self.unread)

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        hidden = [{"kind": str(find.kind), "place": find.place, "text": find.text} for find in self.hidden]
        return {**self._asdict(), "hidden": hidden, "tokens": self.tokens._asdict()}


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
    tokens: TokenEstimate
    unread: int  # files that were not searched
    links: tuple[ExternalLink, ...] = ()
    text: str | None = None  # the source of ``SKILL.md``, if it was read for the review

    @property
    def domains(self) -> dict[str, list[ExternalLink]]:
        """The links to the web by their domain."""
        found: dict[str, list[ExternalLink]] = {}
        for link in self.links:
            if link.kind == "web":
                found.setdefault(link.domain, []).append(link)
        return dict(sorted(found.items()))

    @property
    def escapes(self) -> tuple[ExternalLink, ...]:
        """The links to files of the machine, and out of the folder of the skill."""
        return tuple(link for link in self.links if link.kind in ("machine", "outside"))

    @property
    def names(self) -> tuple[ExternalLink, ...]:
        """The XML namespaces and templates, which look like links."""
        return tuple(link for link in self.links if link.kind in _NAMES)

    @property
    def is_serious(self) -> bool:
        """Whether it has findings that an approval should confirm: hidden text, or links out of its folder."""
        return bool(self.hidden or self.escapes)

    @property
    def risk(self) -> Risk:
        """The summary."""
        return Risk(self.scripts, self.tools, tuple(self.domains), self.hidden, self.tokens, self.unread)


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
        scripts=tuple(path for path, _ in paths if is_script(path)),
        tools=tuple(map(tool_grant, requested_tools(entry))),
        widening={key: value for key, value in entry.frontmatter.items() if _is_widening(key)},
        nested=tuple(path for path, _ in paths if path.endswith(f"/{SKILL_MD}")),
        hidden=_bounded([*_hidden_fields(entry.frontmatter), *names]),
        gaps=tuple(sorted(entry.gaps)),
        tokens=estimate_tokens(entry),
        unread=max(len(paths), 1),
    )


def review_files(
    entry: SkillEntry,
    files: Iterable[tuple[str, bytes]],
    executables: Container[str] = (),
    max_text: int = DEFAULT_LIMITS.max_checked_text,
) -> Review:
    """The facts in the entry and in ``files``, by path inside the skill.

    ``executables`` are paths whose mode lets them run. The requests of nested skills are included, because they
    are active too if the whole folder is installed (A3, A4).
    """
    review, count = review_entry(entry), 0
    for path, data in files:
        count += 1
        if len(data) > max_text:
            review = replace(review, hidden=_bounded([*review.hidden, HiddenFind(HiddenKind.UNREAD, path)]))
            continue
        if path in executables:
            review = _with_script(review, path)
        with suppress(UnicodeDecodeError):
            review = with_text(review, path, data.decode())
        if path in review.nested:
            review = replace(review, widening={**review.widening, **_requests_in(path, data)})
    more = 1 if "manifest" in entry.gaps else 0  # the number of its files is unknown
    return replace(review, unread=max(len(review.files) - count, more))


def _with_script(review: Review, path: str) -> Review:
    return replace(review, scripts=tuple(sorted({*review.scripts, path})))


def with_text(review: Review, path: str, text: str) -> Review:
    """The review with the facts in the text of one file."""
    if text.startswith("#!"):
        review = _with_script(review, path)
    facts = read_text(path, text)
    ends = [match.start() for match in re.finditer("\n", text)] if facts.hidden else []
    finds = [
        HiddenFind(item.kind, f"{path}:{bisect_left(ends, item.offset) + 1}", _excerpt(item.text))
        for item in facts.hidden
    ]
    links = {link.target: link for link in review.links}
    counts = Counter(link.kind in _NAMES for link in review.links)
    for target, kind, offset in _external_links(review.uri, facts.links, text):
        link = links.get(target, ExternalLink(target, kind))
        if not link.count and counts[kind in _NAMES] >= _MAX_LINKS:
            finds.insert(0, HiddenFind(HiddenKind.LINKS, path))
            break
        counts[kind in _NAMES] += not link.count
        place = (f"{path}:{text.count(chr(10), 0, offset) + 1}",) if link.count < _MAX_PLACES else ()
        links[target] = replace(link, places=link.places + place, count=link.count + 1)
    return replace(
        review,
        hidden=_bounded([*review.hidden, *finds]),
        links=tuple(sorted(links.values(), key=lambda link: (_ORDER[link.kind], link.target))),
        text=text if path == SKILL_MD else review.text,
    )


def _requests_in(path: str, skill_md: bytes) -> dict[str, Json]:
    """The requests of a nested skill."""
    try:
        fields = parse_skill_md(skill_md).frontmatter
    except SkillwireError:  # an agent may be more lenient, so a person should look
        return {f"{path}: fields": "cannot be read; look at the file"}
    return {f"{path}: {key}": value for key, value in fields.items() if _is_widening(key)}


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


def is_script(path: str) -> bool:
    """By its ending. Without one, a file in a folder for scripts may be one, as far as the entry tells."""
    folder, _, name = path.lower().rpartition("/")
    return name.endswith(_RUNNABLE) or ("." not in name and folder.rpartition("/")[2] in ("scripts", "bin"))


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
            yield address, _address_kind(address, text[max(match.start() - 80, 0) : match.start()]), match.start()


def _address_kind(address: str, before: str = "") -> LinkKind:
    """The kind of an address, from itself and the text before it."""
    scheme, _, rest = address.lower().partition(":")
    host = rest.lstrip("/").partition("/")[0].partition("?")[0]
    if scheme == "file":
        return "machine"
    if _PLACEHOLDER.search(host):
        return "template"
    return "namespace" if _NAMESPACE.search(before) or (scheme == "http" and host in _NAMESPACE_HOSTS) else "web"


def _link_kind(skill: str, target: str) -> LinkKind | None:
    kind = reference_kind(target)
    if kind == "machine":
        return "machine"
    if kind == "elsewhere":
        return None if not target.strip() or target.strip().startswith("#") else _address_kind(target.strip())
    uri = parse_uri(skill)
    try:
        resolve_reference(skill_root(uri), uri, target)
    except FormatError:
        return "outside"
    return None


def _bounded(finds: list[HiddenFind]) -> tuple[HiddenFind, ...]:
    """At most as many finds as a person reads, equal ones merged. The last one tells if there are more."""
    merged: dict[tuple[str, ...], HiddenFind] = {}
    for find in finds:
        key = (find.kind, find.text) if find.text else (find.kind, find.text, find.place)
        known = merged.setdefault(key, find)
        places = known.place.split(", ", _MAX_PLACES)
        if known is not find and find.place not in places and len(places) <= _MAX_PLACES:
            merged[key] = known._replace(
                place=f"{known.place}, {find.place if len(places) < _MAX_PLACES else '…'}"
            )
    if len(merged) <= _MAX_FINDS:
        return tuple(merged.values())
    return (*list(merged.values())[: _MAX_FINDS - 1], HiddenFind(HiddenKind.MORE, ""))


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
