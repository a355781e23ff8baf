"""U1–U7, O3: how URIs are spelled, compared and contained, and where a link leads."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from rules import rule
from skillwire.errors import FormatError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.skill.uri import (
    SkillUri,
    format_uri,
    is_within,
    parse_path,
    parse_uri,
    reference_kind,
    resolve_reference,
    segment_problem,
    skill_md_uri,
    skill_root,
)


def refusal(text: str) -> FormatError:
    with pytest.raises(FormatError) as caught:
        parse_uri(text)
    return caught.value


@rule("U1", "U4")
@pytest.mark.parametrize(
    ("text", "scheme", "path"),
    [
        ("skill://Acme/billing/Refunds/SKILL.md", "skill", "Acme/billing/Refunds/SKILL.md"),
        ("SKILL://Acme/x", "skill", "Acme/x"),
        ("git+ssh-1.0://a/b", "git+ssh-1.0", "a/b"),
        ("skill://a/caf%C3%A9.md", "skill", "a/café.md"),
        ("skill://a/café.md", "skill", "a/café.md"),
        ("skill://a/b%20c%3f%23%25.md", "skill", "a/b c?#%.md"),
        ("skill://a/%2541", "skill", "a/%41"),
        ("skill://a/%7E%C2%A0", "skill", "a/~\xa0"),
        ("skill://a/...", "skill", "a/..."),
        ("skill://user@host:80/x", "skill", "user@host:80/x"),
        ("skill://index.json", "skill", "index.json"),
        ("skill://a/b+c", "skill", "a/b+c"),
    ],
)
def test_a_uri_is_a_scheme_and_decoded_segments(text: str, scheme: str, path: str) -> None:
    """(the first segment is a name and keeps its case), U5 (any scheme), U7 (decoded once)."""
    assert parse_uri(text) == SkillUri(scheme, tuple(path.split("/")))


@rule("U7")
@pytest.mark.parametrize(
    "rest",
    ["", "a/", "/a", "a//b", "a/./b", "a/../b", "..", "a/%2e%2e/b", "a/%2E./b", "a/%2e", "a/b%2Fc", "a/b%2fc",
     "a\\b", "a/b%5Cc", "a/%00", "a/b\tc", "a/%1f", "a/%7F", "a/%C2%80", "a/\x9f", "a/%C0%AE%C0%AE/b",
     "a/%FF", "a/%ED%A0%80", "a/%E2%82", "a/%", "a/%4", "a/%zz", "a/\ud800", "a/%41\udfff", "a/b?x=1", "a#"],
    ids=ascii,
)  # fmt: skip
def test_ways_out_and_broken_text_are_refused_in_every_spelling(rest: str) -> None:
    error = refusal(f"skill://{rest}")
    assert error.reference == "uri-invalid"
    assert error.hint


@rule("U1")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "refunds/SKILL.md",
        "//refunds/x",
        "skill:/a/b",
        "://a",
        "1a://b",
        " skill://a",
        "skíll://a",
        "skill%3A//a",
    ],
    ids=ascii,
)
def test_a_uri_without_a_scheme_is_refused(text: str) -> None:
    assert refusal(text).reference == "uri-invalid"


@rule("O3")
def test_a_file_of_a_machine_is_refused_in_every_spelling_of_its_scheme() -> None:
    for text in ("file:///etc/passwd", "FILE://a/SKILL.md", " file:x"):
        assert (refusal(text).reference, refusal(text).rule) == ("uri-invalid", "O3")


@rule("B1")
def test_a_uri_longer_than_the_limit_is_refused_shortly() -> None:
    longest = "skill://" + "a" * (4096 - 8)
    assert parse_uri(longest).path == "a" * 4088
    error = refusal(longest + "a")
    assert error.reference == "uri-invalid"
    assert len(error.message) < 300
    with pytest.raises(FormatError):
        parse_uri("skill://ab", max_length=9)


@rule("B1")
def test_a_uri_of_too_many_segments_is_refused() -> None:
    most = "skill://" + "/".join(["a"] * DEFAULT_LIMITS.max_uri_segments)
    assert len(parse_uri(most).segments) == DEFAULT_LIMITS.max_uri_segments
    assert refusal(most + "/a").reference == "uri-invalid"


@rule("U7")
def test_spellings_of_one_uri_are_equal_when_parsed() -> None:
    """Comparison is on decoded segments."""
    spellings = ["skill://acme/a b.md", "skill://acme/a%20b.md", "SKILL://%61cme/%61%20b%2Emd"]
    assert len({parse_uri(text) for text in spellings}) == 1


@rule("U4", "U5", "U7")
@pytest.mark.parametrize(
    ("one", "other"),
    [("skill://a/b", "skill://A/b"), ("skill://a/b", "repo://a/b"), ("skill://a/é", "skill://a/e\u0301")],
    ids=["case", "scheme", "unicode-form"],
)
def test_case_scheme_and_unicode_form_make_different_uris(one: str, other: str) -> None:
    assert parse_uri(one) != parse_uri(other)


@rule("U7")
@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("acme/refunds/SKILL.md", "skill://acme/refunds/SKILL.md"),
        ("a/%41", "skill://a/%2541"),
        ("a/what?#now", "skill://a/what%3F%23now"),
        ("a/é b/[x]", "skill://a/%C3%A9%20b/%5Bx%5D"),
        ("a/b:c@d,e;f=g+h&i$j!k'l(m)n*o~p", "skill://a/b:c@d,e;f=g+h&i$j!k'l(m)n*o~p"),
        ("user@host:80/x", "skill://user%40host%3A80/x"),
        ("😀/😀", "skill://%F0%9F%98%80/%F0%9F%98%80"),
    ],
)
def test_a_path_is_percent_encoded_where_rfc_3986_asks(path: str, uri: str) -> None:
    """And the first segment is one that no parser takes apart as user, host and port (U4)."""
    assert format_uri(path) == uri
    assert str(parse_uri(uri)) == uri
    assert parse_uri(uri).path == path
    split = urlsplit(uri)
    assert (split.username, split.port, split.query, split.fragment) == (None, None, "", "")


@rule("U1")
def test_the_uri_of_a_skill_names_its_skill_md() -> None:
    assert skill_md_uri("acme/re funds") == "skill://acme/re%20funds/SKILL.md"
    assert skill_md_uri("acme/refunds", "repo") == "repo://acme/refunds/SKILL.md"


@rule("U2")
def test_the_root_of_a_skill_is_the_uri_without_skill_md() -> None:
    """No trailing slash."""
    root = skill_root(parse_uri("skill://acme/refunds/SKILL.md"))
    assert str(root) == "skill://acme/refunds"
    assert root.path == "acme/refunds"
    assert root.parent == SkillUri("skill", ("acme",))
    assert skill_root(parse_uri("skill://refunds/SKILL.md")) == SkillUri("skill", ("refunds",))


@rule("U1", "U2")
@pytest.mark.parametrize("text", ["skill://SKILL.md", "skill://acme/skill.md", "skill://acme/SKILL.md/x"])
def test_only_a_skill_md_below_a_name_has_a_root(text: str) -> None:
    with pytest.raises(FormatError) as caught:
        skill_root(parse_uri(text))
    assert caught.value.reference == "uri-invalid"


@rule("E4", "U7")
@pytest.mark.parametrize(
    ("uri", "inside"),
    [
        ("skill://acme/refunds/SKILL.md", True),
        ("skill://%61cme/refunds/x", True),
        ("skill://acme/refunds", False),
        ("skill://acme", False),
        ("skill://acme/refunds-evil/x", False),
        ("skill://acme/Refunds/x", False),
        ("repo://acme/refunds/x", False),
    ],
)
def test_inside_a_skill_is_decided_on_whole_segments(uri: str, inside: bool) -> None:
    assert is_within(parse_uri("skill://acme/refunds"), parse_uri(uri)) is inside


@rule("U7")
def test_a_path_of_safe_segments_is_taken_as_it_is() -> None:
    """A path is decoded already; a percent sign in it is text."""
    for path in ("acme/billing", "a b/é/😀", "...", "a%2Fb", ".hidden/x..y", "C:", "~\xa0"):
        assert parse_path(path) == path


@rule("U7", "F6")
@pytest.mark.parametrize(
    "path",
    ["", "a/", "a//b", "..", "a/./b", "a\\b", "a\x00", "\x1f", "\x7f", "\x9f", "\udc80"],
    ids=ascii,
)
def test_a_path_with_an_unsafe_segment_is_refused(path: str) -> None:
    """Names on disk that are not UTF-8 arrive as lone surrogates."""
    with pytest.raises(FormatError) as caught:
        parse_path(path)
    assert caught.value.reference == "path-invalid"


@rule("U7")
def test_a_segment_that_cannot_be_used_comes_with_a_reason() -> None:
    reasons = {segment: segment_problem(segment) for segment in ("", ".", "a/b", "..", "a\\", "\t")}
    assert all(reasons.values())
    assert reasons["."] == reasons[".."]
    assert len(set(reasons.values())) == 3
    assert segment_problem("a.b") == ""


# ── links (U6) ────────────────────────────────────────────────────────────────────────────────────────────

ROOT = parse_uri("skill://acme/refunds")
TOP = parse_uri("skill://acme/refunds/SKILL.md")
DEEP = parse_uri("skill://acme/refunds/guides/de/intro.md")
BASES = {"top": TOP, "deep": DEEP}


@rule("U6")
@pytest.mark.parametrize(
    ("base", "reference", "path"),
    [
        ("top", "a.md", "a.md"),
        ("top", "./a.md", "a.md"),
        ("top", "guides/x.md?raw=1#part", "guides/x.md"),
        ("top", "guides/", "guides"),
        ("top", ".", ""),
        ("top", "guides/../a.md", "a.md"),
        ("top", "guides//a.md", "guides/a.md"),
        ("top", "my%20file.md", "my file.md"),
        ("top", "café.md", "café.md"),
        ("top", "100%.md", "100%.md"),
        ("top", "a...md", "a...md"),
        ("deep", "b.md", "guides/de/b.md"),
        ("deep", "../en/b.md", "guides/en/b.md"),
        ("deep", "../..", ""),
        ("deep", "%2e%2e/x.md", "guides/x.md"),
    ],
)
def test_a_relative_link_resolves_against_the_folder_of_its_file(base: str, reference: str, path: str) -> None:
    resolved = resolve_reference(ROOT, BASES[base], reference)
    assert resolved is not None
    assert "/".join(resolved.segments[2:]) == path
    assert resolved.segments[:2] == ROOT.segments


@rule("U6", "U7", "O3")
@pytest.mark.parametrize(
    ("base", "reference"),
    [
        *(("top", text) for text in (
            "..", "../refunds/SKILL.md", "a/../../x", "%2e%2e/x", ".%2E/x", "..%2fx", "a%2F..%2F..%2Fx", "..\\x",
            "%5C..%5Cx", "/etc/passwd", "file:///etc/passwd", "FILE:///etc/passwd", "file:x", " file:///etc/passwd",
            "C:\\x", "c:/x", "\\\\host\\share", "~/.ssh/id_rsa", "a%00.md", "a\tb", "a%7F",
        )),
        ("deep", "../../.."),
        ("deep", "../../../refunds/SKILL.md"),
    ],
    ids=ascii,
)  # fmt: skip
def test_a_link_cannot_leave_the_skill_in_any_spelling(base: str, reference: str) -> None:
    with pytest.raises(FormatError) as caught:
        resolve_reference(ROOT, BASES[base], reference)
    assert caught.value.reference == "link-outside"


@rule("U6")
def test_a_link_elsewhere_is_not_a_file_of_the_skill() -> None:
    for reference in (
        "https://example.com/../x",
        "//cdn.example.com/x.js",
        "#part",
        "   ",
        "skill://acme/b/SKILL.md",
    ):
        assert resolve_reference(ROOT, TOP, reference) is None


@rule("U7")
def test_a_link_that_is_broken_text_is_refused_like_any_other() -> None:
    """JSON can carry a lone surrogate; it ends as a ``FormatError``."""
    for reference in ("\ud800", "a/\udcff.md", "%\ud83d"):
        with pytest.raises(FormatError):
            resolve_reference(ROOT, TOP, reference)


@rule("U6", "O3")
def test_a_link_stays_goes_elsewhere_or_names_the_machine() -> None:
    kinds = {
        "relative": ["a.md", "./a:b.md", "~", "fileserver.md"],
        "elsewhere": ["a:b.md", "c:a", "//a", "HTTPS://X", "mailto:a@b.c", "#", " #a", "", "   ", "skill://a"],
        "machine": ["C:/a", "c:\\a", "\\\\a", "~/a", "/a", "file:a", " FILE:a"],
    }
    for kind, references in kinds.items():
        assert {reference: reference_kind(reference) for reference in references} == dict.fromkeys(
            references, kind
        )


@rule("B1")
def test_a_link_of_thousands_of_steps_ends() -> None:
    resolved = resolve_reference(ROOT, TOP, "a/../" * 20_000 + "b")
    assert resolved is not None
    assert resolved.path == "acme/refunds/b"
    with pytest.raises(FormatError) as caught:
        resolve_reference(ROOT, TOP, "../" * 20_000)
    assert len(caught.value.message) < 300
