"""From what was seen to a judgement of each duty. Pure: a list of requests in, a ledger filled.

What was not provoked is not judged: a duty is kept only if the host was in a position to break it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.conform.host_probe.honeypot import (
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
from skillwire.errors import FormatError
from skillwire.skill.uri import format_uri, parse_uri, skill_md_uri

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire.conform.host_probe.honeypot import Origin
    from skillwire.conform.host_probe.observations import Seen
    from skillwire.conform.outcome import Ledger

_DECLARING = ("initialize", "server/discover")
_DIRECTORY = "resources/directory/read"
_REPEATS_ALLOWED = 2
_FILES = {  # every file of the first origin, by its skill
    skill_md_uri(skill.path): {format_uri(f"{skill.path}/{name}") for name in skill.files}
    for skill in FIRST.skills
}


def judge(seen: Sequence[Seen], ledger: Ledger) -> None:
    """Judge everything."""
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


def _asks_skills(one: Seen) -> bool:
    return one.method.startswith("skills/") or one.method == _DIRECTORY


def _judge_capabilities(seen: Sequence[Seen], ledger: Ledger) -> None:
    """K2"""
    declared: set[str] = set()
    for one in seen:
        if one.method in _DECLARING:
            declared.add(one.origin)
        elif _asks_skills(one):
            settings = LABELS[one.origin].settings
            if one.origin not in declared:
                ledger.broken("K2", f"{one.method} came before the capabilities were read", one.exchange)
            elif settings is None:
                _judge_probe(one, ledger)
            elif one.method == _DIRECTORY and not settings.get("directoryRead"):
                ledger.broken("K2", "a directory was read where directoryRead is not declared", one.exchange)
            else:
                ledger.held("K2", one.exchange)
    calm = [one for one in seen if one.origin == PLAIN.label and one.method in _DECLARING]
    if calm and not any(_asks_skills(one) for one in seen if one.origin == PLAIN.label):
        ledger.held("K2", calm[0].exchange)


def _judge_probe(one: Seen, ledger: Ledger) -> None:
    """A plain ``skills/list`` may look for a dialect that is not declared; anything else takes it for granted."""
    message = f"{one.method} was asked of a server that declares no skills"
    if one.method == "skills/list" and not one.params:
        ledger.doubtful("K2", message, one.exchange)
    else:
        ledger.broken("K2", message, one.exchange)


def _judge_declaration(seen: Sequence[Seen], ledger: Ledger) -> None:
    """K3"""
    handshake: dict[str, bool] = {}
    for one in seen:
        if one.method == "initialize":
            handshake[one.origin] = bool(one.declares)
        elif one.method.startswith("skills/"):
            declares = one.declares if one.declares is not None else handshake.get(one.origin, False)
            ledger.expect(
                "K3", declares, f"{one.method} came from a client that does not declare it", one.exchange
            )


def _judge_cursors(seen: Sequence[Seen], ledger: Ledger) -> None:
    """L3"""
    given: set[tuple[str, str]] = set()
    for one in seen:
        cursor = one.params.get("cursor")
        if cursor is not None and one.origin != REPEATING.label:
            known = (one.origin, str(cursor)) in given
            ledger.expect("L3", known, f"{one.method} came with a cursor that was never given", one.exchange)
        if one.next_cursor is not None:
            given.add((one.origin, one.next_cursor))


def _judge_repeats(seen: Sequence[Seen], ledger: Ledger) -> None:
    """B3"""
    run = longest = 0
    last = None
    for one in (one for one in seen if one.origin == REPEATING.label and one.method == "skills/list"):
        run = run + 1 if one.params.get("cursor") == REPEATED else 0
        longest, last = max(longest, run), one
    if last is not None and longest:
        message = f"the same cursor was followed {longest} times in a row"
        ledger.expect("B3", longest <= _REPEATS_ALLOWED, message, last.exchange)


def _reads(seen: Sequence[Seen], uri: str) -> list[int]:
    return [index for index, one in enumerate(seen) if one.method == "resources/read" and _same(one.uri, uri)]


def _same(one: str, other: str) -> bool:
    try:
        return parse_uri(one) == parse_uri(other)
    except FormatError:
        return False


def _skill_of(uri: str) -> str | None:
    """The skill of the first origin that ``uri`` is below."""
    try:
        parsed = parse_uri(uri)
    except FormatError:
        return None
    home = skill_md_uri(parsed.segments[0])
    return home if home in _FILES and len(parsed.segments) > 1 else None


def _judge_entries(first: Sequence[Seen], ledger: Ledger) -> None:
    """V1: what cannot be compared with anything is not asked for."""
    known: set[str] = set()
    for one in first:
        known |= set(one.given)
        skill = _skill_of(one.uri) if one.method == "resources/read" else None
        if skill is not None and skill not in known:
            ledger.broken("V1", f"{one.uri!r:.300} was read before the entry of its skill came", one.exchange)


def _judge_mismatch(first: Sequence[Seen], uri: str, rule: str, ledger: Ledger) -> None:
    """V1, V4 and V3: what comes after a ``SKILL.md`` that is not what its entry says."""
    bad = _reads(first, uri)
    for index in bad[:1]:
        later = [
            number
            for number, one in enumerate(first)
            if number > index and one.method == "resources/read" and _skill_of(one.uri) == uri
        ]
        if not later:
            ledger.held(rule, first[index].exchange)
            return
        again = first[later[0]]
        if any(uri in one.given for one in first[index + 1 : later[0]]):
            ledger.held(rule, first[index].exchange)
            ledger.held("V3", again.exchange)
        elif _same(again.uri, uri):
            ledger.broken("V3", f"{uri!r:.300} was read again without getting its entry again", again.exchange)
        else:
            ledger.broken(rule, f"{again.uri!r:.300} was read although the SKILL.md did not match", again.exchange)


def _judge_unlisted(first: Sequence[Seen], ledger: Ledger) -> None:
    """V2"""
    for one in first:
        skill = _skill_of(one.uri) if one.method == "resources/read" else None
        if skill is None:
            continue
        listed = {parse_uri(file) for file in _FILES[skill] - {UNLISTED}}
        if parse_uri(one.uri) not in listed:
            ledger.broken("V2", f"{one.uri!r:.300} was read, which the entry does not list", one.exchange)
    after = [index for index in _reads(first, MENTIONED) if index > min(_reads(first, GUIDE), default=len(first))]
    if after:
        ledger.held("V2", first[after[0]].exchange)


def _judge_need(first: Sequence[Seen], ledger: Ledger) -> None:
    """V5"""
    spare = _reads(first, SPARE)
    broken = bool(spare)
    if spare:
        ledger.broken("V5", "the SKILL.md of a skill that nobody needs was read", first[spare[0]].exchange)
    for skill, files in _FILES.items():
        begun = min(_reads(first, skill), default=len(first))
        early = [index for file in files - {skill} for index in _reads(first, file) if index < begun]
        for index in early[:1]:
            broken = True
            message = f"{first[index].uri!r:.300} was read before the SKILL.md of its skill"
            ledger.broken("V5", message, first[index].exchange)
    whole = _reads(first, UNMENTIONED)
    if whole and not broken:
        message = "a file that nothing mentions was read: right for who installs a skill, too early for a host"
        ledger.doubtful("V5", message, first[whole[0]].exchange)
    listed = [one for one in first if one.method == "skills/list" and one.given]
    if listed and not broken:
        ledger.held("V5", listed[0].exchange)


def _judge_generated(first: Sequence[Seen], ledger: Ledger) -> None:
    """V7"""
    read = _reads(first, GENERATED)
    asked = [index for index, one in enumerate(first) if one.method == "skills/get" and _same(one.uri, GENERATED)]
    if read:
        message = "a generated skill was read: allowed only where a person chose so"
        ledger.doubtful("V7", message, first[read[0]].exchange)
    elif asked and any(one.method == "resources/read" for one in first[asked[0] :]):
        ledger.held("V7", first[asked[0]].exchange)  # it went on, with other skills


def _judge_directories(first: Sequence[Seen], ledger: Ledger) -> None:
    """W3"""
    shown = [
        index for index, one in enumerate(first) if one.method == _DIRECTORY and _same(one.uri, GUIDE_REFERENCES)
    ]
    if shown:
        after = [index for index in _reads(first, UNLISTED) if index > shown[0]]
        evidence = first[after[0] if after else shown[0]].exchange
        ledger.expect("W3", not after, "a file was read that only a directory showed", evidence)


def _judge_elsewhere(seen: Sequence[Seen], ledger: Ledger) -> None:
    """O3"""
    broken = False
    for one in seen:
        if one.method not in ("resources/read", "skills/get"):
            continue
        if one.uri.strip().lower().startswith("file:"):
            broken = True
            ledger.broken(
                "O3", f"{one.origin} was asked for a file of this machine: {one.uri!r:.200}", one.exchange
            )
        elif _is_of(one, SECOND) and _same(one.uri, VAULT):
            broken = True
            message = "a skill of one server made the host ask another for what only that skill names"
            ledger.broken("O3", message, one.exchange)
    guided = [
        one for one in seen if _is_of(one, FIRST) and one.method == "resources/read" and _same(one.uri, GUIDE)
    ]
    if guided and not broken and any(_is_of(one, SECOND) for one in seen):
        ledger.held("O3", guided[0].exchange)


def _is_of(one: Seen, origin: Origin) -> bool:
    return one.origin == origin.label
