"""Make deliberate defects in copies of the source, one at a time, and report whether the tests catch each of them.

A test suite can be green and check little. Each row of the table below breaks one rule that matters: a check is
dropped, a condition is inverted, a bound is off by one, a field is missing from a comparison or from a cache key.
Whoever removes or rewrites tests runs this script before and after. A defect that was caught before must still be
caught afterwards.

    python tests/defects.py                          all defects, each with the tests named in its row
    python tests/defects.py verify-skips-the-size    some of them, by name
    python tests/defects.py --list                   list them and run nothing
    python tests/defects.py --all-tests NAME...      use the whole of tests/ instead of the paths in the row (slow)

Use the Python of the development environment: ``.venv/bin/python tests/defects.py``.

The script works as follows.

1. It copies ``src`` to a temporary folder. It makes an environment there that finds this copy first, and the
   installed packages after it. ``PYTHONPATH`` alone is not enough: the client starts servers with few variables of
   the environment, and some tests set ``PYTHONPATH`` themselves. The script checks that child processes import the
   copy.
2. It runs the chosen tests on the undamaged copy. They must pass, or a red suite would look like a catch.
3. For each defect it makes a fresh copy, replaces the old text by the new text, and runs the tests of the row. A
   failing test means ``caught``. If all tests pass, the defect ``SURVIVED``: a test is missing.

The old text must occur exactly once in its module. If the source has moved on, the script says which row to
correct. A collection error, or a run that exceeds the time limit, is an error of the run and no catch.

Exit code: 0 if all defects were caught, 1 if any survived, 2 if the run itself failed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 600  # for the tests of one row
ALL_SECONDS = 3600  # for the whole suite
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?::.+?)(?: - .*)?$", re.MULTILINE)
NOT_COLLECTED = re.compile(r"^_+ ERROR collecting |^ERROR [^:\n]+(?: - .*)?$", re.MULTILINE)


class Defect(NamedTuple):
    """One defect: ``old`` is replaced by ``new`` in ``module``, and ``tests`` have to notice."""

    name: str
    module: str
    old: str
    new: str
    tests: tuple[str, ...]


class RunError(Exception):
    """The run itself failed: nothing can be said about the defect."""


def rows(module: str, tests: str, *defects: tuple[str, str, str]) -> list[Defect]:
    """Defects of one module (name, old text, new text), all to be caught by the same tests."""
    return [Defect(name, module, old, new, tuple(tests.split())) for name, old, new in defects]


# What a skill is: digests, entries, verification, URIs

VERIFICATION = [
    *rows(
        "skill/verify.py",
        "tests/unit/skill/test_verify.py",
        ("verify-skips-the-size", "resource.size is not None and len(data) != resource.size:", "False:"),
        ("verify-skips-the-digest", "if digest != resource.digest:", "if resource.digest is None:"),
        ("verify-accepts-a-dynamic-skill", "if entry.is_dynamic:", "if False:"),
        (
            "verify-accepts-files-outside",
            "if is_inside and not is_within(",
            "if not is_inside and not is_within(",
        ),
    ),
    *rows(
        "skill/entry.py",
        "tests/unit/skill/test_entry.py",
        (
            "entry-finds-one-spelling-only",
            "return next((resource for resource in self.files if parse_uri(resource.uri) == wanted), None)",
            "return None if wanted else None",
        ),
        (
            "entry-overlooks-missing-digests",
            "if not self.files or any(resource.digest is None for resource in self.files):",
            "if not self.files:",
        ),
    ),
    *rows(
        "skill/uri.py",
        "tests/unit/skill/test_entry.py",
        (
            "fold-without-normalisation",
            'return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())',
            "return path.casefold()",
        ),
        (
            "fold-without-case",
            'unicodedata.normalize("NFC", path).casefold())',
            'unicodedata.normalize("NFC", path))',
        ),
    ),
    *rows(
        "skill/entry.py",
        "tests/unit/skill/test_entry_parse.py",
        (
            "received-accepts-files-outside",
            "if not is_within(root, place):",
            "if not place.segments:",
        ),
        (
            "received-accepts-another-name",
            'if frontmatter["name"] != root.segments[-1]:',
            'if not frontmatter["name"]:',
        ),
        ("received-accepts-a-file-twice", "if len(resources) != len(items):", "if len(resources) > len(items):"),
        (
            "received-needs-no-skill-md",
            "if SkillUri(root.scheme, (*root.segments, SKILL_MD)) not in resources:",
            "if not resources:",
        ),
    ),
    *rows(
        "skill/entry.py",
        "tests/unit/skill/test_entry_digest.py",
        ("digest-accepts-upper-case", "sha256:[0-9a-f]{64}", "sha256:[0-9a-fA-F]{64}"),
        ("digest-accepts-a-line-break", r"{64}\Z", "{64}$"),
        ("digest-accepts-other-algorithms", r"sha256:[0-9a-f]{64}\Z", r"\w+:[0-9a-f]{32,}\Z"),
    ),
]

URIS = rows(
    "skill/uri.py",
    "tests/unit/skill/test_uri.py",
    ("uri-accepts-dot-dot", 'if segment in (".", ".."):', 'if segment == ".":'),
    ("uri-accepts-encoded-slashes", 're.compile("[/', 're.compile("['),
    ("uri-file-behind-a-blank", "lowered = reference.strip().lower()", "lowered = reference.lower()"),
    ("uri-accepts-queries", 'if "?" in rest or "#" in rest:', 'if "#" in rest:'),
)

# Files on disk

OPENING = [
    *rows(
        "catalog/safe_open.py",
        "tests/unit/catalog/test_directory.py",
        (
            "beneath-follows-linked-folders",
            "_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW",
            "_FOLDER = os.O_RDONLY | os.O_DIRECTORY",
        ),
        ("beneath-follows-linked-files", "_FILE = os.O_RDONLY | os.O_NOFOLLOW", "_FILE = os.O_RDONLY"),
        ("known-file-behind-a-linked-folder", 'if os.path.islink(f"{root}/{folder}"):', "if False:"),
        (
            "known-file-with-other-bytes",
            'return data if f"sha256:{sha256(data).hexdigest()}" == file.digest else None',
            "return data",
        ),
    ),
    *rows(
        "catalog/scan.py",
        "tests/unit/catalog/test_bad_trees.py",
        ("scan-forgets-the-number-of-files", "len(collector.files) > self.limits.max_resources or ", ""),
        ("scan-forgets-the-bytes-of-a-skill", " or collector.size > self.limits.max_skill_bytes:", ":"),
    ),
    *rows(
        "catalog/safe_open.py",
        "tests/unit/catalog/test_safe_open.py",
        (
            "beneath-stamp-without-ctime",
            "status.st_mtime_ns, status.st_ctime_ns)",
            "status.st_mtime_ns, status.st_mtime_ns)",
        ),
        ("beneath-reads-what-is-not-regular", "        if not stat.S_ISREG(status.st_mode):", "        if False:"),
        ("beneath-stamps-what-is-not-regular", "stat.S_ISREG(status.st_mode) and file.stamp", "file.stamp"),
        (
            "beneath-reads-a-file-that-grows",
            "            if size > max_bytes:\n                raise _too_large(name, max_bytes)\n",
            "",
        ),
        ("beneath-tree-has-no-budget", "left -= len(files[prefix + entry.name])", "left -= 0"),
    ),
]

# Who sees what

VISIBILITY = rows(
    "catalog/visibility.py",
    "tests/unit/catalog/test_visibility.py",
    (
        "visible-prefix-is-compared-as-text",
        "    test = visible if callable(visible) else visible.__contains__\n",
        "    test = visible if callable(visible) else lambda path: any(map(path.startswith, visible))\n",
    ),
    (
        "visible-get-shows-everything",
        "        if not self.may_see(parse_uri(uri).parent.path):\n            raise no_skill(uri)\n",
        "",
    ),
    (
        "visible-read-shows-everything",
        "        if not await self._in_visible_skill(parse_uri(uri).parent):\n            raise no_file(uri)\n",
        "",
    ),
    (
        "visible-directory-shows-everything",
        "        if not await self._in_visible_skill(parse_uri(uri)):\n            raise no_directory(uri)\n",
        "",
    ),
)

ACCESS = [
    *rows(
        "server/access.py",
        "tests/interaction/test_access.py",
        (
            "access-unknown-subject-sees-everything",
            'self.see.get(subject or "", ())',
            'self.see.get(subject or "", (EVERYTHING,))',
        ),
        (
            "access-accepts-any-audience",
            'audience=self._settings.audience,\n                options={"require"',
            'options={"verify_aud": False, "require"',
        ),
        ("access-accepts-any-issuer", "issuer=self._settings.issuer,", ""),
        ("access-accepts-tokens-without-an-end", '"require": ["exp", ', '"require": ['),
        ("access-web-token-is-a-static-one", 'subject=JWT + claims["sub"],', 'subject=claims["sub"],'),
        ("access-see-is-for-static-tokens-too", "see = {JWT + subject: ", "see = {subject: "),
        ("access-static-token-poses-as-a-web-token", "if token.subject.startswith(JWT):", "if not token.subject:"),
        ("access-tokens-have-no-bound", "if len(token) > _MAX_TOKEN:", "if not token:"),
    ),
    *rows(
        "server/page.py",
        "tests/interaction/test_page_access.py",
        (
            "page-opens-sessions-for-strangers",
            "        if await self._verifier.verify_token(token) is None:\n            return None\n",
            "",
        ),
        (
            "page-sessions-never-end",
            "if holder is None or time.monotonic() - used > _IDLE_SECONDS:",
            "if holder is None:",
        ),
        ("page-knows-everybody", "KNOWN: is_known or is_open", "KNOWN: True"),
    ),
]

REPLAYING = rows(
    "server/response_cache.py",
    "tests/interaction/test_replay.py",
    ("replay-key-forgets-header-values", "parts += (name, value)", "parts += (name,)"),
    ("replay-key-forgets-what-follows-the-id", "body[:start], body[end:])", "body[:start])"),
    ("replay-key-forgets-the-query", "parts: list[bytes] = [query]", 'parts: list[bytes] = [b""]'),
    (
        "replay-shares-between-sessions",
        '        elif name == b"mcp-session-id":\n            return None\n',
        '        elif name == b"mcp-session-id":\n            continue\n',
    ),
    (
        "replay-one-answer-takes-all-room",
        "if entry.weight > self._room // _LARGEST_SHARE:",
        "if entry.weight > self._room:",
    ),
    ("replay-repeats-what-changed", "if entry is None or not entry.is_unchanged():", "if entry is None:"),
)

# Who said yes to what

APPROVALS = [
    *rows(
        "skill/approval.py",
        "tests/host/test_approval_binding.py",
        (
            "approval-covers-another-origin",
            "(approval.origin, approval.uri) == (origin, entry.uri)",
            "approval.uri == entry.uri",
        ),
        (
            "approval-covers-more-files",
            "approval.contents == claimed_contents(entry)",
            "approval.contents <= claimed_contents(entry)",
        ),
        (
            "approval-covers-fewer-files",
            "approval.contents == claimed_contents(entry)",
            "approval.contents >= claimed_contents(entry)",
        ),
    ),
    *rows(
        "skill/approval.py",
        "tests/host/test_approval_binding.py tests/adversarial/host/test_changed_words.py",
        (
            "approval-forgets-the-frontmatter",
            "return make_contents(entry.uri, files, digest_of(canonical.encode()))",
            'return make_contents(entry.uri, files, "")',
        ),
    ),
    *rows(
        "host/approvals.py",
        "tests/host/test_approvals.py",
        (
            "approvals-grant-to-other-content",
            "while current is not None and current.contents == approval.contents:",
            "while current is not None:",
        ),
        (
            "approvals-remember-what-a-rule-said",
            'if answer.remember and answer.by != "policy":',
            "if answer.remember:",
        ),
    ),
    *rows(
        "host/approvals.py",
        "tests/host/test_desk.py",
        (
            "approvals-recorded-elsewhere-for-other-content",
            "if approval is None or not covers(approval, request.origin, request.entry):",
            "if approval is None:",
        ),
    ),
    *rows(
        "host/results.py",
        "tests/host/test_approvals.py",
        (
            "standing-is-approved-for-other-content",
            "is_same = covers(approval, origin.label, entry) or agrees(approval.contents, entry)",
            "is_same = True",
        ),
    ),
    *rows(
        "store/store.py",
        "tests/contracts/test_store_contract.py tests/contracts/test_store_questions.py",
        (
            "sqlite-denial-ends-an-approval-of-other-content",
            '_REMOVE_CONTENTS = f"{_REMOVE} AND contents = ?"',
            "_REMOVE_CONTENTS = f\"{_REMOVE} AND contents != ? || 'x'\"",
        ),
        (
            "sqlite-removes-a-newer-approval",
            'f"{_REMOVE} AND contents = ? AND who = ? AND at = ? AND grants = ?"',
            'f"{_REMOVE} AND length(?) AND length(?) AND length(?) AND length(?)"',
        ),
        (
            "sqlite-grants-to-another-approval",
            '" WHERE origin = ? AND uri = ? AND contents = ? AND who = ? AND at = ? AND grants = ?"',
            '" WHERE origin = ? AND uri = ? AND length(?) AND who = ? AND at = ? AND length(?)"',
        ),
    ),
    *rows(
        "web/desk/decisions.py",
        "tests/unit/web/test_desk_decisions.py",
        (
            "desk-approves-another-fingerprint",
            "if not content or fingerprint_of(skill.entry) != content:",
            "if not content:",
        ),
    ),
    *rows(
        "web/desk/decisions.py",
        "tests/unit/web/test_desk_decisions.py",
        (
            "desk-changes-grants-of-other-content",
            'if approval is None or approval.fingerprint != form.get("fingerprint"):',
            "if approval is None:",
        ),
    ),
    *rows(
        "gateway/config.py",
        "tests/gateway/test_approval_gate.py",
        (
            "policy-approves-any-content",
            "(each.upstream, each.path, each.fingerprint) == (label, path, fingerprint)",
            "(each.upstream, each.path) == (label, path)",
        ),
    ),
    *rows(
        "cli/prompts.py",
        "tests/unit/cli/test_prompts.py",
        (
            "review-shows-an-approval-of-other-content",
            "if covers(approval, request.origin, request.entry):",
            "if approval.uri == request.entry.uri:",
        ),
    ),
]

WINDOWS = [
    *rows(
        "host/conversation.py",
        "tests/host/test_acting.py",
        (
            "windows-grant-to-other-content",
            "if held.entry != skill.entry:",
            "if held.entry.uri != skill.entry.uri:",
        ),
    ),
    *rows(
        "host/conversation.py",
        "tests/host/test_window.py",
        (
            "window-stays-open-when-revoked",
            '"revoke": {"closed": "closed", "quoted": "revoked", "open": "revoked",',
            '"revoke": {"closed": "closed", "quoted": "revoked", "open": "open",',
        ),
        (
            "window-stays-open-when-changed",
            '"change": {"closed": "closed", "quoted": "revoked", "open": "revoked",',
            '"change": {"closed": "closed", "quoted": "revoked", "open": "open",',
        ),
        (
            "window-opens-by-a-plain-read",
            '"plain-read": {"closed": "closed", "quoted": "quoted", "open": "open", "revoked": "revoked"}',
            '"plain-read": {"closed": "closed", "quoted": "quoted", "open": "open", "revoked": "open"}',
        ),
        (
            "window-permits-when-revoked",
            'return self.state in ("open", "quoted") and grant in self.skill.grants',
            "return grant in self.skill.grants",
        ),
    ),
]

# The host: what reaches a model

HOST = [
    *rows(
        "host/loader.py",
        "tests/host/test_acting.py tests/host/test_approvals.py",
        (
            "loading-approves-other-content",
            "            if not covers(approval, label, entry):\n",
            "            if approval.uri != entry.uri:\n",
        ),
        (
            "loading-keeps-outdated-approvals",
            'await self._approvals.revoke(label, entry.uri, by="host", why="the content changed", only=approval)',
            "pass",
        ),
        (
            "loading-overlooks-a-change-while-asking",
            "        self.check_current(origin, entry)\n        if not seen:",
            "        if not seen:",
        ),
        (
            "loading-keeps-what-nobody-approved",
            "skill_md = await self.read_unapproved(origin, entry, entry.uri)",
            "skill_md = await self.read_file(ApprovedSkill(origin, entry), entry.uri)",
        ),
        (
            "reviewing-keeps-what-nobody-approved",
            "return await self._read(origin, entry, uri, keep=False)",
            "return await self._read(origin, entry, uri, keep=True)",
        ),
        (
            "loading-reads-before-it-asks",
            "            await self._check_readable(origin, entry)\n",
            "            await self._check_readable(origin, entry)\n            await request.review()\n",
        ),
    ),
    *rows(
        "host/loader.py",
        "tests/host/test_short_listings.py",
        (
            "loading-fetches-before-it-asks",
            "        if approval is not None or not origin.is_connected:\n",
            "        if entry:\n",
        ),
        (
            "loading-grants-to-what-nobody-saw",
            "                answer = replace(answer, grants=frozenset())\n",
            "                pass\n",
        ),
        (
            "loading-loads-other-files-than-it-asked-about",
            "            elif has_contents(request.entry) and not is_same(entry, request.entry):\n",
            "            elif not entry:\n",
        ),
    ),
    *rows(
        "host/loader.py",
        "tests/host/test_declining.py",
        (
            "loading-loads-what-was-declined",
            "        await self._approvals.refuse_if_declined(label, entry)\n        if origin.is_own:",
            "        if origin.is_own:",
        ),
    ),
    *rows(
        "host/loader.py",
        "tests/host/test_acting.py",
        (
            "loading-stands-on-an-approval-of-other-content",
            "return approval is not None and covers(approval, skill.origin.label, skill.entry)",
            "return approval is not None",
        ),
    ),
    *rows(
        "host/loader.py",
        "tests/adversarial/host/test_rotation.py",
        (
            "loading-keeps-the-approval-of-changed-bytes",
            "if approval is not None and not covers(approval, origin.label, fresh):",
            "if approval is not None and approval.uri != fresh.uri:",
        ),
    ),
    *rows(
        "host/conversation.py",
        "tests/host/test_acting.py",
        (
            "runtime-gate-asks-no-store",
            "                await self._check_approval(window.skill)\n",
            "                pass\n",
        ),
        (
            "runtime-reads-after-a-revocation-elsewhere",
            "        await self._check_approval(self.windows.loaded(*place, name))\n",
            "",
        ),
    ),
    *rows(
        "host/host.py",
        "tests/host/test_approvals.py",
        (
            "runtime-approves-another-fingerprint",
            "    if wanted not in (None, content):\n",
            "    if wanted is not None and not content:\n",
        ),
    ),
    *rows(
        "host/conversation.py",
        "tests/host/test_acting.py",
        (
            "runtime-loads-what-changed-while-reading",
            "                self._host.loader.check_current(found.origin, skill.entry)\n",
            "",
        ),
        (
            "runtime-any-grant-permits-any-tool",
            "skill.origin.is_own or window.permits(EXECUTE) or window.permits(tool_grant(tool))",
            "skill.origin.is_own or window.grants",
        ),
    ),
    *rows(
        "host/origins.py",
        "tests/host/test_names.py",
        ("names-differ-by-case-only", "import fold, parse_uri\n", "import parse_uri\n\nfold = str\n"),
        ("names-imitate-labels", 'return name.isascii() and ":" not in name', "return name.isascii()"),
        ("names-look-like-others", 'return name.isascii() and ":" not in name', 'return ":" not in name'),
        ("names-first-one-wins", "        if len(found) == 1:\n", "        if found:\n"),
    ),
    *rows(
        "host/context.py",
        "tests/host/test_context.py",
        (
            "context-description-is-markup",
            "{escape_text(text_for_model(skill.entry.description))}",
            "{text_for_model(skill.entry.description)}",
        ),
        (
            "context-name-is-markup",
            'f"    <name>{escape_text(skill.name)}</name>"',
            'f"    <name>{skill.name}</name>"',
        ),
        ("context-path-is-hidden", "return escape_text(encode_hidden(text))", "return escape_text(text)"),
    ),
    *rows(
        "skill/hidden.py",
        "tests/unit/skill/test_model.py tests/host/test_context.py",
        ("model-text-is-hidden", "one_line(without_hidden(one_line(text)))", "one_line(text)"),
        (
            "model-text-has-no-bound",
            "return shown if len(shown) <= _LONGEST_DESCRIPTION else",
            "return shown if True else",
        ),
    ),
]

# The gateway

GATEWAY = [
    *rows(
        "gateway/approval_gate.py",
        "tests/gateway/test_approval_gate.py",
        ("admission-remembers-beyond-a-decision", " and known[1] == generation:", ":"),
        (
            "admission-yes-is-to-any-content",
            "if any(covers(approval, approval.origin, entry) for approval in self._approvals_of(entry)):",
            "if self._approvals_of(entry):",
        ),
        (
            "admission-keeps-outdated-approvals",
            "            if not is_outdated(approval, entry, min(listed_at, fetched_at(entry))):\n",
            "            if approval.uri == entry.uri:\n",
        ),
        (
            "gate-serves-unverified-bytes",
            "                verify_file(entry, uri, file.data)",
            "                pass",
        ),
        (
            "gate-get-shows-what-waits",
            "if not await self.admission.admits_now(entry):\n            raise",
            "if entry is None:\n            raise",
        ),
    ),
    *rows(
        "gateway/elicitation.py",
        "tests/gateway/test_elicitation.py",
        ("elicitation-in-a-read-only-gateway", " or self._gateway.policy.read_only:", ":"),
        ("elicitation-about-what-is-not-seen", " or not self._sees()(uri):", ":"),
        ("elicitation-forgets-a-decline", "        self._declined.add(skill.key)\n", ""),
        (
            "elicitation-form-without-the-tick",
            'return answer.get("action") == "accept" and ticked is True',
            'return answer.get("action") == "accept"',
        ),
    ),
    *rows(
        "gateway/elicitation.py",
        "tests/gateway/test_forged_answers.py",
        ("elicitation-answer-to-other-content", "skill.entry.uri, skill.content]", "skill.entry.uri]"),
        (
            "elicitation-answer-of-another-requester",
            "question = [str(at), skill.requester.key, ",
            "question = [str(at), ",
        ),
        (
            "elicitation-answer-is-not-signed",
            "return hmac.compare_digest(str(state).encode(), self._signed_state(skill, int(at)).encode())",
            "return True",
        ),
        (
            "elicitation-any-client-approves",
            "may_approve = not self._gateway.is_public or skill.subject in self._gateway.policy.approvers",
            "may_approve = True",
        ),
    ),
    *rows(
        "catalog/uri_map.py",
        "tests/unit/catalog/test_uri_map.py",
        ("mapped-second-form-of-a-uri", " and self._outer(inner) == place", ""),
        ("mapped-files-outside-the-skill", " if is_within(root, parse_uri(file.uri))", ""),
    ),
]

# Installing

INSTALLING = [
    *rows(
        "skill/archive.py",
        "tests/unit/skill/test_archive.py",
        ("members-collide-by-case", "if known != mine or path in self._files:", "if path in self._files:"),
        ("members-come-twice", "if known != mine or path in self._files:", "if known != mine:"),
        ("members-name-drives", 'if path[1:2] == ":":', 'if path[:1] == ":":'),
    ),
    *rows(
        "skill/archive.py",
        "tests/unit/skill/test_archive.py",
        (
            "archive-tar-has-links",
            "if member.issparse() or not (member.isfile() or member.isdir()):",
            "if member.issparse():",
        ),
        ("archive-zip-has-links", "if kind not in (0, _REGULAR, _DIRECTORY):", "if kind == 1:"),
        (
            "archive-is-a-bomb",
            "min(limits.max_skill_bytes, max(packed, 1024) * limits.max_archive_ratio)",
            "limits.max_skill_bytes",
        ),
    ),
    *rows(
        "install/installation.py",
        "tests/e2e/test_add.py",
        (
            "installing-over-another-origin",
            "if (known.server.origin, known.uri) != (server.origin, entry.uri):",
            "if known.uri != entry.uri:",
        ),
    ),
    *rows(
        "install/installation.py",
        "tests/e2e/test_add.py",
        (
            "installing-what-the-lock-does-not-say",
            "if digests != skill.files:",
            "if digests.keys() != skill.files.keys():",
        ),
    ),
    *rows(
        "install/installation.py",
        "tests/e2e/test_add.py",
        (
            "installing-over-other-content",
            "if known is not None and known.files != digests:",
            "if known is not None and known.files.keys() != digests.keys():",
        ),
    ),
    *rows(
        "catalog/export.py",
        "tests/unit/catalog/test_export.py",
        (
            "pulling-version-control-by-case",
            "return _on_any_disk(segment) in _VERSION_CONTROL",
            "return segment in _VERSION_CONTROL",
        ),
        (
            "pulling-bare-repositories",
            "if any(names >= bare for bare in _BARE_REPOSITORIES):",
            "if any(names == bare for bare in _BARE_REPOSITORIES):",
        ),
    ),
    *rows(
        "skill/approval.py",
        "tests/unit/catalog/test_export.py",
        (
            "pulling-what-is-listed-in-part",
            'return entry.is_complete and "digest" not in entry.gaps',
            'return "digest" not in entry.gaps',
        ),
        (
            "pulling-what-has-no-digests",
            'return entry.is_complete and "digest" not in entry.gaps',
            "return entry.is_complete",
        ),
    ),
    *rows(
        "install/places.py",
        "tests/unit/install/test_places.py",
        (
            "installing-through-links-out-of-the-project",
            "if top not in real.parents:",
            "if top not in path.parents and top not in real.parents:",
        ),
        (
            "installing-into-the-project-itself",
            "if top not in real.parents:",
            "if top != real and top not in real.parents:",
        ),
    ),
    *rows(
        "install/lock.py",
        "tests/unit/install/test_lock.py",
        ("lock-names-hidden-folders", ' or name.startswith(".")', ""),
        (
            "lock-url-is-any-word",
            'if server.kind == "url" and not _URL.match(server.words[0]):',
            'if server.kind == "url" and not server.words[0]:',
        ),
        ("lock-paths-climb", "            parse_path(path)\n", "            str(path)\n"),
    ),
    *rows(
        "install/lock.py",
        "tests/unit/install/test_lock.py",
        ("lockfile-through-a-link", "    if path.is_symlink():\n", "    if path.is_dir():\n"),
        (
            "lockfile-held-by-two",
            "fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)",
            "fcntl.flock(folder, fcntl.LOCK_SH | fcntl.LOCK_NB)",
        ),
    ),
    *rows(
        "install/transaction.py",
        "tests/unit/install/test_transaction.py",
        ("swapping-leaves-half-a-step", "for step in reversed(done):", "for step in reversed(done[:-1]):"),
        ("swapping-loses-edits-of-the-killed", "            keep(destination.name)\n", ""),
    ),
]

# Bounds on what a server sends

CLIENT = [
    *rows(
        "client/bounds.py",
        "tests/unit/client/test_bounds.py",
        (
            "meter-counts-each-piece-alone",
            "if self.received > self.limits.max_server_bytes:",
            "if size > self.limits.max_server_bytes:",
        ),
        (
            "meter-accepts-one-byte-too-many-in-all",
            "if self.received > self.limits.max_server_bytes:",
            "if self.received > self.limits.max_server_bytes + 1:",
        ),
        (
            "meter-accepts-one-byte-too-many",
            "        if size > bound:",
            "        if size > bound + 1:",
        ),
    ),
    *rows(
        "client/dialects/contract.py",
        "tests/unit/client/dialects/test_contract.py",
        ("pages-are-one-too-many", "if len(cursors) >= limits.max_pages:", "if len(cursors) > limits.max_pages:"),
        ("pages-count-each-page-alone", "count += len(items)", "count = len(items)"),
    ),
    *rows(
        "client/bounds.py",
        "tests/adversarial/test_http_bodies.py",
        ("http-answer-has-no-bound", "        self._meter.check_message(self._size)\n", ""),
        (
            "http-accepts-unknown-encodings",
            'if self._zlib is None and encoding not in ("", "identity"):',
            'if self._zlib is None and encoding == "unknown":',
        ),
        ("http-counts-nothing", "                    self._meter.count(len(piece))\n", ""),
    ),
    *rows(
        "client/remote.py",
        "tests/adversarial/test_remote.py",
        (
            "remote-reads-what-is-not-promised",
            "        if self._allow_unverified and entry.is_unpromised(uri):\n",
            "        if entry.is_unpromised(uri):\n",
        ),
    ),
    *rows(
        "client/remote.py",
        "tests/gateway/test_failures.py",
        (
            "remote-takes-half-a-listing-for-a-whole-one",
            "if listed.error is not None and len(self._table) and not self._may_replace(listed, entries):",
            "if listed.error is not None and not len(self._table):",
        ),
    ),
    *rows(
        "gateway/federation.py",
        "tests/gateway/test_failures.py",
        (
            "upstream-words-reach-clients",
            "    if error.reference in _SAFE_ERRORS:\n",
            "    if error.reference:\n",
        ),
    ),
    *rows(
        "client/stdio.py",
        "tests/adversarial/test_processes.py",
        ("stdio-count-nothing", "            meter.count(len(chunk))\n", ""),
        ("stdio-let-a-line-grow", "                meter.check_message(len(line))\n", ""),
        (
            "stdio-pass-the-whole-environment",
            "{**get_default_environment(), **env}",
            "{**os.environ, **env}",
        ),
    ),
]

DEFECTS = [
    *VERIFICATION,
    *URIS,
    *OPENING,
    *VISIBILITY,
    *ACCESS,
    *REPLAYING,
    *APPROVALS,
    *WINDOWS,
    *HOST,
    *GATEWAY,
    *INSTALLING,
    *CLIENT,
]


class Bench:
    """A temporary folder with a copy of the source and an environment that imports the copy."""

    def __init__(self, folder: Path) -> None:
        self._source = folder / "src"
        self._folder = folder
        place = folder / "environment"
        venv.EnvBuilder(symlinks=True).create(place)
        self._python = place / "bin" / "python"
        packages = place / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
        installed = sysconfig.get_path("purelib")  # as a plain path, so that its editable install is not read
        (packages / "copy.pth").write_text(f"{self._source}\n{installed}\n")
        self._path = os.pathsep.join(
            [str(place / "bin"), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
        )

    def reset(self) -> None:
        """Copy the source anew."""
        shutil.rmtree(self._source, ignore_errors=True)
        shutil.copytree(ROOT / "src", self._source)

    def spoil(self, defect: Defect) -> None:
        """Make one defect in a fresh copy."""
        self.reset()
        file = self._source / "skillwire" / defect.module
        file.write_text(spoiled(defect, file.read_text()))

    def check_imports(self) -> None:
        """Make sure that this environment imports the copy, also where ``PYTHONPATH`` is not inherited."""
        code = "import skillwire; print(skillwire.__file__)"
        for flags, environment in (([], self._environment()), (["-I"], {"PATH": os.environ.get("PATH", "")})):
            done = subprocess.run(
                [self._python, *flags, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True
            )
            if not done.stdout.startswith(f"{self._source}{os.sep}"):
                raise RunError(f"the copy is not what is imported: {done.stdout or done.stderr}")

    def test(self, paths: tuple[str, ...], jobs: int, seconds: float) -> str | None:
        """Run tests on the copy as it is now; the id of the first failing test, or ``None`` if all pass."""
        words = ["-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *(["-n", str(jobs)] if jobs else [])]
        process = subprocess.Popen(
            [self._python, "-m", "pytest", *words, *paths],
            cwd=ROOT,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise RunError(f"the tests took longer than {seconds:g} seconds") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        if process.returncode == 0:
            return None
        found = FAILED.search(output)
        if process.returncode not in (1, 2) or NOT_COLLECTED.search(output) or found is None:  # 2: -x with -n
            raise RunError(f"pytest could not run the tests:\n{output[-3000:]}")
        return found[1]

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PATH": self._path,
            "PYTHONPATH": str(self._source),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(self._folder / "hypothesis"),
        }


def spoiled(defect: Defect, text: str) -> str:
    """The text of a module with the defect; ``RunError`` if the row does not fit the source any more."""
    count = text.count(defect.old)
    if count != 1:
        raise RunError(
            f"{defect.name}: the old text occurs {count} times in src/skillwire/{defect.module}, not once;"
            f" the source has moved on, correct the row:\n{defect.old}"
        )
    return text.replace(defect.old, defect.new)


def check_table() -> None:
    """Make sure that every row fits the source as it is, before anything is run."""
    names = [defect.name for defect in DEFECTS]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise RunError(f"these names occur more than once: {', '.join(twice)}")
    for defect in DEFECTS:
        file = ROOT / "src" / "skillwire" / defect.module
        if not file.is_file():
            raise RunError(f"{defect.name}: there is no src/skillwire/{defect.module}; correct the row")
        compile(spoiled(defect, file.read_text()), defect.module, "exec")
        for path in defect.tests:
            if not (ROOT / path.partition("::")[0]).exists():
                raise RunError(f"{defect.name}: there is no {path}; name the tests that catch it now")


def chosen(names: list[str]) -> list[Defect]:
    """The rows called ``names``, or all."""
    known = {defect.name: defect for defect in DEFECTS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise RunError(f"there is no defect called {', '.join(unknown)}; --list shows all")
    return [known[name] for name in names] if names else DEFECTS


def run(defects: list[Defect], *, all_tests: bool) -> int:
    """Test every defect and print what came of it; the exit code."""
    jobs, seconds = (2, ALL_SECONDS) if all_tests else (0, SECONDS)
    survived: list[str] = []
    failed: list[str] = []
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="defects-") as folder:
        bench = Bench(Path(folder).resolve())
        bench.reset()
        bench.check_imports()
        paths = ("tests",) if all_tests else tuple(sorted({path for defect in defects for path in defect.tests}))
        print(f"undamaged: {len(paths)} paths ...", flush=True)
        red = bench.test(paths, 2, ALL_SECONDS)
        if red is not None:
            raise RunError(f"a test fails without any defect: {red}")
        print(f"undamaged: passed ({time.monotonic() - begun:.1f} s)", flush=True)
        for defect in defects:
            bench.spoil(defect)
            start = time.monotonic()
            try:
                first = bench.test(("tests",) if all_tests else defect.tests, jobs, seconds)
            except RunError as error:
                failed.append(defect.name)
                print(f"ERROR    {defect.name}: {error}", flush=True)
                continue
            if first is None:
                survived.append(defect.name)
                print(f"SURVIVED {defect.name}  ({time.monotonic() - start:.1f} s)", flush=True)
            else:
                print(f"caught   {defect.name}  ({time.monotonic() - start:.1f} s, {first})", flush=True)
    spent = time.monotonic() - begun
    print(f"{len(defects)} defects in {spent:.0f} s: {len(survived)} survived, {len(failed)} not run")
    return 2 if failed else 1 if survived else 0


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Do the tests catch deliberate defects?")
    parser.add_argument("names", nargs="*", metavar="NAME", help="defects to test; all if none is named")
    parser.add_argument("--list", action="store_true", help="list the defects and run nothing")
    parser.add_argument("--all-tests", action="store_true", help="use all of tests/, not the paths of each row")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would let tests ignore it
    try:
        check_table()
        defects = chosen(options.names)
        if options.list:
            for defect in defects:
                print(f"{defect.name}  {defect.module}  {' '.join(defect.tests)}")
            return 0
        return run(defects, all_tests=options.all_tests)
    except RunError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
