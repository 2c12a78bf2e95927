"""Outcomes that were kept apart while it was unknown whose failures they are, and join the others."""

from typing import Any

from lowkiq_lambda import Worker
from lowkiq_lambda.base.error_text import headline
from lowkiq_lambda.engine.failure import ErrorText
from lowkiq_lambda.engine.iteration import Iteration
from lowkiq_lambda.engine.outcomes import PendingOutcomes
from lowkiq_lambda.engine.perform import BatchResult
from lowkiq_lambda.jobs.job import Delivery

ENTRY = b"\0" * 16 + b'"payload"'
TEXTS = ErrorText(headline, str.encode, bytes.decode)


def outcomes_of(id_: str, **fields: Any) -> PendingOutcomes:
    """Of an id that has failed in company, with a first failure that begins an expiry, and of one that was done."""
    body = {"batch_size": 10, "perform": lambda _self, _batch: None, "max_retry_count": 5, "retry_for": 3_600.0}
    worker: type[Worker[Any]] = type("Joining", (Worker,), {"queue_name": "joining", **body})
    pending = PendingOutcomes(worker, TEXTS)
    failing, done = (Delivery(name, [ENTRY], 0.0, -1.0) for name in (id_, f"{id_} is done"))
    iterations = {id_: Iteration.of(failing)}
    pending.add([failing, done], BatchResult(failed={id_: "down"}, iterations=iterations, **fields), lambda: 1.0)
    return pending


def test_what_joins_is_as_if_it_had_been_noted_there() -> None:
    """Outcomes in their order, what was performed, runs of cursors, and that an expiry begins."""
    joined = outcomes_of("first")
    joined.begins_expiry = False

    joined.join(outcomes_of("second", notes={"second": ["a message"]}))

    assert {"first": "retried", "second": "retried", "first is done": "done", "second is done": "done"} == dict(
        joined.named()
    )
    assert (2, True) == (joined.payloads, joined.begins_expiry)
    assert {"first", "second"} == joined.cursor_runs().keys()
    assert ["noted"] == [record[1] for record in joined.parts(partial=False)[0] if record[1] == "noted"]


def test_the_last_outcome_is_known_by_its_id() -> None:
    """An id that is done has none, and only the last one is told."""
    pending = outcomes_of("first")
    pending.join(outcomes_of("second"))

    assert (None, None) == (pending.last("first"), pending.last("second is done"))
    assert ("second", "retried") == (pending.last("second") or ())[:2]
    assert None is PendingOutcomes(Worker, TEXTS).last("second")


def test_failures_of_a_cause_outside_blame_nobody() -> None:
    """All else of their records stays."""
    pending, blamed = outcomes_of("first"), outcomes_of("first")
    pending.unblame()

    (record,), (before,) = pending.parts(partial=False)[0], blamed.parts(partial=False)[0]
    assert (False, True) == (record[6], before[6])
    assert (*before[:3], *before[4:6]) == (*record[:3], *record[4:6])
    assert before[7:] == record[7:]
