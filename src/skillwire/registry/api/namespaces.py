"""Namespaces: their settings, roles, and trusted programs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from skillwire.errors import FormatError, NotFoundError
from skillwire.registry import documents as docs
from skillwire.registry.api.call import MOST_LINES, Call, Operation, OperationResult
from skillwire.registry.contract import TrustedPublisher
from skillwire.registry.model import Namespace, parse_principal

if TYPE_CHECKING:
    from collections.abc import Sequence


async def namespaces(call: Call) -> OperationResult:
    """The namespaces that the caller may read."""
    limit = call.limit(100, MOST_LINES)
    found = await call.store.namespaces(call.actor.identity, call.query("after"), limit)
    items: list[dict[str, Any]] = []
    for each in found:
        actions = await call.store.actions(call.actor.identity, each.name)
        items.append({**docs.namespace_json(each), "mayDo": sorted(actions)})
    return {"namespaces": items}


async def create_namespace(call: Call) -> OperationResult:
    """Create a namespace."""
    namespace = _changed(Namespace(call.at("ns")), call.body)
    await call.store.create_namespace(call.actor, namespace)
    return docs.namespace_json(namespace)


async def change_namespace(call: Call) -> OperationResult:
    """Change its settings."""
    found = await _namespace(call)
    namespace = _changed(found, call.body)
    await call.store.change_namespace(call.actor, namespace)
    return docs.namespace_json(namespace)


async def _namespace(call: Call) -> Namespace:
    found = await call.store.namespace(call.actor.identity, call.at("ns"))
    if found is None:
        raise _unknown(call.at("ns"))
    return found


def _changed(namespace: Namespace, body: docs.NamespaceBody) -> Namespace:
    quota = namespace.quota
    if body.quota is not None:
        quota = replace(quota, **body.quota.model_dump(exclude_none=True))
    return replace(
        namespace,
        public=namespace.public if body.public is None else body.public,
        reviewed=namespace.reviewed if body.reviewed is None else body.reviewed,
        quota=quota,
    )


async def skills(call: Call) -> OperationResult:
    """The paths of all its skills, for publishers."""
    found = await call.store.paths(call.actor, call.at("ns"), call.query("after"), call.limit(100, MOST_LINES))
    return {"skills": list(found)}


async def grants(call: Call) -> OperationResult:
    """Who has which role."""
    found = await call.store.grants(call.actor, call.at("ns"))
    return {"grants": [{"principal": each, "role": role} for each, role in sorted(found.items())]}


async def grant(call: Call) -> OperationResult:
    """Give a role."""
    principal = parse_principal(call.at("principal"))
    await call.store.grant(call.actor, call.at("ns"), principal, call.body.role)
    return {"principal": principal, "role": call.body.role}


async def withdraw(call: Call) -> OperationResult:
    """Withdraw a role."""
    await call.store.grant(call.actor, call.at("ns"), call.at("principal"), None)
    return {"principal": call.at("principal"), "role": None}


async def publishers(call: Call) -> OperationResult:
    """Its trusted publishers."""
    await call.store.grants(call.actor, call.at("ns"))  # for its owners
    found: list[TrustedPublisher] = []
    for issuer in sorted(call.identities.issuers):
        found += [each for each in await call.store.trusted(issuer) if each.namespace == call.at("ns")]
    return {"publishers": [docs.publisher_json(each) for each in found]}


async def trust(call: Call) -> OperationResult:
    """Trust a program."""
    body: docs.PublisherBody = call.body
    if body.issuer not in call.identities.issuers:
        raise FormatError(
            "registry-issuer-unknown",
            f"this registry accepts no tokens of {body.issuer!r:.200}",
            "its operator adds the issuer to the settings: skillwire registry --settings registry.toml",
        )
    if not any(name.endswith("_id") for name in body.claims):
        raise FormatError(
            "registry-publisher-weak",
            "the claims name the program only by names, which can change hands",
            "add an id that never does, such as repository_id or project_id",
            rule="Z7",
        )
    publisher = TrustedPublisher(0, call.at("ns"), body.issuer, body.claims, body.role)
    number = await call.store.trust(call.actor, publisher)
    return docs.publisher_json(replace(publisher, number=number))


async def distrust(call: Call) -> OperationResult:
    """Stop trusting it."""
    await call.store.distrust(call.actor, call.at("ns"), int(call.at("number")))
    return {"number": int(call.at("number"))}


def _unknown(name: str) -> NotFoundError:
    """The error for an unknown namespace."""
    return NotFoundError(
        "registry-namespace-unknown",
        f"there is no namespace {name!r:.100}",
        "see: skillwire registry namespace; an administrator creates one with: skillwire registry namespace NAME",
    )


_NS = "/namespaces/{ns}"
OPERATIONS: Final[Sequence[Operation]] = (
    Operation("GET", "/namespaces", namespaces, query=("after", "limit")),
    Operation("PUT", _NS, create_namespace, docs.NamespaceBody, 201),
    Operation("PATCH", _NS, change_namespace, docs.NamespaceBody),
    Operation("GET", _NS + "/skills", skills, query=("after", "limit")),
    Operation("GET", _NS + "/grants", grants),
    Operation("PUT", _NS + "/grants/{principal:path}", grant, docs.GrantBody),
    Operation("DELETE", _NS + "/grants/{principal:path}", withdraw),
    Operation("GET", _NS + "/publishers", publishers),
    Operation("POST", _NS + "/publishers", trust, docs.PublisherBody, 201),
    Operation("DELETE", _NS + "/publishers/{number:int}", distrust),
)
