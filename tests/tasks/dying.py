"""Processes that die in the middle of what they do for a task."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from lowkiq_lambda import Lowkiq
from tests.kit.deaths import Died


class Calls:
    """The calls of scripts that an app makes, and the one at which it dies: from then on none reaches the server.

    `answered`: that last call reaches the server, but its answer does not come back.
    """

    def __init__(self, dies_at: int = -1, *, answered: bool = False) -> None:
        self.names: list[str] = []
        self._dies_at = dies_at
        self._answered = answered

    def make(self, name: str, call: Callable[[], Any]) -> Any:
        """The answer of the call. Raises Died."""
        self.names.append(name)
        made = len(self.names) - 1
        if self._dies_at < 0 or made < self._dies_at:
            return call()
        if made == self._dies_at and self._answered:
            call()
        raise Died


@contextmanager
def watched(app: Lowkiq, calls: Calls) -> Iterator[None]:
    """Have the calls of the app go through these; that it dies is no error of the test."""
    with pytest.MonkeyPatch.context() as patch:
        for backend in (app.core.backend, app.core.drains.drainer._backend):
            run, call, run_each = backend.run, backend.call, backend.run_each
            patch.setattr(backend, "run", lambda *a, _run=run, **k: calls.make(a[0], lambda: _run(*a, **k)))
            patch.setattr(backend, "call", lambda *a, _call=call, **k: calls.make(a[0].name, lambda: _call(*a, **k)))
            patch.setattr(backend, "run_each", lambda *a, _each=run_each: calls.make(a[0][0][0], lambda: _each(*a)))
        with suppress(Died):
            yield
