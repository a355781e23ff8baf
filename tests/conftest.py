"""What all tests share: one async backend, and hypothesis profiles that never flake on a slow machine."""

from __future__ import annotations

import logging
import os
import signal
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from matrix import print_matrix

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _pytest.terminal import TerminalReporter

pytest_plugins = ["databases", "key_set", "rules", "rotation"]

settings.register_profile("default", deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", parent=settings.get_profile("default"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_configure() -> None:
    """Started with ``nohup`` or in the background, a process ignores signals, and so would every child.

    A handler that does nothing keeps pytest alive as well, but is not inherited: children get the defaults.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True, scope="session")
def own_caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Servers that tests start remember the folders they served; not in the home of whoever runs the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("caches")))
        yield


@pytest.fixture(autouse=True)
def usual_logs() -> Iterator[None]:
    """Verbs quiet loggers of their process; a test that runs one here leaves them as they were."""
    loggers = [
        logging.getLogger(name)
        for name in ("skillwire.host", "skillwire.access", "skillwire.cache", "mcp", "httpx2")
    ]
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    print_matrix(terminalreporter)
