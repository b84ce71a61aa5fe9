"""What the fault suite tells at the end, and its last test."""

from collections.abc import Callable

import pytest

_SAID = pytest.StashKey[list[str]]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The test that looks back on all others runs after them."""
    items.sort(key=lambda item: item.path.name == "test_points.py")


@pytest.fixture
def say(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """A line for the summary at the end."""
    return request.config.stash.setdefault(_SAID, []).append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in config.stash.get(_SAID, []):
        terminalreporter.write_line(line)
