"""A client of the ``native`` dialect that asks what tests ask, and carries what the dialect has it carry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mcp.shared.exceptions import MCPError

from interaction import native_server
from interaction.conftest import Wire
from skillwire.wire.meta import ACTIVATION

if TYPE_CHECKING:
    from mcp_types import ErrorData


class Caller(Wire):
    """In the stateless era the token goes with every request; ``token`` is the last that came."""

    token: str | None = None

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        carried = {} if self.token is None else {"_meta": {ACTIVATION: self.token}}
        result = await super().call(method, **{**carried, **params})
        new = (result.get("_meta") or {}).get(ACTIVATION)
        assert new is None or self.era == "modern"
        self.token = new or self.token
        return result

    async def names(self, method: str, field: str, key: str = "name") -> set[str]:
        return {item[key] for item in (await self.call(method))[field]}

    async def tools(self) -> set[str]:
        return await self.names("tools/list", "tools")

    async def usable(self) -> set[str]:
        """The tools of skills that run now. They are in no list."""
        calls = {"pay": {"order": "1"}, "lookup_order": {"order": "1"}, "escalate": dict[str, str]()}
        results = {
            name: await self.call("tools/call", name=name, arguments=given) for name, given in calls.items()
        }
        return {name for name, result in results.items() if not result.get("isError")}

    async def everything(self) -> dict[str, set[str]]:
        """Every list there is: what must not change when a request is refused."""
        return {
            "tools": await self.tools(),
            "prompts": await self.names("prompts/list", "prompts"),
            "resources": await self.names("resources/list", "resources", "uri"),
            "templates": await self.names("resources/templates/list", "resourceTemplates", "uriTemplate"),
            "skills": await self.names("skills/list", "skills"),
        }

    async def refused(self, method: str, **params: Any) -> ErrorData:
        """The error of a request that is refused."""
        with pytest.raises(MCPError) as caught:
            await self.call(method, **params)
        assert caught.value.error.code == -32602
        return caught.value.error

    async def refused_for(self, method: str, **params: Any) -> str:
        """The reference of that error."""
        return (await self.refused(method, **params)).data["reference"]

    async def failed(self, tool: str, **arguments: Any) -> str:
        """The words of a tool's error."""
        ran = list(native_server.CALLED)
        result = await self.call("tools/call", name=tool, arguments=arguments)
        assert result["isError"] is True
        assert ran == native_server.CALLED
        return result["content"][0]["text"]

    async def ran(self, tool: str, **arguments: Any) -> str:
        result = await self.call("tools/call", name=tool, arguments=arguments)
        assert not result.get("isError"), result
        return result["content"][0]["text"]

    async def read(self, uri: str) -> str:
        return (await self.call("resources/read", uri=uri))["contents"][0]["text"]
