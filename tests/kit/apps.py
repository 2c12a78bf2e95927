"""Apps that tests make, and end."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from lowkiq_lambda import Lowkiq

MakeApp: TypeAlias = Callable[..., Lowkiq]
"""Takes settings by their names."""


def close_app(app: Lowkiq) -> None:
    """Let the threads and the connections go that it has made; a test that uses it later gets new ones."""
    app.core.pushes.end()
    app.core.drains.drop()
    for backend in app.core.connections.opened:
        backend.client.close()


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
