"""A registry with a few lines: namespaces, people with roles, and small published skills."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillwire.registry.contract import Draft
from skillwire.registry.model import Actor, Identity, ManifestFile, Namespace, build_manifest
from skillwire.skill import digest_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillwire.registry.contract import Published, RegistryStore
    from skillwire.registry.model import Manifest, Role

NOW = 1_800_000_000.0


def person(name: str, *groups: str) -> Identity:
    """A person with a token without limits."""
    return Identity(f"user:{name}", frozenset({f"user:{name}", *(f"group:{group}" for group in groups)}))


ADMIN = Identity("user:root", frozenset({"user:root"}), is_admin=True)
ADA, BEN, EVE = person("ada"), person("ben"), person("eve")


def by(who: Identity, at: float = NOW) -> Actor:
    """``who`` changes something now."""
    return Actor(who, "local", at)


def small_skill(name: str, body: str = "Be kind.\n", version: str | None = None) -> dict[str, bytes]:
    """The files of a small skill."""
    number = "" if version is None else f"metadata:\n  version: {version!r}\n"
    text = f"---\nname: {name}\ndescription: Handles {name} for customers.\n{number}---\n{body}"
    return {"SKILL.md": text.encode(), "notes/reply.md": b"Dear customer,\n"}


def manifest_of(
    name: str, files: Mapping[str, bytes], version: str | None = None, description: str = ""
) -> Manifest:
    """The manifest of these files."""
    frontmatter: dict[str, Any] = {"name": name, "description": description or f"Handles {name} for customers."}
    if version is not None:
        frontmatter["metadata"] = {"version": version}
    rows = [ManifestFile(path, digest_of(data), len(data)) for path, data in files.items()]
    return build_manifest(frontmatter, rows)


class RegistryBuilder:
    """Publishes small skills. Namespaces are created with their first skill; ``ada`` owns them."""

    def __init__(self, store: RegistryStore) -> None:
        self.store = store
        self.now = NOW

    async def namespace(
        self, name: str, *, public: bool = False, reviewed: bool = False, **roles: Role
    ) -> Namespace:
        """A namespace. ``roles`` are those of users."""
        made = Namespace(name, public, reviewed)
        await self.store.create_namespace(by(ADMIN, self.now), made)
        for user, role in {"ada": "owner", **roles}.items():
            await self.store.grant(by(ADMIN, self.now), name, f"user:{user}", role)  # pyright: ignore[reportArgumentType]
        return made

    async def upload(self, namespace: str, files: Mapping[str, bytes], who: Identity = ADA) -> None:
        """Upload files."""
        for data in files.values():
            await self.store.put_blob(by(who, self.now), namespace, digest_of(data), data)

    async def publish(
        self,
        path: str,
        version: str | None = None,
        *,
        body: str | None = None,
        description: str = "",
        channel: str | None = "stable",
        listed: bool = True,
        who: Identity = ADA,
    ) -> Published:
        """Publish a version, whose content follows from its number unless ``body`` is given."""
        namespace, name = path.partition("/")[0], path.rpartition("/")[2]
        files = small_skill(name, body if body is not None else f"Version {version}.\n")
        await self.upload(namespace, files, who)
        manifest = manifest_of(name, files, description=description)
        draft = Draft(path, manifest, version, channel, listed)
        return await self.store.publish(by(who, self.now), draft)
