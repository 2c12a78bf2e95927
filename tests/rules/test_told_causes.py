"""`why` tells why: of what has failed the error and the next retry, of what is dead the cause."""

import zlib
from typing import Any

import pytest

from lowkiq_lambda import Batch, ErrorRule, Lowkiq, Rejected, kill_on, retry_on
from lowkiq_lambda.operate.presentation.diagnosis import Diagnosis
from lowkiq_lambda.operate.presentation.jobs import why
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Notes, raising
from tests.kit.workers import declare, jobs_of


def handler(batch: Batch) -> None:
    """Its ids are broken."""
    for job_id in batch:
        batch.fail(job_id, ValueError(f"{job_id} is broken"))


def told(app: Lowkiq, worker: Any, job_id: str = "a") -> Diagnosis:
    """The answer for the id."""
    return why(app.operate, worker, app.operate(worker).explain(job_id))


def test_a_failed_job_tells_its_error_and_its_retry(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Which error, how long ago, which retry of how many, and when."""
    worker = declare(app, queue_name, handler, max_retry_count=3)
    worker.push_many(jobs_of("a"))
    app.drain()
    clock.advance(4.0)
    first = told(app, worker).sentence
    clock.advance(6.0)
    due = told(app, worker)
    app.drain()
    clock.advance(5.0)

    assert "It failed once (with a is broken, 4.0 s ago) and will be retried in 6.0 s: retry 1 of 3." == first
    assert "It failed once (with a is broken, 10 s ago); this is retry 1 of 3." in due.more
    assert (
        "It failed twice (the last time with a is broken, 5.0 s ago) and will be retried in 15 s: retry 2 of 3."
        == told(app, worker).sentence
    )


def test_a_rule_of_the_error_bounds_its_retries(app: Lowkiq, queue_name: str) -> None:
    """The sentence has the `most` of the rule that decided, and the worker's number if that is smaller, or without."""
    on_error = (retry_on(ValueError, most=3), retry_on(KeyError, most=300), retry_on(OSError))
    errors = {"a": ValueError("v"), "b": KeyError("k"), "c": OSError("o"), "d": RuntimeError("r")}

    def fail(batch: Batch) -> None:
        for job_id in batch:
            batch.fail(job_id, errors[job_id])

    worker = declare(app, queue_name, fail, max_retry_count=7, on_error=on_error)
    worker.push_many(jobs_of("abcd"))
    app.drain()

    sentences = [told(app, worker, job_id).sentence for job_id in errors]
    assert [f"retry 1 of {most}." for most in (3, 7, 7, 7)] == [text.rpartition(": ")[2] for text in sentences]


def test_a_dead_job_tells_that_its_retries_are_used_up(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """All of its tries are counted, and the last error is named."""
    worker = declare(app, queue_name, handler, max_retry_count=2)
    worker.push_many(jobs_of("a"))
    for wait in (10.0, 20.0, 29.0):
        app.drain()
        clock.advance(wait)

    assert (
        "It has been in the morgue for 29 s: all 3 tries failed, the last one with "
        "a is broken. It runs again only if an operator requeues it." == told(app, worker).sentence
    )


def test_a_blocked_job_tells_its_error_and_no_retry(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Its retries are used up, and an operator decides: no sentence speaks of one that comes."""
    worker = declare(app, queue_name, handler, max_retry_count=0, dead_head="block")
    worker.push_many(jobs_of("a"))
    app.drain()
    clock.advance(5.0)

    answer = told(app, worker)

    assert "It has been blocked for 5.0 s" in answer.sentence
    assert ("Its error was a is broken.",) == answer.more


def test_a_dead_job_tells_that_it_was_an_operator(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """With the error that it had before, if it had one."""
    worker = declare(app, queue_name, handler)
    worker.push_many([*jobs_of("a"), {"id": "b", "delay": 60}])
    app.drain()
    clock.advance(1.0)
    app.operate(worker).waiting.kill(everything=True)
    app.operate(worker).waiting.kill(["b"], error="not wanted")

    assert "an operator killed it; before, it had failed with a is broken." in told(app, worker).sentence
    assert "an operator killed it before it had ever failed." in told(app, worker, "b").sentence


def test_a_job_that_ended_its_process_tells_so(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Neither an error of its own nor an operator: its process died."""
    mortal, notes = Mortal(app), Notes()
    notes.then = lambda _batch: mortal.die()
    worker = declare(app, queue_name, notes)
    worker.push_many(jobs_of("a"))
    while mortal.drain() is None:
        outlive(app, clock, worker)

    assert ": the process died each time this job ran alone. It runs" in told(app, worker).sentence


def test_a_later_failure_of_the_id_is_not_told_as_the_cause(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Where another payload of a dead id has failed since, both are told, each in its place."""
    worker = declare(app, queue_name, handler, max_retry_count=1)
    worker.push_many([{"id": "a", "payload": 1}, {"id": "a", "payload": 2}])
    for _ in range(2):
        app.drain()
        clock.advance(10.0)

    answer = told(app, worker)

    assert "this is retry 1 of 1." in " ".join(answer.more)
    assert "Other payloads of this id died" in " ".join(answer.more)


def test_an_error_is_read_by_the_codec_of_the_app(make_app: MakeApp, queue_name: str) -> None:
    """As it is on each other page."""
    app = make_app(
        dump_error=lambda text: zlib.compress(text.encode()), load_error=lambda kept: zlib.decompress(kept).decode()
    )
    worker = declare(app, queue_name, handler)
    worker.push_many(jobs_of("a"))
    app.drain()

    assert "with a is broken" in told(app, worker).sentence


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (
            kill_on(ValueError),
            "its only try failed, with a is broken; kill_on(ValueError) decided that there is no other.",
        ),
        (retry_on(ValueError, delay=7), "It failed once (with a is broken, 0 s ago; retry_on(ValueError) decided"),
    ],
    ids=["kill", "retry"],
)
def test_a_rule_that_decided_is_told(app: Lowkiq, queue_name: str, rule: ErrorRule, sentence: str) -> None:
    """By its name, with the error."""
    worker = declare(app, queue_name, handler, on_error=(rule,))
    worker.push_many(jobs_of("a"))
    app.drain()

    assert sentence in told(app, worker).sentence


def test_a_rule_that_blocked_a_head_is_told(app: Lowkiq, queue_name: str) -> None:
    """As its error is."""
    worker = declare(app, queue_name, handler, on_error=(kill_on(ValueError),), dead_head="block")
    worker.push_many(jobs_of("a"))
    app.drain()

    assert ("Its error was a is broken; kill_on(ValueError) decided about it.",) == told(app, worker).more


def test_a_rejection_that_was_kept_is_told(app: Lowkiq, queue_name: str) -> None:
    """It is no failure, and no operator's act."""
    worker = declare(app, queue_name, raising(Rejected("sold out", keep=True)))
    worker.push_many(jobs_of("a"))
    app.drain()

    assert ": it ended with sold out, which said keep=True. It runs" in told(app, worker).sentence
