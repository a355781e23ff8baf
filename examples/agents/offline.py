"""What the examples share, so that each shows only its framework: a server, a person, a stand-in for a model."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillwire import Answer, SkillHost, Skills

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from skillwire import ApprovalRequest

SKILLS = Path(__file__).parents[1] / "skills"
TASK = "Ada was charged twice for June and wants her 20 euro back. Write our reply; the refund went out as RF-7."
FACTS = {
    "name": "Ada",
    "amount": "20.00",
    "currency": "EUR",
    "charge_date": "1 June",
    "what_it_paid_for": "June, a second time",
    "refund_reference": "RF-7",
    "subscription_state": "Your subscription continues.",
    "agent_name": "Sam",
}


async def ask(request: ApprovalRequest) -> Answer:
    """Where a person is asked. This one reads the question and says yes."""
    entry = request.entry
    print(f"person:  may {entry.name!r} of {request.origin!r} be loaded, {len(entry.files)} files? Yes.")
    return Answer(yes=True, by="example")


@asynccontextmanager
async def open_host() -> AsyncGenerator[SkillHost]:
    """A host that reads ``examples/skills`` from a server in this process. A real one keeps its ``state``."""
    async with SkillHost.open(servers={"acme": Skills(SKILLS)}, ask=ask) as host:
        await host.settle()
        yield host


def think(instructions: str, results: Sequence[str]) -> str | tuple[str, dict[str, Any]]:
    """What a model would do, given its instructions and the results so far: call a tool, or answer."""
    if not results:
        known = re.findall(r"<name>(.*?)</name>.*?<description>(.*?)</description>", instructions, re.DOTALL)
        name = next(name for name, description in known if "money back" in description)
        print(f"model:   {len(known)} skills are known, and {name!r} fits the task: load it")
        return "load_skill", {"name": name}
    if not results[-1].startswith("<skill"):
        return f"I could not: {results[-1]}"
    if len(results) == 1:
        name, path = re.findall(r'<skill name="(.*?)"', results[0])[0], "templates/customer-reply.md"
        print(f"model:   {len(results[0])} characters of instructions name {path!r}: read it")
        return "read_skill_file", {"name": name, "path": path}
    print("model:   the template is here: fill it in")
    letter = results[1].partition("## Refund granted")[2].partition("For `subscription_state`")[0].strip()
    return re.sub(r"{{(\w+)}}", lambda field: FACTS[field[1]], letter)
