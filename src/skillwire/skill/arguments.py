"""Arguments of a skill: what may be given, and where it goes in the instructions (P2, P6, B1).

``{{name}}`` in the instructions stands for an argument that the skill declares; spaces inside the braces do not
matter. All are replaced in one pass, so that nothing in a value is ever taken for a placeholder. An optional
argument that was not given is empty text. Braces around anything else stay as they are, and a skill that declares
no arguments keeps every byte.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from skillwire.errors import ProtocolError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.declared import ARGUMENT_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillwire.skill.declared import Argument

_PLACEHOLDER = re.compile(rf"\{{\{{[ \t]*({ARGUMENT_NAME})[ \t]*\}}\}}")


def parse_arguments(
    declared: Sequence[Argument], given: object, limits: Limits = DEFAULT_LIMITS
) -> dict[str, str]:
    """A value for every declared argument, from what a caller gave. ``ProtocolError`` says what is wrong."""
    values = _as_mapping(given)
    if len(values) > limits.max_arguments:
        raise _wrong("arguments-too-many", f"more than {limits.max_arguments} arguments", "give fewer")
    known = {argument.name: argument for argument in declared}
    for name, value in values.items():
        if name not in known:
            raise _wrong("argument-unknown", f"the skill has no argument {name!r:.100}", _takes(declared))
        _check_value(name, value, limits)
    for argument in declared:
        if argument.required and argument.name not in values:
            raise _wrong("argument-missing", f"the skill needs the argument {argument.name!r}", _give(argument))
    return {name: values.get(name, "") for name in known}


def fill_in(text: str, values: Mapping[str, str], limits: Limits = DEFAULT_LIMITS) -> str:
    """``text`` with each placeholder replaced, once; ``ProtocolError`` if that makes it larger than we send."""
    if not values or "{{" not in text:
        return text
    size, sizes = len(text.encode()), {name: len(value.encode()) for name, value in values.items()}
    for match in _PLACEHOLDER.finditer(text):
        size += sizes.get(match[1], 0)
        if size > limits.max_file_bytes:
            raise _wrong("arguments-too-long", "the instructions would be too long", "give shorter arguments")
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)


def _as_mapping(given: object) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise _wrong("arguments-invalid", "'arguments' is not an object", 'give {"name": "text"}')
    return cast("dict[str, Any]", given)


def _check_value(name: str, value: object, limits: Limits) -> None:
    if not isinstance(value, str):
        kind = _KINDS.get(type(value), "something else")
        raise _wrong("argument-invalid", f"the argument {name!r} is {kind}, not text", "give text, in quotes")
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        raise _wrong("argument-invalid", f"the argument {name!r} is not Unicode text", "send UTF-8") from error
    if size > limits.max_argument_bytes:
        raise _wrong(
            "argument-too-long",
            f"the argument {name!r} has {size} bytes, more than {limits.max_argument_bytes}",
            "give a shorter text, or the place where the long one is",
        )


_KINDS: dict[type, str] = {
    type(None): "null", bool: "a boolean", int: "a number", float: "a number", list: "a list", dict: "an object",
}  # fmt: skip


def _takes(declared: Sequence[Argument]) -> str:
    names = ", ".join(argument.name for argument in declared)
    return f"it takes {names}" if names else "it takes none"


def _give(argument: Argument) -> str:
    says = argument.description or argument.title
    return f'give arguments: {{"{argument.name}": "…"}}' + (f" ({says})" if says else "")


def _wrong(reference: str, message: str, hint: str) -> ProtocolError:
    return ProtocolError(reference, message, hint, rule="P2")
