"""A catalog from two functions of a storage."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from rules import rule
from skillwire import FilesCatalog, Limits
from skillwire.errors import NotFoundError, UpstreamError
from trees import skill_md, small_tree

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.anyio

REFUNDS = "skill://refunds/SKILL.md"


class Bucket:
    """A storage in memory that counts the reads of each file. Its versions are numbers."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)
        self.versions = dict.fromkeys(files, 1)
        self.reads: list[str] = []

    def list_files(self) -> dict[str, int]:
        return dict(self.versions)

    def read_file(self, path: str) -> bytes:
        self.reads.append(path)
        return self.files[path]

    def write(self, path: str, data: bytes) -> None:
        self.files[path] = data
        self.versions[path] = self.versions.get(path, 0) + 1


def refunds(**more: bytes) -> Bucket:
    files = {"refunds/SKILL.md": skill_md("refunds"), "refunds/notes.md": b"one\n"}
    return Bucket(files | {f"refunds/{name}": data for name, data in more.items()})


async def test_each_file_is_read_once_for_each_version() -> None:
    bucket = refunds()
    catalog = FilesCatalog(bucket.list_files, bucket.read_file)
    await catalog.list_skills()
    await catalog.refresh()
    assert sorted(bucket.reads) == ["refunds/SKILL.md", "refunds/notes.md"]
    bucket.write("other/SKILL.md", skill_md("other"))
    change = await catalog.refresh()
    assert change.added == {"skill://other/SKILL.md"}
    assert bucket.reads[2:] == ["other/SKILL.md"]


@rule("R2")
async def test_a_read_after_a_change_returns_the_new_bytes_and_entry() -> None:
    bucket = refunds()
    catalog = FilesCatalog(bucket.list_files, bucket.read_file)
    before = await catalog.get_skill(REFUNDS)
    bucket.write("refunds/notes.md", b"two\n")
    assert (await catalog.read_file("skill://refunds/notes.md")).data == b"two\n"
    assert await catalog.get_skill(REFUNDS) != before


@rule("R2")
async def test_other_bytes_under_the_same_version_are_never_returned() -> None:
    bucket = refunds()
    catalog = FilesCatalog(bucket.list_files, bucket.read_file)
    await catalog.list_skills()
    bucket.files["refunds/notes.md"] = b"changed without a new version\n"
    with pytest.raises(UpstreamError) as caught:
        await catalog.read_file("skill://refunds/notes.md")
    assert caught.value.reference == "storage-inconsistent"


@rule("F7")
async def test_a_file_that_cannot_be_read_affects_only_its_skill() -> None:
    bucket = Bucket(small_tree())
    del bucket.files["odd-names/.hidden"]
    catalog = FilesCatalog(bucket.list_files, bucket.read_file)
    names = [entry.name async for entry in catalog.entries()]
    assert "odd-names" not in names
    assert "flat" in names
    assert [problem.reference for problem in await catalog.problems()] == ["unreadable"]


@rule("B1")
async def test_a_skill_that_is_too_large_is_not_served() -> None:
    bucket = refunds(big=b"x" * 2000)
    catalog = FilesCatalog(bucket.list_files, bucket.read_file, limits=Limits(max_skill_bytes=1000))
    assert [entry async for entry in catalog.entries()] == []
    assert [problem.reference for problem in await catalog.problems()] == ["too-large"]


@rule("U7")
@pytest.mark.parametrize("path", ["../up/SKILL.md", "a//b/SKILL.md", "a\\b/SKILL.md", "/abs/SKILL.md"])
async def test_a_path_that_cannot_be_a_uri_is_reported_and_not_served(path: str) -> None:
    bucket = refunds()
    bucket.write(path, skill_md("up"))
    catalog = FilesCatalog(bucket.list_files, bucket.read_file)
    assert [entry.name async for entry in catalog.entries()] == ["refunds"]
    assert [problem.reference for problem in await catalog.problems()] == ["file-name-invalid"]


async def test_a_storage_that_fails_is_an_error_at_first_and_a_warning_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """While it fails, the last state is served."""
    bucket, fails, attempts, failed_again = refunds(), True, list[int](), anyio.Event()

    async def list_files() -> dict[str, int]:
        if fails:
            attempts.append(1)
            if len(attempts) == 3:  # so the second one was logged
                failed_again.set()
            raise OSError("no route to the bucket")
        return bucket.list_files()

    catalog = FilesCatalog(list_files, bucket.read_file, poll_seconds=0.01)
    with pytest.raises(UpstreamError, match="could not list its files: it raised OSError"):
        await catalog.list_skills()
    fails = False
    assert [entry.name async for entry in catalog.entries()] == ["refunds"]
    fails = True
    caplog.clear()
    with caplog.at_level(logging.WARNING), anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(catalog.follow)
            await failed_again.wait()
            group.cancel_scope.cancel()
    assert "could not list its files" in caplog.text
    assert [entry.name async for entry in catalog.entries()] == ["refunds"]
    with pytest.raises(NotFoundError):
        await catalog.get_skill("skill://other/SKILL.md")


@pytest.mark.parametrize(
    "listed",
    [None, ["refunds/SKILL.md"], [("refunds/SKILL.md", 1)], {3: 1}, {"refunds/SKILL.md": [1]}],
    ids=["nothing", "paths", "pairs", "number", "unhashable"],
)
async def test_a_wrong_listing_is_an_error_that_names_the_function(listed: Any) -> None:
    catalog = FilesCatalog(lambda: listed, refunds().read_file)
    with pytest.raises(UpstreamError, match="list_files returned") as caught:
        await catalog.list_skills()
    assert caught.value.reference == "storage-failed"


@rule("F7")
@pytest.mark.parametrize("content", [None, "text", 3])
async def test_content_that_is_not_bytes_is_a_problem_of_its_skill(content: Any) -> None:
    bucket = Bucket(small_tree())
    catalog = FilesCatalog(
        bucket.list_files, lambda path: content if path == "flat/SKILL.md" else bucket.read_file(path)
    )
    names = [entry.name async for entry in catalog.entries()]
    assert "refunds" in names
    assert "flat" not in names
    (problem,) = await catalog.problems()
    assert (problem.reference, problem.skill) == ("unreadable", "flat")
    assert "read_file returned" in problem.message
