"""What only the OpenAI Agents SDK does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from agents import (
    Agent,
    CodeInterpreterTool,
    CustomTool,
    LocalShellTool,
    RunConfig,
    Runner,
    ShellTool,
    Tool,
    UserError,
    function_tool,
    handoff,
)
from agents.models.openai_chatcompletions import Converter as ChatConverter
from agents.models.openai_responses import Converter as ResponsesConverter
from agents.testing import ScriptedModel, assistant_message, function_call
from openai.types.chat import ChatCompletionFunctionToolParam
from openai.types.responses import FunctionToolParam
from pydantic import TypeAdapter

from adapters.conftest import SECRET
from rules import rule
from skillwire.adapters.openai_agents import SkillsAgent

if TYPE_CHECKING:
    from adapters.conftest import OpenHost, Person

pytestmark = pytest.mark.anyio

QUIET = RunConfig(tracing_disabled=True)


@pytest.mark.parametrize("text", ["[1]", "{", "null", '"refunds"'])
async def test_arguments_that_are_no_object_are_answered_in_words(text: str, open_host: OpenHost) -> None:
    model = ScriptedModel([[function_call("load_skill", text, call_id="1")], [assistant_message("Done.")]])
    async with open_host() as host:
        run = await Runner.run(SkillsAgent("helper", host=host, model=model), "Do it.", run_config=QUIET)
    assert run.final_output == "Done."
    assert "not a JSON object" in str(model.calls[-1].input)


async def test_a_streamed_run_is_the_same(open_host: OpenHost, person: Person) -> None:
    calls = [function_call("load_skill", {"name": "refunds"}, call_id="1")]
    model = ScriptedModel([calls, [assistant_message("Done.")]])
    async with open_host(ask=person) as host:
        agent = SkillsAgent("helper", host=host, model=model)
        run = Runner.run_streamed(agent, "Do it.", run_config=QUIET)
        async for _ in run.stream_events():
            pass
    assert run.final_output == "Done."
    assert SECRET in str(model.calls[-1].input)


@function_tool
def shell(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


SHELL = function_call("shell", {"command": "x"}, call_id="2")
LOAD = function_call("load_skill", {"name": "refunds"}, call_id="1")
DONE = assistant_message("Done.")


class Remote(Agent[Any]):
    """Stands for an agent with an MCP server: the SDK makes new tools of it for each turn."""

    async def get_mcp_tools(self, run_context: Any) -> list[Tool]:
        return [shell]


class RemoteWithSkills(SkillsAgent, Remote):
    pass


@rule("A5")
@pytest.mark.parametrize("given", ["of a server", "added later", "of a clone"])
async def test_tools_that_come_another_way_are_gated_too(given: str, open_host: OpenHost, person: Person) -> None:
    async with open_host(ask=person) as host:
        kind = RemoteWithSkills if given == "of a server" else SkillsAgent
        agent: Agent[Any] = kind("helper", host=host, model=ScriptedModel([[LOAD], [SHELL], [DONE]]))
        if given == "added later":
            agent.tools.append(shell)
        if given == "of a clone":
            agent = agent.clone(tools=[shell])
        run = await Runner.run(agent, "Do it.", run_config=QUIET)
    assert person.asked[-1] == ("execute", "acme", "billing/refunds")
    assert "ran x" not in str(run.to_input_list())
    assert shell.tool_input_guardrails is None  # the tool itself is as it was, for other agents


@rule("A5")
async def test_a_run_that_waited_for_the_sdks_own_approval_is_gated_when_it_goes_on(
    open_host: OpenHost, person: Person
) -> None:
    @function_tool(needs_approval=True)
    def shell(command: str) -> str:
        """Run a command."""
        return f"ran {command}"

    async with open_host(ask=person) as host:
        model = ScriptedModel([[LOAD], [SHELL], [DONE]])
        agent = SkillsAgent("helper", host=host, tools=[shell], model=model)
        run = await Runner.run(agent, "Do it.", run_config=QUIET)
        state = run.to_state()
        state.approve(run.interruptions[0])
        run = await Runner.run(agent, state, run_config=QUIET)
    assert run.final_output == "Done."
    assert person.asked[-1] == ("execute", "acme", "billing/refunds")
    assert "ran x" not in str(run.to_input_list())


@rule("A5")
@pytest.mark.parametrize("kind", ["custom", "local_shell", "shell"])
async def test_tools_of_other_kinds_ask_before_they_run(kind: str, open_host: OpenHost, person: Person) -> None:
    ran: list[Any] = []

    async def custom(context: Any, text: str) -> str:
        ran.append(text)
        return "ran"

    def executor(request: Any) -> str:
        ran.append(request)
        return "ran"

    given = {
        "custom": CustomTool("custom", "Runs.", custom),
        "local_shell": LocalShellTool(executor),
        "shell": ShellTool(executor),
    }[kind]
    async with open_host(ask=person) as host:
        context: Any = None
        tools = await SkillsAgent("helper", host=host, tools=[given]).get_all_tools(context)
        tool: Any = next(tool for tool in tools if tool.name == kind)
        words = (context, "x") if kind == "custom" else ("x",)
        call = tool.on_invoke_tool if kind == "custom" else tool.executor
        assert await call(*words) == "ran"
        await host.load_skill("refunds")
        assert "not approved" in await call(*words)
    assert len(ran) == 1
    assert [kind for kind, *_ in person.asked] == ["load", "execute"]


@rule("A5")
async def test_a_tool_that_nothing_can_ask_about_is_refused_unless_it_is_harmless(open_host: OpenHost) -> None:
    hosted = CodeInterpreterTool({"type": "code_interpreter", "container": {"type": "auto"}})
    async with open_host() as host:
        with pytest.raises(UserError, match="code_interpreter"):
            SkillsAgent("helper", host=host, tools=[hosted])
        agent = SkillsAgent("helper", host=host, tools=[hosted, shell], harmless=["code_interpreter", "shell"])
        assert agent.tools[-2:] == [hosted, shell]


@rule("A5")
async def test_a_handoff_leads_to_agents_with_the_same_gate_only(open_host: OpenHost) -> None:
    """Whenever it is added; a handoff with functions of its own is refused too."""
    async with open_host() as host:
        plain, second = Agent[Any]("plain"), SkillsAgent("second", host=host)
        refused = [plain, handoff(plain), handoff(second, on_handoff=lambda _: None), handoff(second)]
        for item in refused:
            with pytest.raises(UserError, match="harmless"):
                SkillsAgent("helper", host=host, handoffs=[item])
        agent = SkillsAgent("helper", host=host, handoffs=[second], model=ScriptedModel([[DONE]]))
        with pytest.raises(UserError, match="harmless"):
            agent.clone(handoffs=[plain])
        agent.handoffs.append(plain)
        with pytest.raises(UserError, match="harmless"):
            await Runner.run(agent, "Do it.", run_config=QUIET)
        named = ["transfer_to_plain", "transfer_to_second"]
        assert SkillsAgent("helper", host=host, handoffs=refused, harmless=named).handoffs == refused


@rule("A5")
async def test_an_agent_of_another_host_is_no_gated_one(open_host: OpenHost) -> None:
    """It does not know what was loaded here."""
    async with open_host() as host, open_host() as other:
        with pytest.raises(UserError, match="same host"):
            SkillsAgent("helper", host=host, handoffs=[SkillsAgent("second", host=other)])


@rule("A5")
async def test_an_agent_that_is_handed_over_to_is_gated(open_host: OpenHost, person: Person) -> None:
    async with open_host(ask=person) as host:
        second = SkillsAgent("second", host=host, tools=[shell], model=ScriptedModel([[SHELL], [DONE]]))
        over = function_call("transfer_to_second", {}, call_id="3")
        agent = SkillsAgent("helper", host=host, handoffs=[second], model=ScriptedModel([[LOAD], [over]]))
        run = await Runner.run(agent, "Do it.", run_config=QUIET)
    assert run.last_agent is second
    assert person.asked[-1] == ("execute", "acme", "billing/refunds")
    assert "ran x" not in str(run.to_input_list())


@rule("A5")
async def test_an_agent_as_a_tool_is_gated_as_a_tool(open_host: OpenHost, person: Person) -> None:
    model = ScriptedModel([[DONE]])
    inner = Agent[Any]("inner", model=model).as_tool("inner", "Does it.")
    call = function_call("inner", {"input": "x"}, call_id="3")
    async with open_host(ask=person) as host:
        agent = SkillsAgent("helper", host=host, tools=[inner], model=ScriptedModel([[LOAD], [call], [DONE]]))
        await Runner.run(agent, "Do it.", run_config=QUIET)
    assert person.asked[-1] == ("execute", "acme", "billing/refunds")
    assert not model.calls


async def test_optional_arguments_stay_optional_on_the_wire(open_host: OpenHost) -> None:
    async with open_host() as host:
        tools = SkillsAgent("helper", host=host).tools
        responses = ResponsesConverter.convert_tools(tools, handoffs=[]).tools
        chat = [ChatConverter.tool_to_openai(tool) for tool in tools]
        assert [tool["function"]["parameters"] for tool in chat] == [t["inputSchema"] for t in host.tools()]
    loading: Any = responses[0]
    assert loading["strict"] is False
    assert loading["parameters"]["required"] == ["name"]


async def test_the_plain_shape_for_chat_completions_is_what_the_openai_package_takes(open_host: OpenHost) -> None:
    async with open_host() as host:
        for tool in host.tools("openai"):
            TypeAdapter(ChatCompletionFunctionToolParam).validate_python(tool, strict=True)


async def test_the_plain_shape_for_responses_is_what_the_openai_package_takes(open_host: OpenHost) -> None:
    async with open_host() as host:
        for tool in host.tools("openai-responses"):
            TypeAdapter(FunctionToolParam).validate_python(tool, strict=True)
