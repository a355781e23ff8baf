"""Connect, read one file of a skill, and download the skill: ``python examples/connect_and_download.py``.

The target may also be a URL, a command, or a label from your configuration: see docs/how-to/connect.md.
"""

import asyncio
import tempfile
from pathlib import Path

from skillwire import Skills, connect


async def main() -> None:
    server = Skills(Path(__file__).parent / "skills")
    async with connect(server) as skills:
        async for entry in skills.list_skills():
            print(f"{entry.path}: {entry.description:.60}")
        entry = await skills.get("refunds")
        print("files:", [file.path for file in entry.files])
        reply = await skills.read("refunds", "templates/customer-reply.md")
        print("verified:", reply.digest)
        with tempfile.TemporaryDirectory() as folder:
            written = await skills.download("refunds", folder)
            print("downloaded:", written.name, sorted(path.name for path in written.iterdir()))


if __name__ == "__main__":
    asyncio.run(main())
