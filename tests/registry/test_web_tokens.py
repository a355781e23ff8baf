"""Web tokens of an issuer: people, groups and trusted publishers, with a real key set on loopback (Z7)."""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from registry.stage import publish, refunds, running_registry
from rules import rule
from skillwire.errors import ApprovalError, FormatError, NotFoundError
from skillwire.registry.settings import Issuer, RegistrySettings, read_settings

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

PEOPLE, CI, AUDIENCE = "https://login.example.com", "https://ci.example.com", "https://skills.example.com"


@pytest.fixture(scope="module")
def settings(jwks_url: str) -> RegistrySettings:
    return RegistrySettings(
        (Issuer(PEOPLE, AUDIENCE, jwks_url, "corp", "groups"), Issuer(CI, AUDIENCE, jwks_url, "ci")),
        frozenset({"group:corp/platform"}),
    )


def token(key: rsa.RSAPrivateKey, issuer: str, sub: str, **claims: Any) -> str:
    body = {"iss": issuer, "aud": AUDIENCE, "sub": sub, "exp": int(time.time()) + 600, **claims}
    return jwt.encode(body, key, algorithm="RS256", headers={"kid": "one"})


@rule("Z7")
async def test_a_web_token_gives_its_subject_and_its_groups(
    settings: RegistrySettings, key: rsa.RSAPrivateKey
) -> None:
    async with running_registry(settings) as running:
        await running.namespace("acme", roles={"group:corp/payments": "reader", "user:ada": "owner"})
        async with running.api(await running.token("user:operator")) as operator:
            await publish(operator, "acme/refunds", refunds())
        async with running.api(token(key, PEOPLE, "ada", groups=["payments", 7])) as ada:
            who = await ada.call("GET", "whoami")
            assert who["principals"] == ["group:corp/payments", "jwt:corp/ada"]
            assert (await ada.call("GET", "skills/acme/refunds"))["path"] == "acme/refunds"
            with pytest.raises(ApprovalError):  # the role of user:ada is not that of jwt:corp/ada
                await publish(ada, "acme/refunds", refunds("More.\n"))
        for stranger in (token(key, PEOPLE, "ada"), token(key, CI, "ada", groups=["payments"])):
            async with running.api(stranger) as other, running.mcp(stranger) as wire:
                with pytest.raises(NotFoundError):
                    await other.call("GET", "skills/acme/refunds")
                assert (await wire.call("skills/list"))["skills"] == []
        async with running.api(token(key, PEOPLE, "root", groups=["platform"])) as admin:
            await admin.call("PUT", "namespaces/other", {})
            with pytest.raises(FormatError):
                await admin.call("POST", "tokens", {"name": "x", "subject": "jwt:corp/ada"})


@rule("Z7")
async def test_a_trusted_publisher_matches_by_its_ids(settings: RegistrySettings, key: rsa.RSAPrivateKey) -> None:
    async with running_registry(settings) as running:
        await running.namespace("acme", roles={"user:ada": "owner"})
        where, claims = "namespaces/acme/publishers", {"repository_id": "42", "environment": "release"}
        async with running.api(await running.token("user:ada")) as ada:
            with pytest.raises(FormatError):  # a name can change hands
                await ada.call("POST", where, {"issuer": CI, "claims": {"repository": "acme/skills"}})
            with pytest.raises(FormatError):
                await ada.call("POST", where, {"issuer": "https://other.example.com", "claims": claims})
            number = (await ada.call("POST", where, {"issuer": CI, "claims": claims}))["number"]
        good = token(key, CI, "repo:acme/skills", repository_id=42, environment="release")
        async with running.api(good) as program:
            assert f"publisher:{number}" in (await program.call("GET", "whoami"))["principals"]
            assert (await publish(program, "acme/refunds", refunds()))["outcome"] == "created"
        bad = [
            token(key, CI, "repo:acme/skills", repository_id="43", environment="release"),
            token(key, CI, "repo:acme/skills", repository_id="42"),
            token(key, CI, "repo:acme/skills", repository_id=["42"], environment="release"),
            token(key, PEOPLE, "repo:acme/skills", repository_id="42", environment="release"),
        ]
        for each in bad:
            async with running.api(each) as program:
                with pytest.raises(NotFoundError):
                    await publish(program, "acme/refunds", refunds("More.\n"))
        async with running.api(await running.token("user:ada")) as ada:
            await ada.call("DELETE", f"{where}/{number}")
        async with running.api(good) as program:
            with pytest.raises(NotFoundError):
                await publish(program, "acme/refunds", refunds("More.\n"))


@rule("Z7")
@pytest.mark.parametrize(
    "groups",
    ["platform", {"platform": True}, [["platform"], {"platform": 1}, True, None], True, 0, ["user:root"]],
    ids=str,
)
async def test_groups_that_are_no_list_of_names_give_nothing(
    settings: RegistrySettings, key: rsa.RSAPrivateKey, groups: Any
) -> None:
    async with running_registry(settings) as running:
        async with running.api(token(key, PEOPLE, "ada", groups=groups)) as ada:
            who = await ada.call("GET", "whoami")
        assert not who["admin"]
        assert {each for each in who["principals"] if "platform" in each or each.startswith("user:")} == set()


async def test_an_invalid_web_token_is_refused(settings: RegistrySettings, key: rsa.RSAPrivateKey) -> None:
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    whole = {"iss": PEOPLE, "aud": AUDIENCE, "sub": "ada", "exp": int(time.time()) + 600}
    bad = [
        token(other, PEOPLE, "ada"),
        token(key, "https://other.example.com", "ada"),
        token(key, PEOPLE, "ada", aud="https://elsewhere.example.com"),
        token(key, PEOPLE, "ada", exp=int(time.time()) - 60),
        jwt.encode(whole, "x" * 32, algorithm="HS256", headers={"kid": "one"}),
        jwt.encode(whole, None, algorithm="none", headers={"kid": "one"}),
        f"{token(key, PEOPLE, 'ada')}{'A' * 20_000}",
        "e30.e30.e30",
        "..",
    ]
    async with running_registry(settings) as running:
        for each in bad:
            async with running.raw(each) as web:
                assert (await web.get("/v1/whoami")).status_code == 401
                assert (await web.post("/mcp", json={})).status_code == 401


def test_two_issuers_need_labels_and_a_settings_file_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "registry.toml"
    one = '[[issuer]]\nissuer = "https://a.example"\naudience = "x"\njwks = "https://a.example/keys"\n'
    two = one.replace("a.example", "b.example")
    file.write_text('admins = ["group:platform"]\n' + one)
    assert read_settings(file).issuers[0].principal("jwt", "ada") == "jwt:ada"
    for text in (one + two, one + one, "admins = 1", "surprise = 1", "[[issuer]]\n", "admins = ["):
        file.write_text(text)
        with pytest.raises(FormatError):
            read_settings(file)


@rule("Z6", "Z7")
async def test_a_token_that_is_nested_too_deeply_is_unknown(settings: RegistrySettings) -> None:
    """Its header and its claims are JSON of a stranger."""

    def part(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).decode().rstrip("=")

    claims = part(json.dumps({"iss": PEOPLE, "aud": AUDIENCE, "sub": "ada"}).encode())
    deep = part(b"[" * 5_000)
    async with running_registry(settings) as running:
        for header, payload in ((deep, claims), (part(b'{"alg": "RS256"}'), deep)):
            async with running.raw(f"{header}.{payload}.x") as web:
                assert (await web.get("/v1/whoami")).status_code == 401
