"""Who may see what, over HTTP, in both eras: what one may not see is as if it did not exist."""

from __future__ import annotations

import json
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from http_server import serving_app
from interaction.conftest import Wire
from rotation import every_setting
from rules import rule
from skillwire.errors import FormatError
from skillwire.server.access import (
    Access,
    JwtSettings,
    Verifier,
    digest_token,
    new_token,
    read_access,
)
from skillwire.server.http import HttpOptions, WebApp, listen
from skillwire.server.http import HttpServer as SkillServer
from skillwire.server.skills import Skills, build_server
from skillwire.wire.extension import Freshness
from trees import replace_file, skill_md, small_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.anyio

ISSUER, AUDIENCE = "https://login.example.com", "https://skills.example.com/mcp"


@asynccontextmanager
async def running(root: Path, access: Access, freshness: Freshness | None = None) -> AsyncIterator[str]:
    listener = listen("127.0.0.1", 0)
    skills = Skills(root, visible=access.visible, freshness=freshness)
    server = SkillServer(WebApp(build_server(skills), HttpOptions(access)), listener)
    async with serving_app(server.app, listener):
        yield server.url
        server.app.drain()


@asynccontextmanager
async def caller(url: str, token: str, mode: str) -> AsyncIterator[Wire]:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=20) as web,
        Client(streamable_http_client(url, http_client=web), mode=mode) as client,
    ):
        yield Wire(client, "modern")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_tree(
        tmp_path / "skills", {**small_tree(), "acme/SKILL.md": skill_md("acme"), "acme/top.md": b"top"}
    )


TOKENS = {"billing": new_token()[0], "all": new_token()[0], "nobody": new_token()[0]}
ACCESS = Access(
    tokens={digest_token(token): subject for subject, token in TOKENS.items()},
    see={"billing": ("acme/billing", "flat"), "all": ("*",)},
)


@every_setting
async def test_each_caller_sees_its_own_part(root: Path, mode: str) -> None:
    async with running(root, ACCESS) as url:
        seen: dict[str, list[str]] = {}
        for subject, token in TOKENS.items():
            async with caller(url, token, mode) as wire:
                listing = await wire.call("skills/list")
                resources = await wire.call("resources/list")
                seen[subject] = [entry["uri"] for entry in listing["skills"]]
                assert [item["uri"] for item in resources["resources"]] == [*seen[subject], "skill://index.json"]
        assert len(seen["all"]) == 7
        assert seen["billing"] == ["skill://acme/billing/refunds/SKILL.md", "skill://flat/SKILL.md"]
        assert seen["nobody"] == []


# Whatever gives something away by a listing, a search, a suggestion, or a name in a refusal; on every endpoint.
QUESTIONS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "extension": [
        ("resources/read", {"uri": "skill://index.json"}),
        ("resources/read", {"uri": "skill://WHICH.zip"}),
        ("tools/call", {"name": "list_skills", "arguments": {}}),
        ("tools/call", {"name": "search_skills", "arguments": {"query": "WHICH does one thing well"}}),
        ("tools/call", {"name": "load_skill", "arguments": {"skill": "WHICH"}}),
        ("tools/call", {"name": "read_skill_file", "arguments": {"skill": "WHICH", "path": "notes.md"}}),
        ("prompts/list", {}),
        ("prompts/get", {"name": "WHICH"}),
    ],
    "sep-2076": [
        ("skills/list", {}),
        ("skills/get", {"name": "WHICH"}),
        ("resources/read", {"uri": "skill://WHICH/notes.md"}),
    ],
    "native": [
        ("skills/list", {}),
        ("skills/activate", {"name": "WHICH"}),
        ("skills/deactivate", {"name": "WHICH"}),
        ("resources/read", {"uri": "skill://WHICH/notes.md"}),
    ],
}


@rule("I1", "P1", "P2", "M1", "M2", "X1", "X2")
@pytest.mark.parametrize("endpoint", QUESTIONS)
async def test_in_no_dialect_is_there_a_trace_of_what_one_may_not_see(
    root: Path, mode: str, endpoint: str
) -> None:
    """The response for a hidden skill is the response for one that does not exist."""

    async def said(wire: Wire, method: str, params: dict[str, Any], name: str) -> str:
        filled = json.loads(json.dumps(params).replace("WHICH", name))
        try:
            answer = json.dumps(await wire.call(method, **filled))
        except MCPError as error:
            answer = json.dumps(error.error.model_dump())
        return answer.replace(name, "NAME")

    path = "" if endpoint == "extension" else f"/{endpoint}"
    async with running(root, ACCESS) as url, caller(url + path, TOKENS["billing"], mode) as wire:
        for method, params in QUESTIONS[endpoint]:
            hidden = await said(wire, method, params, "acme/release")
            assert hidden == await said(wire, method, params, "acme/relaese"), method
            assert "changelog" not in hidden, method


@rule("G1", "R1", "D1", "T1")
async def test_what_one_may_not_see_answers_like_what_does_not_exist(root: Path, mode: str) -> None:
    """The same code, words and data but for the URI itself."""
    asks = [
        ("skills/get", "skill://{}/SKILL.md"),
        ("resources/read", "skill://{}/SKILL.md"),
        ("resources/read", "skill://{}/notes.md"),
        ("resources/directory/read", "skill://{}"),
    ]

    async def refusal(wire: Wire, method: str, uri: str) -> str:
        with pytest.raises(MCPError) as caught:
            await wire.call(method, uri=uri)
        return json.dumps(caught.value.error.model_dump())

    async with running(root, ACCESS) as url, caller(url, TOKENS["billing"], mode) as wire:
        for method, pattern in asks:
            hidden = await refusal(wire, method, pattern.format("acme/release"))
            missing = await refusal(wire, method, pattern.format("acme/zelease"))
            assert hidden.replace("release", "zelease") == missing
        reference = {"type": "ref/resource", "uri": "skill://{+path}"}
        for typed in ("acme/rel", "acme/release/n"):
            result = await wire.call(
                "completion/complete", ref=reference, argument={"name": "path", "value": typed}
            )
            assert result["completion"]["values"] == []


@rule("E4")
async def test_a_file_of_an_unseen_skill_around_a_seen_folder_stays_unseen(root: Path, mode: str) -> None:
    """ "acme" is a skill that the caller may not see; a file of it lies under the caller's prefix."""
    write_tree(root, {"acme/billing/of-acme.md": b"x"})
    async with running(root, ACCESS) as url, caller(url, TOKENS["billing"], mode) as wire:
        for uri in ("skill://acme/billing/of-acme.md", "skill://acme/top.md"):
            with pytest.raises(MCPError):
                await wire.call("resources/read", uri=uri)
        folder = await wire.call("resources/directory/read", uri="skill://acme/billing")
        assert [item["name"] for item in folder["resources"]] == ["refunds"]  # the way to what it may see
        got = await wire.call("resources/read", uri="skill://acme/billing/refunds/templates/reply.md")
        assert got["contents"][0]["text"] == "Dear customer,\n"


async def test_what_differs_between_callers_is_never_public(root: Path) -> None:
    public = Freshness(1000, "public")
    async with running(root, ACCESS, public) as url, caller(url, TOKENS["all"], "auto") as wire:
        result = await wire.call("skills/list")
        assert (result["ttlMs"], result["cacheScope"]) == (1000, "private")


@rule("S1")
async def test_nobody_hears_of_changes_they_may_not_see(root: Path) -> None:
    """Neither by subscription nor as a changed list."""
    heard: dict[str, list[str]] = {"billing": [], "all": []}
    told, done = anyio.Event(), anyio.Event()

    async def listen_as(url: str, subject: str, ready: anyio.Event) -> None:
        uris = ["skill://windows/SKILL.md", "skill://flat/SKILL.md"]
        async with caller(url, TOKENS[subject], "auto") as wire:
            await wire.call("skills/list")
            async with wire.client.listen(resources_list_changed=True, resource_subscriptions=uris) as events:
                ready.set()
                async for event in events:
                    heard[subject].append(getattr(event, "uri", "list"))
                    if subject == "all" and "list" in heard[subject]:
                        told.set()
                    if subject == "billing" and "skill://flat/SKILL.md" in heard[subject]:
                        done.set()

    with anyio.fail_after(30):
        async with running(root, ACCESS) as url, anyio.create_task_group() as group:
            for subject in heard:
                ready = anyio.Event()
                group.start_soon(listen_as, url, subject, ready)
                await ready.wait()
            replace_file(root / "windows/SKILL.md", skill_md("windows", "new"))
            await told.wait()
            replace_file(root / "flat/SKILL.md", skill_md("flat", "new"))
            await done.wait()
            group.cancel_scope.cancel()
    assert "skill://windows/SKILL.md" in heard["all"]
    assert set(heard["billing"]) <= {"skill://flat/SKILL.md", "list"}
    assert heard["billing"][0] == "skill://flat/SKILL.md"


async def test_a_request_without_a_valid_token_is_refused(root: Path) -> None:
    headers = [{}, *({"Authorization": value} for value in ("Bearer", "Bearer wrong", "Basic x", "Bearer a.b.c"))]
    too_long = {"Authorization": "Bearer " + "x" * 17_000}
    async with running(root, ACCESS) as url, httpx2.AsyncClient(timeout=20) as web:
        for each in [*headers, too_long]:
            assert (await web.post(url, json={}, headers=each)).status_code == 401, each
        for path in ("/healthz", "/readyz"):
            assert (await web.get(url.replace("/mcp", path))).status_code == 200


async def test_a_token_has_a_bound_whoever_issued_it() -> None:
    longest = "x" * 16 * 1024
    verifier = Verifier(Access({digest_token(token): "ada" for token in (longest, longest + "x")}))
    assert await verifier.verify_token(longest) is not None
    assert await verifier.verify_token(longest + "x") is None


def claims(**changes: Any) -> dict[str, Any]:
    now = int(time.time())
    return {"iss": ISSUER, "aud": AUDIENCE, "sub": "billing", "exp": now + 600, "iat": now, **changes}


async def test_a_web_token_of_the_issuer_lets_its_subject_in(
    root: Path, key: rsa.RSAPrivateKey, jwks_url: str
) -> None:
    access = Access(jwt=JwtSettings(ISSUER, AUDIENCE, jwks_url), see={"jwt:billing": ("acme/billing", "flat")})
    token = jwt.encode(claims(), key, algorithm="RS256", headers={"kid": "one"})
    async with running(root, access) as url, caller(url, token, "auto") as wire:
        assert len((await wire.call("skills/list"))["skills"]) == 2


@rule("Z7")
@pytest.mark.parametrize("subject", ["admin", "jwt:admin"])
async def test_a_web_token_does_not_inherit_from_a_token_with_the_same_subject(
    root: Path, tmp_path: Path, key: rsa.RSAPrivateKey, jwks_url: str, subject: str
) -> None:
    file = tmp_path / "access.toml"
    file.write_text(
        f'[[token]]\nsubject = "admin"\nsha256 = "{digest_token("t")}"\nsee = ["*"]\n'
        f'[jwt]\nissuer = "{ISSUER}"\naudience = "{AUDIENCE}"\njwks = "{jwks_url}"\n'
    )
    token = jwt.encode(claims(sub=subject), key, algorithm="RS256", headers={"kid": "one"})
    async with running(root, read_access(file)) as url:
        async with caller(url, token, "auto") as wire:
            assert (await wire.call("skills/list"))["skills"] == []
        async with caller(url, "t", "auto") as wire:
            assert (await wire.call("skills/list"))["skills"] != []


@rule("Z7")
async def test_a_token_does_not_inherit_from_a_web_token_with_the_same_subject(root: Path, tmp_path: Path) -> None:
    file = tmp_path / "access.toml"
    file.write_text(
        f'[[token]]\nsubject = "ada"\nsha256 = "{digest_token("t")}"\nsee = []\n'
        f'[jwt]\nissuer = "{ISSUER}"\naudience = "{AUDIENCE}"\njwks = "{ISSUER}/keys"\n[see]\nada = ["*"]\n'
    )
    async with running(root, read_access(file)) as url, caller(url, "t", "auto") as wire:
        assert (await wire.call("skills/list"))["skills"] == []


async def test_a_web_token_that_is_not_good_is_turned_away(
    root: Path, key: rsa.RSAPrivateKey, jwks_url: str
) -> None:
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    endless = {name: value for name, value in claims().items() if name != "exp"}
    bad = {
        "no end": jwt.encode(endless, key, algorithm="RS256", headers={"kid": "one"}),
        "too long": jwt.encode(claims(x="x" * 16_000), key, algorithm="RS256", headers={"kid": "one"}),
        "expired": jwt.encode(claims(exp=1), key, algorithm="RS256", headers={"kid": "one"}),
        "other audience": jwt.encode(claims(aud="x"), key, algorithm="RS256", headers={"kid": "one"}),
        "other issuer": jwt.encode(claims(iss="x"), key, algorithm="RS256", headers={"kid": "one"}),
        "no subject": jwt.encode(claims(sub=None), key, algorithm="RS256", headers={"kid": "one"}),
        "other key": jwt.encode(claims(), other, algorithm="RS256", headers={"kid": "one"}),
        "unknown key": jwt.encode(claims(), key, algorithm="RS256", headers={"kid": "two"}),
        "symmetric": jwt.encode(claims(), "x" * 32, algorithm="HS256", headers={"kid": "one"}),
        "unsigned": jwt.encode(claims(), None, algorithm="none", headers={"kid": "one"}),
    }
    access = Access(jwt=JwtSettings(ISSUER, AUDIENCE, jwks_url), see=ACCESS.see)
    async with running(root, access) as url, httpx2.AsyncClient() as web:
        for what, token in bad.items():
            response = await web.post(url, json={}, headers={"Authorization": f"Bearer {token}"})
            assert response.status_code == 401, what
            assert "resource_metadata" in response.headers["www-authenticate"]
        metadata = await web.get(url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp"))
        assert metadata.json()["authorization_servers"] == [ISSUER]


def test_an_access_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "access.toml"
    file.write_text(
        f'[[token]]\nsubject = "a"\nsha256 = "{digest_token("t")}"\nsee = ["x"]\n'
        '[jwt]\nissuer = "https://i"\naudience = "u"\njwks = "https://i/k"\n[see]\n"b" = ["*"]\n'
    )
    access = read_access(file)
    assert access.tokens == {digest_token("t"): "a"}
    assert access.jwt == JwtSettings("https://i", "u", "https://i/k")
    assert access.see == {"a": ("x",), "jwt:b": ("*",)}
    assert access.prefixes("c") == access.prefixes(None) == ()


def test_two_tokens_of_one_subject_see_the_prefixes_of_both(tmp_path: Path) -> None:
    path = tmp_path / "access.toml"
    path.write_text(
        f'[[token]]\nsubject = "ada"\nsha256 = "{digest_token("one")}"\nsee = ["billing"]\n'
        f'[[token]]\nsubject = "ada"\nsha256 = "{digest_token("two")}"\nsee = ["release"]\n'
    )
    assert read_access(path).see == {"ada": ("billing", "release")}


DIGEST = f'sha256 = "{"0" * 64}"'
WRONG_FILES = {
    "not-toml": "not toml",
    "empty": "",
    "unknown-part": "x = 1",
    "token-no-list": "[token]\nsubject = 'a'",
    "token-without-subject": f"[[token]]\n{DIGEST}",
    "token-digest-short": "[[token]]\nsubject = 'a'\nsha256 = 'short'",
    "token-sees-text": f"[[token]]\nsubject = 'a'\n{DIGEST}\nsee = 'x'",
    "token-sees-outside": f"[[token]]\nsubject = 'a'\n{DIGEST}\nsee = ['../x']",
    "jwt-incomplete": "[jwt]\nissuer = 'i'",
    "jwt-no-text": "[jwt]\nissuer = 1\naudience = 'a'\njwks = 'k'",
    "jwt-no-urls": "[jwt]\nissuer = 'i'\naudience = 'a'\njwks = 'k'",
    "see-no-table": "see = 1",
    "see-a-number": "[see]\na = [1]",
    "token-of-a-web-subject": f"[[token]]\nsubject = 'jwt:a'\n{DIGEST}",
    "see-of-a-token": f"[[token]]\nsubject = 'a'\n{DIGEST}\n[see]\na = ['*']",
}


@pytest.mark.parametrize("what", WRONG_FILES)
def test_a_wrong_access_file_is_refused(tmp_path: Path, what: str) -> None:
    (tmp_path / "access.toml").write_text(WRONG_FILES[what])
    with pytest.raises(FormatError) as caught:
        read_access(tmp_path / "access.toml")
    assert str(tmp_path) not in str(caught.value)
