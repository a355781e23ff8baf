"""fast-agent's installer: every skill of a server, each into a folder of its own.

Reads jobs from stdin, ``[{"era", "transport", "target", "into", "at_most"}]``, and prints for each the version
that was agreed on, the skills that were listed, and the errors by URI. Runs in fast-agent's own environment.
"""

import asyncio
import json
import sys
from pathlib import Path

from fast_agent.config import MCPServerSettings, MCPSettings, Settings
from fast_agent.context import Context
from fast_agent.mcp.mcp_aggregator import MCPAggregator
from fast_agent.mcp_server_registry import ServerRegistry
from fast_agent.skills.mcp_registry import install_mcp_registry_skill, scan_mcp_skill_registry


async def install(job):
    first, *rest = job["target"]
    place = {"url": first} if job["transport"] == "http" else {"command": first, "args": rest}
    server = MCPServerSettings(transport=job["transport"], protocol_mode=job["era"], **place)
    settings = Settings(mcp=MCPSettings(servers={"ours": server}))
    context = Context(config=settings, server_registry=ServerRegistry(settings))
    refused = {}
    async with MCPAggregator(["ours"], context=context) as aggregator:
        status = (await aggregator.collect_server_status())["ours"]
        found = await scan_mcp_skill_registry(aggregator, "ours")
        for number, skill in enumerate(found.skills[: job["at_most"]]):
            try:
                await install_mcp_registry_skill(
                    aggregator, skill, destination_root=Path(job["into"]) / str(number)
                )
            except ValueError as error:
                refused[skill.uri] = str(error)
    uris = [skill.uri for skill in found.skills]
    return {"version": status.protocol_version, "skills": uris, "refused": refused}


async def main():
    print(json.dumps([await install(job) for job in json.load(sys.stdin)]))


asyncio.run(main())
