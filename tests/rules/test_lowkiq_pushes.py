"""Lowkiq's names of a push: `perform_async`, and the key `perform_in` of a job."""

import time
from typing import Any

import pytest

from lowkiq_lambda import JobError, Lowkiq, Worker
from tests.kit.handlers import Notes
from tests.kit.workers import declare


def declared(app: Lowkiq, queue_name: str, form: str) -> Any:
    """A worker as a class, as a function, or of another program."""
    if form == "class":
        return declare(app, queue_name, Notes())
    function = app.worker(queue_name=queue_name, shards_count=1)(print)
    function.push("first")
    return function if form == "function" else app.remote(queue_name)


@pytest.mark.parametrize("form", ["class", "function", "remote"])
def test_jobs_are_pushed_by_lowkiqs_names(app: Lowkiq, queue_name: str, form: str) -> None:
    """What comes of the push is what `push_many` gives, and the time of the job is the one that was named."""
    at = time.time() + 500.0
    (pushed,) = declared(app, queue_name, form).perform_async([{"id": "a", "payload": 1, "perform_in": at}])

    assert ("a", at) == (pushed.id, pushed.due_at)


def test_a_job_has_one_of_the_two_names(app: Lowkiq, queue_name: str) -> None:
    """Two times of one job would be one too many."""
    worker: type[Worker] = declare(app, queue_name, Notes())

    with pytest.raises(JobError, match="perform_in: is Lowkiq's name for due_at: give one of them"):
        worker.push_many([{"id": "a", "perform_in": 2e9, "due_at": 2e9}])
