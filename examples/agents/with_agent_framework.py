"""Microsoft Agent Framework: pip install 'skillwire[agent-framework]'. Swap the client and it is an agent."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from agent_framework import Agent, BaseChatClient, ChatResponse, Content, FunctionInvocationLayer, Message
from offline import TASK, open_host, think

from skillwire.adapters.agent_framework import skills_provider

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class OfflineClient(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """The framework's base client, with the loop that calls tools; a real one would send the messages."""

    async def _inner_get_response(
        self, *, messages: Sequence[Message], options: Mapping[str, Any], **_: Any
    ) -> ChatResponse:
        contents = [content for message in messages for content in message.contents]
        step = think(options["instructions"], [str(c.result) for c in contents if c.type == "function_result"])
        if isinstance(step, str):
            answer = Content.from_text(step)
        else:
            answer = Content.from_function_call(f"call-{len(messages)}", step[0], arguments=step[1])
        return ChatResponse(messages=[Message("assistant", [answer])])


async def main() -> None:
    async with open_host() as host:
        skills = skills_provider(host)
        agent = Agent(OfflineClient(), instructions="You answer customers.", context_providers=[skills])
        print(f"\n{(await agent.run(TASK)).text}")


asyncio.run(main())
