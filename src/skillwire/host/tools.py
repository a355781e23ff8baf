"""The tools with which a model uses skills, in the shapes of several model APIs. Their names are stable."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

ToolShape: TypeAlias = Literal["anthropic", "openai", "openai-responses", "mcp"]

LOAD, READ, LIST = "load_skill", "read_skill_file", "list_skill_directory"

_NAME = {"type": "string", "description": "The skill's name, exactly as in the list of skills."}
_TOOLS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    LOAD: (
        "Load a skill's instructions before working on a task that its description matches.",
        {
            "name": {
                "type": "string",
                "description": "The skill's name, exactly as in the list of skills, or its URI.",
            },
            "origin": {
                "type": "string",
                "description": "The label of the server, for a URI that is not in the list.",
            },
            "arguments": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "Only for a skill that needs arguments. The result names missing ones.",
            },
        },
        ["name"],
    ),
    READ: (
        "Read a file of a loaded skill.",
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
        "List the files in a directory of a loaded skill.",
        {
            "name": _NAME,
            "path": {"type": "string", "description": "The directory. Omit it for the root of the skill."},
        },
        ["name"],
    ),
}


def tool_definitions(shape: ToolShape) -> list[dict[str, Any]]:
    """The three tools in the given shape."""
    return [_shaped(shape, name, *parts) for name, parts in _TOOLS.items()]


def _shaped(
    shape: ToolShape, name: str, description: str, properties: dict[str, Any], required: list[str]
) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    match shape:
        case "anthropic":
            return {"name": name, "description": description, "input_schema": schema}
        case "openai":
            function = {"name": name, "description": description, "parameters": schema}
            return {"type": "function", "function": function}
        case "openai-responses":
            # Not strict: strict mode would make the optional arguments required.
            return {
                "type": "function", "name": name, "description": description, "parameters": schema, "strict": False
            }  # fmt: skip
        case "mcp":
            annotations = {"readOnlyHint": True, "openWorldHint": False}
            return {"name": name, "description": description, "inputSchema": schema, "annotations": annotations}
