"""LangChain, with incomplete types: pip install 'skillwire[langchain]'. Swap ``OfflineModel`` for a real one."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import asyncio
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from offline import TASK, open_host, think

from skillwire.adapters.langchain import SkillsMiddleware


class OfflineModel(FakeMessagesListChatModel):
    """LangChain's fake model has answers by heart; this one looks at the messages first."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> "OfflineModel":  # noqa: ARG002 - it knows them
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:  # noqa: ARG002
        step = think(messages[0].text, [message.text for message in messages if isinstance(message, ToolMessage)])
        calls = (
            [] if isinstance(step, str) else [{"name": step[0], "args": step[1], "id": f"call-{len(messages)}"}]
        )
        answer = AIMessage(step if isinstance(step, str) else "", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=answer)])


async def main() -> None:
    async with open_host() as host:
        skills, model = SkillsMiddleware(host), OfflineModel(responses=[])
        agent = create_agent(model, system_prompt="You answer customers.", middleware=[skills])
        state = await agent.ainvoke({"messages": [{"role": "user", "content": TASK}]})
        print(f"\n{state['messages'][-1].text}")


asyncio.run(main())
