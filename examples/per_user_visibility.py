"""Each user sees the skills of their teams: ``uvicorn --factory per_user_visibility:app``, in this folder.

The file of tokens says who is who: ``skillwire token ada --see '*' >> access.toml``.
"""

from pathlib import Path

from skillwire import Caller, Skills
from skillwire.types import WebApp

TEAMS = {"ada": ["acme/billing"], "grace": ["acme", "release"]}


def visible(caller: Caller) -> list[str]:
    return TEAMS.get(caller.subject or "", [])


def app(access: str = "access.toml") -> WebApp:
    skills = Skills(Path(__file__).parent / "skills", visible=visible)
    return skills.asgi(access=access)
