"""Skills in a FastAPI application: ``uvicorn mount_in_fastapi:app``, in this folder.

MCP is at ``/skills/mcp``, and a page for people at ``/skills/``. In Starlette the same lines work.
"""

from pathlib import Path

from fastapi import FastAPI

from skillwire import Skills, catalog_page

skills = Skills(Path(__file__).parent / "skills").asgi(page=catalog_page)
app = FastAPI(lifespan=skills.lifespan)
app.mount("/skills", skills)


@app.get("/")
def home() -> dict[str, str]:
    return {"mcp": "/skills/mcp"}
