"""Detects the dialect of a server: from its capabilities, then by the cheapest request (K1, K2, I1, I4, P1, M1).

A server of the stateless era that declares the extension is trusted until ``skills/*`` turns out to be unknown:
servers of the drafts declare it too, but have an index instead. In the handshake era such servers are common, so
the methods are tried immediately. For other servers the index is requested, then the list of resources.

``skills/*`` is for servers that declare skills (K2). In the stateless era ``server/discover`` returns all
capabilities, so a server that declares neither the extension nor ``skills`` gets no such request. In the handshake
era capabilities get lost: the SDK drops ``skills`` when it reads them, and a server of the Python SDK loses
``extensions`` when it writes them. So there, and only if there is neither an index nor a skill among the
resources, one ``skills/list`` is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillwire.client.bounds import as_list, as_object, as_text
from skillwire.client.dialects.by_name import NativeDialect, Sep2076Dialect, required_arguments
from skillwire.client.dialects.contract import read_if_exists
from skillwire.client.dialects.extension import ExtensionDialect
from skillwire.client.dialects.index import INDEX_URI, IndexDialect, parse_index
from skillwire.client.dialects.plain import PlainDialect
from skillwire.errors import NotFoundError, ProtocolError, UpstreamError
from skillwire.skill.uri import SKILL_MD
from skillwire.wire.extension import EXTENSION_ID, SKILLS_GET, SKILLS_LIST

if TYPE_CHECKING:
    from skillwire.client.connection import Connection
    from skillwire.client.dialects import DialectName
    from skillwire.client.dialects.contract import ClientDialect

DIALECTS: dict[DialectName, type[ClientDialect]] = {
    dialect.name: dialect
    for dialect in (ExtensionDialect, IndexDialect, Sep2076Dialect, NativeDialect, PlainDialect)
}


async def detect_dialect(connection: Connection, *, trust_declaration: bool = True) -> DialectName | None:
    """The dialect, or ``None`` if there is no sign of skills, which does not prove that there are none (L2).

    With ``trust_declaration``, the declaration of a server of the stateless era is enough.
    """
    declared = await _declared(connection)
    if EXTENSION_ID in as_object(declared.get("extensions")) and (
        (trust_declaration and connection.is_modern) or await _serves_extension(connection)
    ):
        return "extension"
    if "skills" in declared or "skills" in as_object(declared.get("experimental")):  # P1
        named = await _dialect_by_listing(connection)
        if named is not None:
            return named
    listed: bool | None = False
    if connection.capabilities is None or "resources" in declared:
        if await _has_index(connection):
            return "index"
        listed = await _lists_skills(connection)
    if listed:
        return "fallback"
    hidden = None if connection.is_modern else await _dialect_by_listing(connection)
    return hidden or ("fallback" if listed is None else None)


async def _declared(connection: Connection) -> dict[str, Any]:
    """The capabilities as the server sent them, if possible: the SDK drops those that it does not know."""
    parsed = connection.capabilities
    known = {} if parsed is None else parsed.model_dump(by_alias=True, exclude_none=True)
    if not connection.is_modern or EXTENSION_ID in as_object(known.get("extensions")):
        return known
    try:
        return as_object((await connection.request("server/discover")).get("capabilities"))
    except (NotFoundError, ProtocolError, UpstreamError):
        return known


async def _serves_extension(connection: Connection) -> bool:
    """Whether a server that declares the extension has its methods. Servers of the drafts have not."""
    return await _knows(connection, SKILLS_GET, uri=INDEX_URI) or await _knows(connection, SKILLS_LIST)


async def _has_index(connection: Connection) -> bool:
    data = await read_if_exists(connection, INDEX_URI, connection.limits.max_index_bytes)
    if data is None:
        return False
    try:
        parse_index(data, connection.limits)
    except ProtocolError:
        return False  # some servers return text for every URI
    return True


async def _lists_skills(connection: Connection) -> bool | None:
    """Whether the first page of resources has a ``SKILL.md``; ``None`` if only further pages may have one."""
    result = await _result_or_none(connection, "resources/list") or {}
    uris = (as_text(as_object(item).get("uri")) for item in as_list(result.get("resources")))
    if any(uri.endswith(f"/{SKILL_MD}") for uri in uris):
        return True
    return None if result.get("nextCursor") is not None else False


async def _dialect_by_listing(connection: Connection) -> DialectName | None:
    """The dialect according to ``skills/list``: only entries of the extension have URIs.

    A server without URIs that knows ``skills/get`` is ``sep-2076``. No skill is fetched to find out (V5).
    """
    listed = await _result_or_none(connection, SKILLS_LIST)
    if listed is None or not isinstance(listed.get("skills"), list):
        return None
    skills = list(map(as_object, as_list(listed["skills"])))
    if any("uri" in skill and "frontmatter" in skill for skill in skills):
        return "extension"
    is_sep = any(map(required_arguments, skills)) or await _knows(connection, SKILLS_GET, name="")
    return "sep-2076" if is_sep else "native"


async def _knows(connection: Connection, method: str, **params: str) -> bool:
    """Whether the server knows ``method``. The ``params`` refer to no skill, so an error is expected."""
    try:
        await connection.request(method, **params)
    except ProtocolError as error:
        return error.reference != "method-unknown"
    except (NotFoundError, UpstreamError):
        return True
    return True


async def _result_or_none(connection: Connection, method: str, **params: str) -> dict[str, Any] | None:
    """The result of a request, or ``None`` for an error. Older servers use many codes for an unknown method."""
    try:
        return await connection.request(method, **params)
    except (NotFoundError, ProtocolError):
        return None
    except UpstreamError as error:
        if error.reference == "server-failed":
            return None
        raise
