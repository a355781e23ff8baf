"""Files in a browser: their headers and views."""

from __future__ import annotations

import pytest

from skillwire.limits import MIB
from skillwire.web.files import FILE_HEADERS, file_headers, file_view


@pytest.mark.parametrize("name", ["a.html", "a.svg", "a.png.html", "a"])
def test_a_file_is_downloaded_and_never_a_document(name: str) -> None:
    headers = file_headers(name)
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["Content-Disposition"].startswith("attachment;")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Security-Policy"].startswith("sandbox;")


@pytest.mark.parametrize(("name", "kind"), [("a.png", "png"), ("x/a.JPG", "jpeg")])
def test_a_raster_image_may_be_looked_at(name: str, kind: str) -> None:
    headers = file_headers(name)
    assert headers["Content-Type"] == f"image/{kind}"
    assert headers["Content-Disposition"].startswith("inline;")
    assert headers.items() >= FILE_HEADERS.items()


def test_a_file_name_cannot_add_a_header() -> None:
    value = file_headers('x"; y\r\nSet-Cookie: a=b;é.bin')["Content-Disposition"]
    assert value.isascii()
    assert value.isprintable()
    assert value.count(";") == 1
    assert '"' not in value


@pytest.mark.parametrize("data", [b"rm -rf /\x00", b"rm -rf /\n" * (MIB // 8)], ids=["zero byte", "long"])
def test_a_review_shows_text_that_other_pages_do_not_show(data: bytes) -> None:
    assert file_view(data, "run.sh", link=str).html is None
    shown = file_view(data, "run.sh", link=str, is_review=True).html
    assert shown is not None
    assert "rm" in shown.striptags()


def test_bytes_are_not_shown_as_text() -> None:
    assert file_view(b"\xff\xfe", "a.bin", link=str, is_review=True).kind == "bytes"
