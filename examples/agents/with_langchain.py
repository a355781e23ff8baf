"""LangChain: pip install 'skillwire[langchain]'. Swap ``OfflineModel`` for a real one and it is an agent."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from offline import TASK, open_host, think

from skillwire.host.adapters.langchain import SkillsMiddleware


class OfflineModel(FakeMessagesListChatModel):
    """LangChain's fake model has answers by heart; this one looks at the messages first."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> OfflineModel:  # noqa: ARG002 - it knows them
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:  # noqa: ARG002
        step = think(messages[0].text, [message.text for message in messages if isinstance(message, ToolMessage)])
        if isinstance(step, str):
            answer = AIMessage(step)
        else:
            call = {"name": step[0], "args": step[1], "id": f"call-{len(messages)}"}
            answer = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=answer)])


async def main() -> None:
    async with open_host() as host:
        agent = create_agent(
            OfflineModel(responses=[]),
            system_prompt="You answer customers.",
            middleware=[SkillsMiddleware(host)],
        )
        state = await agent.ainvoke({"messages": [{"role": "user", "content": TASK}]})
        print(f"\n{state['messages'][-1].text}")


asyncio.run(main())
