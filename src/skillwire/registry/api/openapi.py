"""The OpenAPI document of the API, made from the table of operations."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from skillwire.registry.api.call import API_PATH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire.registry.api.call import Operation


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
            "parameters": [
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
            ],
            "responses": {
                str(operation.status): {"description": "done"},
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
