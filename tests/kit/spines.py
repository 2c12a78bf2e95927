"""How deep a handler lies: the calls between whoever starts it and itself."""

import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lowkiq_lambda import Batch, BatchJob, Lowkiq
from tests.kit.workers import declare


class Spine:
    """Notes the calls around a handler, each as the file and the function, the handler's own as the last."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def note(self, _given: object) -> None:
        """Called by the handler."""
        codes = [frame.f_code for frame, _line in traceback.walk_stack(sys._getframe(1))]
        self.calls = [f"{Path(code.co_filename).stem}.{code.co_qualname}" for code in reversed(codes)]

    def check(self, name: str, most: int) -> None:
        """From the last call of this name on there are no more than `most`; that one, and the handler's, count too."""
        assert name in self.calls, "\n".join(self.calls)
        position = len(self.calls) - self.calls[::-1].index(name) - 1
        calls = self.calls[position:]
        assert len(calls) <= most, "\n".join([f"{len(calls)} calls, {most} are allowed:", *calls])


def perform(app: Lowkiq, name: str, spine: Spine, **options: Any) -> None:
    """Declare a worker with `perform`."""
    declare(app, name, spine.note, **options)


def function(app: Lowkiq, name: str, spine: Spine, **options: Any) -> None:
    """Declare a function as a worker."""

    @app.worker(queue_name=name, shards_count=1, **options)
    def handler(batch: Batch[Any]) -> None:
        spine.note(batch)


def perform_job(app: Lowkiq, name: str, spine: Spine, **options: Any) -> None:
    """Declare a worker with `perform_job`."""
    declare(app, name, spine.note, perform_job=lambda _self, job: spine.note(job), **options)


def with_cursor(app: Lowkiq, name: str, spine: Spine, **options: Any) -> None:
    """Declare a worker whose `perform_job` yields cursors."""

    def perform_job(_self: object, job: BatchJob[Any]) -> Iterator[int]:
        spine.note(job)
        yield 1

    declare(app, name, spine.note, perform_job=perform_job, **options)


KINDS = [perform, function, perform_job, with_cursor]
