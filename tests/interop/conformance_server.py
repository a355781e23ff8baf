"""A server of the official Python SDK with what the official server scenarios ask for, and our skills attached.

Run with ``DIR``; it listens on a free port. The scenarios ask for fixtures of these names. A server that has none
of them is not wrong; one that loses them when skills are attached would be.
"""

from __future__ import annotations

import sys
from base64 import b64decode
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from mcp.server.mcpserver import MCPServer
from mcp_types import Completion

sys.path.insert(0, str(Path(__file__).parents[1]))
from interop.bare_server import serve_http
from skillwire.server.skills import Skills

if TYPE_CHECKING:
    from mcp_types import CompletionArgument, CompletionContext, PromptReference, ResourceTemplateReference

PIXEL = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def build(root: str) -> MCPServer:
    server = MCPServer("theirs")

    @server.resource("test://static-text", mime_type="text/plain")
    def static_text() -> str:
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", mime_type="image/png")
    def static_binary() -> bytes:
        return PIXEL

    @server.resource("test://template/{id}/data", mime_type="application/json")
    def template(id: str) -> str:  # noqa: A002 - the scenario's name
        return f'{{"id": "{id}", "templateTest": true, "data": "Data for ID: {id}"}}'

    @server.prompt()
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        """A prompt with two."""
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.completion()
    async def complete(
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion:
        return Completion(values=["paris", "park", "party"], total=3, has_more=False)

    return Skills(root).attach(server)


if __name__ == "__main__":
    anyio.run(serve_http, build(sys.argv[1]))
