"""What only Pydantic AI does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, FunctionToolset, TextOutput, UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel

from adapters.conftest import SECRET, TEMPLATE
from rules import rule
from skillwire.adapters.pydantic_ai import SkillsCapability

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from adapters.conftest import OpenHost, Person

pytestmark = pytest.mark.anyio


async def test_a_model_that_calls_every_tool_with_nonsense_gets_refusals_and_goes_on(
    open_host: OpenHost, person: Person
) -> None:
    async with open_host(ask=person) as host:
        run = await Agent(TestModel(), capabilities=[SkillsCapability(host)]).run("Do the task.")
    results = [
        part for message in run.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)
    ]
    assert sorted(part.tool_name for part in results) == ["list_skill_directory", "load_skill", "read_skill_file"]
    assert all("Unknown skill." in str(part.content) for part in results)
    assert person.asked == []


async def test_a_file_asked_for_in_the_same_breath_is_read_after_loading(
    open_host: OpenHost, person: Person
) -> None:
    results: list[str] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        results[:] = [str(part.content) for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        if results:
            return ModelResponse(parts=[TextPart("Done.")])
        reading = {"name": "refunds", "path": "templates/reply.md"}
        both = [ToolCallPart("load_skill", {"name": "refunds"}), ToolCallPart("read_skill_file", reading)]
        return ModelResponse(parts=both)

    async with open_host(ask=person) as host:
        await Agent(FunctionModel(model), capabilities=[SkillsCapability(host)]).run("Do the task.")
    assert SECRET in results[0]
    assert TEMPLATE in results[1]


@rule("A5")
@pytest.mark.parametrize(("harmless", "outcome"), [((), "not approved"), (("shell",), "ran")])
async def test_the_tools_of_another_toolset_are_gated_too(
    harmless: tuple[str, ...], outcome: str, open_host: OpenHost, person: Person
) -> None:
    """Also with a prefix, and except of what is harmless."""

    def shell() -> str:
        return "ran"

    turns = iter(["team_load_skill", "shell", None])

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        name = next(turns)
        given = {"name": "refunds"} if name == "team_load_skill" else {}
        return ModelResponse(parts=[ToolCallPart(name, given) if name else TextPart(str(messages[-1].parts))])

    async with open_host(ask=person) as host:
        skills = SkillsCapability(host, harmless=harmless).prefix_tools("team")
        run = await Agent(FunctionModel(model), capabilities=[skills]).run(
            "Go.", toolsets=[FunctionToolset([shell])]
        )
    assert outcome in run.output
    assert [kind for kind, *_ in person.asked] == ["load", *([] if harmless else ["execute"])]


@rule("A5")
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", ["tool", "text", "one of two"])
@pytest.mark.parametrize("harmless", [False, True], ids=["gated", "harmless"])
async def test_an_output_function_is_gated_like_a_tool(
    harmless: bool, kind: str, streamed: bool, open_host: OpenHost, person: Person
) -> None:
    """The model hears why, and may answer in another way."""
    ran: list[str] = []

    def deploy(text: str) -> str:
        ran.append(text)
        return f"deployed {text}"

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            return ModelResponse(parts=[ToolCallPart("load_skill", {"name": "refunds"})])
        if kind == "text":
            return ModelResponse(parts=[TextPart("x")])
        tool = next(tool.name for tool in info.output_tools if "deploy" in tool.name or kind == "tool")
        return ModelResponse(parts=[ToolCallPart(tool, {"text": "x"})])

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        for number, part in enumerate(model(messages, info).parts):
            if isinstance(part, ToolCallPart):
                yield {number: DeltaToolCall(part.tool_name, json.dumps(part.args))}
            elif isinstance(part, TextPart):
                yield part.content

    kinds: dict[str, Any] = {"tool": deploy, "text": TextOutput(deploy), "one of two": [deploy, Other]}
    async with open_host(ask=person) as host:
        names = ("deploy",) if harmless else ()
        skills = SkillsCapability(host, harmless=names)
        agent = Agent(FunctionModel(model, stream_function=stream), output_type=kinds[kind], capabilities=[skills])

        async def run() -> None:
            if streamed:
                async with agent.run_stream("Go.") as answer:
                    await answer.get_output()
            else:
                await agent.run("Go.")

        if harmless:
            await run()
        else:
            with pytest.raises(UnexpectedModelBehavior):  # it tried until there were no retries left
                await run()
    assert bool(ran) == harmless
    assert {kind for kind, *_ in person.asked} == {"load", *([] if harmless else ["execute"])}


class Other(BaseModel):
    """Another output, which no function makes."""

    value: int


async def test_arguments_that_are_no_object_are_the_frameworks_to_complain_about(open_host: OpenHost) -> None:
    given: list[str] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        given.append(str(messages[-1].parts))
        return ModelResponse(parts=[TextPart("Done.") if len(given) > 1 else ToolCallPart("load_skill", "[1]")])

    async with open_host() as host:
        run = await Agent(FunctionModel(model), capabilities=[SkillsCapability(host)]).run("Do the task.")
    assert run.output == "Done."
    assert "should be an object" in given[1]


async def test_two_hosts_can_be_prefixed_apart(open_host: OpenHost) -> None:
    async with open_host() as host:
        model = TestModel(call_tools=[])
        await Agent(model, capabilities=[SkillsCapability(host).prefix_tools("team")]).run("Do the task.")
    assert model.last_model_request_parameters is not None
    names = {tool.name for tool in model.last_model_request_parameters.function_tools}
    assert names == {"team_load_skill", "team_read_skill_file", "team_list_skill_directory"}
