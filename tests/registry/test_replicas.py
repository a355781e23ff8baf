"""Two registries on one PostgreSQL database: what one publishes, the other serves and its subscribers hear."""

from __future__ import annotations

import pytest

from registry.stage import publish, refunds, running_registry
from registry.test_notices import REFUNDS, listening
from rotation import every_setting
from rules import rule

pytestmark = pytest.mark.anyio


@every_setting
@rule("S1")
async def test_what_one_replica_publishes_the_other_serves_and_tells(mode: str, postgres_url: str) -> None:
    async with running_registry(place=postgres_url) as one, running_registry(place=postgres_url) as other:
        await one.namespace("acme", roles={"user:eve": "reader"})
        eve = await one.token("user:eve")
        async with one.api(await one.token("user:operator")) as ada:
            await publish(ada, "acme/refunds", refunds("One.\n"))
            async with listening(other, eve, mode, [REFUNDS]) as ears, other.mcp(eve, mode) as wire:
                await publish(ada, "acme/refunds", refunds("Two.\n"))
                text = (await wire.call("resources/read", uri=REFUNDS))["contents"][0]["text"]
                assert "Two." in text  # at once, not when it is heard of
                await ears.wait_for(f"updated {REFUNDS}", "list")
                found = await wire.call("skills/get", uri="skill://acme/@0.1.0/refunds/SKILL.md")
                assert found["skill"]["frontmatter"]["name"] == "refunds"
            async with other.mcp(mode=mode) as stranger:
                assert (await stranger.call("skills/list"))["skills"] == []
