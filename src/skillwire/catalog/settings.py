"""Reads ``skillwire.toml``, the settings of a folder for its skills: listed or not, audience, ``_meta`` (R3, R4).

The file is at the root of the served folder. It is as untrusted as the folder: its size is limited, each table is
about one skill, and unknown keys and invalid values are problems. A skill whose table has a problem is served but
not listed. If the whole file is invalid, no skill of the folder is listed. So a mistake never publishes a draft.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeAlias, cast, get_args

from skillwire.catalog.safe_open import read_below
from skillwire.errors import FormatError, LimitError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.diagnostics import Diagnostic
from skillwire.skill.entry import DEFAULT_META, Audience, SkillMeta

if TYPE_CHECKING:
    from skillwire.skill.frontmatter import Json

SETTINGS_FILE = "skillwire.toml"
UNLISTED = SkillMeta(listed=False)
_OWN_META = "io.github.skillwire/"  # reserved: the gateway records the origin of a skill there
_MAX_DOTS = 100  # in one line: tomllib takes minutes for a key of many thousand parts
_LARGEST_INTEGER = 2**53  # JSON readers disagree about larger ones

Describe: TypeAlias = Callable[[str, SkillMeta], SkillMeta]
"""Returns the effective settings, from a skill's path and the settings of the folder for it."""


@dataclass(frozen=True, slots=True)
class FolderSettings:
    """The settings of the file by path of the skill, and the problems of the file."""

    metas: Mapping[str, SkillMeta] = field(default_factory=dict[str, SkillMeta])
    problems: tuple[Diagnostic, ...] = ()
    other: SkillMeta = DEFAULT_META  # for all skills that are not named

    def about(self, path: str) -> SkillMeta:
        """The settings of the skill at ``path``."""
        return self.metas.get(path, self.other)

    def problems_in(self, has_skill: Callable[[str], bool]) -> tuple[Diagnostic, ...]:
        """The problems of the file, including tables for skills that do not exist."""
        missing = (path for path in self.metas if not has_skill(path))
        return (*self.problems, *map(_unmatched, missing))


def read_settings(root: str, limits: Limits = DEFAULT_LIMITS) -> FolderSettings:
    """The settings of the folder ``root``. Never raises because of the content of the file."""
    try:
        data = read_below(root, SETTINGS_FILE, limits.max_settings_bytes)[1]
    except FileNotFoundError:
        return FolderSettings()
    except LimitError:
        return _broken(f"it has more than {limits.max_settings_bytes} bytes")
    except OSError:  # a link, a folder, or no permission
        return _broken("it is not a readable regular file")
    return parse_settings(data, limits)


def parse_settings(data: bytes, limits: Limits = DEFAULT_LIMITS) -> FolderSettings:
    """The settings in ``data``."""
    import tomllib  # late: most folders have no such file

    try:
        text = data.decode()
        if any(line.count(".") > _MAX_DOTS for line in text.split("\n")):
            return _broken(f"a line has more than {_MAX_DOTS} dots")
        document = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, a huge number, too deep
        return _broken(f"it is not valid TOML: {(str(error) or 'it is nested too deeply'):.200}")
    tables = document.pop("skills", {})
    if document:
        return _broken(f"unknown key {min(document)!r:.100}")
    if not isinstance(tables, dict):
        return _broken("'skills' is not a table")
    metas, problems = dict[str, SkillMeta](), list[Diagnostic]()
    for path, table in cast("dict[str, object]", tables).items():
        try:
            metas[path] = _meta(table, limits)
        except FormatError as error:
            metas[path] = UNLISTED
            problems.append(_problem(f"[skills.{path!r:.200}]: {error.message}", error.hint, path))
    return FolderSettings(metas, tuple(problems))


def _meta(table: object, limits: Limits) -> SkillMeta:
    if not isinstance(table, dict):
        raise _invalid("it is not a table")
    fields = cast("dict[str, Any]", table)
    unknown = fields.keys() - {"listed", "audience", "meta"}
    if unknown:
        raise _invalid(f"unknown key {min(unknown)!r:.100}")
    listed: object = fields.get("listed", True)
    audience: object = fields.get("audience", ["assistant"])
    meta: object = fields.get("meta", {})
    if not isinstance(listed, bool):
        raise _invalid("'listed' is neither true nor false")
    chosen = cast("list[Audience]", audience) if isinstance(audience, list) else []
    if not chosen or any(one not in get_args(Audience) for one in chosen):
        raise _invalid('\'audience\' is not a list of "user" and "assistant"')
    if not isinstance(meta, dict) or not _is_json(cast("object", meta), limits.max_yaml_depth):
        raise _invalid("'meta' contains a value that JSON cannot express, or is not a table")
    fields_of_meta = cast("dict[str, Json]", meta)
    own = [key for key in fields_of_meta if key.lower().startswith(_OWN_META)]
    if own:
        raise _invalid(f"the key {own[0]!r:.100} is reserved and cannot be set by a folder")
    return SkillMeta(listed, tuple(dict.fromkeys(chosen)), fields_of_meta)


def _is_json(value: object, depth: int) -> bool:
    match value:
        case bool() | str():
            return True
        case int():
            return abs(value) <= _LARGEST_INTEGER
        case float():
            return isfinite(value)
        case list():
            return depth > 0 and all(_is_json(item, depth - 1) for item in cast("list[object]", value))
        case dict():
            return depth > 0 and all(
                _is_json(item, depth - 1) for item in cast("dict[str, object]", value).values()
            )
        case _:  # dates and times
            return False


def _invalid(message: str) -> FormatError:
    return FormatError("settings-invalid", message, "known keys: listed, audience, meta")


def _broken(reason: str) -> FolderSettings:
    message = f"{SETTINGS_FILE} is invalid, so no skill in this folder is listed: {reason}"
    return FolderSettings(problems=(_problem(message, f"fix {SETTINGS_FILE}, or delete it", ""),), other=UNLISTED)


def _problem(message: str, hint: str, skill: str) -> Diagnostic:
    return Diagnostic("settings-invalid", message, hint, file=SETTINGS_FILE, skill=skill)


def _unmatched(path: str) -> Diagnostic:
    message = f"[skills.{path!r:.200}]: no skill is served at this path"
    hint = "write the path of the skill's folder, relative to the served folder: acme/refunds"
    return Diagnostic("settings-unmatched", message, hint, file=SETTINGS_FILE)
