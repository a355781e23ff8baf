"""A server on stdio that answers every request with an error whose text is an attack."""

from __future__ import annotations

import json
import sys

from web.hostile import BROKEN_OUT, IMAGE, SCRIPT

if __name__ == "__main__":
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            error = {"code": -32603, "message": f"{SCRIPT} {IMAGE} {BROKEN_OUT}", "data": SCRIPT}
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
