"""I1, I2, I3, V1, E5: both generations of the index, and the packed skills that they name."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from answering import Answering, serving, text
from archives import pack_tar_gz, pack_zip
from rules import rule
from skillwire.client.dialects.index import INDEX_URI, Archive, IndexDialect, parse_index, parse_index_entry
from skillwire.errors import FormatError, LimitError, NotFoundError, ProtocolError, VerificationError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.entry import Partial, Resource, digest_of
from skillwire.skill.verify import verify_file, verify_frontmatter, verify_skill_md
from trees import skill_md

if TYPE_CHECKING:
    from skillwire.skill import Diagnostic, SkillEntry

SKILL_MD = skill_md("refunds", "Refund an order.", extra="license: MIT\n")
FIELDS = {"name": "refunds", "description": "Refund an order.", "license": "MIT"}
URI = "skill://acme/refunds/SKILL.md"
DIGEST = digest_of(SKILL_MD)
FILES = {"SKILL.md": SKILL_MD, "a b/c.md": b"more", "data.bin": bytes(range(256))}
TAR, ZIP = pack_tar_gz(FILES), pack_zip(FILES)
TAR_URI, ZIP_URI = "skill://acme/refunds.tar.gz", "skill://acme/refunds.zip"

OLDER = {"name": "refunds", "type": "skill-md", "description": "Refund an order.", "url": URI, "digest": DIGEST}
OLDER_ARCHIVE = {**OLDER, "type": "archive", "url": TAR_URI, "digest": digest_of(TAR)}
NEWER = {"frontmatter": FIELDS, "url": URI, "digest": DIGEST}
PACKED = {"url": TAR_URI, "mimeType": "application/gzip", "digest": digest_of(TAR)}
NEWER_ARCHIVE = {"frontmatter": FIELDS, "archives": [PACKED]}


def without(item: dict[str, Any], *fields: str) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key not in fields}


def refusal(item: dict[str, Any]) -> FormatError:
    with pytest.raises(FormatError) as caught:
        parse_index_entry(item)
    assert caught.value.hint
    return caught.value


# ── one entry ────────────────────────────────────────────────────────────────────────────────────────────────


@rule("I1")
def test_an_entry_of_the_older_generation_has_a_name_a_description_and_a_place() -> None:
    """What it does not say is not promised."""
    skill = parse_index_entry(OLDER)
    assert skill.archive is None
    assert skill.entry.uri == URI
    assert skill.entry.frontmatter == without(FIELDS, "license")
    assert skill.entry.resources == Partial((Resource(URI, DIGEST, None, "SKILL.md"),))
    assert skill.entry.gaps == {"manifest", "size", "frontmatter"}


@rule("I1")
def test_an_entry_of_the_newer_generation_has_the_whole_frontmatter() -> None:
    skill = parse_index_entry(NEWER)
    assert skill.entry.frontmatter == FIELDS
    assert skill.entry.whole_frontmatter
    assert skill.entry.gaps == {"manifest", "size"}


@rule("I1", "V1")
@pytest.mark.parametrize("item", [OLDER, NEWER], ids=["older", "newer"])
def test_without_a_digest_none_is_promised(item: dict[str, Any]) -> None:
    for given in (without(item, "digest"), item | {"digest": None}):
        skill = parse_index_entry(given)
        assert skill.entry.files == (Resource(URI, None, None, "SKILL.md"),)
        assert "digest" in skill.entry.gaps


@rule("I1")
def test_a_document_may_serve_both_generations_at_once() -> None:
    """The newer reading wins, since it promises more."""
    assert parse_index_entry(OLDER | NEWER | {"description": "other"}) == parse_index_entry(NEWER)


@rule("I1", "I2")
def test_an_archive_of_the_older_generation_is_the_skill_beside_it() -> None:
    """Its digest is the archive's, not the SKILL.md's."""
    skill = parse_index_entry(OLDER_ARCHIVE | {"mimeType": "application/gzip"})
    assert skill.archive == Archive(TAR_URI, "application/gzip", digest_of(TAR))
    assert skill.entry.uri == URI
    assert skill.entry.files == (Resource(URI, None, None, "SKILL.md"),)


@rule("I2")
def test_a_skill_that_is_only_packed_has_its_place_from_the_archive() -> None:
    skill = parse_index_entry(NEWER_ARCHIVE)
    assert skill.entry.uri == URI
    assert skill.archive == Archive(TAR_URI, "application/gzip", digest_of(TAR))


@rule("I1", "I2")
def test_a_skill_may_be_there_as_files_and_packed() -> None:
    """Of several archives the first is taken."""
    packed = [PACKED | {"url": ZIP_URI, "mimeType": "application/zip"}, PACKED]
    skill = parse_index_entry(NEWER | {"archives": packed})
    assert skill.archive is not None
    assert skill.archive.uri == ZIP_URI
    assert skill.entry.files == (Resource(URI, DIGEST, None, "SKILL.md"),)


MIXED = OLDER_ARCHIVE | {"frontmatter": FIELDS, "url": ZIP_URI, "digest": digest_of(ZIP)}


@rule("I1", "I2")
def test_an_archive_may_have_the_fields_of_both_generations() -> None:
    """Its digest is the archive's; of the archives that it lists, the first is taken."""
    skill = parse_index_entry(MIXED)
    assert (skill.entry.uri, skill.entry.frontmatter, skill.entry.whole_frontmatter) == (URI, FIELDS, True)
    assert skill.entry.files == (Resource(URI, None, None, "SKILL.md"),)
    assert skill.archive == Archive(ZIP_URI, None, digest_of(ZIP))
    listed = parse_index_entry(MIXED | {"archives": [PACKED]})
    assert (listed.entry, listed.archive) == (skill.entry, Archive(TAR_URI, "application/gzip", digest_of(TAR)))


@rule("I1", "I2", "E5")
@pytest.mark.anyio
@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(OLDER, OLDER_ARCHIVE, id="older"),
        pytest.param(NEWER_ARCHIVE, NEWER, id="newer-archive-first"),
        pytest.param(OLDER_ARCHIVE, NEWER, id="older-archive-first"),
        pytest.param(OLDER, MIXED, id="archive-of-both"),
    ],
)
async def test_a_skill_may_be_listed_once_as_a_file_and_once_packed(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    """Together they promise what each of them does."""
    index = Index(first, second)
    [entry] = await index.listed()
    assert (entry.files, index.problems) == ((Resource(URI, DIGEST, None, "SKILL.md"),), [])
    assert entry.whole_frontmatter == ("frontmatter" in first or "frontmatter" in second)
    got = await index.dialect.get_skill(URI)
    assert got.is_complete
    assert got.resource(URI) == Resource(URI, DIGEST, len(SKILL_MD), "SKILL.md")
    assert {file.uri.rpartition("/")[2] for file in got.files} == {"SKILL.md", "c.md", "data.bin"}


@rule("I1")
@pytest.mark.parametrize("field", ["name", "description"])
def test_the_older_generation_may_leave_out_labels(field: str) -> None:
    """Servers do; the name is in the URL."""
    entry = parse_index_entry(without(OLDER, field)).entry
    assert entry.name == "refunds"
    assert entry.description == ("" if field == "description" else "Refund an order.")


@rule("V4")
def test_a_skill_without_a_description_in_the_index_can_be_verified() -> None:
    """What was not sent cannot differ."""
    entry = parse_index_entry(without(OLDER, "description")).entry
    assert verify_frontmatter(entry, SKILL_MD).frontmatter["description"] == "Refund an order."
    lying = parse_index_entry(OLDER | {"description": "Steal."}).entry
    with pytest.raises(VerificationError):
        verify_skill_md(lying, SKILL_MD)


@rule("I1", "U5")
@pytest.mark.parametrize(
    ("url", "uri"),
    [
        ("refunds/SKILL.md", "skill://refunds/SKILL.md"),
        ("./refunds/SKILL.md", "skill://refunds/SKILL.md"),
        ("/acme/refunds/SKILL.md", URI),
        ("repo://acme/refunds/SKILL.md", "repo://acme/refunds/SKILL.md"),
        ("https://example.com/refunds/SKILL.md", "https://example.com/refunds/SKILL.md"),
    ],
)
def test_a_relative_url_is_one_beside_the_index(url: str, uri: str) -> None:
    """And no scheme makes a skill."""
    assert parse_index_entry(OLDER | {"url": url}).entry.uri == uri
    assert parse_index_entry(NEWER | {"url": url}).entry.uri == uri


@rule("I1", "U1", "U7")
@pytest.mark.parametrize(
    "url",
    ["../refunds/SKILL.md", "%2e%2e/refunds/SKILL.md", "a\\refunds/SKILL.md", "refunds/skill.md", "SKILL.md"],
)
def test_a_url_that_leads_elsewhere_or_to_no_skill_is_refused(url: str) -> None:
    assert refusal(OLDER | {"url": url}).reference == "uri-invalid"
    assert refusal(NEWER | {"url": url}).reference == "uri-invalid"


@rule("O3")
@pytest.mark.parametrize("url", ["file:///refunds/SKILL.md", "FILE:/refunds/SKILL.md"])
def test_a_url_that_names_a_file_of_a_machine_is_refused(url: str) -> None:
    """Of a skill or of an archive."""
    packed = url.replace("/SKILL.md", ".zip")
    for item in (
        OLDER | {"url": url}, NEWER | {"url": url}, OLDER_ARCHIVE | {"url": packed},
        NEWER | {"archives": [PACKED | {"url": packed}]},
    ):  # fmt: skip
        assert refusal(item).rule == "O3"


@rule("I1")
@pytest.mark.parametrize("url", ["left out", "", 5])
def test_an_entry_needs_a_url(url: object) -> None:
    for item in (OLDER, NEWER, OLDER_ARCHIVE):
        error = refusal(without(item, "url") if url == "left out" else item | {"url": url})
        assert (error.reference, error.rule) == ("entry-invalid", "I1")


@rule("U3")
@pytest.mark.parametrize("name", ["refund", "acme/refunds", 5])
def test_a_name_that_is_not_the_folders_is_refused(name: object) -> None:
    """In both generations, packed or not."""
    for item in (
        OLDER | {"name": name},
        OLDER_ARCHIVE | {"name": name},
        NEWER | {"frontmatter": FIELDS | {"name": name}},
        NEWER_ARCHIVE | {"frontmatter": FIELDS | {"name": name}},
    ):
        assert refusal(item).rule == "U3"
    assert refusal(NEWER | {"frontmatter": without(FIELDS, "name")}).rule == "U3"


@rule("E1")
@pytest.mark.parametrize("description", [None, 5])
def test_a_description_is_text(description: object) -> None:
    """The newer generation has to have one."""
    assert refusal(OLDER | {"description": description}).rule == "E1"
    assert refusal(NEWER | {"frontmatter": FIELDS | {"description": description}}).rule == "E1"
    assert refusal(NEWER | {"frontmatter": without(FIELDS, "description")}).rule == "E1"


@rule("E3", "V1")
@pytest.mark.parametrize(
    "digest",
    ["", "0" * 64, "sha256:" + "A" * 64, DIGEST[:-1], False],
    ids=["empty", "bare", "capitals", "short", "false"],
)
def test_a_broken_digest_is_no_missing_digest(digest: object) -> None:
    """Whether of the file or of the archive."""
    for item in (
        OLDER | {"digest": digest},
        NEWER | {"digest": digest},
        OLDER_ARCHIVE | {"digest": digest},
        NEWER_ARCHIVE | {"archives": [PACKED | {"digest": digest}]},
    ):
        error = refusal(item)
        assert (error.reference, error.rule) == ("digest-invalid", "E3")


@rule("I1")
@pytest.mark.parametrize("item", [OLDER, NEWER], ids=["older", "newer"])
def test_a_template_is_no_skill(item: dict[str, Any]) -> None:
    error = refusal(item | {"type": "mcp-resource-template", "url": "skill://{region}/refunds/SKILL.md"})
    assert (error.reference, error.rule) == ("entry-template", "I1")


@rule("I1")
@pytest.mark.parametrize(
    "item",
    [{}, {"frontmatter": None}, {"archives": [PACKED]}],
    ids=["empty", "no-frontmatter", "archives-alone"],
)
def test_an_entry_of_another_shape_is_refused(item: dict[str, Any]) -> None:
    assert refusal(item).reference == "entry-invalid"


# ── the document ─────────────────────────────────────────────────────────────────────────────────────────────


@rule("I1")
def test_an_index_is_an_object_with_a_list_of_skills() -> None:
    """Whatever else it has; what is no object is an empty entry, to be refused as one."""
    document = {"$schema": "x", "skills": [OLDER, 5, None, NEWER], "more": 1}
    assert parse_index(json.dumps(document).encode()) == [OLDER, {}, {}, NEWER]
    assert parse_index(b'\xef\xbb\xbf{"skills": []}') == []


@rule("I1")
@pytest.mark.parametrize(
    "data",
    [b"# Skills\n", b"\xff\xfe", b"[" * 100_000, b'{"skills": [' + b"9" * 5000 + b"]}", b"[]", b"{}",
     b'{"skills": {}}'],
    ids=["prose", "bytes", "deep", "long-number", "list", "no-skills", "skills-are-an-object"],
)  # fmt: skip
def test_anything_else_is_no_index(data: bytes) -> None:
    with pytest.raises(ProtocolError) as caught:
        parse_index(data)
    assert (caught.value.reference, caught.value.rule, caught.value.side) == ("index-invalid", "I1", "remote")


@rule("B3")
def test_an_index_may_have_so_many_entries_and_no_more() -> None:
    data = json.dumps({"skills": [OLDER] * 3}).encode()
    assert len(parse_index(data, Limits(max_entries=3))) == 3
    with pytest.raises(LimitError) as caught:
        parse_index(data, Limits(max_entries=2))
    assert (caught.value.reference, caught.value.rule) == ("listing-too-long", "B3")


# ── the dialect ──────────────────────────────────────────────────────────────────────────────────────────────


def binary(uri: str, data: bytes) -> dict[str, Any]:
    return {"contents": [{"uri": uri, "blob": b64encode(data).decode()}]}


class Index:
    """A server with these entries in its index, and these resources beside it."""

    def __init__(self, *items: Any, limits: Limits = DEFAULT_LIMITS, **archives: bytes) -> None:
        self.problems: list[Diagnostic] = []
        packed = {"tar": (TAR_URI, TAR), "zip": (ZIP_URI, ZIP)}
        self.connection: Answering = serving(
            {
                INDEX_URI: text(INDEX_URI, json.dumps({"skills": items}).encode()),
                URI: text(URI, SKILL_MD),
                **{uri: binary(uri, archives.get(form, data)) for form, (uri, data) in packed.items()},
            },
            limits,
        )
        self.dialect = IndexDialect(self.connection, self.problems.append)

    async def listed(self) -> list[SkillEntry]:
        return [entry async for page in self.dialect.pages() for entry in page]

    @property
    def asked(self) -> list[str]:
        return [params["uri"] for _, params in self.connection.asked]


@rule("V5", "I1")
@pytest.mark.anyio
@pytest.mark.parametrize("item", [OLDER, NEWER_ARCHIVE], ids=["file", "archive"])
async def test_listing_reads_the_index_and_nothing_else(item: dict[str, Any]) -> None:
    index = Index(item)
    assert [entry.uri for entry in await index.listed()] == [URI]
    assert index.asked == [INDEX_URI]
    assert index.problems == []


@rule("I1", "L2")
@pytest.mark.anyio
async def test_what_cannot_be_used_is_reported_and_spoils_nothing() -> None:
    """Each with its rule."""
    other = "skill://b/other/SKILL.md"
    index = Index(
        OLDER | {"url": other}, 5, OLDER | {"digest": "x"}, NEWER, {**OLDER, "type": "mcp-resource-template"}
    )
    assert [entry.uri for entry in await index.listed()] == [URI]
    assert [(problem.reference, problem.rule, problem.file) for problem in index.problems] == [
        ("entry-invalid", "U3", other),
        ("entry-invalid", "I1", "an entry without a URI"),
        ("entry-invalid", "E3", URI),
        ("entry-template", "I1", URI),
    ]


@rule("E5", "N1")
@pytest.mark.anyio
@pytest.mark.parametrize(
    "items",
    [
        pytest.param((NEWER, OLDER), id="two-files"),
        pytest.param((OLDER_ARCHIVE, OLDER_ARCHIVE | {"url": ZIP_URI}), id="two-archives"),
        pytest.param((NEWER | {"archives": [PACKED]}, NEWER), id="both-then-file"),
        pytest.param((NEWER, NEWER | {"archives": [PACKED]}), id="file-then-both"),
        pytest.param((NEWER | {"archives": [PACKED]}, NEWER_ARCHIVE), id="both-then-archive"),
        pytest.param((OLDER, OLDER | {"url": "skill://acme/%72efunds/SKILL.md"}), id="other-spelling"),
    ],
)
async def test_a_skill_that_comes_twice_counts_once_the_first_time(items: tuple[dict[str, Any], ...]) -> None:
    """And the other is reported, not dropped in silence."""
    index = Index(*items)
    assert await index.listed() == [parse_index_entry(items[0]).entry]
    assert [(problem.reference, problem.rule) for problem in index.problems] == [("entry-repeated", "E5")]


@rule("E5")
@pytest.mark.anyio
@pytest.mark.parametrize(
    "third",
    [OLDER | {"digest": digest_of(b"evil")}, OLDER_ARCHIVE | {"url": ZIP_URI}, NEWER],
    ids=["other-digest", "other-archive", "newer"],
)
async def test_a_third_entry_replaces_neither_of_the_two_that_are_one(third: dict[str, Any]) -> None:
    index = Index(OLDER, OLDER_ARCHIVE, third)
    [entry] = await index.listed()
    assert entry.files == (Resource(URI, DIGEST, None, "SKILL.md"),)
    assert not entry.whole_frontmatter
    assert [problem.reference for problem in index.problems] == ["entry-repeated"]
    await index.dialect.get_skill(URI)
    assert index.asked[-1] == TAR_URI


@rule("I2", "V1")
@pytest.mark.anyio
@pytest.mark.parametrize(
    "item",
    [OLDER_ARCHIVE, NEWER_ARCHIVE, NEWER | {"archives": [{"url": ZIP_URI, "digest": digest_of(ZIP)}]}],
    ids=["older", "newer", "zip-without-a-type"],
)
async def test_a_packed_skill_is_complete_once_it_was_unpacked(item: dict[str, Any]) -> None:
    """The digest of the archive promises every file in it."""
    index = Index(item)
    entry = await index.dialect.get_skill(URI)
    assert entry.is_complete
    assert entry.gaps == ({"frontmatter"} if item is OLDER_ARCHIVE else set())
    uris = {
        "SKILL.md": URI,
        "a b/c.md": "skill://acme/refunds/a%20b/c.md",
        "data.bin": "skill://acme/refunds/data.bin",
    }
    assert {file.uri for file in entry.files} == set(uris.values())
    for path, uri in uris.items():
        data = await index.dialect.read(uri, 10**6)
        assert data == FILES[path]
        assert verify_file(entry, uri, data).data == data
    assert verify_frontmatter(entry, SKILL_MD).frontmatter == FIELDS
    assert len(index.asked) == 2  # the index and the archive, once each


@rule("I2", "V1")
@pytest.mark.anyio
async def test_an_archive_without_a_digest_promises_nothing() -> None:
    """Its files are known, not vouched for."""
    index = Index(OLDER_ARCHIVE | {"digest": None})
    entry = await index.dialect.get_skill(URI)
    assert not entry.is_complete
    assert len(entry.files) == len(FILES)
    assert all(file.digest is None and file.size is not None for file in entry.files)
    with pytest.raises(VerificationError):
        verify_skill_md(entry, SKILL_MD)


@rule("V1")
@pytest.mark.anyio
async def test_the_digest_of_a_skill_md_is_kept_when_its_archive_has_none() -> None:
    """A promise that was made is not forgotten."""
    index = Index(NEWER | {"archives": [PACKED | {"digest": None}]})
    entry = await index.dialect.get_skill(URI)
    assert entry.resource(URI) == Resource(URI, DIGEST, len(SKILL_MD), "SKILL.md")
    assert verify_skill_md(entry, SKILL_MD).digest == DIGEST
    assert [file.digest for file in entry.files if file.uri != URI] == [None, None]


@rule("V1")
@pytest.mark.anyio
@pytest.mark.parametrize("packed", [PACKED, PACKED | {"digest": None}], ids=["digest", "no-digest"])
async def test_an_archive_with_another_skill_md_than_the_index_says_is_refused(packed: dict[str, Any]) -> None:
    """Two promises about one file, of which one is broken."""
    index = Index(NEWER | {"digest": digest_of(b"other"), "archives": [packed]})
    with pytest.raises(VerificationError) as caught:
        await index.dialect.get_skill(URI)
    assert (caught.value.reference, caught.value.rule) == ("digest-mismatch", "V1")


@rule("V1")
@pytest.mark.anyio
async def test_an_archive_that_is_not_what_the_index_says_is_not_unpacked() -> None:
    """The digest is looked at first; this is no archive at all."""
    index = Index(OLDER_ARCHIVE, tar=b"rotated")
    for act in (index.dialect.get_skill(URI), index.dialect.read(URI, 10**6)):
        with pytest.raises(VerificationError) as caught:
            await act
        assert (caught.value.reference, caught.value.rule) == ("digest-mismatch", "V1")
        assert digest_of(b"rotated") in caught.value.message
        assert caught.value.hint


@rule("I2", "I3")
@pytest.mark.anyio
async def test_an_archive_of_another_kind_or_broken_is_refused() -> None:
    for index, reference in (
        (Index(OLDER_ARCHIVE | {"digest": digest_of(ZIP)}, tar=ZIP), "archive-refused"),
        (Index(NEWER_ARCHIVE | {"archives": [PACKED | {"mimeType": "application/zip"}]}), "archive-refused"),
        (
            Index(NEWER | {"archives": [PACKED | {"url": "skill://acme/x.7z", "mimeType": "x/7z"}]}),
            "archive-unknown",
        ),
    ):
        with pytest.raises(FormatError) as caught:
            await index.dialect.get_skill(URI)
        assert caught.value.reference == reference


@rule("B1", "I3")
@pytest.mark.anyio
async def test_an_archive_that_is_too_large_is_not_decoded() -> None:
    index = Index(OLDER_ARCHIVE, limits=Limits(max_archive_bytes=len(TAR) - 1))
    with pytest.raises(LimitError) as caught:
        await index.dialect.get_skill(URI)
    assert caught.value.reference == "file-too-large"


@rule("I2")
@pytest.mark.anyio
async def test_a_file_that_the_archive_does_not_have_is_not_asked_for_elsewhere() -> None:
    """Contents populate the skill exactly as files would."""
    index = Index(OLDER_ARCHIVE)
    with pytest.raises(NotFoundError):
        await index.dialect.read("skill://acme/refunds/more.md", 10**6)
    assert index.asked == [INDEX_URI, TAR_URI]


@rule("B1")
@pytest.mark.anyio
async def test_archives_are_kept_up_to_the_size_of_one_skill() -> None:
    """The ones used last; others are fetched again."""
    others = {f"skill://x/s{number}.zip": pack_zip({"SKILL.md": skill_md(f"s{number}"), "big": b"x" * 900})
              for number in range(3)}  # fmt: skip
    items = [
        {"type": "archive", "url": uri, "digest": digest_of(data), "description": ""}
        for uri, data in others.items()
    ]
    connection = serving(
        {INDEX_URI: text(INDEX_URI, json.dumps({"skills": items}).encode())}
        | {uri: binary(uri, data) for uri, data in others.items()},
        Limits(max_skill_bytes=2200),
    )
    dialect = IndexDialect(connection, lambda _: None)
    for number in (0, 1, 0, 1, 2, 1, 0):
        assert await dialect.read(f"skill://x/s{number}/big", 10**6) == b"x" * 900
    fetched = [params["uri"] for _, params in connection.asked if params["uri"] != INDEX_URI]
    assert fetched == [f"skill://x/s{number}.zip" for number in (0, 1, 2, 0)]


@rule("I1")
@pytest.mark.anyio
async def test_a_plain_skill_is_read_as_any_resource() -> None:
    index = Index(OLDER)
    entry = await index.dialect.get_skill("SKILL://acme/%72efunds/SKILL.md")
    assert entry == parse_index_entry(OLDER).entry
    assert await index.dialect.read(URI, 10**6) == SKILL_MD
    assert verify_skill_md(entry, SKILL_MD).data == SKILL_MD


@rule("G1", "I5")
@pytest.mark.anyio
async def test_a_skill_that_the_index_does_not_list_is_asked_for_itself() -> None:
    """A template makes skills that no index lists; nothing is promised about them."""
    entry = await Index().dialect.get_skill(URI)
    assert entry.frontmatter == FIELDS
    assert entry.gaps == {"manifest", "digest", "size"}
    with pytest.raises(NotFoundError):
        await Index().dialect.get_skill("skill://acme/gone/SKILL.md")


@rule("I1", "I4")
@pytest.mark.anyio
async def test_a_server_without_an_index_says_so() -> None:
    dialect = IndexDialect(serving({}), lambda _: None)
    with pytest.raises(ProtocolError) as caught:
        await dialect.get_skill(URI)
    assert (caught.value.reference, caught.value.rule) == ("index-missing", "I1")


@rule("B1")
@pytest.mark.anyio
async def test_an_index_that_is_too_large_is_not_parsed() -> None:
    index = Index(OLDER, limits=replace(DEFAULT_LIMITS, max_index_bytes=50))
    with pytest.raises(LimitError) as caught:
        await index.listed()
    assert caught.value.rule == "B1"
