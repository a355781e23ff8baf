"""What only the OpenAI Agents SDK does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from agents import Agent, RunConfig, Runner
from agents.models.openai_chatcompletions import Converter as ChatConverter
from agents.models.openai_responses import Converter as ResponsesConverter
from agents.testing import ScriptedModel, assistant_message, function_call
from openai.types.chat import ChatCompletionFunctionToolParam
from openai.types.responses import FunctionToolParam
from pydantic import TypeAdapter

from adapters.conftest import SECRET
from skillwire.host.adapters.openai_agents import instructions, skill_tools

if TYPE_CHECKING:
    from adapters.conftest import OpenHost, Person

pytestmark = pytest.mark.anyio

QUIET = RunConfig(tracing_disabled=True)


@pytest.mark.parametrize("text", ["[1]", "{", "null", '"refunds"'])
async def test_arguments_that_are_no_object_are_answered_in_words(text: str, open_host: OpenHost) -> None:
    model = ScriptedModel([[function_call("load_skill", text, call_id="1")], [assistant_message("Done.")]])
    async with open_host() as host:
        run = await Runner.run(Agent("helper", tools=skill_tools(host), model=model), "Do it.", run_config=QUIET)
    assert run.final_output == "Done."
    assert "not a JSON object" in str(model.calls[-1].input)


async def test_a_streamed_run_is_the_same(open_host: OpenHost, person: Person) -> None:
    calls = [function_call("load_skill", {"name": "refunds"}, call_id="1")]
    model = ScriptedModel([calls, [assistant_message("Done.")]])
    async with open_host(ask=person) as host:
        agent = Agent("helper", instructions=instructions(host), tools=skill_tools(host), model=model)
        run = Runner.run_streamed(agent, "Do it.", run_config=QUIET)
        async for _ in run.stream_events():
            pass
    assert run.final_output == "Done."
    assert SECRET in str(model.calls[-1].input)


async def test_optional_arguments_stay_optional_on_the_wire(open_host: OpenHost) -> None:
    async with open_host() as host:
        tools = skill_tools(host)
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
