"""E1–E4, E2b, U3, U7: the quick way through an entry and the proper one come to the same, whatever its URIs."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from property.budget import FEWER
from rules import rule
from skillwire.errors import FormatError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.skill.entry import DYNAMIC, Resource, SkillEntry, digest_of, parse_digest, parse_entry
from skillwire.skill.uri import SkillUri, is_within, parse_uri, skill_root

FINE = st.from_regex(r"[A-Za-z0-9_~-]{1,6}", fullmatch=True) | st.sampled_from(
    ["...", ".hidden", "a.b", "a b", "a%20b", "%61", "a", "A", "é", "%C3%A9", "%c3%a9", "a:b", "@", "~",
     "SKILL.md", "%53KILL.md", "skill.md", "a" * 80],
)  # fmt: skip
WEIRD = st.sampled_from(
    [".", "..", "", "%2e", "%2e%2e", "%2E.", "%2F", "a%2Fb", "%5C", "a\\b", "%00", "%", "%4", "%zz", "%ff",
     "\ud800", "\n", "%0a", "?", "#x", "://", "x://y"],
)  # fmt: skip
SEGMENT = st.one_of(*[FINE] * 9, WEIRD)
NAME = st.sampled_from(["refunds", "re-funds", "r"])
PREFIX = (
    st.lists(FINE, max_size=3)
    | st.lists(SEGMENT, max_size=3)
    | st.lists(st.just("deep"), min_size=60, max_size=130)
)
DIGEST = digest_of(b"x")


def straightforward(value: dict[str, Any], *, sized: bool) -> SkillEntry:
    """The rules, one after another, on parsed URIs only."""
    root = skill_root(parse_uri(value["uri"]))
    if value["frontmatter"]["name"] != root.segments[-1]:
        raise FormatError("entry-invalid", "", rule="U3")
    if "resources" not in value and not sized:
        return SkillEntry(value["uri"], value["frontmatter"], DYNAMIC)
    resources: list[Resource] = []
    places: list[SkillUri] = []
    for item in value["resources"]:
        place = parse_uri(item["uri"])
        if not is_within(root, place):
            raise FormatError("entry-invalid", "", rule="E4")
        parse_digest(item["digest"])
        if "size" not in item and sized:
            raise FormatError("entry-invalid", "", rule="E3")
        resources.append(Resource(item["uri"], item["digest"], item.get("size")))
        places.append(place)
    if len(set(places)) != len(places) or SkillUri(root.scheme, (*root.segments, "SKILL.md")) not in places:
        raise FormatError("entry-invalid", "", rule="E2")
    return SkillEntry(value["uri"], value["frontmatter"], tuple(resources))


def outcome(parse: Any, value: dict[str, Any], *, sized: bool) -> SkillEntry | tuple[str, str]:
    try:
        entry: SkillEntry = parse(value, sized=sized)
    except FormatError as error:
        return error.reference, "" if error.reference == "uri-invalid" else error.rule
    return entry


def encoded(draw: st.DrawFn, uri: str) -> str:
    """Another spelling: one character is percent-encoded, wherever it stands first behind the scheme."""
    scheme, _, rest = uri.partition("://")
    character = draw(st.sampled_from("adersSx.-"))
    return f"{scheme}://{rest.replace(character, f'%{ord(character):02x}', 1)}"


@st.composite
def entries(draw: st.DrawFn) -> dict[str, Any]:
    name = draw(NAME)
    scheme = draw(st.sampled_from(["skill", "skill", "SKILL", "repo", "git+x"]))
    root = f"{scheme}://" + "/".join([*draw(PREFIX), name])
    uris = [f"{root}/SKILL.md"]
    for _ in range(draw(st.integers(0, 4))):
        tail = "/".join(draw(st.lists(SEGMENT, min_size=1, max_size=3) | st.just(["d"] * 66)))
        start = root
        if draw(st.integers(0, 9)) == 0:
            start = draw(
                st.sampled_from([f"{root}x", root[:-1], root.lower(), root.upper(), "skill://z", f"{root}-"])
            )
        uris.append(f"{start}/{tail}")
    if draw(st.integers(0, 9)) == 0:
        uris.append(draw(st.sampled_from(uris)))
    uris = [encoded(draw, uri) if draw(st.booleans()) else uri for uri in uris]
    order = draw(st.permutations(uris)) if draw(st.booleans()) else uris
    value: dict[str, Any] = {
        "uri": uris[0] if draw(st.booleans()) else f"{root}/SKILL.md",
        "frontmatter": {"name": name, "description": "x"},
        "resources": [{"uri": uri, "digest": DIGEST, "size": 1} for uri in order],
    }
    if draw(st.integers(0, 9)) == 0:
        del value["resources"][0]["size"]
    return value


@rule("E2", "E3", "E4", "U3", "U7")
@given(entries(), st.booleans())
@example(
    {
        "uri": "skill://" + "p/" * 69 + "r/SKILL.md",
        "frontmatter": {"name": "r", "description": ""},
        "resources": [
            {"uri": "skill://" + "p/" * 69 + path, "digest": DIGEST, "size": 1}
            for path in ("r/SKILL.md", "r/" + "a/" * 60 + "x")
        ],
    },
    True,
)
def test_an_entry_is_parsed_by_the_rules_one_after_another(value: dict[str, Any], sized: bool) -> None:
    assert outcome(parse_entry, value, sized=sized) == outcome(straightforward, value, sized=sized)


@rule("E4", "U7", "V2")
@FEWER
@given(entries(), st.booleans())
def test_whatever_is_accepted_can_be_found_again_and_lies_inside(value: dict[str, Any], sized: bool) -> None:
    """No entry has a file whose URI cannot be read later."""
    entry = outcome(parse_entry, value, sized=sized)
    if isinstance(entry, tuple):
        return
    root = skill_root(parse_uri(entry.uri))
    for file in entry.files:
        assert len(file.uri) <= DEFAULT_LIMITS.max_uri_length
        assert is_within(root, parse_uri(file.uri))
        assert entry.resource(str(parse_uri(file.uri))) == file


@rule("E4", "U7")
@given(st.lists(SEGMENT, min_size=1, max_size=4).map("/".join))
def test_a_file_of_any_name_is_inside_or_the_entry_is_refused(tail: str) -> None:
    value = {
        "uri": "skill://acme/refunds/SKILL.md",
        "frontmatter": {"name": "refunds", "description": "x"},
        "resources": [
            {"uri": f"skill://acme/refunds/{path}", "digest": DIGEST, "size": 1} for path in ("SKILL.md", tail)
        ],
    }
    assert outcome(parse_entry, value, sized=True) == outcome(straightforward, value, sized=True)
