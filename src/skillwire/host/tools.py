"""The tools through which a model uses skills, in the shape that its framework wants. Names are stable."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

ToolShape: TypeAlias = Literal["anthropic", "openai", "openai-responses", "mcp"]

LOAD, READ, LIST = "load_skill", "read_skill_file", "list_skill_directory"

_NAME = {"type": "string", "description": "The skill's name, exactly as the list of skills gives it."}
_TOOLS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    LOAD: (
        "Load a skill's instructions before working on a task that its description matches.",
        {
            "name": {
                "type": "string",
                "description": "The skill's name, exactly as the list of skills gives it, or its URI.",
            },
            "origin": {
                "type": "string",
                "description": "The server's label, if a URI that is not in the list needs one.",
            },
            "arguments": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "Only for a skill that needs arguments: a refusal to load it names them.",
            },
        },
        ["name"],
    ),
    READ: (
        "Read a file of a skill that was loaded.",
        {
            "name": _NAME,
            "path": {
                "type": "string",
                "description": "A path from the skill's list of files, or a link in its text.",
            },
        },
        ["name", "path"],
    ),
    LIST: (
        "List the files in a directory of a skill that was loaded.",
        {
            "name": _NAME,
            "path": {"type": "string", "description": "The directory; leave it out for the skill's root."},
        },
        ["name"],
    ),
}


def tool_definitions(shape: ToolShape) -> list[dict[str, Any]]:
    """The three tools as ``shape`` wants them."""
    return [_shaped(shape, name, *parts) for name, parts in _TOOLS.items()]


def tool_schema(name: str) -> tuple[str, dict[str, Any]]:
    """The description and the JSON Schema of one tool."""
    description, properties, required = _TOOLS[name]
    return description, _schema(properties, required)


def _shaped(
    shape: ToolShape, name: str, description: str, properties: dict[str, Any], required: list[str]
) -> dict[str, Any]:
    schema = _schema(properties, required)
    match shape:
        case "anthropic":
            return {"name": name, "description": description, "input_schema": schema}
        case "openai":
            function = {"name": name, "description": description, "parameters": schema}
            return {"type": "function", "function": function}
        case "openai-responses":
            # Not strict: strict mode would make every argument required, also those that are seldom needed.
            return {
                "type": "function", "name": name, "description": description, "parameters": schema, "strict": False
            }  # fmt: skip
        case "mcp":
            annotations = {"readOnlyHint": True, "openWorldHint": False}
            return {"name": name, "description": description, "inputSchema": schema, "annotations": annotations}


def _schema(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
