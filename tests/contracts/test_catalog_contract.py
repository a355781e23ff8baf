"""What every catalog guarantees, whatever it is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from rules import rule
from skillwire import CombinedCatalog, DirectoryCatalog, MemoryCatalog, ProtocolError, Skill, SkillwireError
from skillwire.catalog import safe_open
from skillwire.skill import digest_of, format_uri, parse_entry
from trees import SMALL_TREE_SKILLS, files_of, skill_md, small_tree

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from contracts.conftest import Sample
    from skillwire import Catalog

pytestmark = pytest.mark.anyio

PATIENCE = 60


async def listed(catalog: Catalog, limit: int = 100) -> list[str]:
    """The paths in the listing, page by page of ``limit``."""
    paths: list[str] = []
    cursor = None
    while True:
        page = await catalog.list_skills(cursor, limit)
        assert len(page.items) <= limit
        paths += [entry.path for entry in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return paths


async def refused(ask: Callable[[str], Awaitable[object]], values: Iterable[str]) -> dict[str, str]:
    """The kind of error that each value is answered with; without an error, an empty string."""
    found: dict[str, str] = {}
    for value in values:
        found[value] = ""
        try:
            await ask(value)
        except SkillwireError as error:
            found[value] = type(error).__name__
    return found


@rule("L1", "L2")
async def test_every_skill_is_listed_once_whatever_the_page_size(catalog: Catalog) -> None:
    """Nested skills appear flat."""
    paths = await listed(catalog)
    assert sorted(paths) == SMALL_TREE_SKILLS
    for limit in (1, 4, 5, 6):
        assert await listed(catalog, limit) == paths


@rule("E1", "E2", "E3", "E4")
async def test_an_entry_lists_every_file_with_digest_and_size(catalog: Catalog) -> None:
    """Complete, sorted, and the nested skill's files are in the enclosing one's entry."""
    tree = small_tree()
    async for entry in catalog.entries():
        assert entry == parse_entry(entry.to_json())
        expected = {
            format_uri(f"{entry.path}/{path}"): (digest_of(data), len(data))
            for path, data in files_of(tree, entry.path).items()
        }
        assert {uri: (digest, size) for uri, digest, size in entry.files} == expected
        assert [resource.uri for resource in entry.files] == sorted(expected)


@rule("G1")
async def test_getting_a_skill_gives_the_entry_of_the_listing(catalog: Catalog) -> None:
    async for entry in catalog.entries():
        assert await catalog.get_skill(entry.uri) == entry


@rule("F6", "R2")
async def test_every_file_reads_as_the_very_bytes_that_were_written(catalog: Catalog) -> None:
    """BOM, CRLF, binary and empty files survive."""
    tree = small_tree()
    read: dict[str, bytes] = {}
    async for entry in catalog.entries():
        for resource in entry.files:
            file = await catalog.read_file(resource.uri)
            assert file.uri == resource.uri
            assert (digest_of(file.data), len(file.data)) == (resource.digest, resource.size)
            read[resource.uri] = file.data
    assert read == {format_uri(path): data for path, data in tree.items()}


@rule("U7")
async def test_other_spellings_of_a_uri_mean_the_same(catalog: Catalog) -> None:
    """Comparison is on decoded segments."""
    for uri in ("skill://flat/SKILL%2Emd", "SKILL://flat/SKILL.md", "skill://fl%61t/SKILL.md"):
        assert (await catalog.get_skill(uri)).uri == "skill://flat/SKILL.md"
        assert (await catalog.read_file(uri)).uri == "skill://flat/SKILL.md"


UNKNOWN_URIS = [
    "skill://flat",
    "skill://flat/skill.md",
    "skill://Flat/SKILL.md",
    "skill://nothing/SKILL.md",
    "skill://SKILL.md",
    "skill://acme/billing/SKILL.md",
    "other://flat/SKILL.md",
    "skill://flat/nothing.md",
    "skill://" + "a/" * 120 + "SKILL.md",
]


@rule("G1", "U4", "U5")
async def test_an_unknown_uri_is_not_found(catalog: Catalog) -> None:
    """Unknown, another case, another scheme, absurdly deep."""
    expected = dict.fromkeys(UNKNOWN_URIS, "NotFoundError")
    assert await refused(catalog.get_skill, UNKNOWN_URIS) == expected
    assert await refused(catalog.read_file, UNKNOWN_URIS) == expected


# Each spelling is refused by ``parse_uri``: see tests/unit/skill/test_uri.py for all of them.
UNSAFE_TAILS = [
    "../flat/SKILL.md",
    "%2e%2e/flat/SKILL.md",
    "a//b",
    "a%2Fb",
    "a\\b",
    "%00",
    "%ff",
    "SKILL.md/",
    "SKILL.md?x",
]


@rule("U6", "U7")
async def test_an_unsafe_uri_is_refused(catalog: Catalog) -> None:
    """Dots, encoded slashes, control characters, a query, and far too long."""
    uris = [f"skill://flat/{tail}" for tail in (*UNSAFE_TAILS, "a/" * 1500 + "x")]
    for ask in (catalog.get_skill, catalog.read_file, catalog.read_directory):
        kinds = await refused(ask, uris)
        assert [uri for uri in uris if kinds[uri] not in ("FormatError", "NotFoundError")] == []


@rule("D1")
async def test_a_directory_gives_its_direct_children(catalog: Catalog) -> None:
    children = [child async for child in catalog.children("skill://acme/billing/refunds")]
    assert [(child.name, child.is_directory) for child in children] == [
        ("SKILL.md", False),
        ("references", True),
        ("templates", True),
    ]
    assert children[1].uri == "skill://acme/billing/refunds/references"
    assert children[0].size == len(small_tree()["acme/billing/refunds/SKILL.md"])


@rule("D1", "L3")
async def test_a_directory_is_paged_without_loss(catalog: Catalog) -> None:
    first = await catalog.read_directory("skill://odd-names/assets", None, 1)
    assert first.next_cursor is not None
    second = await catalog.read_directory("skill://odd-names/assets", first.next_cursor, 1)
    assert [child.name for child in (*first.items, *second.items)] == ["100%.bin", "empty"]
    assert second.next_cursor is None
    assert (await catalog.read_directory("skill://odd-names/assets", None, 2)).next_cursor is None


@rule("D1", "E2")
async def test_walking_a_skill_meets_the_files_of_its_entry(catalog: Catalog) -> None:
    async for entry in catalog.entries():
        root = entry.uri.removesuffix("/SKILL.md")
        walked = sorted([child.uri async for child in catalog.walk(root)])
        assert walked == [resource.uri for resource in entry.files]


@rule("D1")
async def test_what_is_no_directory_of_a_skill_is_not_found(catalog: Catalog) -> None:
    """A file, or an unknown name. A server answers for the folders above skills, whatever its catalog does."""
    uris = ["skill://flat/SKILL.md", "skill://nothing", "skill://flat/nothing"]
    assert await refused(catalog.read_directory, uris) == dict.fromkeys(uris, "NotFoundError")


@rule("L3")
async def test_a_bad_cursor_is_refused(catalog: Catalog) -> None:
    """Empty, not base64, not ours, not ASCII, far too long."""
    for cursor in ("", "%%%", "AAAA", "é", "a" * 100_000):
        with pytest.raises(ProtocolError) as caught:
            await catalog.list_skills(cursor)
        assert caught.value.reference == "cursor-invalid"
        with pytest.raises(ProtocolError):
            await catalog.read_directory("skill://flat", cursor)


@rule("L3")
async def test_a_cursor_of_one_listing_is_no_cursor_of_another(catalog: Catalog) -> None:
    of_folder = (await catalog.read_directory("skill://odd-names/assets", None, 1)).next_cursor
    of_skills = (await catalog.list_skills(None, 1)).next_cursor
    assert of_folder is not None
    assert of_skills is not None
    with pytest.raises(ProtocolError):
        await catalog.list_skills(of_folder)
    with pytest.raises(ProtocolError):
        await catalog.read_directory("skill://acme/release", of_folder)
    with pytest.raises(ProtocolError):
        await catalog.read_directory("skill://odd-names/assets", of_skills)


async def test_a_clean_tree_has_no_problems(catalog: Catalog) -> None:
    assert list(await catalog.problems()) == []


@rule("L3")
async def test_a_change_between_pages_neither_skips_nor_repeats(changeable: Sample) -> None:
    """What stayed is seen once; the page boundary itself may go away."""
    catalog, put, remove = changeable.catalog, changeable.put, changeable.remove
    first = await catalog.list_skills(None, 3)
    seen = [entry.path for entry in first.items]
    await remove("flat")  # on some catalogs before the boundary, on others after it
    await put(Skill("aaa", {"SKILL.md": skill_md("aaa")}))
    await put(Skill("zzz", {"SKILL.md": skill_md("zzz")}))
    cursor = first.next_cursor
    while cursor is not None:
        page = await catalog.list_skills(cursor, 1)
        seen += [entry.path for entry in page.items]
        cursor = page.next_cursor
    assert len(seen) == len(set(seen))
    assert set(SMALL_TREE_SKILLS) - {"flat"} <= set(seen)
    assert "zzz" in seen


@rule("S1")
async def test_changes_are_told_with_their_uris(changeable: Sample) -> None:
    catalog, put, remove = changeable.catalog, changeable.put, changeable.remove
    await catalog.list_skills()
    with catalog.changes() as changes, anyio.fail_after(PATIENCE):
        await put(Skill("fresh", {"SKILL.md": skill_md("fresh")}))
        assert (await anext(changes)).added == {"skill://fresh/SKILL.md"}
        await put(Skill("fresh", {"SKILL.md": skill_md("fresh", "Does another thing.")}))
        change = await anext(changes)
        assert change.changed == {"skill://fresh/SKILL.md"}
        assert not change.added
        assert not change.removed
        await remove("fresh")
        assert (await anext(changes)).removed == {"skill://fresh/SKILL.md"}
    assert (await catalog.get_skill("skill://flat/SKILL.md")).name == "flat"


@rule("R2", "S1")
async def test_a_changed_skill_is_served_with_its_new_entry_and_bytes(changeable: Sample) -> None:
    before = await changeable.catalog.get_skill("skill://flat/SKILL.md")
    new = skill_md("flat", "Changed.")
    await changeable.put(Skill("flat", {"SKILL.md": new, "extra.txt": b"more\n"}))
    after = await changeable.catalog.get_skill("skill://flat/SKILL.md")
    assert after != before
    assert after.description == "Changed."
    assert (await changeable.catalog.read_file("skill://flat/SKILL.md")).data == new
    assert (await changeable.catalog.read_file("skill://flat/extra.txt")).data == b"more\n"


async def test_a_check_for_changes_notices_a_change(changeable: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are sent again on the strength of this (R2)."""
    monkeypatch.setattr(safe_open, "_SETTLED_NS", 0)
    await changeable.catalog.list_skills()
    checks = [await changeable.catalog.unchanged(uri) for uri in (None, "skill://flat/SKILL.md")]
    if isinstance(changeable.catalog, DirectoryCatalog | MemoryCatalog | CombinedCatalog):
        assert None not in checks
    offered = [check for check in checks if check is not None]
    assert all(check() for check in offered)
    await changeable.put(Skill("flat", {"SKILL.md": skill_md("flat", "Changed.")}))
    assert not any(check() for check in offered)


async def test_nothing_is_promised_about_an_unknown_uri(catalog: Catalog) -> None:
    await catalog.list_skills()
    for uri in ("skill://nowhere/SKILL.md", "skill://flat/nothing", "other://flat/SKILL.md", "skill://", "\0"):
        assert await catalog.unchanged(uri) is None


async def test_closing_a_stream_ends_its_iteration(catalog: Catalog) -> None:
    stream = catalog.changes()
    ended = anyio.Event()

    async def listen() -> None:
        async for _ in stream:
            pass
        ended.set()

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(listen)
            await anyio.wait_all_tasks_blocked()
            stream.close()
        await ended.wait()
