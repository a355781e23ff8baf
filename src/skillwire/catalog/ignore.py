"""Names that are never part of a skill: version control, caches, editors' and systems' litter, credentials.

Everything else in a skill's folder is served, dotfiles too. What is left out is told, never hidden
(``DirectoryCatalog.ignored``).
"""

from __future__ import annotations

import re

_FOLDERS = frozenset(
    {
        ".git", ".hg", ".svn", ".bzr", ".jj", "CVS", "_darcs",
        "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".venv", "node_modules",
        ".idea", ".vscode", ".vs", ".history",
        "__MACOSX", ".Spotlight-V100", ".Trashes", ".fseventsd", "$RECYCLE.BIN", "System Volume Information",
        ".ssh", ".aws", ".gnupg",
    }
)  # fmt: skip
_FILES = re.compile(
    r"\.git|\.DS_Store|\._.*|Thumbs\.db|[Dd]esktop\.ini|\.directory|Icon\r"  # systems
    r"|.*~|\.#.*|#.*#|\..*\.sw[a-p]|\.netrwhist|4913"  # editors (4913 is vim's write test)
    r"|.*\.py[co]"
    r"|\.env|\.env\.(?:local|production)|\.netrc|\.pypirc|\.npmrc|id_(?:rsa|dsa|ecdsa|ed25519)"  # credentials
)


def is_ignored(name: str, *, is_folder: bool) -> bool:
    """Whether a file or folder of this name is left out."""
    return name in _FOLDERS if is_folder else _FILES.fullmatch(name) is not None
