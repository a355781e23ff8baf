"""Tests of a server's skills, over a connection in memory: ``pytest examples/test_skills.py``."""

from pathlib import Path

import pytest
from mcp.server.mcpserver import MCPServer

from skillwire import Skills, check_path, connect
from skillwire.errors import VerificationError

FOLDER = Path(__file__).parent / "skills"
pytestmark = pytest.mark.anyio


@pytest.fixture
def server() -> MCPServer:
    return Skills(FOLDER, strict=True).attach(MCPServer("acme"))


def test_the_folder_has_no_problems() -> None:
    assert check_path(FOLDER).problems == ()


async def test_a_client_reads_a_verified_file(server: MCPServer) -> None:
    async with connect(server) as client:
        entry = await client.get("refunds")
        file = await client.read("refunds", "templates/customer-reply.md")
    assert entry.path == "acme/billing/refunds"
    assert b"refund" in file.data


async def test_a_file_that_the_skill_does_not_have_is_refused(server: MCPServer) -> None:
    async with connect(server) as client:
        with pytest.raises(VerificationError):
            await client.read("refunds", "templates/none.md")
