"""The loader: entry → approval → fetch → verification → content for the model (V1–V4, W1, A1–A4, C1).

Functions here raise errors, and ``conversation.py`` turns them into refusals. A file of a server is cached only as
a ``VerifiedFile``, and a cached file is used only if it still has the digest that the approved entry gives.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from anyio import to_thread

from skillwire.catalog.cursor import children_in
from skillwire.catalog.diff import changed_lines
from skillwire.errors import (
    ApprovalError,
    FormatError,
    NotFoundError,
    OriginError,
    SkillwireError,
    VerificationError,
)
from skillwire.host.approvals import ApprovalRequest, Approvals, declines
from skillwire.host.origins import has_other
from skillwire.skill.approval import Approval, change_since, covers, file_digests, has_contents, tool_grant
from skillwire.skill.review import review_files
from skillwire.skill.uri import (
    SKILL_MD,
    SkillUri,
    is_within,
    parse_uri,
    path_in_skill,
    reference_kind,
    resolve_reference,
    skill_root,
)
from skillwire.skill.verify import STALE, VerifiedFile, expect_file, is_same, verify_frontmatter
from skillwire.store.content_cache import keep_cached

if TYPE_CHECKING:
    from skillwire.host.approvals import RequestKind
    from skillwire.host.origins import Origin, OriginRegistry
    from skillwire.limits import Limits
    from skillwire.skill import SkillEntry
    from skillwire.skill.review import Review
    from skillwire.store.content_cache import ContentCache


@dataclass(frozen=True, slots=True)
class ApprovedSkill:
    """A skill whose exact content was approved by a person or a policy. Only ``Loader.approve`` makes one.

    ``is_stored`` means that the store has the approval, so that it can be revoked there. ``reviewed`` is the
    ``SKILL.md`` that the person saw before they approved it, until it is loaded.
    """

    origin: Origin
    entry: SkillEntry
    grants: frozenset[str] = frozenset()
    is_stored: bool = False
    reviewed: Content | None = None

    @property
    def place(self) -> tuple[str, str]:
        """What identifies the skill: the label of its origin, and its URI (E5)."""
        return self.origin.label, self.entry.uri


@dataclass(frozen=True, slots=True)
class Content:
    """The bytes of a file. ``offline``: they are from the cache, and the origin could not be reached then.

    ``file`` is the same, if it was verified.
    """

    uri: str
    data: bytes
    offline: bool = False
    file: VerifiedFile | None = None


class Loader:
    """Obtains approvals for skills, and reads the files of approved skills."""

    def __init__(
        self, approvals: Approvals, origins: OriginRegistry, cache: ContentCache | None, limits: Limits
    ) -> None:
        self._approvals = approvals
        self._origins = origins
        self._cache = cache
        self._limits = limits

    async def approve(self, origin: Origin, entry: SkillEntry) -> ApprovedSkill:
        """The skill with its stored approval, or with a new one; ``ApprovalError`` if it is not approved.

        A declined skill is refused without a question, also one of a folder. A listing can contain too little to
        bind an approval to. The question then shows what is listed, and the files are fetched afterwards (V5).
        """
        label = origin.label
        if origin.is_own:  # read it again first: after an edit it is not the declined content any more
            entry = await self._origins.whole(origin, entry)
        await self._approvals.refuse_if_declined(label, entry)
        if origin.is_own:
            return ApprovedSkill(origin, entry)

        approval = await self._approvals.current(label, entry.uri)
        if approval is not None or not origin.is_connected:
            whole = await self._whole(origin, entry)
            if whole is not entry:  # the approval may have been revoked while the server answered
                entry, approval = whole, await self._approvals.current(label, entry.uri)
        kind = "load" if has_contents(entry) or (entry.is_short and not entry.arguments) else "dynamic"
        if approval is not None:
            if not covers(approval, label, entry):
                await self._approvals.revoke(label, entry.uri, by="host", why="the content changed", only=approval)
            elif not self._approvals.forbids(kind, label, entry):
                return ApprovedSkill(origin, entry, approval.grants, is_stored=True)

        seen: list[tuple[SkillEntry, Content]] = []
        request = self._request(kind, origin, entry, seen)
        if self._approvals.will_ask(request):
            await self._check_readable(origin, entry)
        answer = await self._approvals.request(request)

        reviewed = None
        if seen:
            entry, reviewed = seen[-1]
        self.check_current(origin, entry)
        if not seen:
            entry = await self._whole(origin, entry)
            if request.is_unread:  # the person did not see the files that the grants would be for
                answer = replace(answer, grants=frozenset())
            elif has_contents(request.entry) and not is_same(entry, request.entry):
                raise _skill_changed(entry, "A2")
        request = replace(request, entry=entry)
        if not has_contents(entry):
            if kind != "dynamic":
                # V7: an unverifiable skill needs an explicit choice. A person is not asked twice.
                dynamic = replace(request, kind="dynamic")
                if answer.by == "policy" or not self._approvals.will_ask(dynamic):
                    await self._approvals.request(dynamic)
            return ApprovedSkill(origin, entry, reviewed=reviewed)
        if kind == "dynamic":
            return ApprovedSkill(origin, entry, reviewed=reviewed)
        approval = await self._approvals.remember(request, answer)
        is_stored = answer.remember and answer.by != "policy"
        return ApprovedSkill(origin, entry, approval.grants, is_stored, reviewed)

    async def _whole(self, origin: Origin, entry: SkillEntry) -> SkillEntry:
        """The entry with all its files; ``ApprovalError`` if that content was declined."""
        whole = await self._origins.whole(origin, entry)
        if whole is not entry:
            await self._approvals.refuse_if_declined(origin.label, whole)
        return whole

    def _request(
        self,
        kind: RequestKind,
        origin: Origin,
        entry: SkillEntry,
        seen: list[tuple[SkillEntry, Content]] | None = None,
    ) -> ApprovalRequest:
        """A request for approval. Its ``review`` appends the content that the person saw to ``seen``."""

        async def read(request: ApprovalRequest) -> ApprovalRequest:
            entry = request.entry if seen is None else await self._origins.whole(origin, request.entry)
            reviewed, skill_md = await self.review(origin, entry)
            previous = await self._approvals.previous(origin.label, entry)
            if seen is not None:
                seen.append((entry, skill_md))
                kind = request.kind if has_contents(entry) else "dynamic"
                request = replace(request, kind=kind, entry=entry, change=change_since(previous, entry))
            diff = await self._diff(origin.label, entry, previous, skill_md.data)
            text = skill_md.data.decode(errors="replace")
            return replace(request, reviewed=reviewed, diff=diff, text=text)

        return ApprovalRequest(kind, origin.label, entry, address=origin.address, reader=read)

    async def _check_readable(self, origin: Origin, entry: SkillEntry) -> None:
        """Raise before the question if the ``SKILL.md`` cannot be read now, so not be reviewed (B6, B1)."""
        if has_contents(entry):
            expect_file(entry, entry.uri, self._limits)
        if not origin.is_connected:
            await origin.fetch(entry, entry.uri, keep=False)

    @staticmethod
    def check_current(origin: Origin, entry: SkillEntry) -> None:
        """A2: ``ApprovalError`` if the skill changed, or its origin was removed, while a person was asked."""
        if origin.is_removed:
            raise OriginError(
                "origin-unknown", f"the origin {origin.label!r:.80} was removed", "add it again", rule="O1"
            )
        if has_other(origin, entry):
            raise _skill_changed(entry, "A2")

    async def is_still_approved(self, skill: ApprovedSkill) -> bool:
        """Whether a loaded skill is approved: another program may have revoked or declined it (A2)."""
        if skill.is_stored:  # a denial removes the approval from the store, so this covers both
            approval = await self._approvals.current(*skill.place)
            return approval is not None and covers(approval, skill.origin.label, skill.entry)
        decision = await self._approvals.decided(*skill.place)
        return decision is None or not declines(decision, skill.entry)

    async def grant(self, skill: ApprovedSkill, tool: str) -> frozenset[str]:
        """A4, A5: ask whether ``tool`` may run. Returns the extended grants, or raises ``ApprovalError``."""
        origin, entry = skill.origin, skill.entry
        approval = await self._approvals.current(origin.label, entry.uri)
        if approval is not None and not covers(approval, origin.label, entry):
            approval = None
        request = replace(self._request("execute", origin, entry), target=tool, lasts=approval is not None)
        answer = await self._approvals.request(request)
        if approval is not None and answer.remember and answer.by != "policy":
            await self._approvals.grant(approval, tool_grant(tool), answer.by, answer.note)
        return skill.grants | {tool_grant(tool)}

    async def allow_across(self, skill: ApprovedSkill, target: str) -> None:
        """O3: ask whether this skill may cause one read on another origin; ``ApprovalError`` if not."""
        await self._approvals.request(
            replace(self._request("cross-origin", skill.origin, skill.entry), target=target)
        )

    async def read_skill(self, skill: ApprovedSkill) -> tuple[Content, str]:
        """The ``SKILL.md`` and its body, with digest and frontmatter verified (V1, V4).

        A ``SKILL.md`` that a person reviewed is not read again: they approved these bytes (B6, V7).
        """
        try:
            content = skill.reviewed or await self.read_file(skill, skill.entry.uri)
            document = verify_frontmatter(skill.entry, content.data, self._limits)
        except VerificationError as error:
            if error.rule == "V4":  # A6: the approval was for a frontmatter that the file does not have
                await self._approvals.revoke(*skill.place, by="host", why=error.reference)
            raise
        reviewed = None if skill.reviewed is None else skill.reviewed.file
        if self._cache is not None and reviewed is not None and not skill.origin.is_removed:  # C3
            await keep_cached(self._cache, skill.origin.label, reviewed)
        return content, document.body

    async def read_file(self, skill: ApprovedSkill, uri: str) -> Content:
        """One file of an approved skill, from the cache or the origin."""
        return await self._read(skill.origin, skill.entry, uri, keep=True)

    async def read_unapproved(self, origin: Origin, entry: SkillEntry, uri: str) -> Content:
        """One file, verified, for a person to review. It is not cached, since it may never be approved."""
        return await self._read(origin, entry, uri, keep=False)

    async def _read(self, origin: Origin, entry: SkillEntry, uri: str, *, keep: bool) -> Content:
        """One file, verified unless nothing is promised. After a mismatch a fresh entry is fetched (V3)."""
        if origin.is_own or entry.is_unpromised(uri):
            return Content(uri, await origin.read_unverified(entry, uri))
        expect_file(entry, uri, self._limits)  # V2: nothing at all is requested because of an unlisted file
        is_offline = not origin.is_connected
        try:
            file = await origin.fetch(entry, uri, keep=keep)
        except VerificationError as error:
            if error.reference in STALE:
                await self._fetch_entry_again(origin, entry, error)
            raise
        return Content(file.uri, file.data, is_offline, file)

    async def _fetch_entry_again(self, origin: Origin, entry: SkillEntry, error: VerificationError) -> None:
        """V3: fetch the entry after a mismatch. If it changed, revoke the approval and raise ``ApprovalError``."""
        try:
            fresh = await origin.ask_skill(entry.uri)
        except SkillwireError:
            return  # the caller raises the mismatch, which is the more useful error
        approval = await self._approvals.current(origin.label, entry.uri)
        if approval is not None and not covers(approval, origin.label, fresh):
            await self._approvals.revoke(origin.label, entry.uri, by="host", why=error.reference, only=approval)
        if not is_same(fresh, entry):
            raise _skill_changed(entry, "V3") from error

    def locate(self, entry: SkillEntry, reference: str) -> str:
        """The URI for a path or link that the model gave (U6, V2, O3)."""
        skill_uri = parse_uri(entry.uri)
        root = skill_root(skill_uri)
        if reference_kind(reference) == "machine":
            raise OriginError(
                "machine-file",
                "a skill cannot read files of this machine",
                "use a path from the skill's list of files",
                rule="O3",
            )
        if "://" in reference:
            try:
                place = parse_uri(reference)
            except FormatError as error:
                raise FormatError(error.reference, error.message, error.hint, rule=error.rule or "U7") from error
        else:
            place = resolve_reference(root, skill_uri, reference)
        if place is None:
            raise NotFoundError(
                "file-unknown",
                f"the skill has no file {reference!r:.200}",
                "use a path from the skill's list of files",
                rule="U6",
            )
        uri = str(place)
        if not entry.is_dynamic and entry.is_complete:
            return expect_file(entry, uri, self._limits).uri
        if not is_within(root, parse_uri(uri)):
            raise OriginError(
                "cross-origin", f"{uri!r:.200} is outside the skill", "read files of the skill only", rule="O3"
            )
        return uri

    async def list_directory(self, skill: ApprovedSkill, path: str) -> list[str]:
        """The names directly inside a directory: from the manifest (W3), or from the server if it gives none."""
        entry, root = skill.entry, skill.entry.root
        steps = path.split("/") if path else []
        children = None
        if not entry.is_complete and not entry.is_named:  # then the entry does not list all files
            children = await skill.origin.ask_directory("/".join([str(root), *steps]))
        more = [] if children is None or children.error is None else [f"(partial: {children.error.message})"]
        inside = SkillUri(root.scheme, (*root.segments, *steps))
        found = children_in(entry, inside).values() if children is None else children
        if children is None and not found:
            raise NotFoundError(
                "directory-unknown",
                f"the skill has no directory {path!r:.200}",
                "use a directory from the skill's list of files",
                rule="W3",
            )
        return [*sorted(child.name + ("/" if child.is_directory else "") for child in found), *more]

    async def review(self, origin: Origin, entry: SkillEntry) -> tuple[Review, Content]:
        """The review of a skill, with hidden text of every text file (B6), and its ``SKILL.md``."""
        skill_md = await self.read_unapproved(origin, entry, entry.uri)
        files = [(path_in_skill(entry.uri, skill_md.uri), skill_md.data)]
        for uri in dict.fromkeys(file.uri for file in entry.files if file.uri != entry.uri):
            content = await self.read_unapproved(origin, entry, uri)
            files.append((path_in_skill(entry.uri, content.uri), content.data))
        # In a thread, since a server chooses how much text there is.
        return await to_thread.run_sync(review_files, entry, files, (), self._limits.max_checked_text), skill_md

    async def _diff(
        self, origin: str, entry: SkillEntry, previous: Approval | None, new: bytes
    ) -> tuple[str, ...]:
        """The diff of the ``SKILL.md`` since the last approval; empty if the approved one is not cached."""
        old_digest = file_digests(previous.contents).get(entry.uri) if previous is not None else None
        if self._cache is None or old_digest is None:
            return ()
        old = await to_thread.run_sync(self._cache.get, origin, entry.uri, old_digest)
        return () if old is None else await to_thread.run_sync(lambda: tuple(changed_lines(SKILL_MD, old, new)))


def _skill_changed(entry: SkillEntry, rule: str) -> ApprovalError:
    return ApprovalError(
        "skill-changed",
        f"{entry.uri!r:.300} changed after it was approved",
        "load it again: any change needs a new approval",
        rule=rule,
    )
