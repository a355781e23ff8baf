"""The OpenAPI document of the API, made from the table of operations."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from skillwire.registry.api.call import API_PATH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire.registry.api.call import Operation

_ANSWERS: dict[str, Any] = {"application/json": {"type": "object"}}
_INTEGERS = ("limit", "before", "number")
_WORDS = {
    "path": "the path of a skill, such as acme/refunds; its slashes may be escaped",
    "file": "the path of a file in the skill; its slashes may be escaped",
    "version": "a number such as 1.2.0, or where something is read a channel",
    "after": "the last item of the page before",
    "format": "zip or tar.gz",
    "before": "the number of a line; for administrators",
}


def openapi(operations: Sequence[Operation]) -> dict[str, Any]:
    """The document."""
    paths: dict[str, dict[str, Any]] = {}
    schemas: dict[str, Any] = {}
    for operation in operations:
        route = operation.path.replace(":skill", "").replace(":path", "").replace(":int", "")
        names = [part.partition("}")[0] for part in route.split("{")[1:]]
        described: dict[str, Any] = {
            "summary": (operation.run.__doc__ or "").rstrip("."),
            "operationId": operation.run.__name__,
            "parameters": [*map(_in_path, names), *map(_in_query, operation.query)],
            "responses": {
                "2XX": {
                    "description": "done; 201 if it was made, and 200 if it is there already",
                    "content": {media: {"schema": _ANSWERS.get(media, {})} for media in operation.media},
                },
                "default": {
                    "description": "an error",
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
                },
            },
        }
        if operation.body is bytes:
            described["requestBody"] = {
                "required": True,
                "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
            }
        elif operation.body is not None and issubclass(operation.body, BaseModel):
            schema = operation.body.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas |= schema.pop("$defs", {})
            schemas[operation.body.__name__] = schema
            reference = {"$ref": f"#/components/schemas/{operation.body.__name__}"}
            described["requestBody"] = {"required": True, "content": {"application/json": {"schema": reference}}}
        paths.setdefault(API_PATH + route, {})[operation.method.lower()] = described
    words = {name: {"type": "string"} for name in ("reference", "message", "hint")}
    schemas["Error"] = {"type": "object", "properties": {"error": {"type": "object", "properties": words}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "skillwire registry", "version": version("skillwire")},
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _in_path(name: str) -> dict[str, Any]:
    return {**_in_query(name), "in": "path", "required": True}


def _in_query(name: str) -> dict[str, Any]:
    words = {"description": _WORDS[name]} if name in _WORDS else {}
    return {"name": name, "in": "query", "schema": {"type": "integer" if name in _INTEGERS else "string"}, **words}
