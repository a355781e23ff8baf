"""The peers' released packages, from the registries, at pinned versions, into ``benchmarks/.cache/peers``.

What is installed stays until its description changes. FastMCP gets an environment of its own, so that its
dependencies and ours never meet.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.scan import CACHE

HERE = Path(__file__).parent
PLACE = CACHE / "peers"
FASTMCP = "fastmcp==4.1.2"
_CONSTRAINTS = HERE.parents[1] / "constraints.txt"
_PATIENCE = 600


class MissingError(Exception):
    """A peer cannot be installed here; the text says why."""


def install_node_peers() -> Path:
    """The folder with the Node peers' packages and the scripts that serve with them."""
    place = PLACE / "node"
    described = _digest(HERE / "package.json")
    if not _is_installed(place, described):
        npm = shutil.which("npm")
        if npm is None:
            raise MissingError("npm is missing: install Node.js 20 or newer with npm to measure the Node peers")
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE / "package.json", place)
        _run([npm, "install", "--no-package-lock", "--no-audit", "--no-fund", "--silent"], place)
        _mark(place, described)
    for script in HERE.glob("*.mjs"):  # imports are looked up from where a script is
        shutil.copy(script, place)
    return place


def install_fastmcp() -> Path:
    """The Python of an environment with FastMCP in it."""
    place = PLACE / "fastmcp"
    described = f"{FASTMCP} {sys.version}"
    python = place / "bin" / "python"
    if not _is_installed(place, described):
        place.parent.mkdir(parents=True, exist_ok=True)
        _run([sys.executable, "-m", "venv", "--clear", str(place)], place.parent)
        words = ["install", "--disable-pip-version-check", "--quiet", "--constraint", str(_CONSTRAINTS), FASTMCP]
        _run([str(python), "-m", "pip", *words], place)
        _mark(place, described)
    return python


def _is_installed(place: Path, described: str) -> bool:
    mark = place / ".installed"
    return mark.exists() and mark.read_text() == described


def _mark(place: Path, described: str) -> None:
    (place / ".installed").write_text(described)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _run(command: list[str], place: Path) -> None:
    """A command that says nothing unless it fails."""
    print(f"installing: {Path(command[0]).name} {command[1]} …", file=sys.stderr)
    try:
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        raise MissingError(f"{Path(command[0]).name} did not finish within {_PATIENCE} s") from None
    if done.returncode != 0:
        raise MissingError(f"{Path(command[0]).name} failed: {(done.stderr or done.stdout).strip()[-500:]}")
