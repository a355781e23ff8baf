"""The names in an archive: which may be there, and which collide (I3, B5).

Unpacking asks before a member's bytes are read, packing before any are written, so that neither makes what the
other refuses.
"""

from __future__ import annotations

from skillwire.errors import FormatError, LimitError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.entry import fold
from skillwire.skill.uri import segment_problem

MAX_EXTENDED = 4 * 1024  # bytes of a tar header that describes another; a longer name is refused anyway
MAX_EXTENDED_COST = 500_000_000  # of all of them, squared: 10,000 of 200 bytes, or a second of searching
ZIP_HEADER = b"PK\x01\x02"  # of one member in a zip's directory


class Members:
    """The names that one archive has so far."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._count = 0
        self._names: dict[str, str] = {}  # fold -> path, for every file and folder (B5)
        self._files: set[str] = set()

    def claim(self, name: str, *, is_directory: bool) -> str:
        """The path of a further member, if there may be one of that name; empty for the root itself."""
        self._count += 1
        if self._count > self._limits.max_resources:
            raise too_much(f"the archive has more than {self._limits.max_resources} members")
        path = _safe_path(name)
        if not path and not is_directory:
            raise refused(f"{name!r:.200} is a file where the root is")
        if path:
            self._claim(path, is_directory)
        return path

    def _claim(self, path: str, is_directory: bool) -> None:
        """B5: no two names that a disk could take for one, and no file where a folder is."""
        segments = path.split("/")
        for depth in range(1, len(segments)):
            folder = "/".join(segments[:depth])
            if self._names.setdefault(fold(folder), f"{folder}/") != f"{folder}/":
                raise refused(f"{path!r:.200} collides with another name", rule="B5")
        mine = f"{path}/" if is_directory else path
        known = self._names.setdefault(fold(path), mine)
        if known != mine or path in self._files:
            raise refused(f"{path!r:.200} collides with {known!r:.200}", rule="B5")
        if not is_directory:
            self._files.add(path)


def _safe_path(name: str) -> str:
    """The path of a member; empty for the root itself. Whatever could point elsewhere is refused."""
    path = name if name == "/" else name.removesuffix("/")
    while path.startswith("./"):
        path = path[2:]
    if path in ("", "."):
        return ""
    if len(path) > DEFAULT_LIMITS.max_uri_length or path.count("/") >= DEFAULT_LIMITS.max_depth:
        raise refused(f"{name!r:.200} is too long or too deep")
    if path[1:2] == ":":
        raise refused(f"{name!r:.200} names a drive")
    for segment in path.split("/"):
        problem = segment_problem(segment)
        if problem:
            raise refused(f"{name!r:.200} {problem}")
    return path


def refused(message: str, rule: str = "I3", hint: str = "whoever packed it has to pack it anew") -> FormatError:
    """What is in the archive may not be there."""
    hint = f"nothing was unpacked; {hint}"
    return FormatError("archive-refused", message, hint, rule=rule)


def too_much(message: str) -> LimitError:
    """There is more in the archive than we take."""
    hint = "nothing was unpacked; ask for the files one by one, or raise Limits"
    return LimitError("archive-too-large", message, hint, rule="I3")
