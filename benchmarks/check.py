"""How long ``skillwire check`` takes for skills that look like public ones, and a floor measured in the same run.

Each skill has a ``SKILL.md`` of about 5 KB, a reference of about 2 KB and a script: headings, lists, tables, code,
links, emphasis, and a few placeholders in comments. The floor only parses every Markdown file with
markdown-it-py, in one process. The goal for 1,000 skills on two cores is 2.5 s.

    python -m benchmarks.check                  # 1,000 skills
    python -m benchmarks.check --skills 200     # a quick look
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path

from markdown_it import MarkdownIt

CACHE = Path(__file__).parent / ".cache"
WORDS = """agent review the build report with a release branch before test when users request data and check each
file for errors use standard library functions return results as table include examples avoid network calls keep
messages short prefer typed models validate input convert dates handle missing values then write output"""


class Author:
    """Writes one skill. The same number always gives the same texts."""

    def __init__(self, number: int) -> None:
        self._random = random.Random(number)
        self._vocabulary = WORDS.split()

    def word(self) -> str:
        return self._random.choice(self._vocabulary)

    def words(self, least: int, most: int) -> str:
        return " ".join(self._random.choices(self._vocabulary, k=self._random.randint(least, most)))

    def sentence(self) -> str:
        """A sentence, often with a link, code or emphasis."""
        text = self.words(8, 22).capitalize()
        kind = self._random.randrange(8)
        if kind == 0:
            text += f" (see [{self.words(1, 3)}](references/guide.md))"
        elif kind == 1:
            text += f" at [{self.words(1, 3)}](https://docs.example.com/{self.word()})"
        elif kind in (2, 3):
            text += f" with `{self.word()}_{self.word()}()`"
        elif kind in (4, 5):
            text = f"**{self.words(1, 2).capitalize()}**: {text}"
        return f"{text}."

    def section(self) -> str:
        """A heading, and one of the usual blocks."""
        title = f"## {self.words(2, 4).title()}\n\n"
        kind = self._random.randrange(6)
        if kind == 0:
            code = "\n".join(f"    {self.word()} = run({self.words(1, 4)!r})" for _ in range(12))
            return f"{title}{self.sentence()}\n\n```python\ndef main() -> None:\n{code}\n```\n"
        if kind == 1:
            rows = "\n".join(f"| `{self.word()}` | {self.words(3, 9)} |" for _ in range(6))
            return f"{title}| name | meaning |\n|---|---|\n{rows}\n"
        if kind in (2, 3):
            items = "\n".join(f"{mark} {self.sentence()}" for mark in ("-", "-", "  -", "  -", "-", "-"))
            return f"{title}{items}\n"
        if kind == 4:
            steps = "\n".join(f"{step}. {self.sentence()}" for step in range(1, 6))
            return f"{title}<!-- {self.word()} -->\n\n{steps}\n"
        return title + "\n\n".join(" ".join(self.sentence() for _ in range(3)) for _ in range(2)) + "\n"

    def page(self, size: int) -> str:
        """A page of about ``size`` bytes."""
        parts: list[str] = []
        while sum(map(len, parts)) < size:
            parts.append(self.section())
        return "\n".join(parts)


def generate(root: Path, skills: int) -> Path:
    """Write the tree below ``root`` unless it exists."""
    done = root / f"public-{skills}" / ".complete"
    if done.exists():
        return done.parent
    for number in range(skills):
        author, folder = Author(number), done.parent / f"skill-{number:05d}"
        (folder / "references").mkdir(parents=True, exist_ok=True)
        (folder / "scripts").mkdir(exist_ok=True)
        head = f"---\nname: {folder.name}\ndescription: {author.words(20, 40)}\nlicense: MIT\n---\n\n# Title\n\n"
        (folder / "SKILL.md").write_text(head + author.page(4_500))
        (folder / "references" / "guide.md").write_text(author.page(1_500))
        (folder / "scripts" / "run.py").write_text("print('done')\n" * 100)
    done.touch()
    return done.parent


def floor(root: Path) -> None:
    reader = MarkdownIt("commonmark")
    for page in root.rglob("*.md"):
        reader.parse(page.read_text())


def check(root: Path) -> None:
    """The whole command, in a process of its own."""
    command = [sys.executable, "-m", "skillwire", "check", str(root)]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skills", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    root = generate(CACHE, arguments.skills)
    times: dict[str, list[float]] = {"floor": [], "check": []}
    for _ in range(arguments.rounds):
        for name, work in (("floor", floor), ("check", check)):
            begun = time.perf_counter()
            work(root)
            times[name].append(time.perf_counter() - begun)
    base, checked = (statistics.median(each) for each in times.values())
    goal = 2.5 * arguments.skills / 1_000
    print(f"| skills | parsing only, one process | check, {os.cpu_count()} cores (≤ {goal:.1f} s) | ratio |")
    print("|---|---|---|---|")
    print(f"| {arguments.skills:,} | {base:.2f} s | {checked:.2f} s | {checked / base:.2f} |")


if __name__ == "__main__":
    main()
