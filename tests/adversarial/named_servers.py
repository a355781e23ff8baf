"""Small servers of the dialects that know skills by name, on top of the scriptable one (P1–P5, M1–M4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adversarial.speaking import Refusal

if TYPE_CHECKING:
    from adversarial.adversary import HostileServer

GUIDE = "docs://refunds/guide.md"
CITY = {"name": "city", "description": "Where?", "required": True}


def speak_sep2076(server: HostileServer) -> None:
    """Two pages: a skill with a file, and one that needs an argument."""
    server.capabilities = {"resources": {}, "skills": {"listChanged": True}}
    server.files = {GUIDE: b"# Guide\n"}
    pages: dict[str | None, Any] = {
        None: {
            "skills": [{"name": "refunds", "title": "Refunds", "description": "Pays back.", "version": "1.2"}],
            "nextCursor": "2",
        },
        "2": {"skills": [{"name": "weather", "description": "Tells it.", "arguments": [CITY], "tags": ["sky"]}]},
    }

    def get(params: dict[str, Any]) -> Any:
        match params:
            case {"name": "refunds"}:
                file = {"name": "guide", "uri": GUIDE, "mimeType": "text/markdown", "required": True}
                return {"instructions": "Pay back.\n", "files": [file], "dependencies": {"tools": ["pay"]}}
            case {"name": "weather", "arguments": {"city": str(city)}}:
                return {"description": "Tells it.", "instructions": f"The weather in {city}.\n"}
            case {"name": "weather"}:
                return Refusal(-32602, "missing required argument: city")
            case _:
                return Refusal(-32602, "unknown skill")

    server.answers["skills/list"] = lambda params: pages.get(params.get("cursor"), Refusal())
    server.answers["skills/get"] = get


def speak_native(server: HostileServer) -> set[str]:
    """One skill with a tool, a prompt, a resource and a nested skill; which skills are active."""
    server.capabilities = {"resources": {}, "tools": {}, "prompts": {}, "skills": {"listChanged": False}}
    server.files = {}
    active: set[str] = set()
    tool = {"name": "pay", "description": "Pays.", "inputSchema": {"type": "object"}}
    definitions = {
        "tools": [tool],
        "prompts": [{"name": "apologise", "arguments": [{"name": "to"}]}],
        "resources": [{"uri": "rules://refunds", "name": "rules"}],
        "skills": [{"name": "nested", "description": "Inside."}],
    }

    def activate(params: dict[str, Any]) -> Any:
        if params["name"] != "refunds":
            return Refusal(-32602, "unknown skill")
        active.add("refunds")
        text = {"type": "text", "text": "Pay back."}
        return {"instructions": [{"role": "user", "content": text}], **definitions}

    def deactivate(params: dict[str, Any]) -> dict[str, Any]:
        active.discard(params["name"])
        return {}

    def scoped(result: dict[str, Any]) -> Any:
        return lambda _: result if active else Refusal(-32602, "not active")

    server.answers["skills/list"] = {"skills": [{"name": "refunds", "description": "Pays back."}]}
    server.answers["skills/get"] = Refusal(-32601, "unknown method")
    server.answers["skills/activate"] = activate
    server.answers["skills/deactivate"] = deactivate
    server.answers["tools/call"] = scoped({"content": [{"type": "text", "text": "paid"}]})
    sorry = {"role": "user", "content": {"type": "text", "text": "Sorry"}}
    server.answers["prompts/get"] = scoped({"messages": [sorry]})
    server.answers["resources/read"] = lambda params: (
        {"contents": [{"uri": params["uri"], "text": "No refunds on Sundays."}]} if active else Refusal()
    )
    return active
