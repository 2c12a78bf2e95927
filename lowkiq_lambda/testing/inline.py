"""Each push performs what is due before it returns."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.jobs.job import Pushed
from lowkiq_lambda.push.middlewares import Jobs
from lowkiq_lambda.testing.kit import AppUnderTest


@contextmanager
def inline(kit: AppUnderTest) -> Iterator[AppUnderTest]:
    """The app under test, which drains behind each push until the block ends; errors of handlers leave the push."""
    performing = _Performing(kit)
    kit.app.client_middlewares.insert(0, performing)
    try:
        yield kit
    finally:
        kit.app.client_middlewares.remove(performing)


class _Performing:
    """The outermost client middleware."""

    def __init__(self, kit: AppUnderTest) -> None:
        self._kit = kit
        self._is_due = False

    def __call__(self, _worker: type[Worker[Any]], _jobs: Jobs, call_next: Callable[..., list[Pushed]]) -> list[Pushed]:
        """Push, then drain; within a handler the drain that runs performs it, or whoever began that looks again."""
        pushed = call_next()
        self._is_due = True
        while self._is_due:
            with self._kit.drain_alone() as is_alone:
                if not is_alone:
                    break
                self._is_due = False
                self._kit.drain_within()
        return pushed
