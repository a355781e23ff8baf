"""The HTTP API of a registry: publish, query, administer.

``OPERATIONS`` is the table of all operations. The routes and the OpenAPI document are made from it. After the path
of a skill comes ``/-/``, which cannot be part of such a path: ``/v1/skills/acme/refunds/-/versions/1.2.0``.

An error is ``{"error": {"reference", "message", "hint"}}``. A namespace that the caller may not read gives the
same bytes as one that does not exist. Bodies are counted while they arrive.
"""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from anyio import to_thread
from pydantic import BaseModel, ValidationError
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from skillwire.catalog.contract import no_skill
from skillwire.errors import (
    ApprovalError,
    ConflictError,
    FormatError,
    LimitError,
    NotFoundError,
    SkillwireError,
    StoreError,
    VerificationError,
)
from skillwire.limits import DEFAULT_LIMITS, MIB
from skillwire.registry import documents as docs
from skillwire.registry.contract import Draft, TokenInfo, TrustedPublisher
from skillwire.registry.identity import (
    TOKEN_PREFIX,
    current_identity,
    error_body,
    parse_subject,
)
from skillwire.registry.model import (
    Actor,
    ManifestFile,
    Namespace,
    Quota,
    SkillRef,
    parse_channel,
    parse_principal,
    parse_version,
)
from skillwire.registry.publication import make_manifest
from skillwire.search.text import parse_query
from skillwire.server.access import digest_token
from skillwire.skill.archive import pack
from skillwire.skill.entry import digest_of, parse_digest
from skillwire.skill.uri import SKILL_MD, skill_md_uri

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from skillwire.registry.catalog import Changes
    from skillwire.registry.contract import RegistryStore, Release
    from skillwire.registry.identity import Identities

API_PATH: Final = "/v1"
LARGEST_BODY: Final = 8 * MIB
LARGEST_BLOB: Final = DEFAULT_LIMITS.max_file_bytes
_SAFE = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-cache",
}
_FORMS: dict[str, tuple[Any, str]] = {"zip": ("zip", "application/zip"), "tar.gz": ("tar.gz", "application/gzip")}
_MOST_LINES = 1_000
_DAY = 86_400

B = TypeVar("B", bound=BaseModel)
Answer: TypeAlias = "dict[str, Any] | Response"


class _SkillPath(Convertor[str]):
    """The path of a skill in a URL. A segment never is ``-``, so what follows it is unambiguous."""

    regex = "[a-z0-9][a-z0-9-]*(?:/[a-z0-9][a-z0-9-]*)+"

    def convert(self, value: str) -> str:
        """The path, unchanged."""
        return value

    def to_string(self, value: str) -> str:
        """The same in the other direction."""
        return value


register_url_convertor("skill", _SkillPath())


@dataclass(frozen=True, slots=True)
class Call:
    """One request: who makes it, the values in its URL, and its body."""

    request: Request
    actor: Actor
    body: Any = None

    def at(self, name: str) -> str:
        """A value in the path."""
        return str(self.request.path_params[name])

    def query(self, name: str, default: str = "") -> str:
        """A value after the question mark."""
        return self.request.query_params.get(name, default)

    def limit(self, default: int, most: int) -> int:
        """The number of items that the caller wants."""
        text = self.query("limit", str(default))
        if not (text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= most):
            raise FormatError(
                "argument-invalid", "'limit' is not a valid number", f"write limit=1 to limit={most}"
            )
        return int(text)


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the API, described by the docstring of ``run``.

    ``body`` is the model of its JSON body, or ``bytes`` if ``run`` reads raw bytes itself.
    """

    method: str
    path: str
    run: Callable[[RegistryApi, Call], Awaitable[Answer]]
    body: type[BaseModel] | type[bytes] | None = None
    status: int = 200


class RegistryApi:
    """The operations on one registry."""

    def __init__(self, store: RegistryStore, identities: Identities, changes: Changes) -> None:
        self.store = store
        self._identities = identities
        self._changes = changes

    def routes(self) -> list[Route]:
        """The routes, for the web application."""
        paths: dict[str, dict[str, Operation]] = {}
        for operation in OPERATIONS:
            paths.setdefault(operation.path, {})[operation.method] = operation
        routes = [
            Route(API_PATH + path, self._endpoint(methods), methods=list(methods))
            for path, methods in paths.items()
        ]
        document = openapi()

        async def describe(request: Request) -> Response:  # noqa: ARG001 - the form of an endpoint
            return JSONResponse(document)

        async def unknown(request: Request) -> Response:
            words = f"{request.method} {request.url.path!r:.200} is not an operation"
            return _failure(NotFoundError("operation-unknown", words, f"see {API_PATH}/openapi.json"))

        return [
            Route(f"{API_PATH}/openapi.json", describe),
            *routes,
            Route(API_PATH + "/{rest:path}", unknown, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
        ]

    def _endpoint(self, methods: dict[str, Operation]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            operation = methods["GET" if request.method == "HEAD" else request.method]
            client = request.client.host if request.client else "unknown"
            actor = Actor(current_identity(), client, time.time())
            try:
                call = Call(request, actor, await _body(request, operation.body))
                result = await operation.run(self, call)
            except SkillwireError as error:
                return _failure(error)
            except ClientDisconnect:
                return Response(status_code=400)
            finally:
                if operation.method != "GET":
                    self._changes.wake()
            if isinstance(result, Response):
                return result
            return JSONResponse(result, operation.status, _SAFE)

        return answer

    # Callers and namespaces

    async def whoami(self, call: Call) -> Answer:
        """Who the caller is."""
        who = call.actor.identity
        return {
            "name": who.name,
            "principals": sorted(who.principals),
            "admin": who.is_admin,
            "namespace": who.namespace,
            "actions": None if who.actions is None else sorted(who.actions),
        }

    async def namespaces(self, call: Call) -> Answer:
        """The namespaces that the caller may read."""
        limit = call.limit(100, _MOST_LINES)
        found = await self.store.namespaces(call.actor.identity, call.query("after"), limit)
        items: list[dict[str, Any]] = []
        for each in found:
            actions = await self.store.actions(call.actor.identity, each.name)
            items.append({**docs.namespace_json(each), "mayDo": sorted(actions)})
        return {"namespaces": items}

    async def create_namespace(self, call: Call) -> Answer:
        """Create a namespace."""
        namespace = _changed(Namespace(call.at("ns")), call.body)
        await self.store.create_namespace(call.actor, namespace)
        return docs.namespace_json(namespace)

    async def change_namespace(self, call: Call) -> Answer:
        """Change its settings."""
        found = await self._namespace(call)
        namespace = _changed(found, call.body)
        await self.store.change_namespace(call.actor, namespace)
        return docs.namespace_json(namespace)

    async def _namespace(self, call: Call) -> Namespace:
        found = await self.store.namespace(call.actor.identity, call.at("ns"))
        if found is None:
            raise no_namespace(call.at("ns"))
        return found

    async def grants(self, call: Call) -> Answer:
        """Who has which role."""
        found = await self.store.grants(call.actor, call.at("ns"))
        return {"grants": [{"principal": each, "role": role} for each, role in sorted(found.items())]}

    async def grant(self, call: Call) -> Answer:
        """Give a role."""
        principal = parse_principal(call.at("principal"))
        await self.store.grant(call.actor, call.at("ns"), principal, call.body.role)
        return {"principal": principal, "role": call.body.role}

    async def withdraw(self, call: Call) -> Answer:
        """Withdraw a role."""
        await self.store.grant(call.actor, call.at("ns"), call.at("principal"), None)
        return {"principal": call.at("principal"), "role": None}

    async def publishers(self, call: Call) -> Answer:
        """Its trusted publishers."""
        await self.store.grants(call.actor, call.at("ns"))  # for its owners
        found: list[TrustedPublisher] = []
        for issuer in sorted(self._identities.issuers):
            found += [each for each in await self.store.trusted(issuer) if each.namespace == call.at("ns")]
        return {"publishers": [docs.publisher_json(each) for each in found]}

    async def trust(self, call: Call) -> Answer:
        """Trust a program."""
        body: docs.PublisherBody = call.body
        if body.issuer not in self._identities.issuers:
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
        number = await self.store.trust(call.actor, publisher)
        return docs.publisher_json(replace(publisher, number=number))

    async def distrust(self, call: Call) -> Answer:
        """Stop trusting it."""
        await self.store.distrust(call.actor, call.at("ns"), int(call.at("number")))
        return {"number": int(call.at("number"))}

    # Publishing

    async def missing(self, call: Call) -> Answer:
        """Which files to upload."""
        found = await self.store.missing(call.actor, call.at("ns"), call.body.digests)
        return {"missing": list(found)}

    async def upload(self, call: Call) -> Answer:
        """Upload a file."""
        digest = parse_digest(call.at("digest"))
        # First the permission: the bytes of a caller without it are not read.
        if await self.store.missing(call.actor, call.at("ns"), [digest]):
            data = await _read(call.request, LARGEST_BLOB)
            await self.store.put_blob(call.actor, call.at("ns"), digest, data)
        return {"digest": digest}

    async def publish(self, call: Call) -> Answer:
        """Publish a version."""
        body: docs.VersionBody = call.body
        path = call.at("path")
        files = [ManifestFile(file.path, file.digest, file.size, file.executable) for file in body.files]
        named = next((file for file in files if file.path == SKILL_MD), None)
        if named is None:
            raise FormatError("skill-file-missing", f"the skill {path!r:.200} has no SKILL.md", "add it")
        skill_md = await self.store.uploaded(call.actor, path.partition("/")[0], named.digest)
        if skill_md is None:
            raise _not_uploaded(named)
        manifest = await to_thread.run_sync(make_manifest, path, skill_md, files)
        draft = Draft(path, manifest, body.version, body.channel, body.listed, body.source)
        published = await self.store.publish(call.actor, draft)
        status = 201 if published.outcome == "created" else 200
        return JSONResponse({"path": path, **docs.published_json(published)}, status, _SAFE)

    async def move(self, call: Call) -> Answer:
        """Point a channel to a version."""
        version = str(parse_version(call.body.version))
        moved = await self.store.move_channel(call.actor, call.at("path"), call.at("channel"), version)
        return {"path": call.at("path"), "channel": call.at("channel"), **docs.published_json(moved)}

    async def remove_channel(self, call: Call) -> Answer:
        """Remove a channel."""
        moved = await self.store.move_channel(call.actor, call.at("path"), call.at("channel"), None)
        return {"path": call.at("path"), "channel": call.at("channel"), **docs.published_json(moved)}

    async def yank(self, call: Call) -> Answer:
        """Withdraw a version."""
        await self.store.yank(call.actor, call.at("path"), call.at("version"), call.body.reason)
        return await self._release_json(call, SkillRef(call.at("path"), version=call.at("version")))

    async def unyank(self, call: Call) -> Answer:
        """Undo that."""
        await self.store.yank(call.actor, call.at("path"), call.at("version"), None)
        return await self._release_json(call, SkillRef(call.at("path"), version=call.at("version")))

    async def delete(self, call: Call) -> Answer:
        """Delete its content (administrators)."""
        await self.store.delete(call.actor, call.at("path"), call.at("version"), call.body.reason)
        return {"path": call.at("path"), "version": call.at("version"), "deleted": call.body.reason}

    async def deprecate(self, call: Call) -> Answer:
        """Deprecate a skill."""
        body: docs.DeprecationBody = call.body
        await self.store.deprecate(call.actor, call.at("path"), body.message, body.instead)
        return {"path": call.at("path"), "message": body.message, "instead": body.instead}

    async def undeprecate(self, call: Call) -> Answer:
        """Undo that."""
        await self.store.deprecate(call.actor, call.at("path"), None)
        return {"path": call.at("path"), "message": None, "instead": None}

    async def set_listed(self, call: Call) -> Answer:
        """List a skill, or not."""
        await self.store.set_listed(call.actor, call.at("path"), listed=call.body.listed)
        return {"path": call.at("path"), "listed": call.body.listed}

    # Reading

    async def skill(self, call: Call) -> Answer:
        """A skill: versions, channels, deprecation."""
        path, who = call.at("path"), call.actor.identity
        lines = await self.store.history(who, path)
        if not lines:
            raise no_version(SkillRef(path))
        newest = next((line for line in lines if line.deleted is None), None)
        release = None
        if newest is not None:
            release = await self.store.release(who, SkillRef(path, version=newest.version))
        channels = {name: line.version for line in lines for name in line.channels}
        return {
            "path": path,
            "uri": skill_md_uri(path),
            "channels": dict(sorted(channels.items())),
            "listed": release is not None and release.listed,
            "deprecated": None if release is None else release.deprecated,
            "instead": None if release is None else release.instead,
            "versions": [docs.line_json(line) for line in lines],
        }

    async def version(self, call: Call) -> Answer:
        """One version, by its number or channel."""
        return await self._release_json(call, _reference(call))

    async def file(self, call: Call) -> Answer:
        """The bytes of a file."""
        ref, inside = _reference(call), call.at("file")
        data = await self.store.read(call.actor.identity, ref, inside)
        if data is None:
            raise no_version(ref)
        headers = {**_SAFE, "Content-Disposition": "attachment", "ETag": f'"{digest_of(data)}"'}
        return Response(data, headers=headers, media_type="application/octet-stream")

    async def archive(self, call: Call) -> Answer:
        """All files, as zip or tar.gz."""
        ref = _reference(call)
        form, media_type = _FORMS.get(call.query("format", "zip"), (None, ""))
        if form is None:
            raise FormatError("argument-invalid", "'format' is unknown", "write format=zip or format=tar.gz")
        release = await self._release(call, ref)
        pinned, files = SkillRef(ref.path, version=release.version), dict[str, bytes]()
        for file in release.manifest.files:
            data = await self.store.read(call.actor.identity, pinned, file.path)
            if data is None:
                raise no_version(ref)
            files[file.path] = data
        executables = {file.path for file in release.manifest.files if file.executable}
        packed = await to_thread.run_sync(lambda: pack(files, form, executables=executables))
        name = f"{ref.name}-{release.version}.{form}"
        headers = {
            **_SAFE,
            "Content-Disposition": f'attachment; filename="{name}"',
            "ETag": f'"{digest_of(packed)}"',
        }
        return Response(packed, headers=headers, media_type=media_type)

    async def _release(self, call: Call, ref: SkillRef) -> Release:
        release = await self.store.release(call.actor.identity, ref)
        if release is None:
            raise no_version(ref)
        return release

    async def _release_json(self, call: Call, ref: SkillRef) -> dict[str, Any]:
        return docs.release_json(await self._release(call, ref))

    async def search(self, call: Call) -> Answer:
        """Skills for some words (q, limit)."""
        limit, words = call.limit(20, 100), [term[0] for term in parse_query(call.query("q")).terms]
        found = await self.store.search(call.actor.identity, words, limit) if words else ()
        return {"skills": [docs.match_json(match) for match in found]}

    # Reviews, tokens, the audit log

    async def reviews(self, call: Call) -> Answer:
        """Moves that wait for an approval (namespace)."""
        found = await self.store.reviews(call.actor.identity, call.query("namespace") or None)
        return {"reviews": [docs.review_json(each) for each in found]}

    async def decide(self, call: Call) -> Answer:
        """Approve or decline."""
        body: docs.VerdictBody = call.body
        number = int(call.at("number"))
        await self.store.decide(call.actor, number, body.verdict, digest=body.digest, note=body.note)
        return {"number": number, "verdict": body.verdict}

    async def tokens(self, call: Call) -> Answer:
        """The caller's tokens."""
        _demand_caller(call)
        return {"tokens": [docs.token_json(each) for each in await self.store.tokens(call.actor)]}

    async def make_token(self, call: Call) -> Answer:
        """Make a token; its secret is shown once."""
        _demand_caller(call)
        body: docs.TokenBody = call.body
        secret, info = new_token(call.actor, body)
        await self.store.put_token(call.actor, info, digest_token(secret))
        return {"secret": secret, **docs.token_json(info)}

    async def revoke_token(self, call: Call) -> Answer:
        """Revoke a token."""
        _demand_caller(call)
        await self.store.revoke_token(call.actor, call.at("id"))
        return {"id": call.at("id")}

    async def audit(self, call: Call) -> Answer:
        """What was changed by whom (namespace, limit, before)."""
        before, is_admin = call.query("before"), call.actor.identity.is_admin
        if before and not (is_admin and before.isascii() and before.isdigit() and len(before) < 19):
            raise FormatError("argument-invalid", "'before' is not valid", "omit it: it is for administrators")
        lines = await self.store.audit(
            call.actor,
            namespace=call.query("namespace") or None,
            before=int(before) if before else None,
            limit=call.limit(100, _MOST_LINES),
        )
        return {"changes": [docs.audit_json(line, with_number=is_admin) for line in lines]}


_NS = "/namespaces/{ns}"
_SKILL = "/skills/{path:skill}"
_VERSION = _SKILL + "/-/versions/{version}"
OPERATIONS: Final[Sequence[Operation]] = (
    Operation("GET", "/whoami", RegistryApi.whoami),
    Operation("GET", "/namespaces", RegistryApi.namespaces),
    Operation("PUT", _NS, RegistryApi.create_namespace, docs.NamespaceBody, 201),
    Operation("PATCH", _NS, RegistryApi.change_namespace, docs.NamespaceBody),
    Operation("GET", _NS + "/grants", RegistryApi.grants),
    Operation("PUT", _NS + "/grants/{principal:path}", RegistryApi.grant, docs.GrantBody),
    Operation("DELETE", _NS + "/grants/{principal:path}", RegistryApi.withdraw),
    Operation("GET", _NS + "/publishers", RegistryApi.publishers),
    Operation("POST", _NS + "/publishers", RegistryApi.trust, docs.PublisherBody, 201),
    Operation("DELETE", _NS + "/publishers/{number:int}", RegistryApi.distrust),
    Operation("POST", _NS + "/blobs/missing", RegistryApi.missing, docs.DigestsBody),
    Operation("PUT", _NS + "/blobs/{digest}", RegistryApi.upload, bytes, 201),
    Operation("GET", _SKILL, RegistryApi.skill),
    Operation("POST", _SKILL + "/-/versions", RegistryApi.publish, docs.VersionBody, 201),
    Operation("GET", _VERSION, RegistryApi.version),
    Operation("DELETE", _VERSION, RegistryApi.delete, docs.ReasonBody),
    Operation("GET", _VERSION + "/files/{file:path}", RegistryApi.file),
    Operation("GET", _VERSION + "/archive", RegistryApi.archive),
    Operation("POST", _VERSION + "/yank", RegistryApi.yank, docs.ReasonBody),
    Operation("DELETE", _VERSION + "/yank", RegistryApi.unyank),
    Operation("PUT", _SKILL + "/-/channels/{channel}", RegistryApi.move, docs.ChannelBody),
    Operation("DELETE", _SKILL + "/-/channels/{channel}", RegistryApi.remove_channel),
    Operation("PUT", _SKILL + "/-/deprecation", RegistryApi.deprecate, docs.DeprecationBody),
    Operation("DELETE", _SKILL + "/-/deprecation", RegistryApi.undeprecate),
    Operation("PUT", _SKILL + "/-/listed", RegistryApi.set_listed, docs.ListedBody),
    Operation("GET", "/search", RegistryApi.search),
    Operation("GET", "/reviews", RegistryApi.reviews),
    Operation("POST", "/reviews/{number:int}", RegistryApi.decide, docs.VerdictBody),
    Operation("GET", "/tokens", RegistryApi.tokens),
    Operation("POST", "/tokens", RegistryApi.make_token, docs.TokenBody, 201),
    Operation("DELETE", "/tokens/{id}", RegistryApi.revoke_token),
    Operation("GET", "/audit", RegistryApi.audit),
)


def openapi() -> dict[str, Any]:
    """The OpenAPI document, from the table of operations."""
    paths: dict[str, dict[str, Any]] = {}
    schemas: dict[str, Any] = {}
    for operation in OPERATIONS:
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


def new_token(actor: Actor, body: docs.TokenBody) -> tuple[str, TokenInfo]:
    """A token with its secret, made by ``actor``."""
    identity = actor.identity
    subject = parse_subject(identity.name if body.subject is None else body.subject)
    secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
    info = TokenInfo(
        id=secrets.token_hex(8),
        name=body.name,
        subject=subject,
        namespace=body.namespace,
        actions=None if body.actions is None else frozenset(body.actions),
        expires_at=None if body.days is None else actor.at + body.days * _DAY,
        created_by=identity.name,
        created_at=actor.at,
        is_admin=body.admin,
    )
    return secret, info


def no_version(ref: SkillRef) -> NotFoundError:
    """The error for an unknown skill or version."""
    if ref.version is None and ref.channel is None:
        return no_skill(skill_md_uri(ref.path))
    return NotFoundError(
        "registry-version-unknown", f"there is no {str(ref)!r:.300}", f"see: skillwire registry history {ref.path}"
    )


def no_namespace(name: str) -> NotFoundError:
    """The error for an unknown namespace."""
    return NotFoundError(
        "registry-namespace-unknown",
        f"there is no namespace {name!r:.100}",
        "see: skillwire registry namespace; an administrator creates one with: skillwire registry namespace NAME",
    )


async def _read(request: Request, most: int) -> bytes:
    """The body of a request, counted while it arrives."""
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > most:
            raise LimitError("body-too-large", f"the body has more than {most} bytes", "send less at once")
    return bytes(data)


async def _body(request: Request, kind: type[BaseModel] | type[bytes] | None) -> Any:
    """The JSON document in the body of a request."""
    if kind is None or not issubclass(kind, BaseModel):
        return None
    data = await _read(request, LARGEST_BODY)
    try:
        return kind.model_validate(json.loads(data or b"{}"))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the body"
        message = f"{place:.200}: {first['msg']:.300}"
    except (ValueError, RecursionError):
        message = "it is not JSON"
    raise FormatError("body-invalid", f"the body is invalid: {message}", f"see {API_PATH}/openapi.json")


def _failure(error: SkillwireError) -> JSONResponse:
    headers = dict(_SAFE)
    match error:
        case NotFoundError():
            status = 404
        case ApprovalError():
            status = 403 if current_identity().principals else 401
        case LimitError():
            status = 413
        case ConflictError():
            status = 409
        case VerificationError():
            status = 422
        case StoreError():
            status = 503
            headers["Retry-After"] = "1"
        case _:
            status = 400
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(error_body(error), status, headers)


def _changed(namespace: Namespace, body: docs.NamespaceBody) -> Namespace:
    quota = namespace.quota if body.quota is None else Quota(**body.quota.model_dump())
    return replace(
        namespace,
        public=namespace.public if body.public is None else body.public,
        reviewed=namespace.reviewed if body.reviewed is None else body.reviewed,
        quota=quota,
    )


def _reference(call: Call) -> SkillRef:
    """The version in the URL: a number or a channel."""
    which = call.at("version")
    if which[:1].isdigit():
        return SkillRef(call.at("path"), version=str(parse_version(which)))
    return SkillRef(call.at("path"), channel=parse_channel(which))


def _demand_caller(call: Call) -> None:
    if not call.actor.identity.principals:
        raise ApprovalError(
            "registry-login-missing", "this needs a token", "sign in: skillwire registry login URL"
        )


def _not_uploaded(file: ManifestFile) -> FormatError:
    return FormatError(
        "registry-file-missing",
        f"{file.path!r:.200} was not uploaded",
        "upload each file that POST …/blobs/missing returns, then publish again",
    )
