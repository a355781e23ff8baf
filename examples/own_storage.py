"""Skills in a database, served from two functions: ``python examples/own_storage.py skills.db``.

A row has a path, the bytes, and a version that changes with them. ``FilesCatalog`` makes the rest: digests, pages,
directories and changes. It asks for new versions once a minute; ``catalog.refresh()`` does so at once.
"""

import sqlite3
import sys
from contextlib import closing

from mcp.server.mcpserver import MCPServer

from skillwire import FilesCatalog, Skills

TABLE = "CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, version INTEGER NOT NULL, data BLOB NOT NULL)"


def open_storage(database: str) -> FilesCatalog:
    with closing(sqlite3.connect(database)) as db:
        db.execute(TABLE)

    def list_files() -> dict[str, int]:
        with closing(sqlite3.connect(database)) as db:
            return dict(db.execute("SELECT path, version FROM files").fetchall())

    def read_file(path: str) -> bytes:
        with closing(sqlite3.connect(database)) as db:
            return db.execute("SELECT data FROM files WHERE path = ?", (path,)).fetchone()[0]

    return FilesCatalog(list_files, read_file)


if __name__ == "__main__":
    server = MCPServer("storage")
    Skills(open_storage(sys.argv[1])).attach(server)
    server.run()
