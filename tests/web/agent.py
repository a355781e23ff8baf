"""A small agent as a process: its model wants a skill, and nobody is there to say yes but at the desk.

Usage: agent.py STATE CONFIG SKILL. It says on stderr what it does, and on stdout the first line of what it loaded.
"""

from __future__ import annotations

import sys

import anyio

from skillwire import SkillHost, ask_at_desk


async def main(state: str, config: str, wanted: str) -> None:
    """The loop: a tool is called, its result goes to the model; the model stops when the skill is there."""
    ask = ask_at_desk(state, by="the reply agent")
    async with SkillHost.open(config=config, state=state, ask=ask) as host:
        await host.settle()
        tools = {tool["name"] for tool in host.tools("anthropic")}
        steps = [("load_skill", {"name": wanted}), ("list_skill_directory", {"name": wanted})]
        for tool, arguments in steps:
            assert tool in tools
            print(f"the model calls {tool}", file=sys.stderr, flush=True)
            result = await host.call(tool, arguments)
            print(result.text.splitlines()[0], flush=True)
            if result.is_error:
                break
        print("the agent is done", file=sys.stderr, flush=True)


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:4])
