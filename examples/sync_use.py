"""Use skills from ordinary code, without ``async``: ``python examples/sync_use.py``.

This also works in a notebook, whose event loop is already running: the portal has its own loop in a thread.
"""

from pathlib import Path

from anyio.from_thread import start_blocking_portal

from skillwire import ApprovalRequest, SkillHost, Skills, connect

SKILLS = Path(__file__).parent / "skills"


def ask(request: ApprovalRequest) -> bool:
    """A plain function may block; a real one would ask with ``input``."""
    print("asked about", request.entry.name, "from", request.origin)
    return True


def main() -> None:
    with start_blocking_portal() as portal:
        with portal.wrap_async_context_manager(connect(Skills(SKILLS))) as skills:
            names = [entry.name for entry in portal.call(skills.list_all).entries]
            print(len(names), "skills:", ", ".join(names))
        host_context = SkillHost.open(servers={"acme": Skills(SKILLS)}, ask=ask)
        with portal.wrap_async_context_manager(host_context) as host:
            portal.call(host.settle)
            result = portal.call(host.call, "load_skill", {"name": "refunds"})
            print(result.text.splitlines()[0])


if __name__ == "__main__":
    main()
