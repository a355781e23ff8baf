"""Changing a registry's skills: publications, channels, yanked and deleted versions, and reviews.

Each function is one transaction and checks the permission in it. Writes run one at a time (``store/database.py``),
so a function can look before it decides.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from skillwire.errors import (
    ApprovalError,
    ConflictError,
    FormatError,
    LimitError,
    NotFoundError,
    VerificationError,
)
from skillwire.limits import DEFAULT_LIMITS
from skillwire.registry import changes, records, uploads
from skillwire.registry.contract import Published, ReviewRequest
from skillwire.registry.model import (
    FIRST_VERSION,
    STABLE,
    Version,
    build_manifest,
    chosen_version,
    parse_channel,
    parse_skill_path,
    parse_version,
)
from skillwire.registry.projection import refresh
from skillwire.registry.visibility import actions_in, forbidden, no_namespace, require, visible, works_in
from skillwire.skill.archive import pack
from skillwire.skill.entry import digest_of
from skillwire.skill.uri import SKILL_MD
from skillwire.store.database import placeholders

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillwire.registry.contract import Draft, ReviewVerdict
    from skillwire.registry.model import Action, Actor, Identity, Manifest
    from skillwire.store.database import Session


class _Skill(NamedTuple):
    id: int
    path: str
    key: str

    @property
    def namespace(self) -> str:
        return self.key[:-1]


class _Line(NamedTuple):
    """A version of a skill, without its content."""

    id: int
    version: str
    digest: str
    approved: int
    yanked: str | None
    deleted: str | None

    @property
    def number(self) -> Version:
        return parse_version(self.version)


_LINES = "SELECT id, version, digest, approved, yanked, deleted FROM version WHERE skill_id = ?"


def paths(session: Session, actor: Actor, namespace: str, after: str, limit: int) -> list[str]:
    """The paths of all skills of a namespace: also of those without a stable version, and of unlisted ones."""
    require(session, actor, namespace, "publish")
    found = session.rows(
        "SELECT path FROM skill WHERE path > ? AND path < ? ORDER BY path LIMIT ?",
        max(after, f"{namespace}/"),
        f"{namespace}0",  # 0 comes after the slash
        limit,
    )
    return [path for (path,) in found]


def publish(session: Session, actor: Actor, draft: Draft) -> Published:
    """Publish a version."""
    path, manifest = parse_skill_path(draft.path), draft.manifest
    channel = None if draft.channel is None else parse_channel(draft.channel)
    asked = chosen_version(manifest.frontmatter, draft.version)
    _check_manifest(path, manifest)
    key = f"{path.partition('/')[0]}/"
    require(session, actor, key[:-1], "publish")
    found = session.row("SELECT id FROM skill WHERE path = ?", path)
    lines = _lines(session, found[0]) if found else {}
    newest = max(lines, default=None)
    if asked is not None:
        number = parse_version(asked)
    elif newest is None:
        number = FIRST_VERSION
    elif lines[newest].deleted is None and lines[newest].digest == manifest.digest:
        number = newest
    else:
        number = parse_version(str(newest.next_patch()))
    skill = _Skill(found[0], path, key) if found else None
    if skill is not None and number in lines:
        return _published_already(session, skill, lines[number], manifest, channel)
    _check_limits(session, path, key, is_new=skill is None, versions=len(lines))
    uploads.check_present(session, key, manifest)
    if skill is None:
        session.run("INSERT INTO skill (key, path, listed) VALUES (?, ?, ?)", key, path, draft.listed)
        skill = _skill(session, path)
    reviewed = draft.quarantine or _is_reviewed(session, key)
    line = _insert(session, actor, skill, draft, str(number), approved=not reviewed)
    facts: dict[str, Any] = {"digest": manifest.digest, "source": dict(draft.source), "listed": draft.listed}
    if channel is None:
        changes.record(session, actor, "published", path, line.version, **facts)
        return Published("created", line.version, moved=False)
    current = _current(session, skill, channel)
    facts |= {"channel": channel, "before": current and current.version}
    note = _why_not(channel, line, current)
    if note:
        changes.record(session, actor, "published", path, line.version, moved=False, **facts)
        return Published("created", line.version, moved=False, note=note)
    if reviewed:
        review = _ask(session, actor, skill, channel, line)
        changes.record(session, actor, "published", path, line.version, moved=False, review=review, **facts)
        return Published("created", line.version, moved=False, waits=review, note=_WAITS)
    _point(session, skill, channel, line)
    refresh(session, skill.id)
    changes.record(session, actor, "published", path, line.version, moved=True, **facts)
    return Published("created", line.version, moved=True)


def move_channel(session: Session, actor: Actor, path: str, channel: str, version: str | None) -> Published:
    """Let a channel point to a version, or remove it."""
    parse_channel(channel)
    skill = _changeable(session, actor, path, "publish")
    current = _current(session, skill, channel)
    before = None if current is None else current.version
    if version is None:
        if current is None:
            return Published("unchanged", "", moved=False)
        session.run("DELETE FROM channel WHERE skill_id = ? AND name = ?", skill.id, channel)
        _close_reviews(session, "skill_id = ? AND channel = ?", skill.id, channel)
        refresh(session, skill.id)
        changes.record(session, actor, "channel-removed", path, current.version, channel=channel, before=before)
        return Published("unchanged", current.version, moved=True)
    line = _line(session, skill, version)
    _check_target(skill, channel, line)
    if current is not None and current.id == line.id:
        return Published("unchanged", line.version, moved=False, note=f"{channel} has this version")
    if _is_reviewed(session, skill.key) or not line.approved:
        waiting = _waiting(session, skill, channel, line)
        if waiting is None:
            waiting = _ask(session, actor, skill, channel, line)
            facts: dict[str, Any] = {"channel": channel, "before": before, "review": waiting}
            changes.record(session, actor, "review-requested", path, line.version, **facts)
        return Published("unchanged", line.version, moved=False, waits=waiting, note=_WAITS)
    _point(session, skill, channel, line)
    refresh(session, skill.id)
    changes.record(session, actor, "channel-moved", path, line.version, channel=channel, before=before)
    return Published("unchanged", line.version, moved=True)


def yank(session: Session, actor: Actor, path: str, version: str, reason: str | None) -> None:
    """Yank a version, or undo it."""
    skill = _changeable(session, actor, path, "publish")
    line = _line(session, skill, version)
    if reason is not None:
        _check_reason(reason)
    if line.yanked == reason:
        return
    session.run("UPDATE version SET yanked = ? WHERE id = ?", reason, line.id)
    moved = {} if reason is None else _leave(session, skill, line)
    refresh(session, skill.id)
    facts: dict[str, Any] = {"reason": reason, "before": line.yanked, "channels": moved}
    what = "unyanked" if reason is None else "yanked"
    changes.record(session, actor, what, path, line.version, approved=bool(line.approved), **facts)


def delete(session: Session, actor: Actor, path: str, version: str, reason: str) -> None:
    """Delete the content of a version."""
    skill = _changeable(session, actor, path, "publish")
    if not actor.identity.is_admin or "manage" not in actions_in(session, actor.identity, skill.namespace):
        raise forbidden("to delete a version", "yank it instead, or ask an administrator")
    _check_reason(reason)
    number = str(parse_version(version))
    line = _lines(session, skill.id).get(parse_version(number))
    if line is None:
        raise _no_version(skill, version)
    if line.deleted is not None:
        return
    session.run("UPDATE version SET deleted = ?, manifest = ? WHERE id = ?", reason, b"", line.id)
    moved = _leave(session, skill, line)
    files = session.rows("SELECT DISTINCT digest FROM version_file WHERE version_id = ?", line.id)
    session.run("DELETE FROM version_file WHERE version_id = ?", line.id)
    session.run("DELETE FROM archive WHERE version_id = ?", line.id)
    uploads.remove_unused(session, skill.key, [digest for (digest,) in files])
    refresh(session, skill.id)
    facts: dict[str, Any] = {"reason": reason, "digest": line.digest, "channels": moved}
    changes.record(session, actor, "deleted", path, number, approved=bool(line.approved), **facts)


def deprecate(session: Session, actor: Actor, path: str, message: str | None, instead: str | None) -> None:
    """Deprecate a skill, or undo it."""
    if instead is not None:
        parse_skill_path(instead)
    if message is None:
        instead = None
    else:
        _check_reason(message)
    skill = _changeable(session, actor, path, "publish")
    [(old_message, old_instead)] = session.rows("SELECT deprecated, instead FROM skill WHERE id = ?", skill.id)
    if (old_message, old_instead) == (message, instead):
        return
    session.run("UPDATE skill SET deprecated = ?, instead = ? WHERE id = ?", message, instead, skill.id)
    refresh(session, skill.id)
    before = None if old_message is None else {"message": old_message, "instead": old_instead}
    facts: dict[str, Any] = {"message": message, "instead": instead, "before": before}
    changes.record(session, actor, "undeprecated" if message is None else "deprecated", path, **facts)


def set_listed(session: Session, actor: Actor, path: str, *, listed: bool) -> None:
    """List a skill, or serve it without listing it."""
    skill = _changeable(session, actor, path, "publish")
    if session.run("UPDATE skill SET listed = ? WHERE id = ? AND listed != ?", listed, skill.id, listed):
        refresh(session, skill.id)
        changes.record(session, actor, "listed" if listed else "unlisted", path)


def reviews(session: Session, who: Identity, namespace: str | None) -> list[ReviewRequest]:
    """The open reviews in the namespaces in which the caller may do more than read."""
    seen, works = visible(who), works_in(who)
    found = session.rows(
        "SELECT r.number, s.path, r.channel, v.version, w.version, v.digest, r.asked_by, r.asked_at FROM review r"
        " JOIN namespace n ON n.key = r.key JOIN skill s ON s.id = r.skill_id"
        " JOIN version v ON v.id = r.version_id"
        " LEFT JOIN channel c ON c.skill_id = r.skill_id AND c.name = r.channel"
        f" LEFT JOIN version w ON w.id = c.version_id WHERE r.state = 'open' AND {seen.sql} AND {works.sql}"
        f" {'' if namespace is None else 'AND n.key = ?'} ORDER BY r.asked_at, s.path, r.channel",
        *seen.values,
        *works.values,
        *([] if namespace is None else [f"{namespace}/"]),
    )
    return [ReviewRequest(*row) for row in found]


def decide(session: Session, actor: Actor, number: int, verdict: ReviewVerdict, digest: str, note: str) -> None:
    """Approve or decline a review."""
    who = actor.identity
    found = session.row(
        "SELECT r.key, r.skill_id, s.path, r.channel, r.askers, r.state, r.decided_by, v.publishers, v.version"
        " FROM review r JOIN skill s ON s.id = r.skill_id JOIN version v ON v.id = r.version_id"
        " WHERE r.number = ?",
        number,
    )
    if found is None or actions_in(session, who, found[0][:-1]) <= {"read"}:
        raise NotFoundError("review-not-found", f"there is no review {number}", "list the open ones again")
    key, skill_id, path, channel, askers, state, decided_by, publishers, version = found
    require(session, actor, key[:-1], "review")
    skill = _Skill(skill_id, path, key)
    if state != "open":
        if state == verdict and decided_by == who.name:
            return  # the answer to the first request was lost
        raise ConflictError("review-closed", f"the review {number} is {state}", "list the open ones again")
    if not who.persons.isdisjoint([*json.loads(askers), *json.loads(publishers)]):
        raise ApprovalError(
            "review-own",
            f"the review {number} is of your own publication or request",
            "ask another reviewer",
        )
    line = _line(session, skill, version)
    if line.digest != digest:
        raise VerificationError(
            "review-digest",
            f"the review {number} is of other content than the one that was reviewed",
            f"review {path}@{version} again",
        )
    current = _current(session, skill, channel)
    session.run("UPDATE review SET state = ?, decided_by = ? WHERE number = ?", verdict, who.name, number)
    if verdict == "approved":
        _check_target(skill, channel, line)
        _point(session, skill, channel, line)
        refresh(session, skill.id)
    facts: dict[str, Any] = {
        "review": number,
        "channel": channel,
        "note": note,
        "before": current and current.version,
    }
    changes.record(session, actor, f"review-{verdict}", path, version, **facts)


_WAITS = "the channel moves when another person approves it"


def _published_already(
    session: Session, skill: _Skill, line: _Line, manifest: Manifest, channel: str | None
) -> Published:
    """The result for a number that is used; ``ConflictError`` for other content."""
    newest = max(_lines(session, skill.id))
    is_declared = chosen_version(manifest.frontmatter, None) is not None
    next_number = newest.next_patch()
    hint = f"write metadata.version {next_number} in SKILL.md" if is_declared else f"add --version {next_number}"
    if line.deleted is not None:
        raise ConflictError("version-deleted", f"{skill.path}@{line.version} was deleted: {line.deleted}", hint)
    if line.digest != manifest.digest:
        raise ConflictError("version-taken", f"{skill.path}@{line.version} exists with other content", hint)
    note, waits = "", None
    if channel is not None:
        current = _current(session, skill, channel)
        waits = _waiting(session, skill, channel, line)
        if line.yanked is not None:
            note = f"this version was yanked: {line.yanked}"
        elif waits is not None:
            note = _WAITS
        elif current is None or current.id != line.id:
            note = f"the channel {channel} has {'no version' if current is None else current.version}"
    return Published("unchanged", line.version, moved=False, waits=waits, note=note)


def _check_manifest(path: str, manifest: Manifest) -> None:
    paths = [file.path for file in manifest.files]
    name = path.rpartition("/")[2]
    if SKILL_MD not in paths or len(set(paths)) < len(paths):
        raise FormatError("manifest-invalid", f"{path} has no {SKILL_MD}, or a file twice", "list each file once")
    if manifest.frontmatter.get("name") != name:
        raise FormatError(
            "name-mismatch",
            f"the skill at {path} has the name {manifest.frontmatter.get('name')!r:.80}",
            f"write 'name: {name}' in SKILL.md, or publish it at another path",
        )
    if manifest != build_manifest(manifest.frontmatter, manifest.files):
        raise VerificationError(
            "manifest-digest", f"the digest of {path} is not that of its files", "build it again"
        )


def _check_limits(session: Session, path: str, key: str, *, is_new: bool, versions: int) -> None:
    [(max_skills, max_versions)] = session.rows(
        "SELECT max_skills, max_versions FROM namespace WHERE key = ?", key
    )
    hint = f"ask an administrator for a higher quota of {key[:-1]}"
    if versions >= max_versions:
        raise LimitError("quota-versions", f"{path} has {versions} versions, the most that are allowed", hint)
    if not is_new:
        return
    [(skills,)] = session.rows("SELECT count(*) FROM skill WHERE key = ?", key)
    if skills >= max_skills:
        raise LimitError("quota-skills", f"{key[:-1]} has {skills} skills, the most that are allowed", hint)
    segments = path.split("/")
    above = ["/".join(segments[:count]) for count in range(2, len(segments))]
    nested = session.row(
        f"SELECT path FROM skill WHERE path IN ({placeholders(len(above)) or 'NULL'}) OR (path > ? AND path < ?)",
        *above,
        f"{path}/",
        f"{path}0",
    )
    if nested is not None:
        raise ConflictError(
            "skill-nested",
            f"{path} and {nested[0]} would be one inside the other",
            "publish it at another path; a name that was used is never free again",
        )


def _insert(session: Session, actor: Actor, skill: _Skill, draft: Draft, version: str, *, approved: bool) -> _Line:
    manifest = draft.manifest
    session.run(
        "INSERT INTO version (skill_id, version, digest, manifest, published_at, published_by, publishers, source,"
        " approved) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        skill.id,
        version,
        manifest.digest,
        records.manifest_to_bytes(manifest),
        actor.at,
        actor.identity.name,
        records.names_to_json(actor.identity.persons),
        records.to_json(dict(draft.source)),
        approved,
    )
    line = _line(session, skill, version)
    session.run_each(
        "INSERT INTO version_file (version_id, path, key, digest) VALUES (?, ?, ?, ?)",
        sorted(((line.id, file.path, skill.key, file.digest) for file in manifest.files), key=lambda row: row[3]),
    )
    _pack(session, line, manifest)
    return line


def _pack(session: Session, line: _Line, manifest: Manifest) -> None:
    """Store the files of a version as one zip file, unless they are too large for one."""
    if sum(file.size for file in manifest.files) > DEFAULT_LIMITS.max_archive_bytes:
        return
    found = session.rows(
        "SELECT f.path, b.data FROM version_file f JOIN blob b ON b.key = f.key AND b.digest = f.digest"
        " WHERE f.version_id = ?",
        line.id,
    )
    executables = {file.path for file in manifest.files if file.executable}
    try:
        data = pack({path: bytes(content) for path, content in found}, "zip", executables=executables)
    except (FormatError, LimitError):  # a name or a size that no archive may have
        return
    session.run("INSERT INTO archive (version_id, digest, data) VALUES (?, ?, ?)", line.id, digest_of(data), data)


def _changeable(session: Session, actor: Actor, path: str, action: Action) -> _Skill:
    """The skill at ``path``, for an actor who may change it."""
    namespace = path.partition("/")[0]
    allowed = actions_in(session, actor.identity, namespace)
    found = session.row("SELECT id, path, key FROM skill WHERE path = ?", path)
    if not allowed:
        raise no_namespace(namespace)
    require(session, actor, namespace, action)
    if found is None:
        raise NotFoundError("skill-not-found", f"there is no skill {path!r:.200}", "check the path")
    return _Skill(*found)


def _skill(session: Session, path: str) -> _Skill:
    [row] = session.rows("SELECT id, path, key FROM skill WHERE path = ?", path)
    return _Skill(*row)


def _lines(session: Session, skill: int) -> dict[Version, _Line]:
    lines = (_Line(*row) for row in session.rows(_LINES, skill))
    return {line.number: line for line in lines}


def _line(session: Session, skill: _Skill, version: str) -> _Line:
    """A version that was not deleted."""
    found = session.row(f"{_LINES} AND version = ? AND deleted IS NULL", skill.id, str(parse_version(version)))
    if found is None:
        raise _no_version(skill, version)
    return _Line(*found)


def _no_version(skill: _Skill, version: str) -> NotFoundError:
    return NotFoundError(
        "version-not-found", f"{skill.path} has no version {version!r:.80}", "look at its history"
    )


def _current(session: Session, skill: _Skill, channel: str) -> _Line | None:
    found = session.row(
        f"{_LINES} AND id = (SELECT version_id FROM channel WHERE skill_id = ? AND name = ?)",
        skill.id,
        skill.id,
        channel,
    )
    return None if found is None else _Line(*found)


def _is_reviewed(session: Session, key: str) -> bool:
    [(reviewed,)] = session.rows("SELECT reviewed FROM namespace WHERE key = ?", key)
    return bool(reviewed)


def _why_not(channel: str, line: _Line, current: _Line | None) -> str:
    """Why a publication does not move a channel; empty if it does."""
    if channel == STABLE and line.number.is_prerelease:
        return f"a pre-release never becomes {STABLE}"
    if current is not None and current.number > line.number:
        return f"the channel {channel} has the newer version {current.version}"
    return ""


def _check_target(skill: _Skill, channel: str, line: _Line) -> None:
    if line.yanked is not None:
        raise ConflictError(
            "version-yanked",
            f"{skill.path}@{line.version} was yanked: {line.yanked}",
            "choose another version, or undo the yank first",
        )
    if channel == STABLE and line.number.is_prerelease:
        raise ConflictError(
            "version-prerelease",
            f"{line.version} is a pre-release, and never becomes {STABLE}",
            "publish it under a number without a hyphen, or use another channel",
        )


def _point(session: Session, skill: _Skill, channel: str, line: _Line) -> None:
    """Let a channel point to a version, which everyone who reads the namespace may see from now on."""
    session.run("UPDATE version SET approved = 1 WHERE id = ? AND approved = 0", line.id)
    session.run(
        "INSERT INTO channel (skill_id, name, version_id) VALUES (?, ?, ?)"
        " ON CONFLICT (skill_id, name) DO UPDATE SET version_id = excluded.version_id",
        skill.id,
        channel,
        line.id,
    )
    # A request to move the same channel was made when it had another version.
    _close_reviews(session, "skill_id = ? AND channel = ?", skill.id, channel)


def _leave(session: Session, skill: _Skill, line: _Line) -> dict[str, str | None]:
    """Move the channels away from a version that was yanked or deleted; where each points now."""
    _close_reviews(session, "version_id = ?", line.id)
    below = [each for number, each in _lines(session, skill.id).items() if number < line.number]
    usable = [each for each in below if each.approved and each.yanked is None and each.deleted is None]
    moved: dict[str, str | None] = {}
    for (channel,) in session.rows("SELECT name FROM channel WHERE version_id = ? ORDER BY name", line.id):
        target = _newest(each for each in usable if channel != STABLE or not each.number.is_prerelease)
        moved[channel] = None if target is None else target.version
        which = "skill_id = ? AND name = ?"
        if target is None:
            session.run(f"DELETE FROM channel WHERE {which}", skill.id, channel)
        else:
            session.run(f"UPDATE channel SET version_id = ? WHERE {which}", target.id, skill.id, channel)
    return moved


def _newest(lines: Iterable[_Line]) -> _Line | None:
    return max(lines, key=lambda line: line.number, default=None)


def _ask(session: Session, actor: Actor, skill: _Skill, channel: str, line: _Line) -> int:
    """Ask for a review, which replaces an open one of the same channel; its number."""
    number = changes.new_number(session, "review")
    _close_reviews(session, "skill_id = ? AND channel = ?", skill.id, channel)
    session.run(
        "INSERT INTO review (number, key, skill_id, channel, version_id, asked_by, askers, asked_at, state)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'open')",
        number,
        skill.key,
        skill.id,
        channel,
        line.id,
        actor.identity.name,
        records.names_to_json(actor.identity.persons),
        actor.at,
    )
    return number


def _waiting(session: Session, skill: _Skill, channel: str, line: _Line) -> int | None:
    found = session.row(
        "SELECT number FROM review WHERE state = 'open' AND skill_id = ? AND channel = ? AND version_id = ?",
        skill.id,
        channel,
        line.id,
    )
    return None if found is None else found[0]


def _close_reviews(session: Session, which: str, *values: object) -> None:
    session.run(f"UPDATE review SET state = 'replaced' WHERE state = 'open' AND {which}", *values)


def _check_reason(reason: str) -> None:
    if not reason.strip() or len(reason) > _LONGEST_REASON:
        raise FormatError(
            "reason-invalid", f"a reason has 1 to {_LONGEST_REASON} characters", "say why, for those who use it"
        )


_LONGEST_REASON = 2_000
