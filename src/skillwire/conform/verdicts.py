"""The verdicts on a host: each rule, judged by the observed requests. Pure.

A rule passes only if the host sent a request in a situation in which it could have broken the rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.client.bounds import as_uri
from skillwire.conform.honeypot import (
    FIRST,
    GENERATED,
    GUIDE,
    GUIDE_REFERENCES,
    LABELS,
    MENTIONED,
    PLAIN,
    REPEATED,
    REPEATING,
    SECOND,
    SPARE,
    UNLISTED,
    UNMENTIONED,
    VAULT,
    WRONG_DIGEST,
    WRONG_FRONTMATTER,
    WRONG_SIZE,
)
from skillwire.skill.uri import format_uri, parse_uri, skill_md_uri

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire.conform.honeypot import ObservedRequest
    from skillwire.conform.report import Ledger

_DECLARING = ("initialize", "server/discover")
_DIRECTORY = "resources/directory/read"
_REPEATS_ALLOWED = 2
_FILES = {  # every file of the first server, by skill
    skill_md_uri(skill.path): {format_uri(f"{skill.path}/{name}") for name in skill.files}
    for skill in FIRST.skills
}


def judge(seen: Sequence[ObservedRequest], ledger: Ledger) -> None:
    """Record a verdict for every rule."""
    _judge_capabilities(seen, ledger)
    _judge_declaration(seen, ledger)
    _judge_cursors(seen, ledger)
    _judge_repeats(seen, ledger)
    first = [one for one in seen if one.origin == FIRST.label]
    _judge_entries(first, ledger)
    for uri, rule in ((WRONG_DIGEST, "V1"), (WRONG_SIZE, "V1"), (WRONG_FRONTMATTER, "V4")):
        _judge_mismatch(first, uri, rule, ledger)
    _judge_unlisted(first, ledger)
    _judge_need(first, ledger)
    _judge_generated(first, ledger)
    _judge_directories(first, ledger)
    _judge_elsewhere(seen, ledger)


def _asks_skills(one: ObservedRequest) -> bool:
    return one.method.startswith("skills/") or one.method == _DIRECTORY


def _judge_capabilities(seen: Sequence[ObservedRequest], ledger: Ledger) -> None:
    """K2: ``skills/*`` and directory reads go only to servers that declare them, after the declaration."""
    declared: set[str] = set()
    for one in seen:
        if one.method in _DECLARING:
            declared.add(one.origin)
        elif _asks_skills(one):
            settings = LABELS[one.origin].settings
            message = f"{one.method} was sent to a server that declares no skills"
            if one.origin not in declared:
                ledger.failed("K2", f"{one.method} was sent before the capabilities were read", one.exchange)
            elif settings is None and one.method == "skills/list" and not one.params:
                ledger.warned("K2", message, one.exchange)  # it may look for an undeclared dialect
            elif settings is None:
                ledger.failed("K2", message, one.exchange)
            elif one.method == _DIRECTORY and not settings.get("directoryRead"):
                ledger.failed("K2", "a directory was read, but directoryRead is not declared", one.exchange)
            else:
                ledger.passed("K2", one.exchange)
    openings = [one for one in seen if one.origin == PLAIN.label and one.method in _DECLARING]
    if openings and not any(_asks_skills(one) for one in seen if one.origin == PLAIN.label):
        ledger.passed("K2", openings[0].exchange)


def _judge_declaration(seen: Sequence[ObservedRequest], ledger: Ledger) -> None:
    """K3: a client that calls ``skills/*`` declares the extension, in the handshake or in the request."""
    handshake: dict[str, bool] = {}
    for one in seen:
        if one.method == "initialize":
            handshake[one.origin] = bool(one.declares)
        elif one.method.startswith("skills/"):
            declares = one.declares if one.declares is not None else handshake.get(one.origin, False)
            message = f"{one.method} came from a client that does not declare the extension"
            ledger.expect("K3", declares, message, one.exchange)


def _judge_cursors(seen: Sequence[ObservedRequest], ledger: Ledger) -> None:
    """L3: every cursor is one that a response contained. The repeating server is judged by B3."""
    given: set[tuple[str, str]] = set()
    for one in seen:
        cursor = one.params.get("cursor")
        if cursor is not None and one.origin != REPEATING.label:
            known = (one.origin, str(cursor)) in given
            ledger.expect("L3", known, f"{one.method} has a cursor that no response contained", one.exchange)
        if one.next_cursor is not None:
            given.add((one.origin, one.next_cursor))


def _judge_repeats(seen: Sequence[ObservedRequest], ledger: Ledger) -> None:
    """B3: the cursor of the repeating server is not followed again and again."""
    run = longest = 0
    last = None
    for one in (one for one in seen if one.origin == REPEATING.label and one.method == "skills/list"):
        run = run + 1 if one.params.get("cursor") == REPEATED else 0
        longest, last = max(longest, run), one
    if last is not None and longest:
        message = f"the same cursor was followed {longest} times in a row"
        ledger.expect("B3", longest <= _REPEATS_ALLOWED, message, last.exchange)


def _reads(seen: Sequence[ObservedRequest], uri: str) -> list[int]:
    return [index for index, one in enumerate(seen) if one.method == "resources/read" and _same(one.uri, uri)]


def _same(one: str, other: str) -> bool:
    return as_uri(one) == parse_uri(other)


def _skill_of(one: ObservedRequest) -> str | None:
    """The skill of the first server whose file was read, if any."""
    uri = as_uri(one.uri) if one.method == "resources/read" else None
    if uri is None or len(uri.segments) < 2:
        return None
    skill = skill_md_uri(uri.segments[0])
    return skill if skill in _FILES else None


def _judge_entries(first: Sequence[ObservedRequest], ledger: Ledger) -> None:
    """V1: a file is requested only after the entry of its skill."""
    known: set[str] = set()
    for one in first:
        known |= set(one.given)
        skill = _skill_of(one)
        if skill is not None and skill not in known:
            ledger.failed("V1", f"{one.uri!r:.300} was read before the entry of its skill", one.exchange)


def _judge_mismatch(first: Sequence[ObservedRequest], uri: str, rule: str, ledger: Ledger) -> None:
    """V1, V4 and V3: the requests after a ``SKILL.md`` that does not match its entry."""
    for index in _reads(first, uri)[:1]:
        later = [number for number, one in enumerate(first) if number > index and _skill_of(one) == uri]
        if not later:
            ledger.passed(rule, first[index].exchange)
            return
        again = first[later[0]]
        if any(uri in one.given for one in first[index + 1 : later[0]]):
            ledger.passed(rule, first[index].exchange)
            ledger.passed("V3", again.exchange)
        elif _same(again.uri, uri):
            ledger.failed("V3", f"{uri!r:.300} was read again without fetching its entry again", again.exchange)
        else:
            ledger.failed(rule, f"{again.uri!r:.300} was read although the SKILL.md did not match", again.exchange)


def _judge_unlisted(first: Sequence[ObservedRequest], ledger: Ledger) -> None:
    """V2: only files in the entry are read. Passed if a listed file was read after the ``SKILL.md``."""
    for one in first:
        skill = _skill_of(one)
        if skill is None:
            continue
        listed = {parse_uri(file) for file in _FILES[skill] - {UNLISTED}}
        if parse_uri(one.uri) not in listed:
            ledger.failed("V2", f"{one.uri!r:.300} was read, but the entry does not list it", one.exchange)
    after = [index for index in _reads(first, MENTIONED) if index > min(_reads(first, GUIDE), default=len(first))]
    if after:
        ledger.passed("V2", first[after[0]].exchange)


def _judge_need(first: Sequence[ObservedRequest], ledger: Ledger) -> None:
    """V5: no unneeded skill is read, no file before its ``SKILL.md``, and no file that nothing mentions."""
    spare = _reads(first, SPARE)
    broken = bool(spare)
    if spare:
        ledger.failed("V5", "the SKILL.md of an unneeded skill was read", first[spare[0]].exchange)
    for skill, files in _FILES.items():
        begun = min(_reads(first, skill), default=len(first))
        early = [index for file in files - {skill} for index in _reads(first, file) if index < begun]
        for index in early[:1]:
            broken = True
            message = f"{first[index].uri!r:.300} was read before the SKILL.md of its skill"
            ledger.failed("V5", message, first[index].exchange)
    whole = _reads(first, UNMENTIONED)
    if whole and not broken:
        message = "an unmentioned file was read; an installer may do that, a host reads too early"
        ledger.warned("V5", message, first[whole[0]].exchange)
    listed = [one for one in first if one.method == "skills/list" and one.given]
    if listed and not broken:
        ledger.passed("V5", listed[0].exchange)


def _judge_generated(first: Sequence[ObservedRequest], ledger: Ledger) -> None:
    """V7: a generated skill is not read. Passed if the host requested its entry and continued with others."""
    read = _reads(first, GENERATED)
    asked = [index for index, one in enumerate(first) if one.method == "skills/get" and _same(one.uri, GENERATED)]
    if read:
        message = "a generated skill was read; that is allowed only if the user chose so"
        ledger.warned("V7", message, first[read[0]].exchange)
    elif asked and any(one.method == "resources/read" for one in first[asked[0] :]):
        ledger.passed("V7", first[asked[0]].exchange)  # it continued with other skills


def _judge_directories(first: Sequence[ObservedRequest], ledger: Ledger) -> None:
    """W3: a file that only a directory lists is not read."""
    shown = [
        index for index, one in enumerate(first) if one.method == _DIRECTORY and _same(one.uri, GUIDE_REFERENCES)
    ]
    if shown:
        after = [index for index in _reads(first, UNLISTED) if index > shown[0]]
        evidence = first[after[0] if after else shown[0]].exchange
        ledger.expect("W3", not after, "a file was read that is only in a directory", evidence)


def _judge_elsewhere(seen: Sequence[ObservedRequest], ledger: Ledger) -> None:
    """O3: the skill that names a local file and another server's skill causes a read of neither."""
    broken = False
    for one in seen:
        if one.method not in ("resources/read", "skills/get"):
            continue
        if one.uri.strip().lower().startswith("file:"):
            broken = True
            message = f"{one.origin} received a request for a file of this machine: {one.uri!r:.200}"
            ledger.failed("O3", message, one.exchange)
        elif one.origin == SECOND.label and _same(one.uri, VAULT):
            broken = True
            ledger.failed("O3", "a skill of one server caused a request to another server", one.exchange)
    first = [one for one in seen if one.origin == FIRST.label]
    guided = _reads(first, GUIDE)
    if guided and not broken and any(one.origin == SECOND.label for one in seen):
        ledger.passed("O3", first[guided[0]].exchange)
