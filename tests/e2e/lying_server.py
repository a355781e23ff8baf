"""A real server on stdio whose supporting files are not what their entries say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from skillwire import MemoryCatalog, Skill, Skills
from skillwire.server.skills import build_server, serve_stdio
from trees import skill_md

if TYPE_CHECKING:
    from skillwire.types import SkillFile


class LyingCatalog(MemoryCatalog):
    async def read_file(self, uri: str) -> SkillFile:
        file = await super().read_file(uri)
        return file._replace(data=b"something else\n") if uri.endswith("/notes.md") else file


if __name__ == "__main__":
    skills = [
        Skill("team/lying", {"SKILL.md": skill_md("lying"), "notes.md": b"the notes\n"}),
        Skill("honest", {"SKILL.md": skill_md("honest")}),
    ]
    anyio.run(serve_stdio, build_server(Skills(LyingCatalog(skills))))
