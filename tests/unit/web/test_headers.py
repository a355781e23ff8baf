"""Security headers."""

from __future__ import annotations

import pytest

from skillwire.web.headers import FILE_HEADERS, PAGE_HEADERS, file_headers


def test_a_page_runs_only_our_own_scripts() -> None:
    policy = dict(part.strip().split(" ", 1) for part in PAGE_HEADERS["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["img-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in PAGE_HEADERS["Content-Security-Policy"]


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
