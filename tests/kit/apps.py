"""Apps that tests make, and end."""

from collections.abc import Callable
from typing import TypeAlias

from lowkiq_lambda import Lowkiq
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
import msgspec
from lowkiq_lambda import Lowkiq
from lowkiq_lambda.clock import SystemClock
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.engine.visit import DrainResult
from lowkiq_lambda.store.shard.keys import ShardRef
from tests.chaos.child import Orders
from tests.chaos.process import Child
from tests.chaos.scenario import Journal, Scenario
from tests.kit.stored import State, stored
from tests.kit.servers import Server
from tests.kit.waiting import eventually

MakeApp: TypeAlias = Callable[..., Lowkiq]
"""Takes settings by their names."""


def close_app(app: Lowkiq) -> None:
    """Let the connections go that it has made."""
    for used in (app._client_backend, app._drainer and app._drainer._backend):
        if used:
            used.client.close()


def message_of(error: BaseException) -> str:
    """An error's text without its traceback, which a test can compare."""
    return str(error) or type(error).__name__


@contextmanager
def closing_app(app: Lowkiq) -> Iterator[Lowkiq]:
    """The app, its connections closed at the end."""
    try:
        yield app
    finally:
        close_app(app)
