"""What is checked before a version is published, and its manifest. Pure rules.

The author's frontmatter comes from the uploaded ``SKILL.md``, never from the request. The checks are those of
``skillwire serve``: what would not be served cannot be published.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.catalog.safe_open import LocalFile, is_ignored
from skillwire.catalog.snapshot import apply_rules, parents
from skillwire.errors import FormatError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.registry.model import build_manifest
from skillwire.skill.uri import SKILL_MD, segment_problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire.registry.model import Manifest, ManifestFile


def make_manifest(
    path: str, skill_md: bytes, files: Sequence[ManifestFile], limits: Limits = DEFAULT_LIMITS
) -> Manifest:
    """The manifest of a version of the skill at ``path``. ``FormatError`` if it could not be served."""
    for file in files:
        _check_path(path, file.path, limits)
    if len({file.path for file in files}) < len(files):
        raise _refused(path, "a file is listed twice", "list each file once")
    if len(files) > limits.max_resources or sum(file.size for file in files) > limits.max_skill_bytes:
        raise _refused(path, "it has too many files, or is too large", "split it, or move large files elsewhere")
    local = {file.path: LocalFile(file.digest, file.size, executable=file.executable) for file in files}
    folders = {folder for file in files for folder in parents(file.path)}
    read = apply_rules(path, skill_md, local, folders=folders, limits=limits)
    if read.record is None:
        problem = next(each for each in read.problems if each.refuses)
        raise FormatError(
            problem.reference,
            f"the skill {path!r:.200} cannot be published: {problem.message}",
            problem.hint,
            line=problem.line,
            column=problem.column,
        )
    return build_manifest(read.record.entry.frontmatter, files)


def _check_path(skill: str, path: str, limits: Limits) -> None:
    segments = path.split("/")
    if len(segments) > limits.max_depth or any(map(segment_problem, segments)):
        raise _refused(skill, f"{path!r:.200} is not a path in a skill", "rename the file")
    if is_ignored(segments[-1], is_folder=False) or any(
        is_ignored(each, is_folder=True) for each in segments[:-1]
    ):
        raise _refused(skill, f"{path!r:.200} is never part of a skill", "remove the file")
    if len(segments) > 1 and segments[-1] == SKILL_MD:
        raise _refused(skill, f"{path!r:.200} is another skill inside", "publish that skill by itself")


def _refused(skill: str, message: str, hint: str) -> FormatError:
    return FormatError("publication-invalid", f"the skill {skill!r:.200} cannot be published: {message}", hint)
