"""How a verb describes itself to the command line: words, options, and always an example."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    Verbs: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]  # pyright: ignore[reportPrivateUsage] - it has no public name


def add_verb(verbs: Verbs, name: str, summary: str, description: str, examples: str) -> argparse.ArgumentParser:
    """A parser for one verb; ``examples`` end its help."""
    return verbs.add_parser(
        name,
        help=summary,
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
