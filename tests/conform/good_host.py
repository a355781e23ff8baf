"""Skillwire's own host on the servers that watch it: it lists, loads what it is told to, and reads on.

A person says yes to everything but what cannot be verified.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile

from skillwire import Answer, ApprovalRequest, SkillHost

SKILLS = ("guide", "wrong-digest", "wrong-digest", "wrong-size", "wrong-frontmatter", "generated")


async def ask(request: ApprovalRequest) -> Answer:
    return Answer(yes=True, by="a test")


async def main() -> None:
    with tempfile.TemporaryDirectory() as state:
        async with SkillHost.open(config=os.environ["SKILLWIRE_MCP_CONFIG"], state=state, ask=ask) as host:
            await host.settle(60)
            for name in SKILLS:
                print(name, type(await host.load_skill(name)).__name__, file=sys.stderr)
            for path in ("references/steps.md", "references/unlisted.md", "../vault/SKILL.md"):
                print(path, type(await host.read_skill_file("guide", path)).__name__, file=sys.stderr)
            print(await host.list_skill_directory("guide", "references"), file=sys.stderr)


asyncio.run(main())
