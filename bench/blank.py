"""The work that is measured: jobs that do nothing, as in Lowkiq's own benchmark."""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lowkiq_lambda import Batch, Config, Lowkiq
from lowkiq_lambda.declare.pushable import FunctionWorker

QUEUE: Final = "blank"
PUSHED_AT_ONCE: Final = 1_000
"""Jobs in one call of push_many."""


@dataclass(frozen=True, slots=True)
class Load:
    """How many jobs, over how many shards, how many of them in one call of the handler."""

    jobs: int = 100_000
    shards: int = 5
    batch_size: int = 100

    def pushes(self) -> Iterator[list[Mapping[str, Any]]]:
        """The jobs as they are pushed: each its own id, a short payload, and nothing else."""
        for start in range(0, self.jobs, PUSHED_AT_ONCE):
            end = min(start + PUSHED_AT_ONCE, self.jobs)
            yield [{"id": number, "payload": str(number)} for number in range(start, end)]

    def own_bytes(self) -> int:
        """Bytes of all ids and payloads: what any queue has to keep."""
        return sum(2 * len(str(number)) + len('""') for number in range(self.jobs))


def declare(url: str, load: Load, handler: Callable[[Batch], object]) -> tuple[Lowkiq, FunctionWorker]:
    """An app with default settings, and its one worker."""
    # That there are more shards than threads is what some cases are about.
    logging.getLogger("lowkiq_lambda").setLevel(logging.ERROR)
    app = Lowkiq(Config(redis_url=url))

    def blank(batch: Batch) -> None:
        handler(batch)

    return app, app.worker(queue_name=QUEUE, shards_count=load.shards, batch_size=load.batch_size)(blank)
