"""The public API is closed: every type in a public signature can be imported from a public module."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import skillwire

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(skillwire.__file__).parent
MODULES = ("__init__", "types", "lowlevel", "errors", "testing")

# Members that the packages of skillwire share and that are not documented.
INTERNAL = {
    "Gateway": {"policy", "upstreams", "store", "cache", "approvals", "approval_view", "queue", "audit"},
    "NamedEntry": {"origin"},
    "Skills": {"web_app"},
    "SkillHost": {"apply", "complete", "connected", "find", "names", "read_for_review", "shown_skills"},
}
# Types that only skillwire creates, so their constructors are not public.
CREATED_BY_US = {
    "Activation",
    "Conversation",
    "Gateway",
    "HttpOptions",
    "NamedSkill",
    "RemoteCatalog",
    "Scope",
    "SkillHost",
    "SkillsClient",
    "WebApp",
}
# Types that programs only pass from one part of skillwire to another.
OPAQUE = {"Connection", "FederatedCatalog", "MountedPage", "ServedSkills", "Store"}

Name = tuple[str, str]  # module, name


@cache
def definitions(module: str) -> dict[str, ast.AST]:
    """What a module defines at its top, also for type checkers only."""
    path = SOURCE.parent / module.replace(".", "/")
    tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())
    found: dict[str, ast.AST] = {}
    blocks = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.If))]
    for node in (node for block in blocks for node in block):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                found[node.name] = node
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found[name] = node
            case ast.ImportFrom(module=str(source)):
                found |= {alias.asname or alias.name: ast.alias(alias.name, source) for alias in node.names}
            case _:
                pass
    return found


def origin(module: str, name: str) -> Name | None:
    """Where ``name`` is defined, if that is in skillwire."""
    node = definitions(module).get(name) if module.startswith("skillwire") else None
    if isinstance(node, ast.alias):
        return origin(node.asname or "", node.name)
    return None if node is None else (module, name)


def names_in(node: ast.AST | None) -> Iterator[str]:
    for part in ast.walk(node) if node else ():
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value.isidentifier():
            yield part.value  # an annotation in quotes


def signature(node: ast.AST, owner: str = "") -> Iterator[str]:
    """The names in the annotations of a function, of the public members of a class, or in an alias."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            given = node.args
            for argument in [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]:
                yield from names_in(argument and argument.annotation)
            yield from names_in(node.returns)
        case ast.ClassDef():
            for member in node.body:
                name = getattr(member, "name", None) or getattr(getattr(member, "target", None), "id", "_")
                is_called = name == "__init__" and owner not in CREATED_BY_US
                if name not in INTERNAL.get(owner, ()) and (is_called or not name.startswith("_")):
                    yield from (
                        names_in(member.annotation) if isinstance(member, ast.AnnAssign) else signature(member)
                    )
        case ast.Assign() | ast.AnnAssign():
            yield from names_in(node.value)
        case _:
            pass


def public_names() -> set[Name]:
    found: set[Name] = set()
    for module in MODULES:
        name = "skillwire" if module == "__init__" else f"skillwire.{module}"
        places = (origin(name, each) for each in definitions(name) if not each.startswith("_"))
        found |= {place for place in places if place}
    return found


def test_every_type_in_a_public_signature_is_public() -> None:
    public = public_names()
    assert len(public) > 80
    hidden = {
        f"{name} of {module}, in {owner}"
        for owner_module, owner in public
        if owner not in OPAQUE
        for used in signature(definitions(owner_module)[owner], owner)
        for module, name in [origin(owner_module, used) or ("", "")]
        # A name of one letter is a TypeVar.
        if len(name) > 1 and not name.startswith("_") and (module, name) not in public
    }
    assert sorted(hidden) == []


def test_the_package_itself_has_few_names() -> None:
    assert len(skillwire.__all__) <= 30


def test_a_name_is_public_in_one_module() -> None:
    texts = [(SOURCE / f"{module}.py").read_text() for module in ("__init__", "types", "lowlevel")]
    names = [name for text in texts for name in re.findall(r"import (\w+) as \1", text)]
    assert sorted(names) == sorted(set(names))
