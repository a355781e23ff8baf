"""The address of a Git repository: ``acme/skills@v1#folder``, parsed and checked before git sees any of it.

Accepted are ``owner/repository`` (on GitHub), ``https`` and ``ssh`` URLs, ``git@host:path``, local repositories,
and ``http`` on this machine. The path of a folder means the folder. It means the repository there with ``@ref``,
with ``git+`` or ``file://`` before it, or if the repository is bare.

Nothing in an address can become an option of git or ssh, and no other protocol is accepted (``ext::`` would run a
program). An address with a password or a token is refused and not repeated: it would be stored in locks and logs.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from urllib.parse import SplitResult, unquote, urlsplit

from skillwire.errors import FormatError
from skillwire.skill.uri import parse_path

_FORMS = (
    "use owner/repository, an https:// or ssh:// URL, git@host:path, or a local repository; then @ref and #folder"
)
_HOSTS = frozenset({"github.com", "gitlab.com", "codeberg.org", "bitbucket.org"})
_SHORT = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9_][A-Za-z0-9._-]*")
_SCP = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9.-]*:(?!//)[^:\s-][^:\s]*")
# Before the path of a URL or of git@host:path.
_AUTHORITY = re.compile(r"[A-Za-z]+://[^/]*(?:/|$)|[A-Za-z0-9._-]+@[^/:]+:")
_REF = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._/+-]*")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SECRET = re.compile(r"//[^/\s]*@")
# The page of a folder or file in a browser: GitHub's, and GitLab's.
_PAGE = re.compile(r"(/[^/]+/[^/]+)/(?:tree|blob)/([^/]+)/?(.*)|(/.+)/-/(?:tree|blob)/([^/]+)/?(.*)")


@dataclass(frozen=True, slots=True)
class GitSource:
    """A repository, a branch, tag or commit of it, and a folder in it. An empty ``ref`` is the default branch."""

    url: str
    ref: str = ""
    folder: str = ""

    @property
    def is_pinned(self) -> bool:
        """Whether ``ref`` is a full commit id, which never changes."""
        return is_commit(self.ref)

    @property
    def is_local(self) -> bool:
        """Whether the repository is a folder of this machine."""
        return "://" not in self.url and not _SCP.fullmatch(self.url)

    @property
    def name(self) -> str:
        """The last part of the folder or the address, without ``.git``."""
        last = (self.folder or self.url.removesuffix("/.git")).rstrip("/").rpartition("/")[2].rpartition(":")[2]
        return last.removesuffix(".git") or "repository"

    def at(self, commit: str) -> GitSource:
        """The same folder at one commit."""
        return replace(self, ref=commit)

    def __str__(self) -> str:
        return self.url + (f"@{self.ref}" if self.ref else "") + (f"#{self.folder}" if self.folder else "")


def is_commit(text: str) -> bool:
    """Whether ``text`` is a full commit id."""
    return _COMMIT.fullmatch(text) is not None


def without_credentials(text: str) -> str:
    """``text`` without the user and the password of any URL in it."""
    return _SECRET.sub("//…@", text)


def is_git_source(text: str) -> bool:
    """Whether ``text`` means a Git repository. The URL of an MCP server and the path of a folder do not."""
    if text.startswith(("git+", "ssh://", "git://", "file://")):
        return True
    address = text.partition("#")[0]
    bare = _without_ref(address)
    if address.lower().startswith(("https://", "http://")):
        try:
            place = urlsplit(bare)
        except ValueError:
            return False
        return place.hostname in _HOSTS or place.path.rstrip("/").endswith(".git")
    if "://" in text:
        return False
    if os.path.exists(text):
        return _is_bare(text)
    return bool(_SCP.fullmatch(bare) or is_short(text)) or (bare != text and os.path.isdir(bare))


def is_short(text: str) -> bool:
    """Whether ``text`` has the form ``owner/repository``, and no file or folder here has that path."""
    bare = _without_ref(text.partition("#")[0])
    return _SHORT.fullmatch(bare) is not None and not os.path.exists(bare)


def parse_git_source(text: str) -> GitSource:
    """Parse ``owner/repository``, a URL or a path, followed by ``@ref`` and ``#folder``."""
    address, _, folder = text.removeprefix("git+").partition("#")
    bare = _without_ref(address)
    source = GitSource(bare, address[len(bare) + 1 :], folder.strip("/"))
    if not text.isprintable():
        raise _invalid("the address contains a line end or a control character")
    if "://" in bare:
        source = _parse_url(source)
    elif is_short(bare):
        source = replace(source, url=f"https://github.com/{bare.removesuffix('.git')}")
    elif not _SCP.fullmatch(bare):
        if bare.startswith("-") or "::" in bare or not os.path.isdir(bare):
            raise _invalid(f"{without_credentials(bare)!r:.200} is not a Git repository")
        source = replace(source, url=os.path.abspath(bare))
    ref = source.ref
    if ref and (not _REF.fullmatch(ref) or ".." in ref or "//" in ref or ref.endswith((".lock", "/", "."))):
        raise _invalid(f"{without_credentials(ref)!r:.100} is not a branch, tag or commit")
    if source.folder:
        parse_path(source.folder)
    return source


def _parse_url(source: GitSource) -> GitSource:
    try:
        place = urlsplit(source.url)
        host, _ = place.hostname or "", place.port
    except ValueError:
        raise _invalid("the address is not a URL") from None
    _check_no_secret(place)
    if place.scheme == "file" and place.netloc in ("", "localhost"):
        path = unquote(place.path)
        if not os.path.isdir(path):
            raise _invalid(f"{path!r:.200} is not a Git repository")
        return replace(source, url=os.path.abspath(path))
    if place.scheme == "http" and host not in ("127.0.0.1", "localhost", "::1"):
        raise FormatError(
            "git-source-invalid",
            "http:// to another machine is not safe: anyone between can change the answer",
            f"use https: https{source.url[4:]}",
        )
    if place.scheme not in ("https", "ssh", "http"):
        raise _invalid(f"Git over {place.scheme!r:.40} is not allowed")
    if not host or place.netloc.startswith("-") or host.startswith("-") or place.query or " " in source.url:
        raise _invalid(f"{source.url!r:.200} is not the address of a Git repository")
    page = _PAGE.fullmatch(place.path) if host in _HOSTS else None
    if page is not None:
        path, ref, folder = page.groups()[:3] if page[1] else page.groups()[3:]
        folder = unquote(folder).removesuffix("SKILL.md").strip("/")
        url = f"{place.scheme}://{place.netloc}{path}"
        return GitSource(url, source.ref or unquote(ref), source.folder or folder)
    return replace(source, url=source.url.rstrip("/"))


def _check_no_secret(place: SplitResult) -> None:
    """Refuse a password, and over HTTP any user: tokens are often written there."""
    if place.password is not None or (place.username is not None and place.scheme != "ssh"):
        raise FormatError(
            "git-password",
            "the address of the repository contains a user or a password, which would be stored in locks and logs",
            "remove it from the address, and let git ask a credential helper (git help credentials)",
        )


def _without_ref(address: str) -> str:
    """``address`` without ``@ref``. An ``@`` before the host of a URL, or of ``git@host:path``, is not a ref.

    So only the path is searched: ``acme/skills@v1`` in ``git+ssh://git@example.com/acme/skills@v1``, ``skills`` in
    ``git@example.com:skills`` (no ref), and all of ``acme/skills@v1``.
    """
    authority = _AUTHORITY.match(address, len("git+") if address.startswith("git+") else 0)
    path = address[authority.end() :] if authority else address
    if "@" not in path or (not authority and os.path.exists(address)):  # the name of a folder may have an @
        return address
    return address.rpartition("@")[0]


def _is_bare(path: str) -> bool:
    """Whether a folder is a repository without a work tree, so that there are no files to read as skills."""
    inside = {"objects": os.path.isdir, "refs": os.path.isdir, "HEAD": os.path.isfile, "config": os.path.isfile}
    return all(test(os.path.join(path, name)) for name, test in inside.items())


def _invalid(message: str) -> FormatError:
    return FormatError("git-source-invalid", message, _FORMS)
