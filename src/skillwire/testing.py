"""For tests of your own catalog: the suite that every catalog of skillwire passes. Needs pytest.

    class TestMyCatalog(CatalogContract):
        @pytest.fixture
        def sample(self) -> Sample:
            storage = MyStorage(sample_files())
            return Sample(MyCatalog(storage))

A catalog that can change gives ``put`` and ``remove`` to ``Sample`` as well; without them, the tests of changes
are skipped. The tests are coroutines, run by the pytest plugin that anyio brings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import anyio
import pytest

from skillwire.catalog.memory import Skill
from skillwire.errors import ProtocolError, SkillwireError
from skillwire.skill.entry import digest_of, parse_entry
from skillwire.skill.uri import format_uri

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from skillwire.catalog.contract import Catalog

F = TypeVar("F", bound="Callable[..., Any]")

_PATIENCE_SECONDS = 60

SAMPLE_SKILLS = ["acme/billing/refunds", "acme/release", "acme/release/changelog", "flat", "odd-names", "windows"]


def sample_files() -> dict[str, bytes]:
    """Six skills: flat, prefixed, nested, CRLF with BOM, odd file names, binary and empty files."""
    return {
        "flat/SKILL.md": _skill_md("flat"),
        "acme/billing/refunds/SKILL.md": _skill_md("refunds", extra="metadata:\n  owner: billing\n"),
        "acme/billing/refunds/templates/reply.md": b"Dear customer,\n",
        "acme/billing/refunds/references/limits.csv": b"tier,limit\ngold,500\n",
        "acme/release/SKILL.md": _skill_md("release"),
        "acme/release/changelog/SKILL.md": _skill_md("changelog"),
        "acme/release/changelog/templates/entry.md": b"- \n",
        "acme/release/notes.md": b"notes\n",
        "windows/SKILL.md": b"\xef\xbb\xbf---\r\nname: windows\r\ndescription: CRLF and a BOM\r\n---\r\n\r\nhello",
        "odd-names/SKILL.md": _skill_md("odd-names"),
        "odd-names/references/R\u00e9sum\u00e9 & notes #1?.md": "na\u00efve\n".encode(),
        "odd-names/assets/100%.bin": bytes(range(256)),
        "odd-names/assets/empty": b"",
        "odd-names/.hidden": b"dot\n",
    }


async def _unchangeable(_: object) -> None:
    pytest.skip("the sample has no functions to change it")


class Sample(NamedTuple):
    """A catalog that holds ``sample_files()``. ``put`` stores a skill, ``remove`` deletes one by its path.

    When they return, the catalog must have published the change.
    """

    catalog: Catalog
    put: Callable[[Skill], Awaitable[None]] = _unchangeable
    remove: Callable[[str], Awaitable[None]] = _unchangeable


def rule(*ids: str) -> Callable[[F], F]:
    """Note the rules of the protocol that a test proves."""

    def decorate(test: F) -> F:
        test.rules = ids  # pyright: ignore[reportFunctionMemberAccess] - read by our own conformance report
        return test

    return decorate


_UNKNOWN_URIS = [
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

_UNSAFE_TAILS = [
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


@pytest.mark.anyio
class CatalogContract:
    """What every catalog guarantees. Subclasses define the fixture ``sample``."""

    @pytest.fixture
    def sample(self) -> Sample:
        """The catalog under test."""
        raise NotImplementedError("define a fixture named 'sample' that returns skillwire.testing.Sample")

    @pytest.fixture
    def catalog(self, sample: Sample) -> Catalog:
        """The catalog of the sample."""
        return sample.catalog

    @pytest.fixture
    def changeable(self, sample: Sample) -> Sample:
        """The sample, for tests that change it."""
        return sample

    @rule("L1", "L2")
    async def test_every_skill_is_listed_once_for_every_page_size(self, catalog: Catalog) -> None:
        """Nested skills appear flat."""
        paths = await _listed(catalog)
        assert sorted(paths) == SAMPLE_SKILLS
        for limit in (1, 4, 5, 6):
            assert await _listed(catalog, limit) == paths

    @rule("E1", "E2", "E3", "E4")
    async def test_an_entry_lists_every_file_with_digest_and_size(self, catalog: Catalog) -> None:
        """Complete, sorted, and the nested skill's files are in the enclosing one's entry."""
        tree = sample_files()
        async for entry in catalog.entries():
            assert entry == parse_entry(entry.to_json())
            expected = {
                format_uri(f"{entry.path}/{path}"): (digest_of(data), len(data))
                for path, data in _files_of(tree, entry.path).items()
            }
            assert {file.uri: (file.digest, file.size) for file in entry.files} == expected
            assert [resource.uri for resource in entry.files] == sorted(expected)

    @rule("G1")
    async def test_getting_a_skill_gives_the_entry_of_the_listing(self, catalog: Catalog) -> None:
        async for entry in catalog.entries():
            assert await catalog.get_skill(entry.uri) == entry

    @rule("F6", "R2")
    async def test_every_file_reads_as_the_stored_bytes(self, catalog: Catalog) -> None:
        """BOM, CRLF, binary and empty files survive."""
        tree = sample_files()
        read: dict[str, bytes] = {}
        async for entry in catalog.entries():
            for resource in entry.files:
                file = await catalog.read_file(resource.uri)
                assert file.uri == resource.uri
                assert (digest_of(file.data), len(file.data)) == (resource.digest, resource.size)
                read[resource.uri] = file.data
        assert read == {format_uri(path): data for path, data in tree.items()}

    @rule("U7")
    async def test_other_spellings_of_a_uri_mean_the_same(self, catalog: Catalog) -> None:
        """Comparison is on decoded segments."""
        for uri in ("skill://flat/SKILL%2Emd", "SKILL://flat/SKILL.md", "skill://fl%61t/SKILL.md"):
            assert (await catalog.get_skill(uri)).uri == "skill://flat/SKILL.md"
            assert (await catalog.read_file(uri)).uri == "skill://flat/SKILL.md"

    @rule("G1", "U4", "U5")
    async def test_an_unknown_uri_is_not_found(self, catalog: Catalog) -> None:
        """Unknown, another case, another scheme, absurdly deep."""
        expected = dict.fromkeys(_UNKNOWN_URIS, "NotFoundError")
        assert await _refused(catalog.get_skill, _UNKNOWN_URIS) == expected
        assert await _refused(catalog.read_file, _UNKNOWN_URIS) == expected

    @rule("U6", "U7")
    async def test_an_unsafe_uri_is_refused(self, catalog: Catalog) -> None:
        """Dots, encoded slashes, control characters, a query, and far too long."""
        uris = [f"skill://flat/{tail}" for tail in (*_UNSAFE_TAILS, "a/" * 1500 + "x")]
        for ask in (catalog.get_skill, catalog.read_file, catalog.read_directory):
            kinds = await _refused(ask, uris)
            assert [uri for uri in uris if kinds[uri] not in ("FormatError", "NotFoundError")] == []

    @rule("D1")
    async def test_a_directory_gives_its_direct_children(self, catalog: Catalog) -> None:
        children = [child async for child in catalog.children("skill://acme/billing/refunds")]
        assert [(child.name, child.is_directory) for child in children] == [
            ("SKILL.md", False),
            ("references", True),
            ("templates", True),
        ]
        assert children[1].uri == "skill://acme/billing/refunds/references"
        assert children[0].size == len(sample_files()["acme/billing/refunds/SKILL.md"])

    @rule("D1", "L3")
    async def test_a_directory_is_paged_without_loss(self, catalog: Catalog) -> None:
        first = await catalog.read_directory("skill://odd-names/assets", None, 1)
        assert first.next_cursor is not None
        second = await catalog.read_directory("skill://odd-names/assets", first.next_cursor, 1)
        assert [child.name for child in (*first.items, *second.items)] == ["100%.bin", "empty"]
        assert second.next_cursor is None
        assert (await catalog.read_directory("skill://odd-names/assets", None, 2)).next_cursor is None

    @rule("D1", "E2")
    async def test_walking_a_skill_returns_the_files_of_its_entry(self, catalog: Catalog) -> None:
        async for entry in catalog.entries():
            root = entry.uri.removesuffix("/SKILL.md")
            walked = sorted([child.uri async for child in catalog.walk(root)])
            assert walked == [resource.uri for resource in entry.files]

    @rule("D1")
    async def test_other_uris_are_not_directories(self, catalog: Catalog) -> None:
        """A file, or an unknown name. A server answers for the folders above skills, whatever its catalog does."""
        uris = ["skill://flat/SKILL.md", "skill://nothing", "skill://flat/nothing"]
        assert await _refused(catalog.read_directory, uris) == dict.fromkeys(uris, "NotFoundError")

    @rule("L3")
    async def test_a_bad_cursor_is_refused(self, catalog: Catalog) -> None:
        """Empty, not base64, not ours, not ASCII, far too long."""
        for cursor in ("", "%%%", "AAAA", "é", "a" * 100_000):
            with pytest.raises(ProtocolError) as caught:
                await catalog.list_skills(cursor)
            assert caught.value.reference == "cursor-invalid"
            with pytest.raises(ProtocolError):
                await catalog.read_directory("skill://flat", cursor)

    @rule("L3")
    async def test_a_cursor_is_valid_for_its_own_listing_only(self, catalog: Catalog) -> None:
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

    async def test_a_clean_tree_has_no_problems(self, catalog: Catalog) -> None:
        assert list(await catalog.problems()) == []

    @rule("L3")
    async def test_a_change_between_pages_neither_skips_nor_repeats(self, changeable: Sample) -> None:
        """What stayed is seen once; the page boundary itself may go away."""
        catalog, put, remove = changeable
        first = await catalog.list_skills(None, 3)
        seen = [entry.path for entry in first.items]
        await remove("flat")  # on some catalogs before the boundary, on others after it
        await put(Skill("aaa", {"SKILL.md": _skill_md("aaa")}))
        await put(Skill("zzz", {"SKILL.md": _skill_md("zzz")}))
        cursor = first.next_cursor
        while cursor is not None:
            page = await catalog.list_skills(cursor, 1)
            seen += [entry.path for entry in page.items]
            cursor = page.next_cursor
        assert len(seen) == len(set(seen))
        assert set(SAMPLE_SKILLS) - {"flat"} <= set(seen)
        assert "zzz" in seen

    @rule("S1")
    async def test_changes_are_published_with_their_uris(self, changeable: Sample) -> None:
        catalog, put, remove = changeable
        await catalog.list_skills()
        with catalog.changes() as changes, anyio.fail_after(_PATIENCE_SECONDS):
            await put(Skill("fresh", {"SKILL.md": _skill_md("fresh")}))
            assert (await anext(changes)).added == {"skill://fresh/SKILL.md"}
            await put(Skill("fresh", {"SKILL.md": _skill_md("fresh", "Does another thing.")}))
            change = await anext(changes)
            assert change.changed == {"skill://fresh/SKILL.md"}
            assert not change.added
            assert not change.removed
            await remove("fresh")
            assert (await anext(changes)).removed == {"skill://fresh/SKILL.md"}
        assert (await catalog.get_skill("skill://flat/SKILL.md")).name == "flat"

    @rule("R2", "S1")
    async def test_a_changed_skill_is_served_with_its_new_entry_and_bytes(self, changeable: Sample) -> None:
        catalog, put, _ = changeable
        before = await catalog.get_skill("skill://flat/SKILL.md")
        new = _skill_md("flat", "Changed.")
        await put(Skill("flat", {"SKILL.md": new, "extra.txt": b"more\n"}))
        after = await catalog.get_skill("skill://flat/SKILL.md")
        assert after != before
        assert after.description == "Changed."
        assert (await catalog.read_file("skill://flat/SKILL.md")).data == new
        assert (await catalog.read_file("skill://flat/extra.txt")).data == b"more\n"

    @rule("R2")
    async def test_a_check_for_changes_notices_a_change(self, changeable: Sample) -> None:
        """A server sends the same answer again while this check holds."""
        catalog, put, _ = changeable
        await catalog.list_skills()
        checks = [await catalog.unchanged(uri) for uri in (None, "skill://flat/SKILL.md")]
        offered = [check for check in checks if check is not None]
        assert all(check() for check in offered)
        await put(Skill("flat", {"SKILL.md": _skill_md("flat", "Changed.")}))
        assert not any(check() for check in offered)

    async def test_nothing_is_promised_about_an_unknown_uri(self, catalog: Catalog) -> None:
        await catalog.list_skills()
        for uri in ("skill://nowhere/SKILL.md", "skill://flat/nothing", "other://flat/SKILL.md", "skill://", "\0"):
            assert await catalog.unchanged(uri) is None

    async def test_closing_a_stream_ends_its_iteration(self, catalog: Catalog) -> None:
        stream = catalog.changes()
        ended = anyio.Event()

        async def listen() -> None:
            async for _ in stream:
                pass
            ended.set()

        with anyio.fail_after(_PATIENCE_SECONDS):
            async with anyio.create_task_group() as group:
                group.start_soon(listen)
                await anyio.wait_all_tasks_blocked()
                stream.close()
            await ended.wait()


def _skill_md(name: str, description: str = "Does one thing well.", extra: str = "") -> bytes:
    return f"---\nname: {name}\ndescription: {description}\n{extra}---\n\nDo it.\n".encode()


def _files_of(tree: Mapping[str, bytes], skill: str) -> dict[str, bytes]:
    return {path[len(skill) + 1 :]: data for path, data in tree.items() if path.startswith(f"{skill}/")}


async def _listed(catalog: Catalog, limit: int = 100) -> list[str]:
    """The paths in the listing, in pages of ``limit``."""
    paths: list[str] = []
    cursor = None
    while True:
        page = await catalog.list_skills(cursor, limit)
        assert len(page.items) <= limit
        paths += [entry.path for entry in page.items]
        cursor = page.next_cursor
        if cursor is None:
            return paths


async def _refused(ask: Callable[[str], Awaitable[object]], values: Iterable[str]) -> dict[str, str]:
    """The kind of error for each value; an empty string without an error."""
    found: dict[str, str] = {}
    for value in values:
        found[value] = ""
        try:
            await ask(value)
        except SkillwireError as error:
            found[value] = type(error).__name__
    return found
