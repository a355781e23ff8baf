"""Loading: entry → approval → fetch → size, digest, fields → context (V1–V4, W1, A1–A4, C1).

Everything here raises our errors; ``runtime`` makes refusals of them. Content of a server enters the cache only as
a ``VerifiedFile``, and comes out of it only if it still hashes to what the approved entry says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import unified_diff
from typing import TYPE_CHECKING

from anyio import to_thread

from skillwire.client.entry_table import is_same
from skillwire.errors import (
    ApprovalError,
    FormatError,
    NotFoundError,
    OriginError,
    SkillwireError,
    VerificationError,
)
from skillwire.host.approvals import ApprovalRequest, Approvals
from skillwire.skill.approval import Approval, covers, file_digests, has_contents, tool_grant
from skillwire.skill.review import review_entry, with_text, with_unread
from skillwire.skill.uri import is_within, parse_uri, reference_kind, resolve_reference, skill_root
from skillwire.skill.verify import STALE, VerifiedFile, expect_file, verify_file, verify_frontmatter

if TYPE_CHECKING:
    from skillwire.host.approvals import Answer, Reader
    from skillwire.host.origins import Origin, Origins
    from skillwire.limits import Limits
    from skillwire.skill import SkillEntry
    from skillwire.skill.review import Review
    from skillwire.skill.uri import SkillUri
    from skillwire.store.content_cache import ContentCache

_DIFF_LINES = 400
_COMPARED_LINES = 2000  # a server chooses the lines, and comparing them can take the square of their number


@dataclass(frozen=True, slots=True)
class ApprovedSkill:
    """A skill that a person, or a rule of theirs, said yes to, with exactly this content. Made here only.

    ``kept`` says that the yes is in the store, where somebody may take it back. ``shown`` is the ``SKILL.md`` that
    the person saw, if they wanted to see it, until it is loaded.
    """

    origin: Origin
    entry: SkillEntry
    grants: frozenset[str] = frozenset()
    kept: bool = False
    shown: Content | None = None


@dataclass(frozen=True, slots=True)
class Content:
    """Bytes for the model, and whether they came from the cache while the origin was away."""

    uri: str
    data: bytes
    offline: bool = False
    file: VerifiedFile | None = None


class Loader:
    """Fetches what was approved, and asks for approval of what was not."""

    def __init__(self, approvals: Approvals, origins: Origins, cache: ContentCache | None, limits: Limits) -> None:
        self._approvals = approvals
        self._origins = origins
        self._cache = cache
        self._limits = limits

    async def approve(self, origin: Origin, entry: SkillEntry) -> ApprovedSkill:
        """The skill with a standing approval, or with a new one; ``ApprovalError`` without.

        A skill that was declined is refused before anybody is asked, one of a folder too. Where a listing says too
        little of a skill, the question does too: the files are fetched after the yes (V5).
        """
        if origin.is_local:  # it may have changed on disk, and is no longer what was declined
            entry = await self._origins.whole(origin, entry)
        await self._approvals.refuse_if_declined(origin.label, entry)
        if origin.is_local:
            return ApprovedSkill(origin, entry)
        label = origin.label
        if not origin.is_connected or await self._approvals.current(label, entry.uri) is not None:
            entry = await self._whole(origin, entry)
        previous = await self._approvals.previous(label, entry)
        standing = await self._approvals.standing(label, entry)
        seen: list[tuple[SkillEntry, Content]] = []
        request = ApprovalRequest(
            "load" if has_contents(entry) or (entry.is_short and not entry.arguments) else "dynamic",
            label,
            entry,
            review_entry(entry),
            Approvals.change(previous, entry),
            reader=self._reader(origin, previous, seen),
        )
        if standing is not None and not self._approvals.forbids(request):
            return ApprovedSkill(origin, entry, standing.grants, kept=True)
        if self._approvals.will_ask(request):
            await self._check_readable(origin, entry)
        answer = await self._approvals.request(request)
        shown = None
        if seen:
            entry, shown = seen[-1]
        self.check_current(origin, entry)
        if not seen:
            entry = await self._whole(origin, entry)
            if request.is_unread:  # nobody saw what they would be for
                answer = replace(answer, grants=frozenset())
            elif has_contents(request.entry) and not is_same(entry, request.entry):
                raise _changed(entry, "A2")
        request = replace(request, entry=entry)
        if not has_contents(entry):
            await self._allow_dynamic(request, answer)
            return ApprovedSkill(origin, entry, shown=shown)
        if request.kind == "dynamic":
            return ApprovedSkill(origin, entry, shown=shown)
        approval = await self._approvals.remember(request, answer)
        kept = answer.remember and answer.by != "policy"
        return ApprovedSkill(origin, entry, approval.grants, kept, shown)

    async def _whole(self, origin: Origin, entry: SkillEntry) -> SkillEntry:
        """The skill with all its files, unless that is what was declined."""
        whole = await self._origins.whole(origin, entry)
        if whole is not entry:
            await self._approvals.refuse_if_declined(origin.label, whole)
        return whole

    async def _allow_dynamic(self, request: ApprovalRequest, answer: Answer) -> None:
        """V7: what turns out to promise nothing needs an explicit choice too. A person is not asked twice."""
        if request.kind == "dynamic":
            return
        request = replace(request, kind="dynamic")
        if answer.by == "policy" or not self._approvals.will_ask(request):
            await self._approvals.request(request)

    def _reader(
        self,
        origin: Origin,
        previous: Approval | None = None,
        seen: list[tuple[SkillEntry, Content]] | None = None,
    ) -> Reader:
        """Reads the skill when a person wants to see it. What they saw goes to ``seen``."""

        async def read(request: ApprovalRequest) -> ApprovalRequest:
            entry = request.entry if seen is None else await self._origins.whole(origin, request.entry)
            summary, skill_md = await self._looked_through(origin, entry)
            if seen is not None:
                seen.append((entry, skill_md))
                kind = request.kind if has_contents(entry) else "dynamic"
                request = replace(request, kind=kind, entry=entry, change=Approvals.change(previous, entry))
            diff = await self._diff(origin.label, entry, previous, skill_md.data)
            text = skill_md.data.decode(errors="replace")
            return replace(request, summary=summary, diff=diff, text=text)

        return read

    async def _check_readable(self, origin: Origin, entry: SkillEntry) -> None:
        """Nobody is asked about a skill that cannot be read now: they could not look at it (B6, B1)."""
        if has_contents(entry):
            expect_file(entry, entry.uri, self._limits)
        if not origin.is_connected and not (has_contents(entry) and await self._cached(origin, entry, entry.uri)):
            await origin.fetch(entry, entry.uri)  # explains why it cannot

    @staticmethod
    def check_current(origin: Origin, entry: SkillEntry) -> None:
        """A2: what happened while somebody was asked; ``ApprovalError`` if the skill is another by now."""
        if origin.is_removed:
            raise OriginError(
                "origin-unknown", f"the origin {origin.label!r:.80} was removed", "add it again", rule="O1"
            )
        if origin.has_other(entry):
            raise _changed(entry, "A2")

    async def stands(self, skill: ApprovedSkill) -> bool:
        """Whether a yes that was kept still stands: another program may have revoked or declined it (A2)."""
        if skill.kept:  # a decline ends an approval too
            approval = await self._approvals.current(skill.origin.label, skill.entry.uri)
            return approval is not None and covers(approval, skill.origin.label, skill.entry)
        try:
            await self._approvals.refuse_if_declined(skill.origin.label, skill.entry)
        except ApprovalError:
            return False
        return True

    async def approve_as(self, origin: Origin, entry: SkillEntry, answer: Answer) -> Approval:
        """A person's yes, given outside a conversation: no policy decides, nobody is asked."""
        return await self._approvals.remember(_load_request(origin, entry), answer)

    async def decline_as(self, origin: Origin, entry: SkillEntry, answer: Answer) -> None:
        """A person's no, given outside a conversation."""
        await self._approvals.decline(_load_request(origin, entry), answer)

    async def grant(self, skill: ApprovedSkill, tool: str) -> frozenset[str]:
        """A4, A5: the grants of a skill with one more, or ``ApprovalError``."""
        origin, entry = skill.origin, skill.entry
        lasts = await self._approvals.standing(origin.label, entry) is not None
        request = ApprovalRequest(
            "execute",
            origin.label,
            entry,
            review_entry(entry),
            target=tool,
            lasts=lasts,
            reader=self._reader(origin),
        )
        answer = await self._approvals.request(request)
        approval = await self._approvals.standing(origin.label, entry)
        if lasts and approval is not None and answer.remember and answer.by != "policy":
            await self._approvals.grant(approval, tool_grant(tool), answer.by, answer.note)
        return skill.grants | {tool_grant(tool)}

    async def read_skill(self, skill: ApprovedSkill) -> tuple[Content, str]:
        """The ``SKILL.md`` and its body, verified byte by byte and field by field (V1, V4).

        What a person was shown is what is loaded: it is not read a second time (B6, V7).
        """
        try:
            content = skill.shown or await self.read_file(skill, skill.entry.uri)
            document = verify_frontmatter(skill.entry, content.data, self._limits)
        except VerificationError as error:
            if error.rule == "V4":  # A6: the approval was for words that the file does not have
                label, uri = skill.origin.label, skill.entry.uri
                await self._approvals.revoke(label, uri, by="host", why=error.reference)
            raise
        if skill.shown is not None and skill.shown.file is not None:
            await self._keep(skill.origin, skill.shown.file)
        return content, document.body

    async def read_file(self, skill: ApprovedSkill, uri: str, *, keep: bool = True) -> Content:
        """One file of an approved skill, kept in the cache. A mismatch ends in a fresh entry (V3)."""
        origin, entry = skill.origin, skill.entry
        if origin.is_local or entry.is_unpromised(uri):
            return Content(uri, await origin.read_unverified(entry, uri))
        cached = await self._cached(origin, entry, uri)
        if cached is not None:
            return Content(uri, cached.data, offline=not origin.is_connected)
        try:
            file = await origin.fetch(entry, uri)
        except VerificationError as error:
            if error.reference in STALE:
                await self._changed(origin, entry, error)
            raise
        if keep:
            await self._keep(origin, file)
        return Content(file.uri, file.data, file=file)

    async def _keep(self, origin: Origin, file: VerifiedFile) -> None:
        if self._cache is not None and not origin.is_removed:
            await to_thread.run_sync(self._cache.put, origin.label, file)

    def locate(self, entry: SkillEntry, reference: str) -> str:
        """The URI that a path or link, as the model gave it, means in a skill (U6, V2, O3)."""
        root = skill_root(parse_uri(entry.uri))
        if reference_kind(reference) == "machine":
            raise OriginError(
                "machine-file",
                "a skill cannot read files of this machine",
                "use a path from the skill's list of files",
                rule="O3",
            )
        uri = str(_parsed(reference) if "://" in reference else self._resolved(entry, reference))
        if not entry.is_dynamic and entry.is_complete:
            return expect_file(entry, uri, self._limits).uri
        if not is_within(root, parse_uri(uri)):
            raise OriginError(
                "cross-origin", f"{uri!r:.200} is outside the skill", "read files of the skill only", rule="O3"
            )
        return uri

    @staticmethod
    def _resolved(entry: SkillEntry, reference: str) -> SkillUri:
        uri = parse_uri(entry.uri)
        place = resolve_reference(skill_root(uri), uri, reference)
        if place is None:
            raise NotFoundError(
                "file-unknown",
                f"{reference!r:.200} is no file of the skill",
                "use a path from the skill's list of files",
                rule="U6",
            )
        return place

    async def list_directory(self, skill: ApprovedSkill, path: str) -> list[str]:
        """Names directly inside a directory: from the manifest (W3), or from the server if there is none."""
        root = skill_root(parse_uri(skill.entry.uri))
        children = None
        if not skill.entry.is_complete and not skill.entry.is_named:
            children = await skill.origin.list_directory("/".join([str(root), *([path] if path else [])]))
        if children is not None:
            names = [child.name + ("/" if child.is_directory else "") for child in children]
            return names if children.error is None else [*names, f"(partial: {children.error.message})"]
        prefix = f"{root.path}/{path}/" if path else f"{root.path}/"
        inside = [parse_uri(file.uri).path for file in skill.entry.files]
        names = {"".join(p[len(prefix) :].partition("/")[:2]) for p in inside if p.startswith(prefix)}
        if not names:
            raise NotFoundError(
                "directory-unknown",
                f"the skill has no directory {path!r:.200}",
                "the skill's list of files shows which there are",
                rule="W3",
            )
        return sorted(names)

    async def allow_across(self, skill: ApprovedSkill, target: str) -> None:
        """O3: a yes to one read on another origin because of this skill, or ``ApprovalError``."""
        summary, reader = review_entry(skill.entry), self._reader(skill.origin)
        request = ApprovalRequest(
            "cross-origin", skill.origin.label, skill.entry, summary, target=target, reader=reader
        )
        await self._approvals.request(request)

    async def inspect(self, origin: Origin, entry: SkillEntry) -> Review:
        """What a person should know, with hidden text in every text file (B6)."""
        return (await self._looked_through(origin, entry))[0]

    async def _looked_through(self, origin: Origin, entry: SkillEntry) -> tuple[Review, Content]:
        """The same, and the ``SKILL.md``. Nobody has approved what is read here, so that it is not kept."""
        skill, review = ApprovedSkill(origin, entry), review_entry(entry)
        skill_md = await self.read_file(skill, entry.uri, keep=False)
        review = await self._look(review, entry, skill_md)
        for file in entry.files:
            if file.uri != entry.uri:
                review = await self._look(review, entry, await self.read_file(skill, file.uri, keep=False))
        return review, skill_md

    async def _look(self, review: Review, entry: SkillEntry, content: Content) -> Review:
        depth = len(skill_root(parse_uri(entry.uri)).segments)
        path = "/".join(parse_uri(content.uri).segments[depth:])
        if len(content.data) > self._limits.max_checked_text:
            return with_unread(review, path)
        try:
            text = content.data.decode()
        except UnicodeDecodeError:
            return review
        return await to_thread.run_sync(with_text, review, path, text)  # a server chooses how much there is to do

    async def _diff(
        self, origin: str, entry: SkillEntry, previous: Approval | None, new: bytes
    ) -> tuple[str, ...]:
        """How the ``SKILL.md`` differs from the one that was approved, if that is still in the cache."""
        old_digest = file_digests(previous.contents).get(entry.uri) if previous is not None else None
        if self._cache is None or old_digest is None:
            return ()
        old = await to_thread.run_sync(self._cache.get, origin, entry.uri, old_digest)
        return () if old is None else await to_thread.run_sync(_differing_lines, old, new)

    async def _cached(self, origin: Origin, entry: SkillEntry, uri: str) -> VerifiedFile | None:
        resource = expect_file(entry, uri, self._limits)
        if self._cache is None or resource.digest is None:
            return None
        data = await to_thread.run_sync(self._cache.get, origin.label, resource.uri, resource.digest)
        return None if data is None else verify_file(entry, resource.uri, data, self._limits)

    async def _changed(self, origin: Origin, entry: SkillEntry, error: VerificationError) -> None:
        """V3: the way out of a mismatch is a fresh entry, which, being different, revokes the approval."""
        try:
            fresh = await origin.find(entry.uri)
        except SkillwireError:
            return  # the mismatch is what there is to say; nothing was used
        approval = await self._approvals.current(origin.label, entry.uri)
        if approval is not None and not covers(approval, origin.label, fresh):
            await self._approvals.revoke(origin.label, entry.uri, by="host", why=error.reference, only=approval)
        if not is_same(fresh, entry):
            raise _changed(entry, "V3") from error


def _load_request(origin: Origin, entry: SkillEntry) -> ApprovalRequest:
    return ApprovalRequest("load", origin.label, entry, review_entry(entry))


def _parsed(reference: str) -> SkillUri:
    try:
        return parse_uri(reference)
    except FormatError as error:
        raise FormatError(error.reference, error.message, error.hint, rule=error.rule or "U7") from error


def _changed(entry: SkillEntry, rule: str) -> ApprovalError:
    return ApprovalError(
        "skill-changed",
        f"{entry.uri!r:.300} is not what was approved any more",
        "load it again: the new content has to be approved",
        rule=rule,
    )


def _differing_lines(old: bytes, new: bytes) -> tuple[str, ...]:
    before, after = _lines(old), _lines(new)
    if max(len(before), len(after)) > _COMPARED_LINES:
        return (f"@@ {len(before)} lines were approved, {len(after)} are there now: too many to compare @@",)
    lines = unified_diff(before, after, "approved", "now", lineterm="", n=2)
    return tuple(lines)[:_DIFF_LINES]


def _lines(data: bytes) -> list[str]:
    return data.decode(errors="replace").splitlines()
