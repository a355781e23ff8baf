"""In the stateless era a token carries what is active: nobody can make one, alter one, or use another's (M3)."""

from __future__ import annotations

import time
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from interaction.native_caller import Caller
from interaction.native_server import KEY, build, native_tree
from rotation import every_setting
from rules import rule
from skillwire.catalog.memory import MemoryCatalog, Skill
from skillwire.errors import FormatError, NotFoundError
from skillwire.server.activation import MAX_ACTIVE
from skillwire.server.dialect import Dialects
from skillwire.server.skills import Skills, build_server
from skillwire.types import SkillsClient
from skillwire.wire.meta import ACTIVATION
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from pathlib import Path

    from mcp.server.mcpserver import MCPServer

pytestmark = pytest.mark.anyio

CLAIMS: dict[str, Any] = {"aud": "skillwire/activation", "sub": "", "exp": 2**33, "skills": ["acme/refunds"]}
ASKED = [
    ("tools/list", {}),
    ("tools/call", {"name": "add", "arguments": {"one": 1, "two": 2}}),
    ("skills/list", {}),
    ("skills/activate", {"name": "plain"}),
    ("skills/deactivate", {"name": "refunds"}),
    ("resources/read", {"uri": "config://main"}),
    ("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}}),
    ("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["rules://refunds"]}}),
    ("nothing/known", {}),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "skills", native_tree())


def replica(root: Path, key: bytes | None = KEY) -> MCPServer:
    return build(root, Dialects("native", activation_key=key))


def signed(key: bytes = KEY, algorithm: str = "HS256", **changes: Any) -> str:
    claims = {name: value for name, value in {**CLAIMS, **changes}.items() if value is not None}
    return jwt.encode(claims, key, algorithm=algorithm)


def altered(token: str) -> str:
    """The same signature under other claims."""
    head, _, signature = token.split(".")
    body = urlsafe_b64encode(b'{"aud":"skillwire/activation","sub":"","exp":9999999999,"skills":["shipping"]}')
    return f"{head}.{body.decode().rstrip('=')}.{signature}"


BAD: dict[str, Any] = {
    "another key": signed(b"another key of thirty-two bytes or more"),
    "altered": altered(signed()),
    "unsigned": jwt.encode(CLAIMS, None, algorithm="none"),
    "another algorithm": signed(KEY * 2, "HS512"),
    "expired": signed(exp=1),
    "never expiring": signed(exp=None),
    "for somebody else": signed(sub="subject:ada"),
    "for nobody": signed(sub=None),
    "for something else": signed(aud="https://example.com"),
    "for anything": signed(aud=None),
    "of no skills": signed(skills=None),
    "of what is no list": signed(skills="acme/refunds"),
    "of what is no text": signed(skills=[7]),
    "of too many skills": signed(skills=["plain"] * (MAX_ACTIVE + 1)),
    "oversized": signed(skills=["x" * 9000]),
    "not a token": "a.b.c",
    "empty": "",
    "not ASCII": "ä.ö.ü",
    "a surrogate": "\ud800",
    "a number": 7,
    "nothing": None,
}


@rule("M3")
async def test_a_token_of_ours_is_taken(root: Path) -> None:
    """The bad ones below differ from this one in one thing each."""
    async with Client(replica(root)) as client:
        caller = Caller(client, "modern")
        caller.token = signed()
        assert "pay" in await caller.usable()


async def refused(caller: Caller, token: Any, method: str = "tools/list", **params: Any) -> None:
    with pytest.raises(MCPError) as caught:
        await caller.call(method, **params, _meta={ACTIVATION: token})
    error = caught.value.error
    assert (error.code, error.data["reference"]) == (-32602, "activation-invalid"), (token, method)


@rule("M3")
async def test_every_bad_token_is_refused(root: Path) -> None:
    """-32602; nothing is answered, nothing becomes active."""
    async with Client(replica(root)) as client:
        caller = Caller(client, "modern")
        for token in BAD.values():
            await refused(caller, token)
        assert await caller.usable() == set()


@rule("M3")
async def test_a_bad_token_is_refused_on_every_request(root: Path) -> None:
    async with Client(replica(root)) as client:
        caller = Caller(client, "modern")
        for method, params in ASKED:
            await refused(caller, BAD["altered"], method, **params)
        assert await caller.usable() == set()


@rule("M3")
async def test_replicas_with_one_key_accept_each_others_tokens(root: Path) -> None:
    """Any of them can answer the next request; one with another key cannot."""
    async with (
        Client(replica(root)) as first,
        Client(replica(root)) as second,
        Client(replica(root, b"quite another key of thirty-two bytes")) as stranger,
        Client(replica(root, None)) as loner,
    ):
        one, two = Caller(first, "modern"), Caller(second, "modern")
        await one.call("skills/activate", name="refunds")
        two.token = one.token
        assert await two.ran("pay", order="1") == "paid 1"
        await two.call("skills/activate", name="plain")
        one.token = two.token
        assert await one.refused_for("skills/activate", name="plain") == "skill-already-active"
        for client in (stranger, loner):
            await refused(Caller(client, "modern"), one.token)


@rule("M3")
async def test_a_token_says_what_was_active_when_it_was_made(root: Path) -> None:
    """One more gives a token for both, one less a token without; the older ones say what they said."""
    async with Client(replica(root)) as client:
        caller = Caller(client, "modern")
        tokens: list[str | None] = []
        for method, name in (("activate", "refunds"), ("activate", "shipping"), ("deactivate", "refunds")):
            await caller.call(f"skills/{method}", name=name)
            tokens.append(caller.token)
        seen: list[set[str]] = []
        for caller.token in tokens:
            seen.append(await caller.usable())
        assert seen == [{"pay", "lookup_order"}, {"pay", "lookup_order"}, {"lookup_order"}]
        claims = jwt.decode(str(tokens[1]), KEY, algorithms=["HS256"], audience="skillwire/activation")
        assert claims["skills"] == ["acme/refunds", "shipping"]
        assert 3500 < claims["exp"] - time.time() <= 3600


@rule("M3")
async def test_a_session_takes_no_token(root: Path) -> None:
    """In the handshake era the session remembers; a token neither helps nor harms."""
    async with Client(replica(root), mode="legacy") as client:
        caller = Caller(client, "legacy")
        for token in (signed(), "nonsense"):
            caller.token = token
            assert await caller.usable() == set()


@every_setting
@rule("M3", "B3")
async def test_only_so_many_skills_can_be_active(mode: str) -> None:
    """The next is refused, and one less makes room."""
    catalog = MemoryCatalog([Skill(f"s{n}", {"SKILL.md": skill_md(f"s{n}")}) for n in range(MAX_ACTIVE + 1)])
    async with Client(build_server(Skills(catalog, dialects=Dialects("native"))), mode=mode) as client:
        caller = Caller(client, "legacy" if mode == "legacy" else "modern")
        for n in range(MAX_ACTIVE):
            await caller.call("skills/activate", name=f"s{n}")
        with pytest.raises(MCPError) as caught:
            await caller.call("skills/activate", name=f"s{MAX_ACTIVE}")
        assert caught.value.error.data["reference"] == "too-many-active"
        await caller.call("skills/deactivate", name="s0")
        await caller.call("skills/activate", name=f"s{MAX_ACTIVE}")


@rule("M3")
async def test_a_token_never_grows_beyond_what_is_taken() -> None:
    """Paths may be long; what would not be accepted is not made."""
    paths = [f"{'x' * 3500}{n}/s{n}" for n in range(3)]
    catalog = MemoryCatalog([Skill(path, {"SKILL.md": skill_md(f"s{n}")}) for n, path in enumerate(paths)])
    async with Client(build_server(Skills(catalog, dialects=Dialects("native")))) as client:
        caller = Caller(client, "modern")
        await caller.call("skills/activate", name="s0")
        with pytest.raises(MCPError) as caught:
            await caller.call("skills/activate", name="s1")
        assert caught.value.error.data["reference"] == "too-many-active"
        await caller.call("skills/deactivate", name="s0")
        await caller.call("skills/activate", name="s1")


@rule("M3")
def test_a_key_that_is_too_short_is_refused_and_none_is_shown() -> None:
    with pytest.raises(FormatError) as caught:
        Dialects(activation_key=KEY[:31])
    assert caught.value.reference == "activation-key-short"
    assert "openssl" in caught.value.hint
    assert Dialects(activation_key=KEY[:32]).activation_key == KEY[:32]
    assert "thirty" not in repr(Dialects(activation_key=KEY))


@rule("M3")
async def test_our_client_drops_a_token_that_has_expired(root: Path) -> None:
    """The error says so once; activating again needs nothing else."""
    async with Client(replica(root)) as sdk:
        client = SkillsClient(sdk, dialect="native")
        refunds = await client.activate("refunds")
        client.connection.carried[ACTIVATION] = BAD["expired"]
        with pytest.raises(NotFoundError):
            await refunds.call_tool("pay", {"order": "1"})
        assert refunds.meta == {}
        client.connection.carried[ACTIVATION] = BAD["expired"]
        again = await client.activate("refunds")
        assert (await again.call_tool("pay", {"order": "1"}))["content"][0]["text"] == "paid 1"
