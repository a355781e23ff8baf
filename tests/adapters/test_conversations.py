"""Every adapter, and a loop without one, holds the same conversations with the same outcomes."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from adapters.conftest import LIE, SECRET, TEMPLATE, acme
from adapters.driving import listing, load, read, shell
from rules import rule
from skillwire import MemoryCatalog, Skill, Skills
from skillwire.server.skills import build_server
from skillwire.skill.entry import SkillMeta
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import Callable

    from adapters.conftest import OpenHost, Person
    from adapters.driving import Driver
    from skillwire import SkillHost

pytestmark = pytest.mark.anyio

DRIVERS = {
    "agent-framework": ("with_agent_framework", "AgentFramework"),
    "langchain": ("with_langchain", "LangChain"),
    "openai-agents": ("with_openai_agents", "OpenAIAgents"),
    "plain": ("with_nothing", "Nothing"),
    "pydantic-ai": ("with_pydantic_ai", "PydanticAI"),
}


@pytest.fixture(params=sorted(DRIVERS))
def drive(request: pytest.FixtureRequest) -> Callable[[SkillHost], Driver]:
    module, name = DRIVERS[request.param]
    return getattr(import_module(f"adapters.{module}"), name)


async def test_a_skill_is_discovered_approved_loaded_read_and_used(
    drive: Callable[[SkillHost], Driver], open_host: OpenHost, person: Person
) -> None:
    async with open_host(ask=person) as host:
        seen = await drive(host).converse(
            [load("refunds"), read("refunds", "templates/reply.md"), listing("refunds", "templates")], "Done."
        )
    assert "Be brief." in seen.system[0]
    assert "<name>refunds</name>" in seen.system[0]
    assert "mcp:acme" in seen.system[0]
    assert "mcp:globex" in seen.system[0]
    assert SECRET not in seen.system[0] + seen.messages[0]  # only names and descriptions at first (V5)
    loaded, file, names = seen.results
    mark = re.search(r'origin="mcp:acme" mark="(\w+)"', loaded)
    assert mark is not None
    assert SECRET in loaded.split(f"begin {mark[1]} ---")[1].split(f"--- instructions end {mark[1]}")[0]
    assert TEMPLATE in file
    assert 'origin="mcp:acme"' in file
    assert "reply.md" in names.splitlines()
    assert person.asked == [("load", "acme", "billing/refunds")]
    assert seen.answer == "Done."


async def test_a_denied_skill_is_a_refusal_in_words(
    drive: Callable[[SkillHost], Driver], open_host: OpenHost, person: Person
) -> None:
    person.allowed.clear()
    async with open_host(ask=person) as host:
        seen = await drive(host).converse([load("refunds"), read("refunds", "templates/reply.md")], "I could not.")
    assert seen.results[0].startswith('Refused: the skill "refunds"')
    assert "Load the skill" in seen.results[1]
    assert SECRET not in seen.everything
    assert TEMPLATE.strip() not in seen.everything
    assert person.asked == [("load", "acme", "billing/refunds")]
    assert seen.answer == "I could not."


async def test_nothing_is_loaded_when_nobody_can_be_asked(
    drive: Callable[[SkillHost], Driver], open_host: OpenHost
) -> None:
    async with open_host() as host:
        seen = await drive(host).converse([load("refunds")], "I could not.")
    assert "the user cannot be asked" in seen.results[0]
    assert SECRET not in seen.everything


async def test_an_approval_is_remembered_for_the_next_conversation(
    drive: Callable[[SkillHost], Driver], open_host: OpenHost, person: Person
) -> None:
    async with open_host(ask=person) as host:
        await drive(host).converse([load("refunds")], "Done.")
    async with open_host() as host:
        seen = await drive(host).converse([load("refunds")], "Done.")
    assert SECRET in seen.results[0]


async def test_skills_of_the_same_name_are_told_apart(
    drive: Callable[[SkillHost], Driver], open_host: OpenHost, person: Person
) -> None:
    async with open_host(ask=person) as host:
        seen = await drive(host).converse([load("notes"), load("globex:notes"), load("acme:notes")], "Done.")
    assert "<name>acme:notes</name>" in seen.system[0]
    assert "<name>globex:notes</name>" in seen.system[0]
    assert "<name>notes</name>" not in seen.system[0]
    assert "crayon" not in seen.everything
    assert "pencil" not in seen.results[0]
    assert "pencil" in seen.results[2]
    assert person.asked == [("load", "globex", "notes"), ("load", "acme", "notes")]


async def test_bytes_that_are_not_as_listed_do_not_reach_the_model(
    drive: Callable[[SkillHost], Driver], open_host: OpenHost, person: Person
) -> None:
    async with open_host(ask=person) as host:
        seen = await drive(host).converse([load("swapped"), read("swapped", "swapped.md")], "Done.")
    assert "digest-mismatch" in seen.results[1] or "size-mismatch" in seen.results[1]
    assert LIE not in seen.everything


async def test_what_was_not_served_is_a_refusal_and_no_error(
    drive: Callable[[SkillHost], Driver], open_host: OpenHost, person: Person
) -> None:
    calls = [load("refunds"), read("refunds", "../../../etc/passwd"), read("refunds", "no.md"), load("nothing")]
    async with open_host(ask=person) as host:
        seen = await drive(host).converse(calls, "Done.")
    assert len(seen.results) == 4
    assert "root:" not in seen.everything
    assert seen.answer == "Done."


@rule("A5")
async def test_code_runs_freely_until_a_servers_skill_is_acted_on(
    drive: Callable[[SkillHost], Driver], open_host: OpenHost, person: Person
) -> None:
    """Each framework's agent is made by the line in docs/how-to/host.md, and its shell is an ordinary tool."""
    async with open_host(ask=person) as host:
        driver = drive(host)
        seen = await driver.converse([shell("before"), load("refunds"), shell("after")], "Done.")
    assert driver.ran == ["before"]
    assert seen.results[0] == "ran before"
    assert seen.results[2].startswith('Refused: the tool "shell"')
    assert person.asked[-1] == ("execute", "acme", "billing/refunds")


async def test_code_runs_if_a_person_granted_it(
    drive: Callable[[SkillHost], Driver], open_host: OpenHost, person: Person
) -> None:
    person.allowed.add(("execute", "acme"))
    async with open_host(ask=person) as host:
        driver = drive(host)
        seen = await driver.converse([load("refunds"), shell("after")], "Done.")
    assert driver.ran == ["after"]
    assert seen.results[1] == "ran after"


async def test_the_list_of_skills_is_as_current_as_the_host(
    drive: Callable[[SkillHost], Driver], open_host: OpenHost, person: Person
) -> None:
    async with open_host(ask=person) as host:
        driver = drive(host)
        await host.add_server("initech", build_server(Skills(acme())))
        await host.settle()
        seen = await driver.converse([], "Done.")
    assert "<name>initech:refunds</name>" in seen.system[0]


async def test_the_tools_are_the_hosts(drive: Callable[[SkillHost], Driver], open_host: OpenHost) -> None:
    async with open_host() as host:
        seen = await drive(host).converse([], "Done.")
        ours = {tool["name"] for tool in host.tools()}
    assert seen.offered - {"shell"} == ours


@rule("G1", "L2")
async def test_a_skill_that_its_server_does_not_list_is_loaded_by_its_uri(
    drive: Callable[[SkillHost], Driver], open_host: OpenHost, person: Person
) -> None:
    """The prompt names the server, although it lists nothing."""
    person.allowed = {("load", "quiet")}
    files = {"SKILL.md": skill_md("hidden", body=SECRET)}
    catalog = MemoryCatalog([Skill("hidden", files, SkillMeta(listed=False))])
    async with open_host(ask=person) as host:
        await host.add_server("quiet", build_server(Skills(catalog)))
        await host.settle()
        seen = await drive(host).converse([load("skill://hidden/SKILL.md")], "Done.")
    assert "quiet" in seen.system[0]
    assert SECRET in seen.results[0]
    assert person.asked == [("load", "quiet", "hidden")]
