"""Which dialect a server speaks: from what it declares, then by the cheapest probe (K1, K2, I1, I4, P1, M1).

A server of the stateless era that declares the extension is asked nothing more. In the era before, servers of the
drafts declared it too, and have an index instead: whether ``skills/*`` is known tells them apart. Of the others,
one in the stateless era says all its capabilities at once; else its index is asked for, then its list of
resources; and only where none of these knows of skills, ``skills/list``, which in that case means one of the
dialects that know skills by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillwire.client.content import read_if_there
from skillwire.client.dialects.extension import ExtensionDialect
from skillwire.client.dialects.index import INDEX_URI, IndexDialect, parse_index
from skillwire.client.dialects.named import NativeDialect
from skillwire.client.dialects.plain import PlainDialect
from skillwire.client.dialects.sep2076 import Sep2076Dialect, wants_arguments
from skillwire.client.shapes import as_list, as_object, as_text
from skillwire.errors import NotFoundError, ProtocolError, UpstreamError
from skillwire.skill.uri import SKILL_MD
from skillwire.wire.extension import EXTENSION_ID, SKILLS_GET, SKILLS_LIST

if TYPE_CHECKING:
    from skillwire.client.connection import Connection
    from skillwire.client.dialects.contract import Dialect, DialectName

DIALECTS: dict[DialectName, type[Dialect]] = {
    dialect.name: dialect
    for dialect in (ExtensionDialect, IndexDialect, Sep2076Dialect, NativeDialect, PlainDialect)
}


async def detect_dialect(connection: Connection) -> DialectName | None:
    """The dialect, or ``None`` if the server shows no sign of skills, which proves nothing (L2)."""
    declared = connection.capabilities
    if (
        declared is not None
        and EXTENSION_ID in (declared.extensions or {})
        and await _serves_extension(connection)
    ):
        return "extension"
    if await _declares_named(connection):
        named = await _named(connection)
        if named is not None:
            return named
    listed: bool | None = False
    if declared is None or declared.resources is not None:
        if await _has_index(connection):
            return "index"
        listed = await _lists_skills(connection)
    if listed:
        return "fallback"
    return await _named(connection) or ("fallback" if listed is None else None)


async def _serves_extension(connection: Connection) -> bool:
    """Whether a server that declares the extension has its methods, which those of the drafts had not."""
    return (
        connection.is_modern
        or await _knows(connection, SKILLS_GET, uri=INDEX_URI)
        or await _knows(connection, SKILLS_LIST)
    )


async def _declares_named(connection: Connection) -> bool:
    """P1: the ``skills`` capability, which the SDK drops from what it parses."""
    declared = connection.capabilities
    if declared is not None and "skills" in (declared.experimental or {}):
        return True
    if not connection.is_modern:
        return False
    try:
        return "skills" in as_object((await connection.discover()).get("capabilities"))
    except (NotFoundError, ProtocolError, UpstreamError):
        return False  # a server that cannot repeat itself still has its resources


async def _has_index(connection: Connection) -> bool:
    data = await read_if_there(connection, INDEX_URI, connection.limits.max_index_bytes)
    if data is None:
        return False
    try:
        parse_index(data, connection.limits)
    except ProtocolError:
        return False  # some servers answer every read, with prose if they have nothing
    return True


async def _lists_skills(connection: Connection) -> bool | None:
    """Whether the first page of resources has a ``SKILL.md``; ``None`` if there are pages that may have one."""
    result = await _answer(connection, "resources/list") or {}
    uris = (as_text(as_object(item).get("uri")) for item in as_list(result.get("resources")))
    if any(uri.endswith(f"/{SKILL_MD}") for uri in uris):
        return True
    return None if result.get("nextCursor") is not None else False


async def _named(connection: Connection) -> DialectName | None:
    """``skills/list`` is known to both; whoever gives instructions by ``skills/get`` is ``sep-2076``."""
    listed = await _answer(connection, SKILLS_LIST)
    if listed is None or not isinstance(listed.get("skills"), list):
        return None
    skills = list(map(as_object, as_list(listed["skills"])))
    plain = next((skill for skill in skills if not wants_arguments(skill)), None)
    if plain is None:
        return "sep-2076" if skills or await _knows(connection, SKILLS_GET, name="") else "native"
    answer = await _answer(connection, SKILLS_GET, name=as_text(plain.get("name")))
    return "sep-2076" if answer is not None and "instructions" in answer else "native"


async def _knows(connection: Connection, method: str, **params: str) -> bool:
    """Whether the server knows ``method``, whatever it says to ``params``, which name no skill."""
    try:
        await connection.request(method, **params)
    except ProtocolError as error:
        return error.reference != "method-unknown"
    except (NotFoundError, UpstreamError):
        return True
    return True


async def _answer(connection: Connection, method: str, **params: str) -> dict[str, Any] | None:
    """The answer, or ``None`` where the server has none. Old servers have many codes for that."""
    try:
        return await connection.request(method, **params)
    except (NotFoundError, ProtocolError):
        return None
    except UpstreamError as error:
        if error.reference == "server-failed":
            return None
        raise
