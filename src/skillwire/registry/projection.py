"""What is derived from the versions and channels of a registry: the served skills, and the index for the search.

Words are stemmed here, and matches are scored here, so that both engines find the same. Scores use only the text
of the match and how many visible skills have a word. Statistics over all skills, which the engines offer, would
tell something about hidden ones.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from skillwire.registry import lookup, records
from skillwire.registry.contract import Match
from skillwire.registry.visibility import LAST, granted_keys, visible
from skillwire.search.text import split_humps, split_words
from skillwire.store.database import placeholders

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillwire.registry.model import Identity
    from skillwire.store.database import Session

MOST_MATCHES: Final = 200
"""The leading words of a search (see ``search``) match at most so many visible skills together."""

_MOST_KEYS = 500
_MOST_WORDS = 16
_LONGEST_WORD = 64
_IN_NAME, _IN_DESCRIPTION = 4.0, 1.0
_EXACT_NAME = 100.0
_VOWELS = re.compile("[aeiouy]")


def refresh(session: Session, skill: int) -> None:
    """Derive the served skill again, after a change of the skill, its channels or its versions."""
    release = lookup.stable_release(session, skill)
    session.run("DELETE FROM served_words WHERE rowid = ?", skill)
    if release is None:
        session.run("DELETE FROM served WHERE skill_id = ?", skill)
        return
    [(key, public)] = session.rows(
        "SELECT n.key, n.public FROM skill s JOIN namespace n ON n.key = s.key WHERE s.id = ?", skill
    )
    name, description = release.path.rpartition("/")[2], str(release.manifest.frontmatter.get("description", ""))
    session.run(
        "INSERT INTO served (path, key, skill_id, name, description, public, listed, document)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (path) DO UPDATE SET description = excluded.description,"
        " public = excluded.public, listed = excluded.listed, document = excluded.document",
        release.path,
        key,
        skill,
        name,
        description,
        public,
        release.listed,
        records.release_to_bytes(release),
    )
    if release.listed:
        stems = set(_stems(f"{name} {description}"))
        scoped = {_scoped(stem, "" if public else key) for stem in stems}
        session.run(
            f"INSERT INTO served_words (rowid, words) VALUES (?, {_index_value(session)})",
            skill,
            _index_text(session, stems | scoped),
        )


def refresh_namespace(session: Session, key: str) -> None:
    """Derive all skills of a namespace again."""
    for (skill,) in session.rows("SELECT skill_id FROM served WHERE key = ? ORDER BY path", key):
        refresh(session, skill)


def search(session: Session, who: Identity, words: Sequence[str], limit: int) -> list[Match]:
    """The best visible skills that have one of the words.

    The rarest words lead: as many as occur together in at most ``MOST_MATCHES`` visible skills. If they find too
    little, skills with all of the more common words are ranked too, and some of those with the rarest of these.
    """
    stems = list(dict.fromkeys(stem for word in words for stem in _stems(word)))[:_MOST_WORDS]
    found = {stem: _having(session, who, [stem]) for stem in stems}
    known = sorted((stem for stem in stems if found[stem]), key=lambda stem: len(found[stem]))
    if not known:
        return []
    candidates: set[int] = set()
    for stem in known:
        if len(candidates | found[stem]) <= MOST_MATCHES:
            candidates |= found[stem]
    common = [stem for stem in known if not found[stem] <= candidates]
    if len(candidates) < limit and common:
        candidates |= _having(session, who, common) | found[common[0]]
    seen = visible(who, "p")
    chosen = sorted(candidates)
    rows = session.rows(
        "SELECT p.path, p.name, p.description FROM served p WHERE p.listed = 1"
        f" AND p.skill_id IN ({placeholders(len(chosen))}) AND {seen.sql}",
        *chosen,
        *seen.values,
    )
    weights = {stem: 1 / (1 + len(found[stem]) / MOST_MATCHES) for stem in known}
    whole = "-".join(word.lower() for word in words)
    matches = [
        Match(path, name, description, _score(name, description, weights) + (name == whole) * _EXACT_NAME)
        for path, name, description in rows
    ]
    return sorted(matches, key=lambda match: (-match.score, match.path))[:limit]


def _score(name: str, description: str, weights: dict[str, float]) -> float:
    """Half of it is for the words that occur at all; short texts about little else count more."""
    names, others = set(_stems(name)), list(_stems(description))
    described = set(others)
    score = 0.0
    for stem, weight in weights.items():
        score += weight * _IN_NAME * (stem in names) / len(names)
        score += weight * _IN_DESCRIPTION * (stem in described) * (1 + 10 / (10 + len(others)))
    return score


def _having(session: Session, who: Identity, stems: Sequence[str]) -> set[int]:
    """Some visible skills that have all of these words; all, if they are not more than ``MOST_MATCHES``."""
    most = MOST_MATCHES + 1
    if who.is_admin and who.namespace is None:
        groups = [[stem] for stem in stems]
    else:
        keys = granted_keys(session, who, "", LAST, _MOST_KEYS)
        if len(keys) == _MOST_KEYS:  # too many for an expression
            seen = visible(who, "p")
            found = session.rows(
                "SELECT w.rowid FROM served_words w JOIN served p ON p.skill_id = w.rowid"
                f" WHERE {_index_match(session, 'w')} AND {seen.sql} LIMIT ?",
                _index_query(session, [[stem] for stem in stems]),
                *seen.values,
                most,
            )
            return {skill for (skill,) in found}
        groups = [[_scoped(stem, key) for key in ("", *keys)] for stem in stems]
    found = session.rows(
        f"SELECT w.rowid FROM served_words w WHERE {_index_match(session, 'w')} LIMIT ?",
        _index_query(session, groups),
        most,
    )
    return {skill for (skill,) in found}


def _scoped(stem: str, key: str) -> str:
    """The word in the index for the skills of one private namespace, or with an empty key of all public ones."""
    return f"{key[:-1]}@{stem}"  # no stem and no namespace has this character


# What the engines do not share: FTS5 has expressions in a text, PostgreSQL has the types tsvector and tsquery.


def _index_value(session: Session) -> str:
    return "?" if session.dialect == "sqlite" else "CAST(? AS TSVECTOR)"


def _index_match(session: Session, table: str) -> str:
    if session.dialect == "sqlite":
        return f"{table}.served_words MATCH ?"
    return f"{table}.words @@ CAST(? AS TSQUERY)"


def _index_text(session: Session, words: Iterable[str]) -> str:
    return " ".join(_quoted(session, word) for word in sorted(words)).replace('"', "")


def _index_query(session: Session, every: Iterable[Iterable[str]]) -> str:
    both, either = (" AND ", " OR ") if session.dialect == "sqlite" else (" & ", " | ")
    return both.join(f"({either.join(_quoted(session, word) for word in group)})" for group in every)


def _quoted(session: Session, word: str) -> str:
    # Words have letters, digits, ``@`` and ``-`` only.
    return f'"{word}"' if session.dialect == "sqlite" else f"'{word}'"


def _stems(text: str) -> Iterable[str]:
    """The words of a text, without case, accents and English endings."""
    return filter(None, map(_stem_of, split_words(split_humps(text))))


@lru_cache(maxsize=1 << 14)
def _stem_of(word: str) -> str:
    plain = unicodedata.normalize("NFD", word.lower()[:_LONGEST_WORD])
    plain = "".join(letter for letter in plain if letter.isalnum())
    # Engines disagree about letters outside ASCII, so they get none.
    return _stem(plain) if plain.isascii() else f"-{plain.encode().hex()}"


def _stem(word: str) -> str:
    """``word`` without an English ending: ``refunds``, ``refunded`` and ``refunding`` become ``refund``."""
    if len(word) > 4 and word.endswith("ies"):
        word = f"{word[:-3]}y"
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) > 2 and _VOWELS.search(rest):
            # ``planning`` becomes ``plan``, but ``selling`` stays ``sell``.
            word = rest[:-1] if rest[-1] == rest[-2] and rest[-1] not in "lsz" else rest
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word
