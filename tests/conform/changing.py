"""Functions that give a server a fault by changing its responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillwire.conform.server_run import NO_CURSOR

if TYPE_CHECKING:
    from collections.abc import Callable

    from conform.spoiling import Spoil

    Change = Callable[[dict[str, Any]], Any]

UNKNOWN = "asks-for-nothing"
TOP = "skill://traps/SKILL.md"


def result_of(method: str, change: Change) -> Spoil:
    """Change the results of one method."""

    def spoil(asked: str, params: dict[str, Any], message: dict[str, Any]) -> Any:
        if asked == method and "result" in message:
            change(message["result"])
        return message

    return spoil


def message_of(method: str, change: Change) -> Spoil:
    """Change the whole answers to one method, errors too; what ``change`` returns replaces them."""

    def spoil(asked: str, params: dict[str, Any], message: dict[str, Any]) -> Any:
        return change(message) or message if asked == method else message

    return spoil


def entry_of(change: Change, uri: str = TOP) -> Spoil:
    """Change one entry, listed and got alike."""

    def spoil(asked: str, params: dict[str, Any], message: dict[str, Any]) -> Any:
        result = message.get("result", {})
        entries = result.get("skills", []) if asked == "skills/list" else [result.get("skill", {})]
        for entry in entries if asked.startswith("skills/") else ():
            if entry.get("uri") == uri:
                change(entry)
        return message

    return spoil


def content_of(uri: str, change: Change) -> Spoil:
    """Change what is read at ``uri``."""

    def spoil(asked: str, params: dict[str, Any], message: dict[str, Any]) -> Any:
        if asked == "resources/read" and params.get("uri") == uri:
            change(message["result"]["contents"][0])
        return message

    return spoil


def instead(when: Callable[[str, dict[str, Any]], bool], outcome: dict[str, Any]) -> Spoil:
    """Another outcome than the server's; a result keeps the fields of its era."""

    def spoil(asked: str, params: dict[str, Any], message: dict[str, Any]) -> Any:
        if not when(asked, params):
            return message
        if "result" in outcome:
            around = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
            return {"jsonrpc": "2.0", "id": message["id"], "result": {**around, **outcome["result"]}}
        return {"jsonrpc": "2.0", "id": message["id"], **outcome}

    return spoil


def error(code: int) -> dict[str, Any]:
    return {"error": {"code": code, "message": "no"}}


def set_field(**fields: Any) -> Change:
    return lambda value: value.update(fields)


def drop(*names: str) -> Change:
    def change(value: dict[str, Any]) -> None:
        for name in names:
            value.pop(name, None)

    return change


def file_field(index: int, **fields: Any) -> Change:
    return lambda entry: entry["resources"][index].update(fields)


def each_file(change: Change) -> Change:
    def on_entry(entry: dict[str, Any]) -> None:
        for file in entry["resources"]:
            change(file)

    return on_entry


def frontmatter(**fields: Any) -> Change:
    return lambda entry: entry["frontmatter"].update(fields)


def capability(change: Change) -> Spoil:
    def spoil(asked: str, params: dict[str, Any], message: dict[str, Any]) -> Any:
        if asked in ("server/discover", "initialize"):
            change(message["result"]["capabilities"])
        return message

    return spoil


def skills_settings(value: Any) -> Change:
    return lambda capabilities: capabilities["extensions"].update({"io.modelcontextprotocol/skills": value})


def unknown(method: str) -> Callable[[str, dict[str, Any]], bool]:
    """A request for what does not exist."""
    return lambda asked, params: asked == method and UNKNOWN in str(params.get("uri", params.get("name")))


def bad_cursor(method: str) -> Callable[[str, dict[str, Any]], bool]:
    return lambda asked, params: asked == method and params.get("cursor") == NO_CURSOR
