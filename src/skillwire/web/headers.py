"""What every answer to a browser says about itself: what it may load, and what it may not be taken for.

A page runs our own scripts and styles and nothing else: none inline, none from elsewhere. A file of a skill is
never a document of ours: it is downloaded, or it is a raster image, and is sandboxed in any case. So a skill full
of HTML has nowhere to run.
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
    # Not "no-referrer": with that a browser sends "Origin: null" with our own forms, and nobody could check them.
    # Other sites learn nothing either way.
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
# The images that cannot hold a script. SVG can, so that it is text here.
_IMAGES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
}


def image_type(name: str) -> str | None:
    """The type of an image that may be shown as one, by the file's name; ``None`` for all else."""
    return _IMAGES.get(name.rpartition(".")[2].lower())


def file_headers(name: str) -> dict[str, str]:
    """For the bytes of a file of a skill: an image to look at, or something to download. Never a document."""
    image = image_type(name)
    disposition = "inline" if image else "attachment"
    return {
        **FILE_HEADERS,
        "Content-Type": image or "application/octet-stream",
        "Content-Disposition": f"{disposition}; filename*=UTF-8''{quote(name.rpartition('/')[2], safe='')}",
    }
