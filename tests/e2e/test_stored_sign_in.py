"""The sign-in of ``skillwire registry login``: every verb that reads uses it, and no other server gets it (Z1)."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import pytest

from e2e.commands import run
from rules import rule
from trees import skill_md, write_tree

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

SKILL = "acme/refunds"


@pytest.fixture
def signed_in(tmp_path: Path, environment: dict[str, str], registry: dict[str, str]) -> dict[str, str]:
    """The registry, with a skill in the private namespace ``acme``. The user is signed in."""
    assert run(environment, "registry", "login", registry["url"], typed=registry["token"] + "\n").returncode == 0
    assert run(environment, "registry", "namespace", "acme").returncode == 0
    folder = write_tree(tmp_path / "skills", {"refunds/SKILL.md": skill_md("refunds")}) / "refunds"
    published = run(environment, "publish", str(folder), "--namespace", "acme", "--yes")
    assert published.returncode == 0, published.stderr
    return registry


def at(folder: Path, environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """A command in a project."""
    folder.mkdir(exist_ok=True)
    return run(environment | {"PWD": str(folder)}, *words, cwd=folder)


def test_every_verb_that_reads_a_private_registry_uses_it(
    tmp_path: Path,
    environment: dict[str, str],
    signed_in: dict[str, str],
) -> None:
    project, mcp = tmp_path / "project", signed_in["mcp"]
    for words, expected in [
        (("list", mcp), "refunds"),
        (("list", signed_in["url"]), "refunds"),
        (("show", mcp, SKILL), "skill://acme/refunds/SKILL.md"),
        (("read", mcp, f"{SKILL}/SKILL.md"), "name: refunds"),
        (("search", mcp, "refunds"), "refunds"),
        (("verify", mcp), ""),
        (("add", mcp, SKILL, "--agent", "claude-code", "--yes"), "refunds"),
        (("update", "--check"), ""),
        (("diff", mcp, str(tmp_path / "skills")), ""),
    ]:
        done = at(project, environment, *words)
        assert done.returncode in ((0, 1) if words[0] == "diff" else (0,)), (words, done.stderr)
        assert expected in done.stdout, words
    shutil.rmtree(project / ".claude")
    restored = at(project, environment, "add", "--locked")
    assert restored.returncode == 0, restored.stderr
    assert signed_in["token"] not in (project / "skills.lock.json").read_text()
    assert run(environment, "registry", "login", signed_in["url"], "--logout").returncode == 0
    gone = at(project, environment, "list", mcp, "--json")
    assert json.loads(gone.stdout)["skills"] == []


def test_programs_use_the_variables_for_their_registry_only(
    environment: dict[str, str],
    signed_in: dict[str, str],
) -> None:
    assert run(environment, "registry", "login", signed_in["url"], "--logout").returncode == 0
    with_token = environment | {"SKILLWIRE_TOKEN": signed_in["token"]}
    for other, count in [(None, 0), ("http://localhost:1", 0), (signed_in["url"], 1)]:
        more = {} if other is None else {"SKILLWIRE_REGISTRY": other}
        listed = run(with_token | more, "list", signed_in["mcp"], "--json")
        assert len(json.loads(listed.stdout)["skills"]) == count, other


def test_a_sign_in_that_ended_is_explained(
    environment: dict[str, str],
    signed_in: dict[str, str],
) -> None:
    made = run(environment, "registry", "token", "short", "--json")
    secret = json.loads(made.stdout)
    login = run(environment, "registry", "login", signed_in["url"], typed=secret["secret"] + "\n")
    assert login.returncode == 0
    assert run(environment, "registry", "token", "--revoke", secret["id"]).returncode == 0
    done = run(environment, "list", signed_in["mcp"], "--json")
    assert done.returncode == 2
    assert "skillwire registry login" in json.loads(done.stdout)["error"]["hint"]
    given = ("--header", f"Authorization: Bearer {signed_in['token']}")
    assert len(json.loads(run(environment, "list", signed_in["mcp"], "--json", *given).stdout)["skills"]) == 1


class _Ears(BaseHTTPRequestHandler):
    """Keeps the headers of each request, and redirects to ``target`` or refuses."""

    heard: list[dict[str, str]]
    target = ""

    def do_POST(self) -> None:
        type(self).heard.append({key.lower(): value for key, value in self.headers.items()})
        self.send_response(307 if self.target else 404)
        if self.target:
            self.send_header("Location", self.target)
        self.end_headers()

    do_GET = do_POST  # noqa: N815 - the name is the library's

    def log_message(self, *args: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        pass


@contextmanager
def listening(target: str = "") -> Iterator[tuple[str, list[dict[str, str]]]]:
    heard: list[dict[str, str]] = []
    ears = type("Ears", (_Ears,), {"heard": heard, "target": target})
    with ThreadingHTTPServer(("127.0.0.1", 0), ears) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", heard
        server.shutdown()


def remember(home: Path, url: str, token: str) -> None:
    """Store a sign-in as ``skillwire registry login`` does."""
    state = home / ".local/state/skillwire"
    state.mkdir(parents=True, exist_ok=True)
    (state / "registries.json").write_text(json.dumps({"registries": {url: {"token": token}}, "last": url}))


@rule("Z1")
def test_it_goes_to_its_scheme_host_and_port_only(
    tmp_path: Path,
    environment: dict[str, str],
) -> None:
    with listening() as (other, heard_there), listening(f"{other}/mcp") as (url, heard):
        remember(tmp_path, url, "skw_secret")
        assert run(environment, "list", f"{url}/mcp").returncode == 2
        assert {each["authorization"] for each in heard} == {"Bearer skw_secret"}
        assert not any("authorization" in each for each in heard_there)  # a redirect
        for place in (other, url.replace("127.0.0.1", "localhost"), url.replace("://", "://user@")):
            heard.clear()
            heard_there.clear()
            assert run(environment, "list", f"{place}/mcp").returncode == 2
            secrets = [each["authorization"] for each in heard + heard_there if "authorization" in each]
            assert not any("skw_secret" in each for each in secrets), place


@rule("Z1")
def test_an_entry_of_a_project_does_not_get_it(
    tmp_path: Path,
    environment: dict[str, str],
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    with listening() as (url, heard):
        remember(tmp_path, url, "skw_secret")
        entry = {"mcpServers": {"team": {"type": "http", "url": f"{url}/mcp"}}}
        (project / ".mcp.json").write_text(json.dumps(entry))
        assert at(project, environment, "list", "team", "--yes").returncode == 2
        assert heard
        assert not any("authorization" in each for each in heard)
