"""A server of the bare Python SDK: every file below ``DIR`` registered by hand as a ``skill://`` resource.

Run with ``DIR [index] [http]``. ``index`` adds ``skill://index.json`` of the older generation: a skill that is one
file is a ``skill-md`` entry, any other a zip archive.
"""

from __future__ import annotations

import io
import json
import socket
import sys
import zipfile
from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path
from urllib.parse import quote

import anyio
import uvicorn
import yaml
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.resources import BinaryResource, FileResource, Resource, TextResource

SCHEMA = "https://schemas.agentskills.io/discovery/0.2.0/schema.json"


def build(root: Path, *, indexed: bool) -> MCPServer:
    server = MCPServer("bare")
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        server.add_resource(file_resource(root, path))
    if indexed:
        for resource in index_resources(root):
            server.add_resource(resource)
    return server


def uri_of(root: Path, path: Path) -> str:
    return "skill://" + quote(path.relative_to(root).as_posix())


def file_resource(root: Path, path: Path) -> Resource:
    kind = guess_type(path.name)[0] or "application/octet-stream"
    return FileResource(uri=uri_of(root, path), name=path.name, path=path, mime_type=kind)


def index_resources(root: Path) -> list[Resource]:
    entries: list[dict[str, str]] = []
    archives: list[Resource] = []
    for manual in sorted(root.rglob("SKILL.md")):
        fields = yaml.safe_load(manual.read_text().split("---")[1])
        files = sorted(path for path in manual.parent.rglob("*") if path.is_file())
        if files == [manual]:
            data, kind, url = manual.read_bytes(), "skill-md", uri_of(root, manual)
        else:
            data, kind, url = packed(manual.parent, files), "archive", f"{uri_of(root, manual.parent)}.zip"
            archives.append(
                BinaryResource(uri=url, name=manual.parent.name, mime_type="application/zip", data=data)
            )
        digest = f"sha256:{sha256(data).hexdigest()}"
        entry = {"name": fields["name"], "type": kind, "description": fields["description"]}
        entries.append({**entry, "url": url, "digest": digest})
    text = json.dumps({"$schema": SCHEMA, "skills": entries})
    index = TextResource(uri="skill://index.json", name="index", mime_type="application/json", text=text)
    return [index, *archives]


def packed(folder: Path, files: list[Path]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            archive.writestr(zipfile.ZipInfo(path.relative_to(folder).as_posix()), path.read_bytes())
    return data.getvalue()


async def serve_http(server: MCPServer) -> None:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # or asyncio delays answers
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    print(f"listening at http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="warning", ws="none")
    await uvicorn.Server(config).serve([listener])


if __name__ == "__main__":
    ours = build(Path(sys.argv[1]).resolve(), indexed="index" in sys.argv[2:])
    if "http" in sys.argv[2:]:
        anyio.run(serve_http, ours)
    else:
        ours.run("stdio")
