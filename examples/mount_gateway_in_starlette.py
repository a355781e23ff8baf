"""A gateway in a Starlette application: ``uvicorn mount_gateway_in_starlette:app``, in this folder.

It serves the skills of a server and of a folder as one, at ``/skills/mcp``.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette

from skillwire import open_gateway

SERVERS = {"acme": "http://127.0.0.1:8001/mcp"}
FOLDER = Path(__file__).parent / "skills"


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncGenerator[None]:
    async with open_gateway(servers=SERVERS, folders=[FOLDER]) as gateway:
        web = gateway.asgi()
        app.mount("/skills", web)
        async with web.lifespan():
            yield


app = Starlette(lifespan=lifespan)
