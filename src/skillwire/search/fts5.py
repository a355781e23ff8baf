"""The search engine: SQLite's full-text index FTS5. The only file of the search that uses SQLite.

- The index is a private, unnamed file that SQLite deletes when it is closed; a part of it is in memory.
- Words are stemmed (Porter) and lose their accents. BM25 ranks: a word in a name counts more than one in a
  description, and that more than one in a body. A skill whose name equals the query comes first.
- A last word that matches nothing is completed with words of names and descriptions.

One call at a time, from any thread. Errors of SQLite become ``StoreError``.

``plan_search`` decides which words to look for first, so that a search costs about the same for any number of
skills. Ranking a skill takes about a microsecond, and a common word occurs in thousands. So the rarest words lead:
as many as occur together in at most ``ROWS`` skills. A few more common words add to the score of their matches;
words in more than a fifth of all skills are ignored beside rarer ones. Only if the leading words find too little,
or there are none, the least common of the others are tried: in combination, in names, in descriptions, anywhere,
with at most ``ROWS`` ranked skills each. With at most ``ROWS`` skills in total, all words lead and the order is
that of BM25.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import merge
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from skillwire.errors import StoreError
from skillwire.search.text import LOOKED_AT, SEAM, make_snippet, name_key, quoted, seamed, split_humps, split_words

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Sequence

    from skillwire.search.text import Query, Term

ROWS: Final = 600
_FOLLOWERS = 4
_WIDENING = 3
_TOO_COMMON = 0.2
_SCHEMA = """
PRAGMA journal_mode = MEMORY;
PRAGMA cache_size = -65536;
CREATE TABLE skills (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, uri TEXT NOT NULL,
    name BLOB NOT NULL, description BLOB NOT NULL, name_key TEXT NOT NULL
);
CREATE INDEX skills_by_name ON skills (name_key);
CREATE TABLE vocabulary (word TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE VIRTUAL TABLE texts USING fts5(
    name, description, body,
    tokenize = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
);
"""
_EXACT_NAME = 1_000.0  # higher than any BM25 score
_MAX_COUNTS = 10_000
_LAST_ROW = (1 << 63) - 1
_PART = 10
_COMPLETIONS = 8
_LONGEST_WORD = 64
# The weights of name, description and body.
_RANKED = (
    "SELECT bm25(texts, 10.0, 4.0, 1.0) AS score, rowid FROM texts"
    " WHERE texts MATCH ? AND rowid <= ? ORDER BY score, rowid"
)
_COUNT = "SELECT count(*) FROM texts WHERE texts MATCH ? AND rowid <= ?"
_BEYOND = "SELECT rowid FROM texts WHERE texts MATCH ? LIMIT 1 OFFSET ?"
_TEXTS = "SELECT substr(description, 1, ?1), substr(body, 1, ?1) FROM texts WHERE rowid = ?2"
_PUT = (
    "INSERT INTO skills (key, uri, name, description, name_key) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (key) DO UPDATE SET uri = excluded.uri, name = excluded.name,"
    " description = excluded.description, name_key = excluded.name_key"
)
_PUT_TEXTS = "INSERT OR REPLACE INTO texts (rowid, name, description, body) VALUES (?, ?, ?, ?)"
_REMOVE_TEXTS = "DELETE FROM texts WHERE rowid IN (SELECT id FROM skills WHERE key = ?)"
_COMPLETE = "SELECT word FROM vocabulary WHERE word > ? AND word < ? ORDER BY length(word), word LIMIT 64"


class Counted(NamedTuple):
    """An FTS5 expression, and the number of skills that match it."""

    expression: str
    skills: int


class Stage(NamedTuple):
    """FTS5 expressions whose matches are merged by score; ``is_small`` if they need no cut at ``ROWS``."""

    expressions: tuple[str, ...]
    is_small: bool = False


def plan_search(words: Sequence[Counted], total: int) -> Iterator[Stage]:
    """Yield the stages of a search; the caller stops when it has enough results."""
    known = sorted((word for word in words if word.skills), key=lambda word: word.skills)
    rows = accumulate(word.skills for word in known)
    count = sum(min(each, total) <= ROWS for each in rows)
    leading, following = known[:count], known[count : count + _FOLLOWERS]
    if leading:
        rare, common = _any_of(leading), [word for word in following if word.skills <= total * _TOO_COMMON]
        # Matches that also have a common word come first.
        yield Stage((f"{rare} AND {_any_of(common)}", rare) if common else (rare,), is_small=True)
    others = following[:_WIDENING]
    if len(others) > 1:
        company = f"({others[0].expression} AND {_any_of(others[1:])})"
        yield Stage((f"{{name description}} : {company}",))
        yield Stage((company,))
    if others:
        for columns in ("name : ", "{name description} : ", ""):
            yield Stage((f"{columns}{_any_of(others)}",))


def _any_of(words: Sequence[Counted]) -> str:
    return f"({' OR '.join(word.expression for word in words)})"


class Document(NamedTuple):
    """The indexed text of one skill. ``key`` is its normalized URI."""

    key: str
    uri: str
    name: str
    description: str
    body: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A found skill. ``score``: higher is better. ``snippet``: plain text, at most 200 characters."""

    uri: str
    name: str
    description: str
    score: float
    snippet: str


class Engine:
    """An index of documents; ``close`` it in the end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
        with _explained():
            self._connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
            try:
                self._connection.executescript(_SCHEMA)
            except BaseException:
                self._connection.close()
                raise

    def put(self, documents: Iterable[Document], gone: Iterable[str] = ()) -> None:
        """Add or replace documents, and remove those with a key in ``gone``, in one transaction."""
        with self._using() as connection, connection:
            connection.execute("BEGIN")
            self._counts.clear()
            words: set[str] = set()
            for key, uri, name, description, body in documents:
                names = name if split_humps(name) == name else f"{name} {split_humps(name)}"
                # As bytes: a hostile server may use invalid Unicode in a name.
                shown = (text.encode(errors="surrogatepass") for text in (name, description))
                connection.execute(_PUT, (key, uri, *shown, name_key(name)))
                [number] = connection.execute("SELECT id FROM skills WHERE key = ?", (key,)).fetchone()
                connection.execute(_PUT_TEXTS, (number, seamed(names), seamed(description), seamed(body)))
                words.update(split_words(f"{name} {description}".lower()))
            new = ((word,) for word in words if len(word) <= _LONGEST_WORD)
            connection.executemany("INSERT OR IGNORE INTO vocabulary (word) VALUES (?)", new)
            for key in gone:
                connection.execute(_REMOVE_TEXTS, (key,))
                connection.execute("DELETE FROM skills WHERE key = ?", (key,))

    def optimize(self) -> None:
        """Make searches faster after many documents were added."""
        with self._using() as connection:
            connection.execute("INSERT INTO texts (texts) VALUES ('optimize')")

    def search(self, query: Query, limit: int) -> list[Hit]:
        """Return the best ``limit`` skills, best first."""
        with self._using():
            words = [Counted(word, self._count(word)) for word in self._expressions(query)]
            chosen: dict[int, float] = {}
            for number, score in self._ranked(query, words):
                if len(chosen) == limit:
                    break
                chosen.setdefault(number, score)
            return [self._hit(number, score, query) for number, score in chosen.items()]

    def close(self) -> None:
        """Close the index after a running call has ended; later calls fail."""
        with self._lock:
            self._connection.close()

    def _ranked(self, query: Query, words: Sequence[Counted]) -> Iterator[tuple[int, float]]:
        """Yield the numbers of skills with their scores, best first; one may occur twice."""
        for (number,) in self._connection.execute("SELECT id FROM skills WHERE name_key = ?", (query.name,)):
            yield number, _EXACT_NAME
        (total,) = self._connection.execute("SELECT count(*) FROM skills").fetchone()
        lowest = _EXACT_NAME
        for stage in plan_search(words, total):
            highest = lowest  # matches of a later stage rank below those of an earlier one
            matches = [self._matches(expression, stage.is_small) for expression in stage.expressions]
            for negated, number in merge(*matches):
                lowest = min(highest, -negated)
                yield number, lowest

    def _matches(self, expression: str, is_small: bool) -> Iterator[tuple[float, int]]:
        beyond = None if is_small else self._connection.execute(_BEYOND, (expression, ROWS)).fetchone()
        return self._connection.execute(_RANKED, (expression, beyond[0] - 1 if beyond else _LAST_ROW))

    def _hit(self, number: int, score: float, query: Query) -> Hit:
        facts = self._connection.execute("SELECT uri, name, description FROM skills WHERE id = ?", (number,))
        uri, *names = facts.fetchone()
        texts = self._connection.execute(_TEXTS, (LOOKED_AT, number)).fetchone()
        snippet = make_snippet(query.terms, *(text.replace(SEAM, "") for text in texts))
        name, description = (data.decode(errors="surrogatepass") for data in names)
        return Hit(uri, name, description, score, snippet)

    def _expressions(self, query: Query) -> list[str]:
        expressions = list(map(quoted, query.terms))
        if query.unfinished and not self._count(expressions[-1]):
            completed = self._completed(query.terms[-1])
            expressions[-1:] = [quoted(completed)] if completed else []
        return expressions

    def _completed(self, term: Term) -> Term:
        """Return known words that begin with ``term``, short ones first, each in one form."""
        words: list[str] = []
        for (word,) in self._connection.execute(_COMPLETE, (term[0], f"{term[0]}\U0010ffff")):
            if len(words) < _COMPLETIONS and not any(word.startswith(shorter) for shorter in words):
                words.append(word)
        return tuple(words)

    def _count(self, expression: str) -> int:
        """Count the skills that match ``expression``; estimate the number if it is large."""
        if expression not in self._counts:
            if len(self._counts) >= _MAX_COUNTS:
                self._counts.clear()
            (last,) = self._connection.execute("SELECT max(id) FROM skills").fetchone()
            (some,) = self._connection.execute(_COUNT, (expression, (last or 0) // _PART)).fetchone()
            count = some * _PART
            if some <= ROWS:
                (count,) = self._connection.execute(_COUNT, (expression, _LAST_ROW)).fetchone()
            self._counts[expression] = count
        return self._counts[expression]

    @contextmanager
    def _using(self) -> Generator[sqlite3.Connection]:
        with self._lock, _explained():
            yield self._connection


@contextmanager
def _explained() -> Generator[None]:
    try:
        yield
    except sqlite3.ProgrammingError as error:
        raise StoreError("search-closed", "the search index is closed", "make a new one") from error
    except sqlite3.Error as error:
        if "no such module" in str(error) or "tokenizer" in str(error):
            raise StoreError(
                "search-unavailable",
                f"the SQLite {sqlite3.sqlite_version} of this Python has no full-text search (FTS5)",
                "use a Python with SQLite 3.27 or later and FTS5, such as those of python.org, Debian and uv",
            ) from error
        what = getattr(error, "sqlite_errorname", type(error).__name__)
        raise StoreError(
            "search-failed",
            f"the search index failed ({what})",
            "check the free space for temporary files, and search again",
        ) from error
