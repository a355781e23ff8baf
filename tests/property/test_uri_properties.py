"""U1, U4, U6, U7, E4: a URI that parses is safe, what is formatted parses back, and no link leaves its skill."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, ParamSpec, TypeVar
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from rules import rule
from skillwire.errors import FormatError
from skillwire.skill.uri import (
    SkillUri,
    format_uri,
    is_within,
    parse_path,
    parse_uri,
    resolve_reference,
    skill_md_uri,
    skill_root,
)

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")

GOOD = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="/\\"),
    min_size=1,
    max_size=10,
).filter(lambda segment: segment not in (".", ".."))
PATHS = st.lists(GOOD, min_size=1, max_size=5).map("/".join)
ANY_TEXT = st.text(st.characters(), max_size=60)  # lone surrogates too: JSON can carry them
TRICKS = st.sampled_from(
    ["..", ".", "/", "\\", "%2e", "%2E", "%2f", "%2F", "%5c", "%5C", "%00", "%0a", "%25", "%", "%zz", "%c0%ae",
     "%ED%A0%80",
     "?", "#", ":", "@", "~", "file:", "C:", "a", "b", "SKILL.md", " ", "\t", "\x00", "\x85", "é", "😀"],
)  # fmt: skip
TRICKY = st.lists(TRICKS, max_size=10).map("".join)


def outcome(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | FormatError:
    """What the function returns, or the one error it may raise."""
    try:
        return function(*args, **kwargs)
    except FormatError as error:
        return error


def spelled(draw: st.DrawFn, segment: str, always: str = "") -> str:
    """One of the many spellings of ``segment``: any character may be percent-encoded, some must be."""
    must = set("%?#/\\") | set(always)
    parts: list[str] = []
    for character in segment:
        if character in must or draw(st.booleans()):
            case = "02X" if draw(st.booleans()) else "02x"
            parts += [f"%{byte:{case}}" for byte in character.encode()]
        else:
            parts.append(character)
    return "".join(parts)


@st.composite
def spellings(draw: st.DrawFn) -> tuple[tuple[str, ...], str]:
    segments = tuple(draw(st.lists(GOOD, min_size=1, max_size=4)))
    scheme = draw(st.sampled_from(["skill", "SKILL", "Skill"]))
    return segments, f"{scheme}://" + "/".join(spelled(draw, segment) for segment in segments)


@st.composite
def bad_spellings(draw: st.DrawFn) -> str:
    """A URI with one segment that U7 refuses, in any spelling, among good ones."""
    bad = draw(
        st.sampled_from([".", "..", "", "a/b", "/", "../x", "a\\b", "..\\x", "\\", "\x00", "a\x00.md", "\n",
                         "a\rb", "\x1b[m",
                         "\x7f", "\x80x", "\x9f"])
    )  # fmt: skip
    segments = [spelled(draw, segment) for segment in draw(st.lists(GOOD, max_size=3))]
    segments.insert(draw(st.integers(0, len(segments))), spelled(draw, bad))
    return "skill://" + "/".join(segments)


def assert_safe(uri: SkillUri) -> None:
    assert uri.segments
    assert uri.scheme == uri.scheme.lower()
    for segment in uri.segments:
        assert segment not in ("", ".", "..")
        assert "/" not in segment
        assert "\\" not in segment
        assert not any(unicodedata.category(character) in ("Cc", "Cs") for character in segment)


@rule("U1", "U4", "U5", "U7")
@given(PATHS, st.sampled_from(["skill", "repo", "git+ssh"]))
def test_a_formatted_path_parses_back(path: str, scheme: str) -> None:
    uri = parse_uri(format_uri(path, scheme))
    assert (uri.scheme, uri.path, uri.segments) == (scheme, path, tuple(path.split("/")))
    assert str(uri) == format_uri(path, scheme)
    assert parse_path(path) == path


@rule("U7")
@given(PATHS)
def test_a_formatted_uri_has_only_characters_of_rfc_3986(path: str) -> None:
    """And other parsers see the first segment whole, where a host stands (U4)."""
    text = format_uri(path)
    assert re.fullmatch(r"skill://(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-F]{2})+", text)
    split = urlsplit(text)
    assert unquote(split.netloc) == path.split("/")[0]
    assert (split.username, split.query, split.fragment) == (None, "", "")


@rule("U7")
@given(ANY_TEXT | TRICKY, st.sampled_from(["", "skill://", "skill://a/", "Skill://acme/refunds/"]))
@example("%2e%2e/x", "skill://a/")
@example("\ud800", "skill://")
@example("%41\udfff", "skill://")
def test_any_text_parses_to_safe_segments_or_is_refused(text: str, start: str) -> None:
    uri = outcome(parse_uri, start + text)
    if isinstance(uri, FormatError):
        assert uri.reference == "uri-invalid"
    else:
        assert_safe(uri)
        assert parse_uri(str(uri)) == uri


@rule("U7")
@given(ANY_TEXT | TRICKY | PATHS)
def test_any_text_is_a_safe_path_or_is_refused(text: str) -> None:
    path = outcome(parse_path, text)
    if isinstance(path, FormatError):
        assert path.reference == "path-invalid"
    else:
        assert path == text
        assert_safe(SkillUri("skill", tuple(path.split("/"))))


@rule("U7")
@given(spellings())
def test_every_spelling_of_a_uri_is_that_uri(case: tuple[tuple[str, ...], str]) -> None:
    """Comparison is on decoded segments."""
    segments, text = case
    assert parse_uri(text) == SkillUri("skill", segments)
    assert str(parse_uri(text)) == format_uri("/".join(segments))


@rule("U7")
@given(bad_spellings())
def test_every_spelling_of_a_way_out_is_refused(text: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_uri(text)
    assert caught.value.reference == "uri-invalid"


@rule("E4", "U2")
@given(PATHS, PATHS)
def test_what_is_joined_below_a_root_is_inside_it_and_the_root_is_not_inside_itself(root: str, file: str) -> None:
    base, uri = parse_uri(format_uri(root)), parse_uri(format_uri(f"{root}/{file}"))
    assert is_within(base, uri)
    assert not is_within(uri, base)
    assert not is_within(base, base)
    assert skill_root(parse_uri(skill_md_uri(root))) == base


@rule("E4")
@given(PATHS, PATHS)
def test_a_neighbour_is_not_inside(root: str, file: str) -> None:
    """A root is no prefix of text."""
    base = parse_uri(format_uri(root))
    assert not is_within(base, parse_uri(format_uri(f"{root}x/{file}")))
    assert not is_within(base, parse_uri(format_uri(f"{root}/{file}", "other")))


@rule("U6", "U7", "O3")
@given(PATHS, st.lists(GOOD, max_size=3), st.text(max_size=40) | TRICKY)
@example("a", [], "x/../../b")
@example("a/b", ["c"], "..%2F..%2Fx")
def test_no_link_leaves_the_skill_it_stands_in(root_path: str, folders: list[str], reference: str) -> None:
    root = parse_uri(format_uri(root_path))
    base = SkillUri(root.scheme, (*root.segments, *folders, "file.md"))
    target = outcome(resolve_reference, root, base, reference)
    if isinstance(target, FormatError):
        assert target.reference == "link-outside"
    elif target is not None:
        assert target == root or is_within(root, target)
        assert_safe(target)


@rule("U6")
@given(PATHS, PATHS, PATHS)
def test_a_link_from_one_file_to_another_is_found(root_path: str, source: str, target: str) -> None:
    """Written relatively and encoded, it leads where it was meant to."""
    root, base, aim = (
        parse_uri(format_uri(path)) for path in (root_path, f"{root_path}/{source}", f"{root_path}/{target}")
    )
    steps = "../" * (len(base.segments) - len(root.segments) - 1)
    written = format_uri(f"x/{target}").removeprefix("skill://x/")
    assume(steps or not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:|~/", written))  # a scheme, or a home, to a reader
    assert resolve_reference(root, base, f"{steps}{written}#part") == aim
    if steps:
        with pytest.raises(FormatError):
            resolve_reference(root, base, f"../{steps}{written}")
