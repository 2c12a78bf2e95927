"""Errors of three kinds, and rules by which a worker decides about each."""

from collections.abc import Callable
from typing import Any

from lowkiq_lambda import Batch, Lowkiq, Worker, discard_on, kill_on, retry_on
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Notes
from tests.kit.looks import look
from tests.kit.workers import declare


class Permanent(Exception):
    """No retry would change it."""


class Gone(Exception):
    """The job is obsolete."""

    code = 410


class Throttled(Exception):
    """The other side says when to come again."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__(f"in {seconds:.0f} s")
        self.seconds = seconds


RULES = (
    retry_on(Throttled, delay=lambda _count, error: error.seconds, most=2),
    kill_on(Permanent),
    discard_on(Gone, when=lambda error: error.code == 410),
)
ERRORS = {"permanent": Permanent("no schema"), "gone": Gone("order 7"), "throttled": Throttled(77)}


def failing_with(**errors: BaseException) -> Callable[[Batch], None]:
    """Fails, by name, each id whose first payload is one of these words."""

    def then(batch: Batch) -> None:
        for job_id, payloads in batch.items():
            if payloads[0] in errors:
                batch.fail(job_id, errors[str(payloads[0])])

    return then


def with_rules(app: Lowkiq, queue_name: str, notes: Notes, **fields: Any) -> type[Worker]:
    """A worker with the rules above, whose other errors are tried again after 10, 20 ... seconds."""
    return declare(app, queue_name, notes, **{"on_error": RULES, **fields})


def dead_of(app: Lowkiq, worker: type[Worker]) -> dict[str, list[object]]:
    """The payloads in the morgue, by id."""
    return {job.id: [payload for payload, _ in job.payloads] for job in app.operate(worker).morgue.list("id")}


def due_in(app: Lowkiq, worker: type[Worker], clock: ManualClock, job_id: str = "a") -> float:
    """Seconds until the id is due."""
    waiting = look(app, worker, job_id)
    assert waiting is not None
    return waiting.due_at - clock.time()
