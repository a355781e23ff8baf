"""What only LangChain does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from adapters.conftest import SECRET
from adapters.driving import Call, Seen, load, shell
from adapters.with_langchain import RecordingModel, scripted
from rules import rule
from skillwire import SkillHost
from skillwire.adapters.langchain import SkillsMiddleware

if TYPE_CHECKING:
    from pathlib import Path

    from adapters.conftest import OpenHost, Person

pytestmark = pytest.mark.anyio

ASK = {"messages": [HumanMessage("Do the task.")]}


async def test_the_tools_alone_serve_a_loop_of_your_own(open_host: OpenHost, person: Person) -> None:
    async with open_host(ask=person) as host:
        tools = {tool.name: tool for tool in SkillsMiddleware(host).tools}
        call = {"name": "load_skill", "args": {"name": "refunds"}, "id": "call-1", "type": "tool_call"}
        answer = await tools["load_skill"].ainvoke(call)
    assert isinstance(answer, ToolMessage)
    assert answer.tool_call_id == "call-1"
    assert SECRET in answer.text


async def test_models_are_given_the_hosts_schema(open_host: OpenHost) -> None:
    async with open_host() as host:
        shapes = [convert_to_openai_tool(tool) for tool in SkillsMiddleware(host).tools]
        ours = host.tools("openai")
    assert shapes == ours


async def test_waiting_for_a_person_without_asyncio_is_refused_clearly(open_host: OpenHost) -> None:
    async with open_host() as host:
        loading = next(tool for tool in SkillsMiddleware(host).tools if tool.name == "load_skill")
        with pytest.raises(NotImplementedError, match="does not support sync invocation"):
            loading.invoke({"name": "refunds"})
        agent = create_agent(RecordingModel(messages=iter(()), seen=Seen()), middleware=[SkillsMiddleware(host)])
        with pytest.raises(NotImplementedError, match="ainvoke"):
            agent.invoke(ASK)


async def test_a_host_without_skills_leaves_the_system_message_alone(tmp_path: Path) -> None:
    async with SkillHost.open(state=tmp_path) as host:
        model = RecordingModel(messages=iter([AIMessage("Done.")]), seen=Seen())
        await create_agent(model, system_prompt="Be brief.", middleware=[SkillsMiddleware(host)]).ainvoke(ASK)
    assert model.seen.system == ["Be brief."]


async def test_a_system_message_in_blocks_keeps_its_blocks(open_host: OpenHost) -> None:
    given: list[SystemMessage] = []

    class Model(RecordingModel):
        def _generate(self, messages, *args, **kwargs):  # type: ignore[no-untyped-def]
            given.extend(m for m in messages if isinstance(m, SystemMessage))
            return super()._generate(messages, *args, **kwargs)

    block = {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
    async with open_host() as host:
        model = Model(messages=iter([AIMessage("Done.")]), seen=Seen())
        agent = create_agent(model, system_prompt=SystemMessage([block]), middleware=[SkillsMiddleware(host)])
        await agent.ainvoke(ASK)
    assert given[0].content[0] == block
    assert "<available_skills>" in given[0].text


async def test_a_harmless_tool_is_not_asked_about(open_host: OpenHost, person: Person) -> None:
    @tool("shell")
    def add(command: str) -> str:
        """Add numbers."""
        return f"ran {command}"

    async with open_host(ask=person) as host:
        model = RecordingModel(messages=iter(scripted([load("refunds"), shell("1+1")], "Done.")), seen=Seen())
        agent = create_agent(model, [add], middleware=[SkillsMiddleware(host, harmless=["shell"])])
        await agent.ainvoke(ASK)
    assert model.seen.results[1] == "ran 1+1"
    assert [kind for kind, *_ in person.asked] == ["load"]


@rule("A5")
async def test_a_tool_that_is_called_like_one_of_the_hosts_is_gated_too(
    open_host: OpenHost, person: Person
) -> None:
    ran: list[str] = []

    @tool("read_skill_file")
    def other(name: str, path: str) -> str:
        """Run something else."""
        ran.append(f"{name}/{path}")
        return "ran"

    async with open_host(ask=person) as host:
        calls = [load("refunds"), Call("read_skill_file", {"name": "refunds", "path": "x"})]
        model = RecordingModel(messages=iter(scripted(calls, "Done.")), seen=Seen())
        agent = create_agent(model, [other], middleware=[SkillsMiddleware(host)])
        await agent.ainvoke(ASK)
    asked = [kind for kind, *_ in person.asked]
    assert ran == [] or "execute" in asked
