"""A page of another site on this machine, which tries to send forms to the desk."""

from __future__ import annotations

import json
from contextlib import contextmanager
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@contextmanager
def strangers_page(html: str) -> Iterator[int]:
    """``html`` at every path of a server of its own; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = html.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is http.server's
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def posting(action: str, fields: Mapping[str, str]) -> str:
    """A page with a form that looks like a harmless button and goes to ``action``."""
    inputs = "".join(f'<input type=hidden name="{escape(k)}" value="{escape(v)}">' for k, v in fields.items())
    return (
        f'<!doctype html><form method=post action="{escape(action)}">{inputs}<button>Win a prize</button></form>'
    )


def fetching(action: str, fields: Mapping[str, str]) -> str:
    """A page that sends the same without being asked, with every cookie that the browser has for it."""
    body = json.dumps(dict(fields)).replace("<", "\\u003c")
    return f"""<!doctype html><title>waiting</title><script>
      fetch({json.dumps(action)}, {{method: "POST", mode: "no-cors", credentials: "include",
        body: new URLSearchParams({body})}}).catch(() => 0).finally(() => document.title = "sent");
    </script>"""


def framing(address: str) -> str:
    """A page with the desk inside, invisible over a button."""
    return f'<!doctype html><iframe src="{escape(address)}" width=900 height=900></iframe>'
