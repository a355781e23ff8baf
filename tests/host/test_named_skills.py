"""Skills that a server knows by name, loaded by the host: ``sep-2076`` and ``native`` (P2, P4, M2, V7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from adversarial.adversary import HostileServer
from adversarial.expecting import refused
from adversarial.named_servers import GUIDE, speak_native, speak_sep2076
from gateway.stage import flat_skill
from host.stage import SECONDS, Person, StagedHost, hosting, reference
from http_server import serving_http
from rules import rule
from skillwire import MemoryCatalog
from skillwire.errors import VerificationError
from skillwire.host.approvals import Policy, Rule
from skillwire.server.endpoints import Dialects
from skillwire.server.run import build_server
from skillwire.server.skills import Skills

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
        assert (person.kinds, list(await host.store.approvals())) == (["dynamic", "dynamic"], [])
        read = await host.read("refunds", "guide")
        assert read.is_error is (dialect == "native")
        assert ("# Guide" in read.text) is (dialect == "sep-2076")
        assert server.read_uris().count(GUIDE) == (dialect == "sep-2076")
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
        assert person.kinds == ["load" if dialect == "sep-2076" else "dynamic"]


@rule("V1", "A1", "A2", "C1")
async def test_what_has_digests_is_verified_approved_and_remembered(state: Path, person: Person) -> None:
    """Servers of this package promise digests in ``sep-2076`` too: such a skill is one like any other."""
    catalog = MemoryCatalog([flat_skill()])
    async with serving_http(build_server(Skills(catalog))) as url:
        target = {"acme": f"{url}/sep-2076"}
        async with StagedHost.open(servers=target, state=state, ask=person) as host:
            await host.settle(SECONDS)
            loaded = await host.load("flat")
            assert "Do it." in loaded.text, loaded.text
            assert "\nnote: " not in loaded.text
            assert "notes" in (await host.read("flat", "notes.md")).text
            assert person.kinds == ["load"]
            await host.relist("acme")
            assert [each.standing for each in await host.skills()] == ["approved"]
        async with StagedHost.open(servers=target, state=state) as host:  # nobody to ask, nothing in the cache
            await host.settle(SECONDS)
            assert host.cache is not None
            host.cache.remove_origin("acme")
            assert not (await host.load("flat")).is_error
            assert "notes" in (await host.read("flat", "notes.md")).text
        catalog.put(flat_skill(body="Something else.\n"))
        async with StagedHost.open(servers=target, state=state) as host:
            await host.settle(SECONDS)
            assert reference(await host.load("flat")) == ("nobody-to-ask", "A1")
            assert list(await host.store.approvals()) == []
    async with StagedHost.open(servers={"acme": ["/no/such/command"]}, state=state) as host:
        await host.settle(SECONDS)
        assert (await host.load("flat")).is_error
