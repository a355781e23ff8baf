"""Git repositories behind the client, the host and the gateway: served in memory, and approved like servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from git_server import Repository, served
from rules import rule
from skillwire import SkillHost, connect, open_gateway
from skillwire.cli.main import run
from skillwire.errors import FormatError, NotFoundError
from skillwire.gateway.config import plan_gateway
from trees import skill_md, small_tree

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS = 20


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    return Repository(tmp_path / "repositories" / "skills", small_tree())


@pytest.fixture
def url(repository: Repository) -> Iterator[str]:
    with served(repository.folder.parent) as url:
        yield f"{url}/skills/.git"


@pytest.fixture
def policy(tmp_path: Path, url: str) -> Path:
    path = tmp_path / "gateway.toml"
    path.write_text(f'mode = "admit"\n[upstream.team]\ngit = "{url}@main"\n')
    return path


@pytest.mark.anyio
async def test_a_client_connects_to_a_repository(url: str, repository: Repository) -> None:
    async with connect(f"{url}@main") as client:
        file = await client.read("flat", "SKILL.md")
        assert file.data == small_tree()["flat/SKILL.md"]
    async with connect({"git": f"{repository.folder}#acme"}) as client:
        assert "skill://billing/refunds/SKILL.md" in [entry.uri for entry in (await client.list_all()).entries]
    with pytest.raises(NotFoundError) as unknown:
        async with connect(f"{url}@nothing"):
            pass
    assert unknown.value.reference == "git-ref-unknown"


@rule("A1")
@pytest.mark.anyio
async def test_a_host_asks_about_the_skills_of_a_repository_and_names_url_and_commit(
    url: str, repository: Repository
) -> None:
    commit = repository.git("rev-parse", "HEAD")
    async with SkillHost.open(servers={"team": {"git": f"{url}@main"}}) as host:
        await host.settle(SECONDS)
        assert {skill.status for skill in await host.skills()} == {"unapproved"}
        [origin] = host.origins()
        assert origin.address == f"{url}@main at commit {commit[:12]}"


@rule("A1", "A2")
@pytest.mark.anyio
async def test_a_gateway_serves_the_approved_skills_of_a_repository(
    policy: Path, repository: Repository, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "state"
    async with open_gateway(policy=policy, state=state) as gateway:
        await gateway.settle(SECONDS)
        assert [entry.uri async for entry in gateway.catalog.entries()] == []
        [hint] = {
            p.hint for p in await gateway.upstreams["team"].gate.problems(for_operator=True) if "flat" in p.file
        }
    assert await anyio.to_thread.run_sync(run, [*hint.split()[1:], "--state", str(state)]) == 0
    shown = capsys.readouterr().out
    assert repository.git("rev-parse", "HEAD")[:12] in shown
    fingerprint = next(word for word in shown.split() if word.startswith("sha256:"))
    words = ["approve", "team:flat", "--config", str(policy), "--state", str(state), "--fingerprint", fingerprint]
    assert await anyio.to_thread.run_sync(run, words) == 0
    async with open_gateway(policy=policy, state=state) as gateway:
        await gateway.settle(SECONDS)
        assert [entry.uri async for entry in gateway.catalog.entries()] == ["skill://team/flat/SKILL.md"]
    repository.commit({"flat/SKILL.md": skill_md("flat", body="Changed.\n")})
    async with open_gateway(policy=policy, state=state) as gateway:
        with gateway.catalog.changes() as changes, anyio.fail_after(SECONDS):
            while [entry.uri async for entry in gateway.catalog.entries()]:  # of the saved listing
                await anext(changes)


@pytest.mark.parametrize(
    "text",
    [
        'git = "ext::id"',
        'git = "-x"',
        'git = "https://me:secret@example.com/x"',
        'git = "acme/skills"\nfolder = "x"',
        'git = "acme/skills"\ndialect = "index"',
        "git = 1",
    ],
)
def test_a_policy_with_an_invalid_repository_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text(f"[upstream.team]\n{text}\n")
    with pytest.raises(FormatError) as refusal:
        plan_gateway(policy=path)
    assert "secret" not in str(refusal.value)


def test_a_repository_in_a_policy_is_relative_to_the_file(tmp_path: Path, repository: Repository) -> None:
    path = tmp_path / "gateway.toml"
    path.write_text('[upstream.team]\ngit = "./repositories/skills@main"\n')
    assert plan_gateway(policy=path).servers == {"team": {"git": f"{repository.folder}@main"}}
