"""Apps that have tasks."""

from collections.abc import Iterator

import pytest

from lowkiq_lambda import Lowkiq, Worker
from tests.kit.handlers import Notes
from tests.kit.workers import declare
from tests.tasks.watching import forget_tasks


@pytest.fixture
def told() -> Notes:
    """The handler of callbacks."""
    return Notes()


@pytest.fixture
def callback(app: Lowkiq, queue_name: str, told: Notes) -> type[Worker]:
    """The worker of callbacks."""
    return declare(app, f"{queue_name}-callback", told)


@pytest.fixture(autouse=True)
def _no_tasks_of_others(app: Lowkiq) -> Iterator[None]:
    """All tasks of a server have one list: what a test leaves, here or elsewhere, must not keep the next one busy."""
    forget_tasks(app)
    yield
    forget_tasks(app)
