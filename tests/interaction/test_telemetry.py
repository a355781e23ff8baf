"""Requests for skills have spans, through what the SDK offers; a process of its own, since a tracer is global."""

from __future__ import annotations

import subprocess

from starting import python_command

CODE = """
import anyio
from mcp import Client
from mcp.server.lowlevel import Server
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from skillwire import MemoryCatalog, Skill
from skillwire.server.skills import Skills

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)

async def main():
    catalog = MemoryCatalog([Skill("a", {"SKILL.md": "---\\nname: a\\ndescription: A.\\n---\\nDo.\\n"})])
    async with Client(Skills(catalog).attach(Server("x"))) as client:
        await client.read_resource("skill://a/SKILL.md")

anyio.run(main)
print(sorted({span.name for span in exporter.get_finished_spans()}))
"""


def test_a_read_of_a_skill_has_a_span() -> None:
    done = subprocess.run([*python_command(), "-c", CODE], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "resources/read" in done.stdout
