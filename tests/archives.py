"""Archives that tests share: honest ones, and members that an honest packer never writes.

The same files give the same bytes at any time: names of tests are made from them, and digests.
"""

from __future__ import annotations

import gzip
import tarfile
import zipfile
from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def tar_member(name: str, data: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    """A member of a tar file; ``fields`` are those of its header."""
    member = tarfile.TarInfo(name)
    member.size = len(data)
    for field, value in fields.items():
        setattr(member, field, value)
    return member, data


def tar_of(members: Iterable[tuple[tarfile.TarInfo, bytes]], form: int = tarfile.PAX_FORMAT) -> bytes:
    """The bytes of a tar file, not yet compressed."""
    raw = BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=form) as archive:
        for member, data in members:
            archive.addfile(member, BytesIO(data))
    return raw.getvalue()


def pack_tar_gz(files: Mapping[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    """An honest ``.tar.gz``."""
    return gzip.compress(tar_of((tar_member(name, data) for name, data in files.items()), form), 6, mtime=0)


def zip_of(members: Iterable[tuple[zipfile.ZipInfo | str, bytes]], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """The bytes of a zip file."""
    raw = BytesIO()
    with zipfile.ZipFile(raw, "w", method) as archive:
        for given, data in members:
            member = given
            if isinstance(given, str):
                member = zipfile.ZipInfo(given)
                member.compress_type = method
            archive.writestr(member, data)
    return raw.getvalue()


def pack_zip(files: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An honest ``.zip``."""
    return zip_of(files.items(), method)
