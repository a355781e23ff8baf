"""Security headers of pages and of files.

A page loads only scripts and styles of this program, none inline and none from other servers. A file of a skill is
never a document of this site: it is a download or a raster image, and always sandboxed. HTML in a skill cannot
run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": PAGE_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not "no-referrer": browsers would then send "Origin: null" with our own forms, which could not be checked.
    # Other sites receive no referrer either way.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}
FILE_HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "private, no-cache",
}
# Image formats that cannot contain scripts. SVG can, so it is shown as text.
_IMAGES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
}


def image_type(name: str) -> str | None:
    """The media type of a safe image, by file name; ``None`` for other files."""
    return _IMAGES.get(name.rpartition(".")[2].lower())


def file_headers(name: str) -> dict[str, str]:
    """The headers for the bytes of a file: an image or a download, never a document."""
    image = image_type(name)
    disposition = "inline" if image else "attachment"
    return {
        **FILE_HEADERS,
        "Content-Type": image or "application/octet-stream",
        "Content-Disposition": f"{disposition}; filename*=UTF-8''{quote(name.rpartition('/')[2], safe='')}",
    }
