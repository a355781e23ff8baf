"""Git repositories as sources: addresses, commits, and repositories that attack."""

from __future__ import annotations

import hashlib
import os
import socket
import struct
import zlib
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest

from git_server import Repository, answering, served
from rules import rule
from skillwire.catalog.git import GitCatalog, GitRepository
from skillwire.catalog.git_source import GitSource, is_git_source, parse_git_source
from skillwire.errors import FormatError, LimitError, NotFoundError, SkillwireError, UpstreamError
from skillwire.limits import Limits
from skillwire.skill.entry import digest_of
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
        (
            "https://gitlab.com/group/skills/-/tree/v1/some%20folder",
            GitSource("https://gitlab.com/group/skills", "v1", "some folder"),
        ),
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
        "git+--upload-pack=id",
        "git+ext::id@main",
        "git+fd::17/x",
        "git+git://example.com/skills",
        "git+ssh://-oProxyCommand=id@example.com/skills",
        "git+-oProxyCommand=id@example.com:skills",
        "git+git@example.com:-oX",
        "git+https://example.com/a\nb",
        "acme/skills@-x",
        "acme/skills@refs/heads/x.lock",
        "acme/skills#a/../../b",
        "acme/skills#/.",
        "git+file://example.com/skills",
        "git+/nowhere/at/all",
        "https://anna:secret@example.com/skills.git",
        "https://secret@example.com/skills.git",
        "https://anna:secret@example.com/skills.git?x=y",
        "git+https://secret@example.com",
        "git+HTTPS://anna:secret@example.com/x",
        "git+http://anna:secret@example.com/x",
        "git+ftp://anna:secret@example.com/x",
        "git+https://anna:secret@[example.com/x",
        "git+https://anna:secret@example.com:x/x",
        "ssh://anna:secret@example.com/x",
    ],
)
def test_an_address_that_could_run_or_leak_something_is_refused(text: str) -> None:
    with pytest.raises(FormatError) as refusal:
        parse_git_source(text)
    assert "secret" not in str(refusal.value)


@pytest.mark.parametrize("text", ["acme/skills@v1#a b", "git@example.com:acme/skills.git@v1", "ssh://a@b/c#d"])
def test_the_text_of_a_source_means_the_same_source(text: str) -> None:
    source = parse_git_source(text)
    assert parse_git_source(str(source)) == source


def test_a_folder_means_the_folder_and_a_bare_repository_means_the_repository(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare.git"))
    monkeypatch.chdir(tmp_path)
    assert not is_git_source("repositories/skills")  # not a repository of GitHub either
    assert is_git_source("git+repositories/skills")
    assert is_git_source("bare.git")
    assert parse_git_source("git+repositories/skills") == GitSource(str(repository.folder))


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
    with pytest.raises(NotFoundError) as unknown:
        await GitCatalog(f"{repository.folder}@nothing", tmp_path / "cache").refresh()
    assert unknown.value.reference == "git-ref-unknown"
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


def raw_tree(repository: Repository, *rows: tuple[str, bytes, str]) -> str:
    """Commit a tree that no work tree could have, and return the commit. Rows: mode, name, object id."""
    data = b"".join(mode.encode() + b" " + name + b"\0" + bytes.fromhex(ident) for mode, name, ident in rows)
    path = repository.folder / ".git" / "tree"
    path.write_bytes(data)
    tree = repository.git("hash-object", "-t", "tree", "-w", "--literally", str(path))
    commit = repository.git("commit-tree", tree, "-m", "A tree")
    repository.git("update-ref", "refs/heads/main", commit)
    return tree


@rule("Z3", "B5")
@pytest.mark.anyio
@pytest.mark.parametrize("name", [b"..", b".", b".git", b".GIT", b"git~1", b"a/b", b""])
async def test_a_tree_with_names_that_escape_is_refused_by_git(
    repository: Repository, tmp_path: Path, name: bytes
) -> None:
    blob = repository.git("rev-parse", "HEAD:flat/SKILL.md")
    inner = raw_tree(repository, ("100644", b"SKILL.md", blob), ("100644", name, blob))
    raw_tree(repository, ("40000", b"flat", inner))
    with pytest.raises(UpstreamError) as refusal:
        await GitCatalog(f"{repository.folder}@main", tmp_path / "cache").refresh()
    assert refusal.value.reference == ("git-invalid" if name else "git-failed")


@rule("B5")
@pytest.mark.anyio
async def test_names_that_collide_or_have_line_ends_are_reported(repository: Repository, tmp_path: Path) -> None:
    blob = repository.git("rev-parse", "HEAD:flat/SKILL.md")
    collides = raw_tree(
        repository, *(("100644", name, blob) for name in (b"README.md", b"SKILL.md", b"readme.md"))
    )
    breaks = raw_tree(repository, ("100644", b"SKILL.md", blob), ("100644", b"a\nb", blob))
    raw_tree(repository, ("40000", b"flat", collides), ("40000", b"other", breaks))
    catalog = GitCatalog(f"{repository.folder}@main", tmp_path / "cache")
    assert await paths(catalog) == []
    problems = await catalog.problems()
    assert {"path-collision", "file-name-invalid"} <= {problem.reference for problem in problems}
    assert not any("\n" in problem.message for problem in problems)


@rule("B1")
@pytest.mark.anyio
async def test_a_tree_that_repeats_itself_billions_of_times_is_not_listed(
    repository: Repository, tmp_path: Path
) -> None:
    ident = repository.git("rev-parse", "HEAD:flat/SKILL.md")
    mode = "100644"
    for _ in range(12):
        ident = raw_tree(repository, *((mode, b"d%d" % number, ident) for number in range(10)))
        mode = "40000"
    with pytest.raises(LimitError) as refusal:
        await GitCatalog(f"{repository.folder}@main", tmp_path / "cache").refresh()
    assert refusal.value.reference == "git-too-large"


@rule("B1")
@pytest.mark.anyio
async def test_a_tree_that_is_too_deep_is_not_listed(repository: Repository, tmp_path: Path) -> None:
    ident, mode = repository.git("rev-parse", "HEAD:flat/SKILL.md"), "100644"
    for _ in range(70):
        ident, mode = raw_tree(repository, (mode, b"d", ident)), "40000"
    with pytest.raises(LimitError) as refusal:
        await GitCatalog(f"{repository.folder}@main", tmp_path / "cache").refresh()
    assert refusal.value.reference == "git-too-large"


@rule("B1")
@pytest.mark.anyio
async def test_a_small_pack_with_a_huge_object_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    """A delta of a few bytes can copy its base any number of times."""
    base, copies, megabyte = os.urandom(1024), 16 * 1024, 1024 * 1024
    size = len(base) * copies
    delta = _number(len(base)) + _number(size) + b"\xb0\x00\x04" * copies  # copy 1024 bytes from 0
    repository = Repository(tmp_path / "bomb", {"flat/SKILL.md": skill_md("flat")})
    ident = hashlib.sha1(b"blob %d\0" % size + base * copies).hexdigest()
    first = hashlib.sha1(b"blob 1024\0" + base).digest()
    rows = _entry(3, base), _entry(7, delta, first)
    pack = b"PACK" + struct.pack(">II", 2, len(rows)) + b"".join(rows)
    (tmp_path / "bomb.pack").write_bytes(pack + hashlib.sha1(pack).digest())
    repository.git("index-pack", str(tmp_path / "bomb.pack"), "-o", str(tmp_path / "bomb.idx"))
    for kind in ("pack", "idx"):
        packs = repository.folder / ".git" / "objects" / "pack"
        (tmp_path / f"bomb.{kind}").rename(packs / f"pack-bomb.{kind}")
    raw_tree(repository, ("100644", b"big", ident))
    limits = Limits(max_git_bytes=8 * megabyte)
    with pytest.raises(LimitError) as refusal:
        await GitCatalog(f"{repository.folder}@main", tmp_path / "cache", limits=limits).refresh()
    assert refusal.value.reference == "git-too-large"


def _number(value: int) -> bytes:
    """A size in a delta: seven bits in each byte, the lowest first."""
    return bytes([value & 127 | 128]) + _number(value >> 7) if value > 127 else bytes([value])


def _entry(kind: int, data: bytes, base: bytes = b"") -> bytes:
    """One object of a pack."""
    head, rest = kind << 4 | len(data) & 15, len(data) >> 4
    return (bytes([head | 128]) + _number(rest) if rest else bytes([head])) + base + zlib.compress(data)


@rule("Z1")
@pytest.mark.anyio
async def test_variables_and_configuration_of_the_user_cannot_run_or_redirect_anything(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, home, other = tmp_path / "ran", tmp_path / "home", Repository(tmp_path / "other", {"x": b"x"})
    home.mkdir()
    (home / ".gitconfig").write_text(
        f"[core]\n  hooksPath = {home}\n  fsmonitor = touch {ran}\n[protocol]\n  allow = always\n"
        f'[protocol "ext"]\n  allow = always\n[url "ext::touch {ran} "]\n  insteadOf = /evil/\n'
    )
    for hook in ("reference-transaction", "post-update"):
        (home / hook).write_text(f"#!/bin/sh\ntouch {ran}\n")
        (home / hook).chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    for name in ("GIT_DIR", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_WORK_TREE"):
        monkeypatch.setenv(name, str(other.folder / ".git"))
    monkeypatch.setenv("GIT_TRACE", str(ran))
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "ext")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", f"touch {ran}")
    assert "flat" in await paths(GitCatalog(f"{repository.folder}@main", tmp_path / "cache"))
    with pytest.raises(FormatError) as refusal:
        await GitRepository(GitSource("/evil/x"), tmp_path / "cache").fetch()
    assert refusal.value.reference == "git-protocol"
    assert not ran.exists()


@rule("Z1")
@pytest.mark.anyio
async def test_a_local_repository_cannot_make_git_run_its_programs(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    hostile = Repository(tmp_path / "hostile", {"flat/SKILL.md": skill_md("flat")})
    for name, value in {
        "core.alternateRefsCommand": f"touch {ran};",
        "core.sshCommand": f"touch {ran};",
        "core.gitProxy": f"touch {ran}",
        "remote.origin.url": str(tmp_path),
        "remote.origin.uploadpack": f"touch {ran};",
        "remote.origin.promisor": "true",
        "extensions.partialClone": "origin",
        "core.repositoryFormatVersion": "1",
    }.items():
        hostile.git("config", name, value)
    blob = hostile.git("rev-parse", "HEAD:flat/SKILL.md")
    (hostile.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()  # it would have to be fetched
    with pytest.raises(UpstreamError):
        await GitCatalog(f"{hostile.folder}@main", tmp_path / "cache").refresh()
    assert not ran.exists()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "reference"),
    [(401, "git-sign-in"), (403, "git-sign-in"), (404, "git-unknown"), (500, "git-failed")],
)
async def test_a_server_that_refuses_gives_an_error_with_a_command_to_run(
    tmp_path: Path, status: int, reference: str
) -> None:
    with answering(status) as url, pytest.raises(SkillwireError) as refusal:
        await GitCatalog(f"git+{url}/skills", tmp_path / "cache").refresh()
    assert refusal.value.reference == reference
    assert f"git ls-remote {url}/skills" in refusal.value.hint


@rule("Z1")
@pytest.mark.anyio
async def test_a_redirect_to_another_protocol_is_not_followed(tmp_path: Path) -> None:
    with answering(302, {"Location": f"file://{tmp_path}/x"}) as url, pytest.raises(UpstreamError):
        await GitCatalog(f"git+{url}/skills", tmp_path / "cache").refresh()


@pytest.mark.anyio
async def test_a_closed_port_an_empty_repository_and_a_missing_git_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(UpstreamError) as unreachable:
        await GitCatalog(f"git+http://127.0.0.1:{port}/x", tmp_path / "cache").refresh()
    assert unreachable.value.reference == "git-unreachable"
    Repository(tmp_path / "some", {}).git("init", "--quiet", "--bare", str(tmp_path / "empty"))
    with pytest.raises(NotFoundError) as empty:
        await GitCatalog(f"git+{tmp_path}/empty", tmp_path / "cache").refresh()
    assert empty.value.reference == "git-empty"
    (tmp_path / "plain").mkdir()
    with pytest.raises(NotFoundError) as plain:
        await GitCatalog(f"git+{tmp_path}/plain", tmp_path / "cache").refresh()
    assert plain.value.reference == "git-unknown"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UpstreamError) as missing:
        await GitCatalog(f"git+{tmp_path}/empty", tmp_path / "cache").refresh()
    assert missing.value.reference == "git-missing"


@pytest.mark.anyio
async def test_a_commit_is_earlier_than_its_descendants_and_missing_from_a_rewritten_history(
    repository: Repository, url: str, tmp_path: Path
) -> None:
    git = GitRepository(parse_git_source(f"git+{url}"), tmp_path / "cache")
    await git.fetch()
    old = repository.git("rev-parse", "HEAD")
    new = repository.commit({"x": b"x"})
    assert await git.position(old, new) == "earlier"
    repository.git("checkout", "--quiet", "--orphan", "other")
    assert await git.position(new, repository.commit()) == "rewritten"
    assert await git.position(old, COMMIT) == "unknown"


@pytest.mark.anyio
async def test_many_catalogs_of_one_repository_fetch_one_after_the_other(url: str, tmp_path: Path) -> None:
    catalogs = [GitCatalog(f"git+{url}@main", tmp_path / "cache") for _ in range(4)]
    async with anyio.create_task_group() as group:
        for catalog in catalogs:
            group.start_soon(catalog.refresh)
    assert len({catalog.commit for catalog in catalogs}) == 1


@pytest.mark.anyio
async def test_a_damaged_copy_is_reported_with_a_command(repository: Repository, tmp_path: Path) -> None:
    catalog = GitCatalog(f"{repository.folder}@main", tmp_path / "cache")
    await catalog.refresh()
    for pack in (tmp_path / "cache").rglob("*.pack"):
        pack.unlink()
    with pytest.raises(UpstreamError) as damaged:
        await catalog.read_file("skill://flat/SKILL.md")
    assert damaged.value.reference == "git-cache-damaged"


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
