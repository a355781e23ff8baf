"""Where a test runs: over which transport, in which protocol era.

A test that uses a fixture with settings (``setting`` in ``interaction``, ``server`` in ``adversarial``) could run
in each of them. Most tests cannot fail in one setting only, so each runs in one of the quick settings and, in
``make test-full``, in one of the slow settings. The choice follows from the test's id: it is the same in each run,
and the cases of a test are spread over the settings.

- ``@every_setting`` runs a test in all of them: use it if the outcome can depend on the transport or the era.
- ``pytest --every-setting`` does this for all tests.
- ``slow`` settings (stdio, the handshake era) and slow tests are left to ``make test-full``.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

every_setting = pytest.mark.every_setting
SLOW_FOLDERS = ("e2e", "docs", "conform")


def settings(quick: Iterable[tuple[str, ...]], slow: Iterable[tuple[str, ...]] = ()) -> list[Any]:
    """The parameters of a fixture. A test gets one of ``quick`` and, in ``make test-full``, one of ``slow``."""
    return [*(_parameter(each, "quick") for each in quick), *(_parameter(each, "slow") for each in slow)]


def rotated_settings(settings: Iterable[tuple[str, ...]]) -> list[Any]:
    """The same, if ``make test`` runs one of them only, also for ``@every_setting``."""
    return [_parameter(each, "rotated") for each in settings]


def _parameter(setting: tuple[str, ...], kind: str) -> Any:
    name, slow = "-".join(setting), [pytest.mark.slow] if kind == "slow" else []
    return pytest.param(setting, id=name, marks=[pytest.mark.setting(name, kind), *slow])


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every-setting", action="store_true", help="run each test in all of its settings")


def pytest_configure(config: pytest.Config) -> None:
    for line in (
        "slow: not part of 'make test'; 'make test-full' runs it",
        "setting(name, kind): one of several settings (tests/rotation.py) of a test",
        "every_setting: run the test in all of its settings",
    ):
        config.addinivalue_line("markers", line)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is slow, and keep one setting of each kind per case."""
    tests = config.rootpath / "tests"
    for item in items:
        if item.path.relative_to(tests).parts[0] in SLOW_FOLDERS:
            item.add_marker("slow")
    if config.getoption("--every-setting"):
        return
    cases: dict[tuple[str, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if setting := item.get_closest_marker("setting"):
            name, kind = setting.args
            cases[item.nodeid.replace(name, "", 1), kind].append(item)
    dropped: set[pytest.Item] = set()
    for (case, kind), variants in cases.items():
        others = [*variants]
        del others[crc32(case.encode()) % len(variants)]
        if not variants[0].get_closest_marker("every_setting"):
            dropped.update(others)
        elif kind == "rotated":
            for item in others:
                item.add_marker("slow")
    if dropped:
        config.hook.pytest_deselected(items=list(dropped))
        items[:] = [item for item in items if item not in dropped]
