"""The ``fallback``: plain tools and prompts for hosts that know nothing of skills (X1, X2).

What a model that has never heard of skills is told, and the exact shape of what it may say: names of tools are
stable, every argument is described, and whatever is wrong with a call is said at once, with what to do instead.
Results are dictionaries in wire form; ``fallback_text.py`` has their words.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any, cast

from skillwire.errors import FormatError
from skillwire.skill.model import text_for_model
from skillwire.wire.extension import read_result

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillwire.catalog.contract import SkillFile
    from skillwire.skill import SkillEntry

LIST, SEARCH, LOAD, READ = "list_skills", "search_skills", "load_skill", "read_skill_file"
REQUEST = "request"
DEFAULT_HITS = 10
_MOST_HITS = 50
_SHOWN_PROBLEMS = 5

_SKILL = {
    "type": "string",
    "minLength": 1,
    "description": f"The skill's name, exactly as {LIST} or {SEARCH} gives it. Its path or URI works too.",
}
_TOOLS: dict[str, tuple[str, str, dict[str, dict[str, Any]], tuple[str, ...]]] = {
    SEARCH: (
        "Find a skill",
        "Find the skill for a task. A skill is a set of instructions, often with templates and references, that"
        " somebody wrote for one kind of task: how it is done well here. Call this before you begin a task that"
        " may have one. Returns the best matches, each with its name and what it is for. If one fits, call"
        f" {LOAD} with its name; if none does, go on without.",
        {
            "query": {
                "type": "string",
                "minLength": 1,
                "description": "What the task is about, in a few words, such as: refund a customer.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": _MOST_HITS,
                "default": DEFAULT_HITS,
                "description": "How many matches to return at most.",
            },
        },
        ("query",),
    ),
    LIST: (
        "List the skills",
        "List the skills of this server: sets of instructions for particular kinds of tasks. Returns each skill's"
        f" name and what it is for, a page at a time. To find the one for a task, {SEARCH} is quicker. If one fits"
        f" the task, call {LOAD} with its name before you begin.",
        {
            "cursor": {
                "type": "string",
                "description": "Only to see more: the cursor that the page before gave. Leave it out at first.",
            }
        },
        (),
    ),
    LOAD: (
        "Load a skill",
        "Load a skill's instructions before you work on a task that its description matches. Returns the skill's"
        " SKILL.md and a list of its other files. Follow it for that task, and read a file that it mentions with"
        f" {READ} when you need it. It was written by the skill's author and comes from this server, not from the"
        " user.",
        {"skill": _SKILL},
        ("skill",),
    ),
    READ: (
        "Read a skill's file",
        "Read a file of a skill: a template, a reference or a script that its instructions mention. Returns the"
        " file's text, or the image; nothing is run. With the path of a folder, or \".\" for the skill's own,"
        " returns a list of what is in it.",
        {
            "skill": _SKILL,
            "path": {
                "type": "string",
                "description": f"The path in the skill, such as templates/reply.md, as {LOAD} lists it.",
            },
        },
        ("skill", "path"),
    ),
}
TOOLS = tuple(_TOOLS)

# What models' interfaces take for an image, and how its bytes begin. One that is none, or of another kind, can
# make a host's whole conversation fail, so it goes out as a resource.
_IMAGES = {"image/png": b"\x89PNG", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8", "image/webp": b"RIFF"}


def tool_definition(name: str) -> dict[str, Any]:
    """X1: one tool, as ``tools/list`` shows it."""
    title, description, properties, required = _TOOLS[name]
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = list(required)
    annotations = {"title": title, "readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
    return {
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": schema,
        "annotations": annotations,
    }


def read_arguments(tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """``given`` as ``tool`` takes it; ``FormatError`` says all that is wrong. An optional ``null`` is left out."""
    _, _, properties, required = _TOOLS[tool]
    kept = {name: value for name, value in given.items() if value is not None or name in required}
    wrong = [f"there is no argument {name!r:.60}" for name in kept if name not in properties]
    wrong += [f"{name!r} is missing" for name in required if name not in kept]
    for name, schema in properties.items():
        problem = _problem(kept[name], schema) if name in kept else ""
        wrong += [f"{name!r} {problem}"] if problem else []
    if wrong:
        taken = ", ".join(_described(name, properties[name], name in required) for name in properties)
        said = "; ".join(wrong[:_SHOWN_PROBLEMS])
        raise FormatError("arguments-invalid", f"{tool} was not called rightly: {said}", f"it takes {taken}")
    return kept


def _problem(value: object, schema: Mapping[str, Any]) -> str:
    if schema["type"] == "integer":
        whole = isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
        if not whole or not schema["minimum"] <= cast("float", value) <= schema["maximum"]:
            return f"is not {_kind(schema)}"
        return ""
    if not isinstance(value, str):
        return "is not text"
    if schema.get("minLength") and not value.strip():
        return "is empty"
    return "" if _is_sound(value) else "is broken text"


def _described(name: str, schema: Mapping[str, Any], required: bool) -> str:
    return f"{name} ({_kind(schema)}{'' if required else '; may be left out'})"


def _kind(schema: Mapping[str, Any]) -> str:
    if schema["type"] == "integer":
        return f"a whole number from {schema['minimum']} to {schema['maximum']}"
    return "text"


def _is_sound(text: str) -> bool:
    """Whether it can be sent on: half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def text_block(text: str) -> dict[str, Any]:
    """Text, as tools and prompts give it."""
    return {"type": "text", "text": text}


def file_block(file: SkillFile) -> dict[str, Any]:
    """X2: a file, the bytes that ``resources/read`` gives: text as it is, an image, or a resource."""
    content: dict[str, Any] = read_result(file)["contents"][0]
    if "text" in content:
        return text_block(content["text"])
    kind = content["mimeType"]
    if kind in _IMAGES and file.data.startswith(_IMAGES[kind]):
        return {"type": "image", "data": b64encode(file.data).decode(), "mimeType": kind}
    return {"type": "resource", "resource": content}


def tool_result(blocks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What a tool gives back for the model to read."""
    return {"content": list(blocks)}


def skills_result(
    text: str, skills: Sequence[dict[str, Any]], next_step: str, cursor: str | None
) -> dict[str, Any]:
    """Skills by name, for models as text and for programs; some hosts show the model only what is for programs."""
    structured: dict[str, Any] = {"skills": list(skills), "next": next_step}
    if cursor is not None:
        structured["nextCursor"] = cursor
    return {**tool_result([text_block(text)]), "structuredContent": structured}


def error_result(text: str) -> dict[str, Any]:
    """What a tool gives back when it could not: for the model, which may try again."""
    return {**tool_result([text_block(text)]), "isError": True}


def prompt_definition(label: str, entry: SkillEntry) -> dict[str, Any]:
    """X2: a skill as a prompt, as ``prompts/list`` shows it."""
    title = entry.frontmatter.get("title")
    request = {"name": REQUEST, "description": "What you want done with the skill.", "required": False}
    return {
        "name": label,
        "title": text_for_model(title) if isinstance(title, str) and title.strip() else label,
        "description": text_for_model(entry.description),
        "arguments": [request],
    }


def prompt_result(entry: SkillEntry, blocks: Sequence[dict[str, Any]], request: str) -> dict[str, Any]:
    """X2: a loaded skill as messages, then what the person wants done."""
    said = [*blocks, text_block(request)] if request.strip() else blocks
    messages = [{"role": "user", "content": block} for block in said]
    return {"description": text_for_model(entry.description), "messages": messages}
