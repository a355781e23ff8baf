"""Skills on a low-level ``Server`` of the official SDK: ``python examples/attach_to_lowlevel_server.py``.

The skills come from a folder and from a function.
"""

from pathlib import Path

import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from skillwire import Skills

skills = Skills(Path(__file__).parent / "skills", strict=True)


@skills.skill("acme/on-call", dynamic=True)
def on_call() -> str:
    return "---\nname: on-call\ndescription: Who is on call today.\n---\n\nAsk Ada.\n"


server = skills.attach(Server("acme"))


async def main() -> None:
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
