"""Requests for skills have spans, those of the SDK and ours; a process of its own, since a tracer is global."""

from __future__ import annotations

import json
import subprocess

from starting import python_command

RECORDING = """
import json
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
"""
PROGRAM = """
import anyio, sys
from tempfile import TemporaryDirectory
from skillwire import MemoryCatalog, Skill, SkillHost, Skills, connect

SECRET = "s3cr3t-content"
text = "---\\nname: a\\ndescription: " + SECRET + "\\n---\\n" + SECRET + "\\n"
catalog = MemoryCatalog([Skill("a", {"SKILL.md": text, "b.md": SECRET})])

async def main():
    async with connect(catalog) as client:
        await client.list_all()
    with TemporaryDirectory() as state:
        for _ in range(2):
            async with SkillHost.open(servers={"acme": catalog}, state=state, ask=lambda _: True) as host:
                await host.settle()
                result = await host.call("load_skill", {"name": "a"})
                assert not result.is_error, result.text
        async with SkillHost.open(servers={"acme": catalog}, ask=lambda _: False) as host:
            await host.settle()
            assert (await host.call("load_skill", {"name": "a"})).is_error

anyio.run(main)
"""
PRINT = """
spans = exporter.get_finished_spans()
print(json.dumps([
    {
        "name": span.name,
        "parent": next((s.name for s in spans if span.parent and s.context.span_id == span.parent.span_id), ""),
        "attributes": {k: v for k, v in span.attributes.items()},
        "status": [span.status.status_code.name, span.status.description],
        "events": [[event.name, dict(event.attributes)] for event in span.events],
    }
    for span in spans
]))
"""


def run(code: str) -> str:
    done = subprocess.run([*python_command(), "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_happens_to_a_skill_has_spans_without_its_content() -> None:
    printed = run(RECORDING + PROGRAM + PRINT)
    spans = json.loads(printed)
    assert "s3cr3t-content" not in json.dumps([span for span in spans if span["name"].startswith("skillwire.")])
    ours: dict[str, list[dict[str, object]]] = {}
    for span in spans:
        ours.setdefault(span["name"], []).append(span)
    first, second, refused = ours["skillwire.load"]
    place = {"skillwire.origin": "acme", "skillwire.skill": "skill://a/SKILL.md"}
    assert first["attributes"] == {**place, "skillwire.offline": False}
    assert (refused["attributes"], refused["status"]) == (
        {**place, "error.type": "not-approved"},
        ["ERROR", "not-approved"],
    )
    assert [name for name, _ in second["events"]] == ["skillwire.cache_hit"]  # type: ignore[attr-defined]
    approved, denied = ours["skillwire.approval"]
    assert approved["parent"] == "skillwire.load"
    asked = {**place, "skillwire.kind": "load", "skillwire.asked": True}
    assert approved["attributes"] == {**asked, "skillwire.approved": True}
    assert denied["attributes"] == {**asked, "skillwire.approved": False, "error.type": "not-approved"}
    [fetch] = ours["skillwire.fetch"]
    assert (fetch["parent"], [name for name, _ in fetch["events"]]) == (  # type: ignore[attr-defined]
        "skillwire.load",
        ["skillwire.verify"],
    )
    listed = [span["attributes"] for span in ours["skillwire.list"]]
    assert {"skillwire.skills": 1, "skillwire.dialect": "extension"} in listed
    assert {"skillwire.origin": "acme", "skillwire.skills": 1, "skillwire.dialect": "extension"} in listed
    assert "resources/read" in ours  # the spans of the SDK


def test_without_an_sdk_nothing_of_it_is_loaded_or_recorded() -> None:
    modules = "print([name for name in sys.modules if name.startswith('opentelemetry.sdk')])"
    assert run(PROGRAM + modules) == "[]\n"
