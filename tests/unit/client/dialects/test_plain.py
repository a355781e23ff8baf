"""I4, E2, E3, U7, V1: FastMCP's manifest of one skill, and skills found among plain resources."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from answering import Answering, serving, text
from rules import rule
from skillwire.client.dialects.plain import PlainDialect, is_manifest, parse_manifest
from skillwire.errors import FormatError, NotFoundError, VerificationError
from skillwire.skill.entry import Partial, Resource, digest_of
from skillwire.skill.uri import parse_uri
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillwire.skill import Diagnostic, SkillEntry

ROOT = parse_uri("skill://acme/refunds")
URI = "skill://acme/refunds/SKILL.md"
SKILL_MD = skill_md("refunds")
HASH = digest_of(SKILL_MD)


SIZE = len(SKILL_MD)


def file(path: Any, digest: Any = HASH, size: Any = SIZE) -> dict[str, Any]:
    return {"path": path, "size": size, "hash": digest}


def manifest(*files: Any) -> bytes:
    return json.dumps({"skill": "refunds", "files": files}).encode()


def refusal(data: bytes) -> FormatError:
    with pytest.raises(FormatError) as caught:
        parse_manifest(data, ROOT)
    assert caught.value.hint
    return caught.value


@rule("E2", "E3")
def test_a_manifest_lists_every_file_with_digest_and_size() -> None:
    """Sorted, and with URIs as the skill's other files have them."""
    found = parse_manifest(manifest(file("z/a b.md", digest_of(b""), 0), file("SKILL.md")), ROOT)
    assert found == (
        Resource(URI, HASH, len(SKILL_MD), "SKILL.md"),
        Resource("skill://acme/refunds/z/a%20b.md", digest_of(b""), 0, "z/a b.md"),
    )


@rule("E3")
@pytest.mark.parametrize("digest", [HASH[7:], HASH.upper()], ids=["bare", "capitals"])
def test_a_hash_may_be_written_bare_or_in_capitals(digest: str) -> None:
    """As FastMCP and others wrote it."""
    assert parse_manifest(manifest(file("SKILL.md", digest)), ROOT)[0].digest == HASH


@rule("E3")
@pytest.mark.parametrize(
    "digest",
    [None, HASH[:-1], HASH + "0", "md5:" + "0" * 32, "g" * 64],
    ids=["none", "short", "long", "other-algorithm", "not-hexadecimal"],
)
def test_an_invalid_hash_is_refused(digest: object) -> None:
    assert refusal(manifest(file("SKILL.md", digest))).rule == "E3"


@rule("E3")
@pytest.mark.parametrize("size", [None, -1, 1.5, True])
def test_an_invalid_size_is_refused(size: object) -> None:
    error = refusal(manifest(file("SKILL.md"), file("x", HASH, size)))
    assert error.rule == "E3"
    assert "'x'" in error.message


@rule("E4", "U7")
@pytest.mark.parametrize(
    "path",
    ["", None, "/etc/passwd", "a/../b", "./x", "a//b", "a/", "a\\b", "a\0b", "\ud800"],
    ids=["empty", "none", "absolute", "up", "dot", "empty-part", "folder", "backslash", "control", "surrogate"],
)
def test_a_path_that_leads_elsewhere_is_refused(path: object) -> None:
    assert refusal(manifest(file("SKILL.md"), file(path))).reference == "path-invalid"


@rule("U7", "B1")
@pytest.mark.parametrize("path", ["a" * 5000, "a/" * 130 + "x"], ids=["long", "deep"])
def test_a_path_too_long_for_a_uri_is_refused(path: str) -> None:
    """No entry may have a file that cannot be asked for."""
    assert refusal(manifest(file("SKILL.md"), file(path))).reference == "uri-invalid"


@rule("E2")
def test_a_file_that_comes_twice_is_refused() -> None:
    """Each file once, with one digest."""
    for other in (file("x"), file("x", digest_of(b"other"))):
        error = refusal(manifest(file("SKILL.md"), file("x"), other))
        assert error.rule == "E2"
        assert "'x'" in error.message


@rule("E2")
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"# prose", id="not-json"),
        pytest.param(b"\xff", id="not-text"),
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(b"[]", id="not-an-object"),
        pytest.param(b'{"files": {}}', id="files-are-an-object"),
        pytest.param(b'{"files": []}', id="no-files"),
        pytest.param(manifest(file("skill.md")), id="other-case"),
        pytest.param(manifest(file("x/SKILL.md")), id="in-a-folder"),
    ],
)
def test_a_manifest_without_the_skill_md_is_none(data: bytes) -> None:
    assert refusal(data).rule == "E2"


@rule("E2")
@pytest.mark.parametrize("item", ["SKILL.md", {}], ids=["text", "empty"])
def test_an_item_of_another_shape_is_refused(item: object) -> None:
    refusal(manifest(file("SKILL.md"), item))


@rule("E1")
def test_a_manifest_that_names_itself_or_other_fields_is_read() -> None:
    """What is not known is left out."""
    data = json.dumps({"files": [file("SKILL.md") | {"mode": 5}, file("_manifest")], "version": 3}).encode()
    assert len(parse_manifest(data, ROOT)) == 2


# ── the dialect ──────────────────────────────────────────────────────────────────────────────────────────────


def plain(*resources: dict[str, Any]) -> PlainDialect:
    def answer(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        assert method == "resources/list"
        return {"resources": list(resources)}

    return PlainDialect(Answering(answer), ignored)


def ignored(problem: Diagnostic) -> None:
    raise AssertionError(problem)


async def listed(dialect: PlainDialect) -> list[SkillEntry]:
    return [entry async for page in dialect.pages() for entry in page]


@rule("I4")
@pytest.mark.anyio
async def test_every_resource_that_is_a_skill_md_is_taken_for_a_skill() -> None:
    """With the files listed around it, wherever they stand; nothing is promised."""
    entries = await listed(
        plain(
            {"uri": "skill://acme/refunds/z.md", "size": 7},
            {"uri": URI, "name": "x", "description": "Refund.", "size": 5},
            {"uri": "skill://acme/refunds/inner/SKILL.md"},
            {"uri": "skill://acme/refunds/inner/a.md", "size": -1},
            {"uri": "skill://acme/refunds/_manifest"},
            {"uri": "skill://acme/refunds/deep/_manifest"},
            {"uri": "skill://acme/other.md"},
            {"uri": "skill://acme/refunds-2/x.md"},
        )
    )
    inner = "skill://acme/refunds/inner"
    assert {entry.uri: entry.resources for entry in entries} == {
        URI: Partial(
            (
                Resource(URI, None, 5, "SKILL.md"),
                Resource("skill://acme/refunds/deep/_manifest", None, None, "deep/_manifest"),
                Resource(f"{inner}/SKILL.md", None, None, "inner/SKILL.md"),
                Resource(f"{inner}/a.md", None, None, "inner/a.md"),
                Resource("skill://acme/refunds/z.md", None, 7, "z.md"),
            )
        ),
        f"{inner}/SKILL.md": Partial(
            (
                Resource(f"{inner}/SKILL.md", None, None, "SKILL.md"),
                Resource(f"{inner}/a.md", None, None, "a.md"),
            )
        ),
    }
    assert entries[0].frontmatter == {"name": "refunds", "description": "Refund."}
    assert all({"manifest", "digest", "frontmatter"} <= entry.gaps for entry in entries)


@rule("I4", "O3", "U7")
@pytest.mark.anyio
@pytest.mark.parametrize(
    "uri",
    ["skill://SKILL.md", "skill://a/skill.md", "file:///home/a/SKILL.md", "a/SKILL.md", "skill://a/../b/SKILL.md",
     "skill://a/SKILL.md?x", None],
)  # fmt: skip
async def test_other_resources_are_no_skills_and_no_mistake(uri: object) -> None:
    """A server has resources of its own."""
    assert [entry.uri for entry in await listed(plain({"uri": uri}, {}, {"uri": URI}))] == [URI]


def with_manifest(files: bytes | None, data: bytes = SKILL_MD) -> PlainDialect:
    resources = {URI: text(URI, data)}
    if files is not None:
        resources["skill://acme/refunds/_manifest"] = text("skill://acme/refunds/_manifest", files)
    return PlainDialect(serving(resources), ignored)


@rule("E2", "V1")
@pytest.mark.anyio
async def test_a_skill_with_a_manifest_is_promised_whole() -> None:
    entry = await with_manifest(manifest(file("SKILL.md"), file("x", digest_of(b"x"), 1))).get_skill(URI)
    assert entry.gaps == frozenset()
    assert entry.name == "refunds"
    assert len(entry.files) == 2


@rule("I4", "V1")
@pytest.mark.anyio
async def test_a_skill_without_a_manifest_promises_no_digest() -> None:
    entry = await with_manifest(None).get_skill(URI)
    assert entry.resources == Partial((Resource(URI, None, None, "SKILL.md"),))
    assert entry.whole_frontmatter


@rule("V1")
@pytest.mark.anyio
async def test_a_skill_md_that_is_not_what_its_manifest_says_is_refused() -> None:
    with pytest.raises(VerificationError) as caught:
        await with_manifest(manifest(file("SKILL.md")), SKILL_MD[:-1] + b"!").get_skill(URI)
    assert caught.value.reference == "digest-mismatch"


NO_MANIFEST = {
    "prose": b"prose", "list": b"[]", "deep": b"[" * 100_000, "no-files": b'{"skill": "refunds"}',
    "files-are-an-object": b'{"files": {}}', "empty": b'{"files": []}', "items-without-a-path": b'{"files": [{}]}',
    "one-item-is-text": json.dumps({"files": [file("SKILL.md"), "x"]}).encode(),
}  # fmt: skip
BROKEN = {
    "no-hash": manifest({"path": "SKILL.md"}), "no-skill-md": manifest(file("x")), "no-path": manifest(file(None)),
}  # fmt: skip


@rule("I4", "V7")
@pytest.mark.anyio
@pytest.mark.parametrize("data", NO_MANIFEST.values(), ids=NO_MANIFEST)
async def test_a_file_that_only_has_the_name_is_no_manifest(data: bytes) -> None:
    """An author may call a file so."""
    assert not is_manifest(data)
    assert (await with_manifest(data).get_skill(URI)).resources == Partial(
        (Resource(URI, None, None, "SKILL.md"),)
    )


@rule("E2")
@pytest.mark.anyio
@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
async def test_a_broken_manifest_is_not_taken_for_a_missing_one(data: bytes) -> None:
    """Less would be promised than the server meant."""
    assert is_manifest(data)
    with pytest.raises(FormatError):
        await with_manifest(data).get_skill(URI)


@rule("U3")
@pytest.mark.anyio
async def test_a_skill_md_with_another_name_is_refused() -> None:
    with pytest.raises(FormatError) as caught:
        await with_manifest(None, skill_md("other")).get_skill(URI)
    assert caught.value.rule == "U3"


@rule("G1")
@pytest.mark.anyio
@pytest.mark.parametrize("uri", ["skill://acme/gone/SKILL.md", "skill://acme/refunds/x.md"])
async def test_what_is_no_skill_is_not_found(uri: str) -> None:
    with pytest.raises(NotFoundError):
        await with_manifest(None).get_skill(uri)
