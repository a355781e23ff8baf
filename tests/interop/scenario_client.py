"""Our client, or our host, as the program that the official client scenarios watch.

Run as ``client|host ERA URL``; the suite names the scenario in its environment. Where loading a skill is not
refused, the file beside it is read next, which is how the scenarios see it. Ends with the reason of the refusal.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from tempfile import TemporaryDirectory

import anyio

import skillwire.client.link
from skillwire.client.connect import connect
from skillwire.errors import VerificationError
from skillwire.host.approvals import Answer, ApprovalRequest
from skillwire.host.host import SkillHost
from skillwire.host.results import Refusal

NAME, FILE = "pdf-processing", "references/FORMS.md"
MODES = {"modern": "auto", "legacy": "legacy"}


async def as_client(url: str, mode: str, *, loads: bool) -> str:
    """List; load by reading the manual, verified; read on."""
    async with connect(url, mode=mode) as client:
        [entry] = [entry async for entry in client.list_skills()]
        if loads:
            try:
                await client.read_skill(entry)
            except VerificationError as error:
                return error.reference
            await client.read_resource(entry, f"skill://{NAME}/{FILE}")
    return ""


async def yes(request: ApprovalRequest) -> Answer:
    """A person who trusts everybody."""
    return Answer(yes=True)


async def as_host(url: str, mode: str, *, loads: bool) -> str:
    """List, show the catalog, approve; load; read on."""
    skillwire.client.link.connect = partial(connect, mode=mode)  # type: ignore[attr-defined]
    with TemporaryDirectory() as state:
        async with SkillHost.open(servers={"scenario": url}, state=state, ask=yes) as host:
            await host.settle()
            assert NAME in host.catalog_prompt()
            await host.approve(NAME)
            if loads:
                loaded = await host.load_skill(NAME)
                if isinstance(loaded, Refusal):
                    return loaded.reference
                await host.read_skill_file(NAME, FILE)
    return ""


if __name__ == "__main__":
    who, era, url = sys.argv[1:]
    loads = not os.environ["MCP_CONFORMANCE_SCENARIO"].endswith("no-prefetch")
    act = as_host if who == "host" else as_client
    sys.exit(anyio.run(partial(act, url, MODES[era], loads=loads)))
