"""A missing private name of the SDK or of uvicorn is one of our errors, with a hint."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from skillwire.errors import FormatError
from skillwire.server.sdk_compat import check_uvicorn_protocol, connection_of, wrap_session_manager


@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda: connection_of(SimpleNamespace()), id="session"),  # type: ignore[arg-type]
        pytest.param(
            lambda: wrap_session_manager(SimpleNamespace(session_manager=SimpleNamespace()), lambda app, _: app),  # type: ignore[arg-type]
            id="sessions",
        ),
        pytest.param(lambda: check_uvicorn_protocol(object), id="uvicorn"),
    ],
)
def test_a_missing_private_name_is_reported(use: Any) -> None:
    with pytest.raises(FormatError) as caught:
        use()
    assert caught.value.reference == "sdk-incompatible"
    assert "pip install" in caught.value.hint
