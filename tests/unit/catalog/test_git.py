"""Git repositories as sources: addresses, commits, and repositories that attack."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest

from git_server import Repository, served
from rules import rule
from skillwire.catalog.git import GitCatalog, GitRepository, GitSource, is_git_source, parse_git_source
from skillwire.errors import FormatError, LimitError, NotFoundError, UpstreamError
from skillwire.limits import Limits
from skillwire.skill.digest import digest_of
from trees import skill_md, small_tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repositories" / "skills", small_tree())


@pytest.fixture
def url(repository: Repository) -> Iterator[str]:
    with served(repository.folder.parent) as url:
        yield f"{url}/skills/.git"


async def paths(catalog: GitCatalog) -> list[str]:
    return [entry.path async for entry in catalog.entries()]


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("acme/skills", GitSource("https://github.com/acme/skills")),
        ("acme/skills@v1.2#sub/x", GitSource("https://github.com/acme/skills", "v1.2", "sub/x")),
        (f"acme/skills@{COMMIT}", GitSource("https://github.com/acme/skills", COMMIT)),
        (
            "https://github.com/acme/skills/tree/main/sub/refunds",
            GitSource("https://github.com/acme/skills", "main", "sub/refunds"),
        ),
        ("https://gitlab.com/group/sub/skills@main", GitSource("https://gitlab.com/group/sub/skills", "main")),
        ("https://example.com/skills.git@feature/x", GitSource("https://example.com/skills.git", "feature/x")),
        ("git+https://example.com/skills", GitSource("https://example.com/skills")),
        ("git@example.com:acme/skills.git@v1", GitSource("git@example.com:acme/skills.git", "v1")),
        ("ssh://git@example.com/skills.git#sub", GitSource("ssh://git@example.com/skills.git", "", "sub")),
    ],
)
def test_an_address_has_a_repository_a_ref_and_a_folder(text: str, source: GitSource) -> None:
    assert is_git_source(text)
    assert parse_git_source(text) == source


@pytest.mark.parametrize("text", ["https://example.com/mcp", "http://127.0.0.1:8000/mcp", "refunds", "a/b/c", "."])
def test_servers_labels_and_folders_are_not_git_sources(text: str) -> None:
    assert not is_git_source(text)


def test_a_local_repository_with_a_ref_is_a_git_source(repository: Repository) -> None:
    assert is_git_source(f"{repository.folder}@main")
    assert parse_git_source(f"{repository.folder}@main#acme") == GitSource(str(repository.folder), "main", "acme")


@rule("Z1")
@pytest.mark.parametrize(
    "text",
    [
        "git+ext::sh -c id",
        "git+http://example.com/skills",
        "git+ftp://example.com/skills",
        "git+https://-oProxyCommand=id/skills",
        "acme/skills@--upload-pack=id",
        "acme/skills@a..b",
        "acme/skills@main#../x",
        "https://anna:secret@example.com/skills.git",
    ],
)
def test_an_address_that_could_run_or_leak_something_is_refused(text: str) -> None:
    with pytest.raises(FormatError) as refusal:
        parse_git_source(text)
    assert "secret" not in str(refusal.value)


@pytest.mark.anyio
async def test_skills_are_read_from_a_commit_over_http(url: str, tmp_path: Path) -> None:
    catalog = GitCatalog(f"git+{url}", tmp_path / "cache")
    assert "acme/billing/refunds" in await paths(catalog)
    file = await catalog.read_file("skill://flat/SKILL.md")
    assert file.data == small_tree()["flat/SKILL.md"]


@pytest.mark.anyio
async def test_a_folder_of_the_repository_is_the_root(repository: Repository, tmp_path: Path) -> None:
    catalog = GitCatalog(f"{repository.folder}@main#acme", tmp_path / "cache")
    assert "billing/refunds" in await paths(catalog)


@pytest.mark.anyio
async def test_a_repository_that_is_a_skill_has_its_name(tmp_path: Path) -> None:
    files = {"SKILL.md": skill_md("refunds"), "references/x.md": b"x"}
    repository = Repository(tmp_path / "some-repository", files)
    catalog = GitCatalog(f"{repository.folder}@main", tmp_path / "cache")
    assert await paths(catalog) == ["refunds"]
    assert (await catalog.read_file("skill://refunds/references/x.md")).data == b"x"


@rule("S1", "R2")
@pytest.mark.anyio
async def test_a_refresh_publishes_a_new_commit(repository: Repository, tmp_path: Path) -> None:
    catalog = GitCatalog(f"{repository.folder}@main", tmp_path / "cache")
    before = (await catalog.get_skill("skill://flat/SKILL.md")).resource("skill://flat/SKILL.md")
    new = skill_md("flat", body="Changed.\n")
    commit = repository.commit({"flat/SKILL.md": new})
    with catalog.changes() as changes:
        change = await catalog.refresh()
        assert change.changed == {"skill://flat/SKILL.md"}
        assert await anext(changes) == change
    after = (await catalog.get_skill("skill://flat/SKILL.md")).resource("skill://flat/SKILL.md")
    assert before != after
    assert after is not None
    assert after.digest == digest_of(new)
    assert catalog.commit == commit
    assert (await catalog.read_file("skill://flat/SKILL.md")).data == new


@pytest.mark.anyio
async def test_a_pinned_commit_stays_after_the_branch_moved(
    repository: Repository, url: str, tmp_path: Path
) -> None:
    commit = repository.git("rev-parse", "HEAD")
    repository.commit({"flat/SKILL.md": skill_md("flat", body="Changed.\n")})
    catalog = GitCatalog(f"git+{url}@{commit}", tmp_path / "cache")
    assert (await catalog.read_file("skill://flat/SKILL.md")).data == small_tree()["flat/SKILL.md"]
    await catalog.follow()  # returns: a commit does not change


@pytest.mark.anyio
async def test_an_unknown_ref_or_folder_is_an_error_with_a_hint(repository: Repository, tmp_path: Path) -> None:
    with pytest.raises(UpstreamError) as unknown:
        await GitCatalog(f"{repository.folder}@nothing", tmp_path / "cache").refresh()
    assert unknown.value.reference == "git-failed"
    with pytest.raises(NotFoundError) as missing:
        await GitCatalog(f"{repository.folder}@main#nothing", tmp_path / "cache").refresh()
    assert missing.value.reference == "git-folder-unknown"


@rule("Z3", "B5")
@pytest.mark.anyio
async def test_links_submodules_and_filters_of_a_hostile_repository_have_no_effect(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    inner = Repository(tmp_path / "inner", {"x": b"x"})
    files = {
        "refunds/SKILL.md": skill_md("refunds"),
        "refunds/data.txt": b"text",
        ".gitattributes": b"* filter=evil diff=evil\n",
    }
    hostile = Repository(tmp_path / "hostile", files)
    (hostile.folder / "refunds" / "passwd").symlink_to("/etc/passwd")
    hostile.git("submodule", "--quiet", "add", str(inner.folder), "refunds/inner")
    hostile.commit()
    for name in ("filter.evil.smudge", "filter.evil.process", "core.fsmonitor", "uploadpack.packObjectsHook"):
        hostile.git("config", name, f"touch {ran}")
    for hook in ("post-checkout", "reference-transaction", "post-merge", "pre-auto-gc"):
        path = hostile.folder / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {ran}\n")
        path.chmod(0o755)
    catalog = GitCatalog(f"{hostile.folder}@main", tmp_path / "cache")
    entry = await catalog.get_skill("skill://refunds/SKILL.md")
    assert [file.uri for file in entry.files] == ["skill://refunds/SKILL.md", "skill://refunds/data.txt"]
    assert {problem.reference for problem in await catalog.problems()} == {"link-skipped"}
    assert (await catalog.read_file("skill://refunds/data.txt")).data == b"text"
    assert not ran.exists()
    assert not list((tmp_path / "cache").rglob("hooks/*"))


@rule("B1")
@pytest.mark.anyio
async def test_a_repository_that_is_too_large_is_not_fetched(repository: Repository, tmp_path: Path) -> None:
    limits = Limits(max_git_bytes=1000)
    with pytest.raises(LimitError) as refusal:
        await GitRepository(
            parse_git_source(f"{repository.folder}@main"), tmp_path / "cache", limits=limits
        ).fetch()
    assert refusal.value.reference == "git-too-large"


@rule("B4")
@pytest.mark.anyio
async def test_a_fetch_has_a_time_limit(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        source = parse_git_source(f"git+http://127.0.0.1:{silent.getsockname()[1]}/skills")
        with pytest.raises(LimitError) as refusal:
            await GitRepository(source, tmp_path / "cache", limits=Limits(max_git_seconds=1)).fetch()
    assert refusal.value.reference == "git-too-slow"


@pytest.mark.anyio
async def test_a_cancelled_fetch_ends_its_process(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        source = parse_git_source(f"git+http://127.0.0.1:{silent.getsockname()[1]}/skills")
        async with anyio.create_task_group() as group:
            group.start_soon(GitRepository(source, tmp_path / "cache").fetch)
            connection, _ = await anyio.to_thread.run_sync(silent.accept)
            group.cancel_scope.cancel()
        with connection:
            connection.settimeout(60)
            while connection.recv(65536):  # the end of the stream: git is gone
                pass
