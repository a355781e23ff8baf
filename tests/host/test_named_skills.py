"""Skills that a server knows by name, loaded by the host: ``sep-2076`` and ``native`` (P2, P4, M2, V7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from adversarial.adversary import HostileServer
from adversarial.expecting import refused
from adversarial.named_servers import speak_native, speak_sep2076
from gateway.stage import flat_skill
from host.stage import SECONDS, Person, StagedHost, hosting, reference
from http_server import serving_http
from rules import rule
from skillwire import MemoryCatalog
from skillwire.errors import VerificationError
from skillwire.host.approvals import Policy, Rule
from skillwire.server.dialect import Dialects
from skillwire.server.skills import Skills, build_server
from skillwire.skill.entry import digest_of
from skillwire.wire.meta import DIGEST, SIZE, URI
from trees import skill_md

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

ASK_DYNAMIC = Policy([Rule("ask", kind="dynamic")])
SPEAK = {"sep-2076": speak_sep2076, "native": speak_native}
ERAS = ("legacy", "modern")


def ours(dialect: Any, catalog: MemoryCatalog | None = None) -> Any:
    """A server of this package, in this process."""
    catalog = catalog or MemoryCatalog([flat_skill()])
    return build_server(Skills(catalog, dialects=Dialects(dialect, "never")))


@rule("P2", "M2", "V7", "O2")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("dialect", SPEAK)
async def test_a_skill_without_promises_is_loaded_by_choice(
    dialect: str, era: Any, state: Path, person: Person
) -> None:
    """Over HTTP, in both eras. By default it is declined, since nothing about it can be verified."""
    server = HostileServer("http", era)
    SPEAK[dialect](server)
    async with hosting(state / "declined", {"acme": server}, ask=person) as host:
        assert reference(await host.load("refunds")) == ("not-approved", "V7")
        with refused(VerificationError, "approval-unbound", "V7"):
            await host.approve("refunds")
    async with hosting(state / "asked", {"acme": server}, ask=person, policy=ASK_DYNAMIC) as host:
        for _ in range(2):
            loaded = await host.load("refunds")
            assert not loaded.is_error, loaded.text
            assert "Pay back." in loaded.text
            assert "mcp:acme" in loaded.text
        await host.relist("acme")
        assert (person.kinds, list(await host.store.approvals())) == (["load"] * 3, [])
        path, words = {"sep-2076": ("guide", "# Guide"), "native": ("rules", "No refunds on Sundays.")}[dialect]
        read = await host.read("refunds", path)
        assert not read.is_error, read.text
        assert words in read.text
        assert (await host.read("refunds", "other.md")).is_error
        assert (await host.read("refunds", "docs://elsewhere/x")).is_error


@rule("P2", "M2", "V7")
@pytest.mark.parametrize("dialect", SPEAK)
async def test_a_server_object_of_this_process_is_loaded_from(dialect: str, state: Path, person: Person) -> None:
    async with StagedHost.open(
        servers={"acme": ours(dialect)}, state=state, ask=person, policy=ASK_DYNAMIC
    ) as host:
        await host.settle(SECONDS)
        loaded = await host.load("flat")
        assert "Do it." in loaded.text, loaded.text
        assert person.kinds == ["load"]


@rule("V1", "A1", "A2", "C1", "M2", "P2")
@pytest.mark.parametrize("dialect", SPEAK)
async def test_what_has_digests_is_verified_approved_and_remembered(
    dialect: str, state: Path, person: Person
) -> None:
    """Servers of this package promise digests in every dialect: such a skill is one like any other."""
    catalog = MemoryCatalog([flat_skill()])
    async with serving_http(build_server(Skills(catalog))) as url:
        target = {"acme": f"{url}/{dialect}"}
        async with StagedHost.open(servers=target, state=state, ask=person) as host:
            await host.settle(SECONDS)
            loaded = await host.load("flat")
            assert "Do it." in loaded.text, loaded.text
            assert "\nnote: " not in loaded.text
            assert "notes" in (await host.read("flat", "notes.md")).text
            assert person.kinds == ["load"]
            await host.relist("acme")
            assert [each.status for each in await host.skills()] == ["approved"]
        async with StagedHost.open(servers=target, state=state) as host:  # nobody to ask, nothing in the cache
            await host.settle(SECONDS)
            assert host.cache is not None
            host.cache.remove_origin("acme")
            assert not (await host.load("flat")).is_error
            assert "notes" in (await host.read("flat", "notes.md")).text
        catalog.put(flat_skill(body="Something else.\n"))
        async with StagedHost.open(servers=target, state=state) as host:
            await host.settle(SECONDS)
            assert reference(await host.load("flat")) == ("cannot-ask", "A1")
            assert list(await host.store.approvals()) == []
    async with StagedHost.open(servers={"acme": ["/no/such/command"]}, state=state) as host:
        await host.settle(SECONDS)
        assert (await host.load("flat")).is_error


@rule("V1", "M2")
@pytest.mark.parametrize("lies", [False, True], ids=["honest", "lying"])
async def test_a_native_server_is_held_to_the_digests_of_its_activation(
    lies: bool, state: Path, person: Person
) -> None:
    """One that only the activation promises: the listing has none."""
    home, text = "skill://x/refunds/SKILL.md", skill_md("refunds", "Pays back.", "Pay back.\n")
    server = HostileServer("http", "modern")
    speak_native(server)
    promised = {DIGEST: digest_of(text), SIZE: len(text)}
    server.answers["skills/activate"] = {
        "instructions": "Pay back.",
        "resources": [
            {"uri": home, "name": "SKILL.md", "_meta": promised},
            {"uri": "rules://refunds", "name": "r"},
        ],
        "_meta": {URI: home},
    }
    served = text.replace(b"Pay", b"Lie") if lies else text
    server.answers["resources/read"] = lambda _: {"contents": [{"uri": home, "text": served.decode()}]}
    async with hosting(state, {"acme": server}, ask=person) as host:
        loaded = await host.load("refunds")
        assert person.kinds == ["load"]
        if lies:
            assert reference(loaded) == ("digest-mismatch", "V1")
        else:
            assert "Pay back." in loaded.text
            assert "\nnote: " not in loaded.text


@rule("P2", "V7")
@pytest.mark.parametrize("era", ERAS)
async def test_a_skill_that_needs_arguments_is_loaded_with_them(era: Any, state: Path, person: Person) -> None:
    """Without them nobody is asked, and the refusal names the one that is missing."""
    server = HostileServer("http", era)
    speak_sep2076(server)
    async with hosting(state, {"acme": server}, ask=person, policy=ASK_DYNAMIC) as host:
        for given in ({}, {"arguments": {"town": "Bern"}}):
            refusal = await host.call("load_skill", {"name": "weather", **given})
            assert reference(refusal) == ("argument-missing", "P2")
            assert "city" in refusal.text
        assert person.kinds == []
        loaded = await host.call("load_skill", {"name": "weather", "arguments": {"city": "Bern"}})
        assert "The weather in Bern." in loaded.text, loaded.text
        assert person.kinds == ["dynamic"]
        other = await host.call("load_skill", {"name": "weather", "arguments": {"city": 7}})
        assert reference(other)[0] == "argument-invalid"


@rule("P2")
async def test_a_skill_of_another_dialect_takes_no_arguments(state: Path, person: Person) -> None:
    catalog = MemoryCatalog([flat_skill()])
    async with StagedHost.open(servers={"acme": build_server(Skills(catalog))}, state=state, ask=person) as host:
        await host.settle(SECONDS)
        refusal = await host.call("load_skill", {"name": "flat", "arguments": {"city": "Bern"}})
        assert reference(refusal) == ("argument-unknown", "P2")
