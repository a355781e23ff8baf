"""U1–U7, O3: how URIs are spelled, compared and contained, and where a link leads."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from rules import rule
from skillwire.errors import FormatError
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
    ("text", "scheme", "segments"),
    [
        ("skill://refunds/SKILL.md", "skill", ("refunds", "SKILL.md")),
        ("skill://acme/billing/refunds/SKILL.md", "skill", ("acme", "billing", "refunds", "SKILL.md")),
        ("skill://Acme/Refunds/a.md", "skill", ("Acme", "Refunds", "a.md")),
        ("SKILL://Acme/x", "skill", ("Acme", "x")),
        ("github://owner/repo/skills/x/SKILL.md", "github", ("owner", "repo", "skills", "x", "SKILL.md")),
        ("git+ssh-1.0://a/b", "git+ssh-1.0", ("a", "b")),
        ("skill://a/caf%C3%A9.md", "skill", ("a", "café.md")),
        ("skill://a/caf%c3%a9.md", "skill", ("a", "café.md")),
        ("skill://a/café.md", "skill", ("a", "café.md")),
        ("skill://a/b%20c%3F%23%25.md", "skill", ("a", "b c?#%.md")),
        ("skill://a/%2541", "skill", ("a", "%41")),
        ("skill://a/...", "skill", ("a", "...")),
        ("skill://a/.hidden", "skill", ("a", ".hidden")),
        ("skill://user@host:80/x", "skill", ("user@host:80", "x")),
        ("skill://index.json", "skill", ("index.json",)),
        ("skill://a/b+c", "skill", ("a", "b+c")),
    ],
)
def test_a_uri_is_a_scheme_and_decoded_segments(text: str, scheme: str, segments: tuple[str, ...]) -> None:
    """(the first segment is a name and keeps its case), U5 (any scheme), U7 (decoded once)."""
    assert parse_uri(text) == SkillUri(scheme, segments)


@rule("U7")
@pytest.mark.parametrize(
    "rest",
    ["", "/", "a/", "/a", "a//b", "a/./b", "a/../b", "..", ".", "a/..", "a/%2e%2e/b", "a/%2E./b", "a/.%2e",
     "a/%2e",
     "a/b%2Fc", "a/b%2fc", "a/%2F", "a\\b", "a/b%5Cc", "a/%5c..%5c", "a/%00", "a/b%00.md", "a/b\x00", "a/%0A",
     "a/%0d", "a/%1f", "a/%7F", "a/\x7f", "a/%C2%85", "a/\x9f", "a/\n", "a/b\tc", "a/%C0%AE%C0%AE/b", "a/%C0%AF",
     "a/%FF", "a/%ED%A0%80", "a/%E2%82", "a/%", "a/%4", "a/%zz", "a/%%41", "a/100%", "a/\ud800", "a/%41\udfff",
     "a?b", "a/b?x=1", "a/b#c", "a#", "a?"],
)  # fmt: skip
def test_ways_out_and_broken_text_are_refused_in_every_spelling(rest: str) -> None:
    error = refusal(f"skill://{rest}")
    assert error.reference == "uri-invalid"
    assert error.hint


@rule("U1")
@pytest.mark.parametrize(
    "text",
    ["", "refunds/SKILL.md", "/refunds", "//refunds/x", "skill:", "skill:/a/b", "skill:a/b", "://a", "1a://b",
     "+a://b", "sk ill://a", " skill://a", "skíll://a", "skill%3A//a", "C:\\a", "\nskill://a"],
)  # fmt: skip
def test_a_uri_without_a_scheme_is_refused(text: str) -> None:
    assert "scheme" in refusal(text).message


@rule("B1")
def test_a_uri_longer_than_the_limit_is_refused_shortly() -> None:
    longest = "skill://" + "a" * (4096 - 8)
    assert parse_uri(longest).path == "a" * 4088
    error = refusal(longest + "a")
    assert "4096" in error.message
    assert len(error.message) < 300
    with pytest.raises(FormatError):
        parse_uri("skill://ab", max_length=9)


@rule("U7")
def test_spellings_of_one_uri_are_equal_when_parsed() -> None:
    """Comparison is on decoded segments."""
    spellings = ["skill://acme/a b.md", "skill://acme/a%20b.md", "SKILL://%61cme/%61%20b%2Emd"]
    assert len({parse_uri(text) for text in spellings}) == 1


@rule("U4", "U5", "U7")
@pytest.mark.parametrize(
    ("one", "other"),
    [("skill://a/b", "skill://A/b"), ("skill://a/b", "repo://a/b"), ("skill://a/é", "skill://a/e\u0301")],
)
def test_case_scheme_and_unicode_form_make_different_uris(one: str, other: str) -> None:
    assert parse_uri(one) != parse_uri(other)


@rule("U7")
@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("acme/refunds/SKILL.md", "skill://acme/refunds/SKILL.md"),
        ("a/b c.md", "skill://a/b%20c.md"),
        ("a/100%.md", "skill://a/100%25.md"),
        ("a/%41", "skill://a/%2541"),
        ("a/what?#now", "skill://a/what%3F%23now"),
        ("a/é/[x]", "skill://a/%C3%A9/%5Bx%5D"),
        ("a/b:c@d,e;f=g+h&i$j!k'l(m)n*o~p", "skill://a/b:c@d,e;f=g+h&i$j!k'l(m)n*o~p"),
        ("user@host:80/x", "skill://user%40host%3A80/x"),
        ("Ünï/x", "skill://%C3%9Cn%C3%AF/x"),
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


@rule("U1", "U2")
@pytest.mark.parametrize(
    "text", ["skill://SKILL.md", "skill://acme/refunds", "skill://acme/skill.md", "skill://acme/SKILL.md/x"]
)
def test_only_a_skill_md_below_a_name_has_a_root(text: str) -> None:
    with pytest.raises(FormatError) as caught:
        skill_root(parse_uri(text))
    assert caught.value.reference == "uri-invalid"


@rule("E4", "U7")
@pytest.mark.parametrize(
    ("uri", "inside"),
    [
        ("skill://acme/refunds/SKILL.md", True),
        ("skill://acme/refunds/a/b/c", True),
        ("skill://%61cme/refunds/x", True),
        ("skill://acme/refunds", False),
        ("skill://acme", False),
        ("skill://acme/refunds-evil/x", False),
        ("skill://acme/refund/s/x", False),
        ("skill://acme/Refunds/x", False),
        ("skill://acme/other/refunds/x", False),
        ("repo://acme/refunds/x", False),
    ],
)
def test_inside_a_skill_is_decided_on_whole_segments(uri: str, inside: bool) -> None:
    assert is_within(parse_uri("skill://acme/refunds"), parse_uri(uri)) is inside


@rule("U7")
@pytest.mark.parametrize("path", ["a", "acme/billing", "a b/é/😀", "...", "a%2Fb", ".hidden/x..y", "C:", "~"])
def test_a_path_of_safe_segments_is_taken_as_it_is(path: str) -> None:
    """A path is decoded already; a percent sign in it is text."""
    assert parse_path(path) == path


@rule("U7", "F6")
@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/a",
        "a/",
        "a//b",
        ".",
        "..",
        "a/..",
        "../a",
        "a/./b",
        "a\\b",
        "a\x00",
        "a\n",
        "\x7f",
        "\x80",
        "\udc80",
    ],
)
def test_a_path_with_an_unsafe_segment_is_refused(path: str) -> None:
    """Names on disk that are not UTF-8 arrive as lone surrogates."""
    with pytest.raises(FormatError) as caught:
        parse_path(path)
    assert caught.value.reference == "path-invalid"


@rule("U7")
@pytest.mark.parametrize(
    ("segment", "word"),
    [("", "empty"), (".", "'.'"), ("..", "'..'"), ("a/b", "slash"), ("a\\", "backslash"), ("\t", "control")],
)
def test_a_segment_that_cannot_be_used_says_why(segment: str, word: str) -> None:
    assert word in segment_problem(segment)


# ── links (U6) ────────────────────────────────────────────────────────────────────────────────────────────

ROOT = parse_uri("skill://acme/refunds")
TOP = parse_uri("skill://acme/refunds/SKILL.md")
DEEP = parse_uri("skill://acme/refunds/guides/de/intro.md")


@rule("U6")
@pytest.mark.parametrize(
    ("base", "reference", "path"),
    [
        (TOP, "a.md", "a.md"),
        (TOP, "./a.md", "a.md"),
        (TOP, "guides/x.md#part", "guides/x.md"),
        (TOP, "guides/x.md?raw=1#part", "guides/x.md"),
        (TOP, "guides/", "guides"),
        (TOP, ".", ""),
        (TOP, "./", ""),
        (TOP, "guides/../a.md", "a.md"),
        (TOP, "guides//a.md", "guides/a.md"),
        (TOP, "my%20file.md", "my file.md"),
        (TOP, "caf%C3%A9.md", "café.md"),
        (TOP, "café.md", "café.md"),
        (TOP, "100%.md", "100%.md"),
        (TOP, "%41.md", "A.md"),
        (TOP, "a...md", "a...md"),
        (DEEP, "b.md", "guides/de/b.md"),
        (DEEP, "../en/b.md", "guides/en/b.md"),
        (DEEP, "../../SKILL.md", "SKILL.md"),
        (DEEP, "../..", ""),
        (DEEP, "%2e%2e/x.md", "guides/x.md"),
    ],
)
def test_a_relative_link_resolves_against_the_folder_of_its_file(
    base: SkillUri, reference: str, path: str
) -> None:
    resolved = resolve_reference(ROOT, base, reference)
    assert resolved is not None
    assert "/".join(resolved.segments[2:]) == path
    assert resolved.segments[:2] == ROOT.segments


@rule("U6", "U7", "O3")
@pytest.mark.parametrize(
    ("base", "reference"),
    [
        *((TOP, text) for text in (
            "..", "../", "../x.md", "../refunds/SKILL.md", "a/../../x", "%2e%2e/x", ".%2E/x", "%2E%2E%2Fx",
            "..%2fx",
            "a%2f..%2f..%2fx", "..\\x", "a\\..\\..\\x", "%5C..%5Cx", "a%5Cb", "/etc/passwd", "/SKILL.md", "/",
            "file:///etc/passwd", "FILE:///etc/passwd", "file:x", "File://host/x", " file:///etc/passwd",
            "C:\\x", "c:/x", "\\\\host\\share", "~/.ssh/id_rsa", "a%00.md", "a\x00b", "a%0Ab", "..%00/x", "a\tb",
        )),
        (DEEP, "../../../x"),
        (DEEP, "../../.."),
        (DEEP, "../../../refunds/SKILL.md"),
        (DEEP, "x/../../../../x"),
    ],
)  # fmt: skip
def test_a_link_cannot_leave_the_skill_in_any_spelling(base: SkillUri, reference: str) -> None:
    with pytest.raises(FormatError) as caught:
        resolve_reference(ROOT, base, reference)
    assert caught.value.reference == "link-outside"


@rule("U6")
@pytest.mark.parametrize(
    "reference",
    ["https://example.com/../x", "http://x", "HTTPS://X", "mailto:a@b.c", "//cdn.example.com/x.js", "#part", "",
     "   ", "#", "data:text/plain,x", "skill://acme/other/SKILL.md", "javascript:alert(1)", "tel:+1"],
)  # fmt: skip
def test_a_link_elsewhere_is_not_a_file_of_the_skill(reference: str) -> None:
    assert resolve_reference(ROOT, TOP, reference) is None


@rule("U7")
@pytest.mark.parametrize("reference", ["\ud800", "a/\udcff.md", "%\ud83d"])
def test_a_link_that_is_broken_text_is_refused_like_any_other(reference: str) -> None:
    """JSON can carry a lone surrogate; it ends as a ``FormatError``."""
    with pytest.raises(FormatError):
        resolve_reference(ROOT, TOP, reference)


@rule("U6", "O3")
@pytest.mark.parametrize(
    ("reference", "kind"),
    [("a.md", "relative"), ("a:b.md", "elsewhere"), ("./a:b.md", "relative"), ("C:/a", "machine"), ("c:a",
     "elsewhere"),
     ("~", "relative"), ("~/a", "machine"), ("/a", "machine"), ("//a", "elsewhere"), ("fileserver.md",
     "relative")],
)  # fmt: skip
def test_a_link_stays_goes_elsewhere_or_names_the_machine(reference: str, kind: str) -> None:
    assert reference_kind(reference) == kind


@rule("B1")
def test_a_link_of_thousands_of_steps_ends() -> None:
    resolved = resolve_reference(ROOT, TOP, "a/../" * 20_000 + "b")
    assert resolved is not None
    assert resolved.path == "acme/refunds/b"
    with pytest.raises(FormatError) as caught:
        resolve_reference(ROOT, TOP, "../" * 20_000)
    assert len(caught.value.message) < 300
