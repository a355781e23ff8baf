"""Skills: uploads, versions, channels, files, searches and reviews."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from anyio import to_thread
from starlette.responses import JSONResponse, Response

from skillwire.catalog.contract import no_skill
from skillwire.errors import FormatError, NotFoundError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.registry import documents as docs
from skillwire.registry.api.call import SAFE, Call, Operation, OperationResult, read_bytes
from skillwire.registry.contract import Draft
from skillwire.registry.model import ManifestFile, SkillRef, parse_channel, parse_version
from skillwire.registry.publication import make_manifest
from skillwire.search.text import parse_query
from skillwire.skill.archive import pack
from skillwire.skill.entry import digest_of, parse_digest
from skillwire.skill.uri import SKILL_MD, skill_md_uri

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire.registry.contract import Release

LARGEST_BLOB: Final = DEFAULT_LIMITS.max_file_bytes
_FORMS: dict[str, tuple[Any, str]] = {"zip": ("zip", "application/zip"), "tar.gz": ("tar.gz", "application/gzip")}


async def missing(call: Call) -> OperationResult:
    """Which files to upload."""
    found = await call.store.missing(call.actor, call.at("ns"), call.body.digests)
    return {"missing": list(found)}


async def upload(call: Call) -> OperationResult:
    """Upload a file."""
    digest = parse_digest(call.at("digest"))
    # First the permission: the bytes of a caller without it are not read.
    if await call.store.missing(call.actor, call.at("ns"), [digest]):
        data = await read_bytes(call.request, LARGEST_BLOB)
        await call.store.put_blob(call.actor, call.at("ns"), digest, data)
    return {"digest": digest}


async def publish(call: Call) -> OperationResult:
    """Publish a version."""
    body: docs.VersionBody = call.body
    path = call.at("path")
    files = [ManifestFile(file.path, file.digest, file.size, file.executable) for file in body.files]
    named = next((file for file in files if file.path == SKILL_MD), None)
    if named is None:
        raise FormatError("skill-file-missing", f"the skill {path!r:.200} has no SKILL.md", "add it")
    skill_md = await call.store.uploaded(call.actor, path.partition("/")[0], named.digest)
    if skill_md is None:
        raise _not_uploaded(named)
    manifest = await to_thread.run_sync(make_manifest, path, skill_md, files)
    draft = Draft(path, manifest, body.version, body.channel, body.listed, body.source, body.quarantine)
    published = await call.store.publish(call.actor, draft)
    status = 201 if published.outcome == "created" else 200
    return JSONResponse({"path": path, **docs.published_json(published)}, status, SAFE)


async def move(call: Call) -> OperationResult:
    """Point a channel to a version."""
    version = str(parse_version(call.body.version))
    moved = await call.store.move_channel(call.actor, call.at("path"), call.at("channel"), version)
    return {"path": call.at("path"), "channel": call.at("channel"), **docs.published_json(moved)}


async def remove_channel(call: Call) -> OperationResult:
    """Remove a channel."""
    moved = await call.store.move_channel(call.actor, call.at("path"), call.at("channel"), None)
    return {"path": call.at("path"), "channel": call.at("channel"), **docs.published_json(moved)}


async def yank(call: Call) -> OperationResult:
    """Withdraw a version."""
    await call.store.yank(call.actor, call.at("path"), call.at("version"), call.body.reason)
    return await _release_json(call, SkillRef(call.at("path"), version=call.at("version")))


async def unyank(call: Call) -> OperationResult:
    """Undo that."""
    await call.store.yank(call.actor, call.at("path"), call.at("version"), None)
    return await _release_json(call, SkillRef(call.at("path"), version=call.at("version")))


async def delete(call: Call) -> OperationResult:
    """Delete its content (administrators)."""
    await call.store.delete(call.actor, call.at("path"), call.at("version"), call.body.reason)
    return {"path": call.at("path"), "version": call.at("version"), "deleted": call.body.reason}


async def deprecate(call: Call) -> OperationResult:
    """Deprecate a skill."""
    body: docs.DeprecationBody = call.body
    await call.store.deprecate(call.actor, call.at("path"), body.message, body.instead)
    return {"path": call.at("path"), "message": body.message, "instead": body.instead}


async def undeprecate(call: Call) -> OperationResult:
    """Undo that."""
    await call.store.deprecate(call.actor, call.at("path"), None)
    return {"path": call.at("path"), "message": None, "instead": None}


async def set_listed(call: Call) -> OperationResult:
    """List a skill, or not."""
    await call.store.set_listed(call.actor, call.at("path"), listed=call.body.listed)
    return {"path": call.at("path"), "listed": call.body.listed}


async def skill(call: Call) -> OperationResult:
    """A skill: versions, channels, deprecation."""
    path, who = call.at("path"), call.actor.identity
    lines = await call.store.history(who, path)
    if not lines:
        raise no_version(SkillRef(path))
    newest = next((line for line in lines if line.deleted is None), None)
    release = None
    if newest is not None:
        release = await call.store.release(who, SkillRef(path, version=newest.version))
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


async def version(call: Call) -> OperationResult:
    """One version, by its number or channel."""
    return await _release_json(call, _reference(call))


async def file(call: Call) -> OperationResult:
    """The bytes of a file."""
    ref, inside = _reference(call), call.at("file")
    data = await call.store.read(call.actor.identity, ref, inside)
    if data is None:
        raise no_version(ref)
    headers = {**SAFE, "Content-Disposition": "attachment", "ETag": f'"{digest_of(data)}"'}
    return Response(data, headers=headers, media_type="application/octet-stream")


async def archive(call: Call) -> OperationResult:
    """All files, as zip or tar.gz."""
    ref = _reference(call)
    form, media_type = _FORMS.get(call.query("format", "zip"), (None, ""))
    if form is None:
        raise FormatError("argument-invalid", "'format' is unknown", "write format=zip or format=tar.gz")
    release = await _release(call, ref)
    if form == "zip" and release.archive is not None:
        stored = await call.store.archive(call.actor.identity, ref.path, release.archive)
        if stored is None:
            raise no_version(ref)
        return _archive_response(f"{ref.name}-{release.version}.zip", stored, media_type)
    pinned, files = SkillRef(ref.path, version=release.version), dict[str, bytes]()
    for file in release.manifest.files:
        data = await call.store.read(call.actor.identity, pinned, file.path)
        if data is None:
            raise no_version(ref)
        files[file.path] = data
    executables = {file.path for file in release.manifest.files if file.executable}
    packed = await to_thread.run_sync(lambda: pack(files, form, executables=executables))
    return _archive_response(f"{ref.name}-{release.version}.{form}", packed, media_type)


def _archive_response(name: str, data: bytes, media_type: str) -> Response:
    disposition = f'attachment; filename="{name}"'
    headers = {**SAFE, "Content-Disposition": disposition, "ETag": f'"{digest_of(data)}"'}
    return Response(data, headers=headers, media_type=media_type)


async def search(call: Call) -> OperationResult:
    """Skills for some words."""
    limit, words = call.limit(20, 100), [term[0] for term in parse_query(call.query("q")).terms]
    found = await call.store.search(call.actor.identity, words, limit) if words else ()
    return {"skills": [docs.match_json(match) for match in found]}


async def reviews(call: Call) -> OperationResult:
    """Moves that wait for an approval."""
    found = await call.store.reviews(call.actor.identity, call.query("namespace") or None)
    return {"reviews": [docs.review_json(each) for each in found]}


async def decide(call: Call) -> OperationResult:
    """Approve or decline."""
    body: docs.VerdictBody = call.body
    number = int(call.at("number"))
    await call.store.decide(call.actor, number, body.verdict, digest=body.digest, note=body.note)
    return {"number": number, "verdict": body.verdict}


async def _release(call: Call, ref: SkillRef) -> Release:
    release = await call.store.release(call.actor.identity, ref)
    if release is None:
        raise no_version(ref)
    return release


async def _release_json(call: Call, ref: SkillRef) -> dict[str, Any]:
    return docs.release_json(await _release(call, ref))


def _reference(call: Call) -> SkillRef:
    """The version in the URL: a number or a channel."""
    which = call.at("version")
    if which[:1].isdigit():
        return SkillRef(call.at("path"), version=str(parse_version(which)))
    return SkillRef(call.at("path"), channel=parse_channel(which))


def no_version(ref: SkillRef) -> NotFoundError:
    """The error for an unknown skill or version."""
    if ref.version is None and ref.channel is None:
        return no_skill(skill_md_uri(ref.path))
    return NotFoundError(
        "registry-version-unknown", f"there is no {str(ref)!r:.300}", f"see: skillwire registry history {ref.path}"
    )


def _not_uploaded(file: ManifestFile) -> FormatError:
    return FormatError(
        "registry-file-missing",
        f"{file.path!r:.200} was not uploaded",
        "upload each file that POST …/blobs/missing returns, then publish again",
    )


_ARCHIVES = tuple(media_type for _, media_type in _FORMS.values())
_BLOBS = "/namespaces/{ns}/blobs"
_SKILL = "/skills/{path:skill}"
_VERSION = _SKILL + "/-/versions/{version}"
OPERATIONS: Final[Sequence[Operation]] = (
    Operation("POST", _BLOBS + "/missing", missing, docs.DigestsBody),
    Operation("PUT", _BLOBS + "/{digest}", upload, bytes, 201),
    Operation("GET", _SKILL, skill),
    Operation("POST", _SKILL + "/-/versions", publish, docs.VersionBody, 201),
    Operation("GET", _VERSION, version),
    Operation("DELETE", _VERSION, delete, docs.ReasonBody),
    Operation("GET", _VERSION + "/files/{file:path}", file, media=("application/octet-stream",)),
    Operation("GET", _VERSION + "/archive", archive, query=("format",), media=_ARCHIVES),
    Operation("POST", _VERSION + "/yank", yank, docs.ReasonBody),
    Operation("DELETE", _VERSION + "/yank", unyank),
    Operation("PUT", _SKILL + "/-/channels/{channel}", move, docs.ChannelBody),
    Operation("DELETE", _SKILL + "/-/channels/{channel}", remove_channel),
    Operation("PUT", _SKILL + "/-/deprecation", deprecate, docs.DeprecationBody),
    Operation("DELETE", _SKILL + "/-/deprecation", undeprecate),
    Operation("PUT", _SKILL + "/-/listed", set_listed, docs.ListedBody),
    Operation("GET", "/search", search, query=("q", "limit")),
    Operation("GET", "/reviews", reviews, query=("namespace",)),
    Operation("POST", "/reviews/{number:int}", decide, docs.VerdictBody),
)
