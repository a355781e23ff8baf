"""Programs that we did not write, unchanged, against a registry that really serves: stable, a pin and a channel.

``npx skills`` installs over the well-known index, also from a static export on a plain web server. It may connect
to this machine only (``peers/loopback.cjs``).
"""

from __future__ import annotations

import http.server
import json
import os
import re
import subprocess
import threading
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import anyio
import pytest
from fastmcp import Client
from fastmcp.skills import SkillsClientExtension

from interop.honest import by_path, path_of, read_tree
from interop.running import EXAMPLES, PEERS, VERSIONS
from interop.test_fastmcp_client import read_bytes
from interop.test_inspector import OK, verify
from registry.stage import publish
from rules import rule
from skillwire.registry.client import RegistryClient
from starting import skillwire_script
from trees import files_of, skill_md

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from interop.running import Era, Node

SKILLS_CLI = "node_modules/skills/bin/cli.mjs"
# By the address of each version: what ``npx skills add`` gets after the host, and what MCP has after ``skill://``.
STABLE, PIN, CHANNEL = "acme/billing/refunds", "acme/@1.0.0/billing/refunds", "acme/@beta/billing/refunds"
PLACES = {
    "acme/billing/refunds": STABLE,
    "acme/billing/refunds@refunds": STABLE,  # as ``skills find`` prints it
    "acme/billing/refunds@1.0.0": PIN,
    "acme/@1.0.0/billing/refunds": PIN,
    "acme/billing/refunds@beta": CHANNEL,
    "acme/@beta/billing/refunds": CHANNEL,
}


class Shown(NamedTuple):
    """A registry, and the files of each version of a skill by the path that it has over MCP."""

    url: str
    token: str
    versions: Mapping[str, Mapping[str, bytes]]


def refunds(version: str) -> dict[str, bytes]:
    """A version with files that are easily spoiled."""
    return {
        "SKILL.md": skill_md("refunds", "Refunds.", f"Version {version}.\n", f"metadata:\n  version: {version}\n"),
        "crlf.md": b"one\r\ntwo\r\n",
        "empty.txt": b"",
        "binary.bin": bytes(range(256)),
        f"{'deep/' * 12}{'long-' * 20}été.md": "Ça va ?\n".encode(),
    }


@pytest.fixture(scope="module")
def shown(listen: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> Shown:
    """A process with the examples in the public namespace ``acme``, and three versions of one more skill."""
    state = str(tmp_path_factory.mktemp("registry"))
    made = subprocess.run(
        [skillwire_script(), "registry", "admin", "--state", state, "--json"], capture_output=True, check=True
    )
    token = json.loads(made.stdout)["token"]
    url = listen(skillwire_script(), "registry", "--http", "127.0.0.1:0", "--state", state)
    versions = {PIN: refunds("1.0.0"), STABLE: refunds("1.1.0"), CHANNEL: refunds("2.0.0-rc.1")}

    async def fill() -> None:
        examples = read_tree(EXAMPLES)
        async with RegistryClient.open(url, token) as client:
            await client.call("PUT", "namespaces/acme", {"public": True})
            await client.call("PUT", "namespaces/hidden", {})
            await publish(client, "hidden/secret", {"SKILL.md": skill_md("secret")})
            for name in ("commit-messages", "csv-profile", "incident-review"):
                await publish(client, f"acme/{name}", files_of(examples, name))
            await publish(client, STABLE, versions[PIN])
            await publish(client, STABLE, versions[STABLE])
            await publish(client, STABLE, versions[CHANNEL], channel="beta")

    anyio.run(fill)
    return Shown(url, token, versions)


def hashed(files: Mapping[str, bytes], below: str = "") -> dict[str, str]:
    return {below + path: sha256(data).hexdigest() for path, data in files.items()}


@rule("E2", "E3", "G1", "L1", "R1", "V1", "V4")
def test_the_inspector_verifies_a_registry(node: Node, shown: Shown, era: Era) -> None:
    everything = verify(node, [f"{shown.url}/mcp"], era)
    assert (everything.code, everything.issues) == (OK, [])
    assert sorted(everything.reports) == [
        STABLE,
        "acme/commit-messages",
        "acme/csv-profile",
        "acme/incident-review",
    ]
    for path, files in shown.versions.items():
        one = verify(node, [f"{shown.url}/mcp"], era, "skills/get", "--uri", f"skill://{path}/SKILL.md")
        assert (one.code, one.issues) == (OK, [])
        assert one.digests == hashed(files, f"{path}/")


@rule("G1", "R1", "V1", "V4")
def test_the_official_typescript_client_reads_versions(node: Node, shown: Shown, era: Era) -> None:
    uris = [f"skill://{path}/SKILL.md" for path in shown.versions]
    done = node.run("read_these.mjs", era, "http", f"{shown.url}/mcp", URIS="\n".join(uris))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.pop("version") == VERSIONS[era]
    assert list(found) == uris
    for (path, files), uri in zip(shown.versions.items(), uris, strict=True):
        assert by_path(found[uri]) == hashed(files, f"{path}/")


@rule("G1", "L1", "R1")
@pytest.mark.anyio
async def test_fastmcps_client_reads_versions(shown: Shown) -> None:
    async with Client(f"{shown.url}/mcp", extensions=[SkillsClientExtension()]) as client:
        listed = await client.list_skills()
        assert STABLE in {path_of(skill.uri).removesuffix("/SKILL.md") for skill in listed}
        for path, files in shown.versions.items():
            skill = await client.get_skill(f"skill://{path}/SKILL.md")
            assert skill.resources != "dynamic"
            read = {each.uri: sha256(await read_bytes(client, each.uri)).hexdigest() for each in skill.resources}
            assert by_path(read) == hashed(files, f"{path}/")


class Project(NamedTuple):
    """A folder in which ``npx skills`` runs."""

    folder: Path
    node: Node

    def run(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run it, with no way to any other machine and without telemetry."""
        self.elsewhere.unlink(missing_ok=True)
        done = subprocess.run(
            [str(self.node.program), "--require", str(PEERS / "loopback.cjs"), str(PEERS / SKILLS_CLI), *words],
            cwd=self.folder,
            env={
                **os.environ,
                "HOME": str(self.folder.parent),
                "DISABLE_TELEMETRY": "1",
                "NO_COLOR": "1",
                "ELSEWHERE": str(self.elsewhere),
                **env,
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
        )
        assert "DISABLE_TELEMETRY" in env or not self.elsewhere.exists(), self.elsewhere.read_text()
        return done

    @property
    def elsewhere(self) -> Path:
        """The hosts that it tried to reach, if there were any."""
        return self.folder.parent / "elsewhere.txt"

    def add(self, address: str) -> dict[str, dict[str, bytes]]:
        """Install what is at an address, and return the files of each skill."""
        done = self.run("add", address, "--agent", "claude-code", "--copy", "--yes")
        assert done.returncode == 0, done.stdout + done.stderr
        return self.installed()

    def installed(self) -> dict[str, dict[str, bytes]]:
        """The files of each installed skill."""
        folders = (self.folder / ".claude/skills").iterdir()
        return {folder.name: read_tree(folder) for folder in folders}


@pytest.fixture
def project(tmp_path: Path, node: Node) -> Project:
    folder = tmp_path / "project"
    folder.mkdir()
    return Project(folder, node)


@pytest.mark.parametrize("address", PLACES)
def test_npx_skills_installs_a_version(shown: Shown, project: Project, address: str) -> None:
    assert project.add(f"{shown.url}/{address}") == {"refunds": shown.versions[PLACES[address]]}


@pytest.mark.parametrize("address", ["hidden/secret", "hidden", "hidden/secret@0.1.0", "acme/nothing", "acme", ""])
def test_npx_skills_finds_nothing_where_nothing_is_public(shown: Shown, project: Project, address: str) -> None:
    done = project.run("add", f"{shown.url}/{address}", "--agent", "claude-code", "--copy", "--yes")
    assert done.returncode != 0
    assert not (project.folder / ".claude").exists()


def test_npx_skills_finds_what_it_can_add(shown: Shown, project: Project) -> None:
    done = project.run("find", "csv", "profile", SKILLS_API_URL=shown.url)
    [address] = re.findall(rf"{re.escape(shown.url)}/acme/csv[\w@-]+", done.stdout)  # between colours
    assert list(project.add(address)) == ["csv-profile"]


def test_npx_skills_reports_to_its_makers_unless_it_is_told_not_to(shown: Shown, project: Project) -> None:
    """So the guard of these tests works, and the variable in our documentation is needed."""
    project.run("find", "csv", SKILLS_API_URL=shown.url, DISABLE_TELEMETRY="")
    assert set(project.elsewhere.read_text().split()) == {"www.skills.sh"}


def test_npx_skills_updates_when_the_channel_moves(shown: Shown, project: Project) -> None:
    def move(version: str) -> None:
        async def call() -> None:
            async with RegistryClient.open(shown.url, shown.token) as client:
                await client.call("PUT", f"skills/{STABLE}/-/channels/canary", {"version": version})

        anyio.run(call)

    move("1.0.0")
    assert project.add(f"{shown.url}/{STABLE}@canary") == {"refunds": shown.versions[PIN]}
    move("1.1.0")
    updated = project.run("update", "--project", "--yes")
    assert updated.returncode == 0, updated.stdout + updated.stderr
    assert project.installed() == {"refunds": shown.versions[STABLE]}


@contextmanager
def web_server(folder: Path) -> Iterator[str]:
    """A plain web server, as a CDN would be."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def export(folder: Path, target: str) -> None:
    done = subprocess.run([skillwire_script(), "export", str(folder), target], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_npx_skills_installs_from_a_static_export(project: Project, tmp_path: Path) -> None:
    export(tmp_path / "www/skills", str(EXAMPLES))
    tree = read_tree(EXAMPLES)
    with web_server(tmp_path / "www") as url:  # below a prefix
        for path in ("acme/billing/refunds", "release/changelog"):
            found = project.add(f"{url}/skills/{quote(path)}")
            assert found[path.rpartition("/")[2]] == files_of(tree, path)
    with web_server(tmp_path / "www/skills") as url:
        names = {path.split("/")[-2] for path in tree if path.endswith("/SKILL.md")}
        assert project.add(url).keys() == names  # the index at the root


def test_npx_skills_installs_from_an_export_of_a_registry(shown: Shown, project: Project, tmp_path: Path) -> None:
    export(tmp_path / "www", f"{shown.url}/mcp")
    with web_server(tmp_path / "www") as url:
        assert project.add(f"{url}/{STABLE}") == {"refunds": shown.versions[STABLE]}
