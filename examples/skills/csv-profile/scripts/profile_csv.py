#!/usr/bin/env python3
"""Profile a CSV file: columns, types, missing values and likely defects.

Python 3.11 or later, standard library only. The file is read in one pass and
never modified. Exit status: 0 profile printed, 2 bad input or usage,
130 interrupted.
"""

from __future__ import annotations

import argparse
import csv
import io
import itertools
import json
import math
import os
import re
import sys
from collections import Counter
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator

CANDIDATE_DELIMITERS = ",;\t|"
DELIMITER_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe", " ": "space"}
MISSING_TOKENS = frozenset({"na", "n/a", "null", "none", "nan"})
BOOLEAN_TOKENS = frozenset({"true", "false", "yes", "no"})

SAMPLE_CHARS = 65_536
MAX_DISTINCT = 50_000
MAX_ROW_HASHES = 1_000_000
MAX_FIELD_CHARS = 16_777_216
MAX_EXAMPLES = 3
MAX_SHOWN = 40
DOMINANT_SHARE = 0.9

INTEGER = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,17})")
DECIMAL = re.compile(
    r"[+-]?(?:(?:(?:0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[1-9][0-9]*[eE][+-]?[0-9]+)"
)
LEADING_ZERO = re.compile(r"0[0-9]+")
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
DATETIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
    r"(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
)


class InputError(Exception):
    """A problem with the input that the caller can act on."""


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def classify(value: str) -> tuple[str, Any]:
    """Return the type name of a stripped, non-missing cell, and a sortable key."""
    if INTEGER.fullmatch(value):
        return "integer", int(value)
    if len(value) <= 64 and DECIMAL.fullmatch(value):
        number = float(value)
        if math.isfinite(number):
            return "decimal", number
    if value.lower() in BOOLEAN_TOKENS:
        return "boolean", None
    if DATE.fullmatch(value):
        try:
            return "date", datetime.combine(date.fromisoformat(value), datetime.min.time())
        except ValueError:
            return "text", None
    if DATETIME.fullmatch(value):
        try:
            moment = datetime.fromisoformat(value)
            if moment.tzinfo is not None:
                moment = moment.astimezone(UTC).replace(tzinfo=None)
            return "datetime", moment
        except (ValueError, OverflowError):
            return "text", None
    return "text", None


def show(value: str) -> str:
    """Make a cell safe to print on one line of a Markdown table."""
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in value)
    if len(text) > MAX_SHOWN:
        text = text[: MAX_SHOWN - 3] + "..."
    return text.replace("|", "\\|")


class Column:
    """Running statistics of one column."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.missing = 0
        self.tokens: Counter[str] = Counter()
        self.types: Counter[str] = Counter()
        self.examples: dict[str, list[tuple[int, str]]] = {}
        self.values: Counter[str] = Counter()
        self.distinct_capped = False
        self.padded = 0
        self.leading_zeros = 0
        self.zoned = 0
        self.max_length = 0
        self.numbers = 0
        self.mean = 0.0
        self.low: dict[str, tuple[Any, str]] = {}
        self.high: dict[str, tuple[Any, str]] = {}

    def add(self, raw: str, line: int) -> None:
        value = raw.strip()
        if not value or value.lower() in MISSING_TOKENS:
            self.missing += 1
            if value:
                self.tokens[value] += 1
            return
        if value != raw:
            self.padded += 1
        self.max_length = max(self.max_length, len(value))
        if value in self.values or len(self.values) < MAX_DISTINCT:
            self.values[value] += 1
        else:
            self.distinct_capped = True
        kind, key = classify(value)
        self.types[kind] += 1
        shown = self.examples.setdefault(kind, [])
        if len(shown) < MAX_EXAMPLES:
            shown.append((line, value))
        if kind == "text" and LEADING_ZERO.fullmatch(value):
            self.leading_zeros += 1
        if kind == "datetime" and (value.endswith("Z") or re.search(r"[+-][0-9]{2}:?[0-9]{2}$", value[10:])):
            self.zoned += 1
        if kind in ("integer", "decimal"):
            self.numbers += 1
            self.mean += key / self.numbers - self.mean / self.numbers
            self._extend("number", key, value)
        elif kind in ("date", "datetime"):
            self._extend("time", key, value)

    def _extend(self, family: str, key: Any, value: str) -> None:
        if family not in self.low or key < self.low[family][0]:
            self.low[family] = (key, value)
        if family not in self.high or key > self.high[family][0]:
            self.high[family] = (key, value)

    @property
    def present(self) -> int:
        return sum(self.types.values())

    def kind(self) -> tuple[str, set[str]]:
        """The column's type, and the cell types that agree with it."""
        seen = set(self.types)
        if not seen:
            return "empty", seen
        if self.leading_zeros:
            return "text", seen
        for kind in ("integer", "decimal", "boolean", "date", "datetime", "text"):
            if seen == {kind}:
                return kind, seen
        families = {"decimal": {"integer", "decimal"}, "datetime": {"date", "datetime"}}
        for kind, family in families.items():
            if seen == family:
                return kind, seen
        groups = [("decimal", families["decimal"]), ("datetime", families["datetime"])]
        groups += [(kind, {kind}) for kind in ("integer", "date", "boolean")]
        best, members = max(groups, key=lambda g: (sum(self.types[k] for k in g[1]), -len(g[1])))
        if sum(self.types[k] for k in members) >= DOMINANT_SHARE * self.present:
            narrow = seen & members
            return (next(iter(narrow)) if len(narrow) == 1 else best), members
        return ("mixed" if "text" not in seen else "text"), seen

    def report(self, rows: int, top: int, with_values: bool) -> dict[str, Any]:
        kind, members = self.kind()
        issues: list[str] = []
        odd = self.present - sum(self.types[k] for k in members)
        if odd:
            verb = "is" if odd == 1 else "are"
            text = f"{odd} of {count(self.present, 'value')} {verb} not {kind}"
            if with_values:
                cells = [e for k, es in self.examples.items() if k not in members for e in es]
                sample = sorted(cells)[:MAX_EXAMPLES]
                text += ": " + ", ".join(f"'{show(v)}' (line {n})" for n, v in sample)
            issues.append(text)
        elif (
            kind in ("text", "mixed")
            and not self.leading_zeros
            and self.types["text"] < DOMINANT_SHARE * self.present
        ):
            parts = ", ".join(f"{n} {k}" for k, n in self.types.most_common())
            issues.append(f"several types in one column: {parts}")
        if self.leading_zeros:
            zeros = count(self.leading_zeros, "value")
            issues.append(f"{zeros} with leading zeros: keep as text, a number type drops them")
        if self.padded:
            issues.append(f"{count(self.padded, 'value')} with leading or trailing spaces")
        if self.tokens:
            spelled = ", ".join(f"'{t}' x{n}" for t, n in sorted(self.tokens.items()))
            issues.append(f"missing values are spelled out: {spelled}")
        if kind == "empty" and rows:
            issues.append("no values at all")
        if 0 < self.zoned < self.types["datetime"]:
            issues.append("some datetimes have a time zone and some do not")
        distinct = len(self.values)
        unique: bool | None = rows > 1 and distinct == rows
        if self.distinct_capped:
            unique = None if not self.missing and self.values.total() == distinct else False
        if not self.distinct_capped and distinct == 1 and self.present == rows and rows > 1:
            issues.append("every row has the same value")
        result: dict[str, Any] = {
            "name": self.name,
            "type": kind,
            "missing": self.missing,
            "distinct": distinct,
            "distinct_is_lower_bound": self.distinct_capped,
            "unique": unique,
            "max_length": self.max_length,
            "issues": issues,
        }
        if with_values:
            family = "number" if kind in ("integer", "decimal") else "time"
            if kind in ("integer", "decimal", "date", "datetime"):
                result["min"] = self.low[family][1]
                result["max"] = self.high[family][1]
            if kind in ("integer", "decimal"):
                result["mean"] = round(self.mean, 6)
            if unique is False and not self.distinct_capped:
                result["top"] = [{"value": v, "count": n} for v, n in self.values.most_common(top)]
        return result


def open_source(path: str) -> BinaryIO:
    """Open the input as a seekable binary stream."""
    if path == "-":
        return io.BytesIO(sys.stdin.buffer.read())
    try:
        stream = open(path, "rb")  # noqa: SIM115 - closed by the caller
        if stream.seekable():
            return stream
        with stream:
            return io.BytesIO(stream.read())
    except FileNotFoundError:
        raise InputError("no such file") from None
    except IsADirectoryError:
        raise InputError("this is a directory; pass one CSV file") from None
    except PermissionError:
        raise InputError("permission denied") from None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot open: {error}") from None


def check_head(head: bytes, encoding: str) -> None:
    """Refuse what is plainly not CSV text, with a hint."""
    if not head:
        raise InputError("the file is empty (0 bytes)")
    if head.startswith(b"PK\x03\x04"):
        raise InputError("this is a ZIP file or an Excel workbook; export the sheet as CSV first")
    if head.startswith(b"\x1f\x8b"):
        raise InputError("this is gzip data; decompress it first, for example: gzip -dc FILE | profile_csv.py -")
    if encoding.lower().replace("_", "-").startswith("utf-8"):
        if head.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError("not UTF-8: a UTF-16 byte order mark was found; try --encoding utf-16")
        if b"\x00" in head:
            raise InputError("contains NUL bytes, so it is a binary file or UTF-16 without a byte order mark")


def locate_decode_error(stream: BinaryIO, encoding: str) -> str:
    """Say where decoding fails, for encodings in which a line feed is one byte."""
    if encoding.lower().startswith(("utf-16", "utf_16", "utf16", "utf-32", "utf_32", "utf32")):
        return "the bytes do not form characters of that encoding"
    stream.seek(0)
    line, offset = 1, 0
    for raw in stream:
        try:
            raw.decode(encoding)
        except UnicodeDecodeError as error:
            return f"byte 0x{raw[error.start]:02x} at offset {offset + error.start} (line {line})"
        line += 1
        offset += len(raw)
    return "an incomplete character"


def guess_delimiter(sample: str, complete: bool) -> str:
    """The candidate that splits the sample into the most even table."""
    best, best_score = ",", (0.0, 0)
    for delimiter in CANDIDATE_DELIMITERS:
        try:
            rows = [r for r in csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter) if r]
        except csv.Error:
            continue
        if not complete and len(rows) > 1:
            rows.pop()
        widths = Counter(len(r) for r in rows)
        if not widths:
            continue
        width, times = widths.most_common(1)[0]
        score = (times / len(rows), width)
        if width > 1 and score > best_score:
            best, best_score = delimiter, score
    return best


def read_rows(reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield (first line of the record, cells); turn csv errors into InputError."""
    while True:
        start = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            reason = str(error)
            if "unexpected end of data" in reason:
                reason = "a quoted field is never closed"
            elif "field larger than" in reason:
                reason = f"a field is longer than {MAX_FIELD_CHARS} characters, probably for want of a quote"
            raise InputError(
                f"malformed CSV in the record starting on line {start}: {reason}; "
                "correct the quotes, check --delimiter, or try --lenient"
            ) from None
        yield start, row


def name_columns(header: list[str]) -> tuple[list[str], list[str]]:
    names = [h.strip() for h in header]
    issues: list[str] = []
    blank = [str(i) for i, n in enumerate(names, 1) if not n]
    if blank:
        issues.append(f"blank column name at position {', '.join(blank)}")
    for name, times in Counter(n for n in names if n).items():
        if times > 1:
            issues.append(f"column name '{show(name)}' appears {times} times")
    padded = [n for n, h in zip(names, header, strict=True) if n and n != h]
    if padded:
        issues.append(f"column names with extra spaces: {', '.join(show(n) for n in padded)}")
    return [n or f"column {i}" for i, n in enumerate(names, 1)], issues


def profile(args: argparse.Namespace) -> dict[str, Any]:
    stream = open_source(args.path)
    with stream:
        head = stream.read(4096)
        check_head(head, args.encoding)
        stream.seek(0)
        encoding = args.encoding
        if head.startswith(b"\xef\xbb\xbf") and encoding.lower() in ("utf-8", "utf8"):
            encoding = "utf-8-sig"
        try:
            text = io.TextIOWrapper(stream, encoding=encoding, newline="")
        except LookupError:
            raise InputError(f"unknown encoding '{args.encoding}'; try utf-8, cp1252 or utf-16") from None
        try:
            return profile_text(text, encoding, args)
        except UnicodeError:
            text.detach()
            where = locate_decode_error(stream, args.encoding)
            if args.encoding.lower() in ("utf-8", "utf8"):
                hint = "if it came from Excel on Windows, try --encoding cp1252"
                raise InputError(f"not valid UTF-8: {where}; {hint}") from None
            raise InputError(f"not valid {args.encoding}: {where}; try another --encoding") from None


def profile_text(text: io.TextIOWrapper, encoding: str, args: argparse.Namespace) -> dict[str, Any]:
    sample = text.read(SAMPLE_CHARS)
    complete = len(sample) < SAMPLE_CHARS
    delimiter = args.delimiter or guess_delimiter(sample, complete)
    text.seek(0)
    csv.field_size_limit(MAX_FIELD_CHARS)
    reader = csv.reader(text, delimiter=delimiter, strict=not args.lenient)
    rows = read_rows(reader)
    blank_lines = 0
    while True:
        first_line, first = next(rows, (0, None))
        if first is None:
            raise InputError("the file has only blank lines")
        if "".join(first).strip() or len(first) > 1:
            break
        blank_lines += 1
    if args.no_header:
        names, issues = [f"column {i}" for i in range(1, len(first) + 1)], []
        rows = itertools.chain([(first_line, first)], rows)
    else:
        names, issues = name_columns(first)
        if all(classify(n.strip())[0] in ("integer", "decimal", "date", "datetime") for n in first):
            issues.append("the first row looks like data, not names; if so, use --no-header")
    columns = [Column(name) for name in names]
    total = ragged = duplicates = 0
    ragged_examples: list[str] = []
    hashes: set[int] = set()
    hashes_capped = stopped = False
    for line, row in rows:
        if not row:
            blank_lines += 1
            continue
        if args.max_rows is not None and total >= args.max_rows:
            stopped = True
            break
        total += 1
        if len(row) != len(columns):
            ragged += 1
            if len(ragged_examples) < MAX_EXAMPLES:
                ragged_examples.append(f"line {line} has {len(row)}")
        mark = hash(tuple(row))
        if mark in hashes:
            duplicates += 1
        elif len(hashes) < MAX_ROW_HASHES:
            hashes.add(mark)
        else:
            hashes_capped = True
        for column, cell in zip(columns, row + [""] * (len(columns) - len(row)), strict=False):
            column.add(cell, line)
    if total == 0:
        issues.append("there is a header but no data row")
    if ragged:
        issues.append(
            f"{count(ragged, 'row')} without exactly {count(len(columns), 'field')}: "
            f"{', '.join(ragged_examples)}; short rows count as missing, extra fields are ignored"
        )
    if duplicates:
        issues.append(f"{count(duplicates, 'exact repeat')} of an earlier row")
    if hashes_capped:
        issues.append(f"repeated rows were checked only against the first {MAX_ROW_HASHES} different rows")
    if blank_lines:
        issues.append(f"{count(blank_lines, 'blank line')} skipped")
    if len(columns) == 1 and not args.delimiter:
        issues.append("only one column found; if that is wrong, use --delimiter")
    reports = [c.report(total, args.top, not args.no_values) for c in columns]
    return {
        "file": args.path,
        "encoding": encoding,
        "delimiter": delimiter,
        "rows": total,
        "rows_are_partial": stopped,
        "column_count": len(columns),
        "key_candidates": [r["name"] for r in reports if r["unique"]],
        "uniqueness_unknown": [r["name"] for r in reports if r["unique"] is None],
        "issues": issues,
        "columns": reports,
    }


def render(result: dict[str, Any]) -> str:
    rows = result["rows"]
    partial = " (stopped early, --max-rows)" if result["rows_are_partial"] else ""
    name = "standard input" if result["file"] == "-" else os.path.basename(result["file"])
    delimiter = result["delimiter"]
    out = [
        f"# Profile of {show(name)}",
        "",
        f"- Rows: {rows}{partial}",
        f"- Columns: {result['column_count']}",
        f"- Delimiter: {DELIMITER_NAMES.get(delimiter, repr(delimiter))}, encoding: {result['encoding']}",
        f"- Key candidates: {', '.join(show(k) for k in result['key_candidates']) or 'none'}",
    ]
    if result["uniqueness_unknown"]:
        unknown = ", ".join(show(n) for n in result["uniqueness_unknown"])
        out.append(f"- Unique so far, not checked past {MAX_DISTINCT} different values: {unknown}")
    out += [
        "",
        "| column | type | missing | distinct | min | max | mean |",
        "|---|---|---|---|---|---|---|",
    ]
    for column in result["columns"]:
        share = f" ({100 * column['missing'] / rows:.1f}%)" if rows and column["missing"] else ""
        distinct = f"{column['distinct']}{'+' if column['distinct_is_lower_bound'] else ''}"
        mean = f"{column['mean']:g}" if "mean" in column else ""
        cells = [show(column["name"]), column["type"], f"{column['missing']}{share}", distinct]
        cells += [show(column.get("min", "")), show(column.get("max", "")), mean]
        out.append("| " + " | ".join(cells) + " |")
    tops = [c for c in result["columns"] if c.get("top")]
    if tops:
        out += ["", "## Most frequent values", ""]
        for column in tops:
            values = ", ".join(f"'{show(t['value'])}' x{t['count']}" for t in column["top"])
            out.append(f"- {show(column['name'])}: {values}")
    out += ["", "## Issues", ""]
    lines = [f"- file: {i}" for i in result["issues"]]
    lines += [f"- {show(c['name'])}: {i}" for c in result["columns"] for i in c["issues"]]
    out += lines or ["- none found"]
    return "\n".join(out)


def positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above zero")
    return number


def delimiter_option(text: str) -> str:
    named = {name: char for char, name in DELIMITER_NAMES.items()} | {"\\t": "\t"}
    value = named.get(text.lower(), text)
    if len(value) != 1 or value in '\r\n"':
        names = ", ".join(DELIMITER_NAMES.values())
        raise argparse.ArgumentTypeError(f"'{text}' is not one character; use , ; | or a name: {names}")
    return value


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="profile_csv.py",
        description="Profile a CSV file: columns, types, missing values and likely defects.",
        epilog="Exit status: 0 profile printed, 2 bad input or usage. The input is never modified.",
    )
    p.add_argument("path", help="the CSV file, or - for standard input")
    p.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    p.add_argument(
        "--delimiter",
        type=delimiter_option,
        metavar="CHAR",
        help="field separator, one character or comma, semicolon, tab, pipe, space (default: guessed)",
    )
    p.add_argument("--encoding", default="utf-8", help="text encoding (default: utf-8)")
    p.add_argument("--no-header", action="store_true", help="the first row is data, not column names")
    p.add_argument("--max-rows", type=positive, metavar="N", help="stop after N data rows")
    p.add_argument("--top", type=positive, default=3, metavar="N", help="frequent values per column (default: 3)")
    p.add_argument(
        "--no-values",
        action="store_true",
        help="leave out cell contents: no minimum, maximum, mean, frequent values or examples",
    )
    p.add_argument("--lenient", action="store_true", help="accept stray and unclosed quotes")
    return p


def main(argv: list[str] | None = None) -> int:
    args = parser().parse_args(argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        result = profile(args)
        print(json.dumps(result, indent=2) if args.json else render(result), flush=True)
    except InputError as error:
        name = "standard input" if args.path == "-" else args.path
        print(f"profile_csv.py: {name}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"profile_csv.py: {args.path}: {error.strerror or error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
