"""A `perform_job` that returns what it should have yielded (J-5)."""

import itertools
import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from lowkiq_lambda import BatchJob, HandlerError, Lowkiq, Worker, iterate
from lowkiq_lambda.testing import AppUnderTest
from tests.kit.handlers import Notes
from tests.kit.workers import declare, jobs_of


def doing(done: list[Any]) -> Callable[[Any], Any]:
    """Does an item."""

    def do(item: Any) -> Any:
        done.append(item)
        return item

    return do


@pytest.mark.parametrize(
    "made",
    [
        lambda do: map(do, "ab"),
        lambda do: filter(do, "ab"),
        lambda do: (do(item) for item in "ab"),
        lambda do: itertools.starmap(do, [("a",)]),
        lambda do: zip(map(do, "ab"), "ab", strict=True),
        lambda _do: iterate.sequence("ab"),
    ],
    ids=["map", "filter", "generator", "itertools", "zip", "loop"],
)
@pytest.mark.parametrize("method", ["perform", "perform_job"])
def test_an_iterator_that_nobody_reads_is_a_failure(app: Lowkiq, queue_name: str, made: Any, method: str) -> None:
    """Its work was not done: the job is tried again with code that does it."""
    done: list[Any] = []

    def handle(_self: Worker, _what: Any) -> Any:
        return made(doing(done))

    worker = declare(app, queue_name, Notes(), **{"perform": None, method: handle})
    worker.push_many(jobs_of("a"))

    assert 1 == app.drain()["retried"]
    [waiting] = app.operate(worker).waiting.fetch(["a"])
    assert "so its work was not done" in str(waiting.error)
    assert [] == done


def test_a_coroutine_that_returns_an_iterator_fails_too(app: Lowkiq, queue_name: str) -> None:
    """The same, awaited."""

    async def perform_job(_self: Worker, _job: BatchJob) -> Any:
        return map(str, "ab")

    declare(app, queue_name, Notes(), perform_job=perform_job).push_many(jobs_of("a"))

    assert 1 == app.drain()["retried"]


@pytest.mark.parametrize("result", [[1], (1,), []], ids=repr)
def test_a_list_is_warned_of_once(app: Lowkiq, queue_name: str, caplog: pytest.LogCaptureFixture, result: Any) -> None:
    """Its work is done, and a retry would do it twice: so the job is done."""
    worker = declare(app, queue_name, Notes(), perform_job=lambda _self, _job: result)
    with caplog.at_level(logging.WARNING, "lowkiq_lambda.engine.results"):
        for _ in range(2):
            worker.push_many(jobs_of("ab"))
            assert 2 == app.drain()["done"]

    assert [f"Noting.perform_job returned a {type(result).__name__}: is a yield missing? Else return nothing."] == [
        record.message for record in caplog.records
    ]


def test_other_results_are_nobodys_business(app: Lowkiq, queue_name: str, caplog: pytest.LogCaptureFixture) -> None:
    """A database's cursor is an iterator, too, but its statement has run; a `perform` may return a list."""
    with closing(sqlite3.connect(":memory:")) as db, caplog.at_level(logging.WARNING):
        results = [db.execute("SELECT 1"), {"a": 1}, "text", 5]
        worker = declare(app, queue_name, Notes(), perform_job=lambda _self, _job: results.pop())
        plain = declare(app, f"{queue_name}-plain", Notes(), perform=lambda _self, _batch: [1])
        worker.push_many(jobs_of("abcd"))
        plain.push_many(jobs_of("a"))

        assert 5 == app.drain()["done"]

    assert [] == [record.message for record in caplog.records if "returned" in record.message]


def test_the_kit_fails_a_list(lowkiq: AppUnderTest) -> None:
    """In a test nobody reads the log, and nothing is done twice."""

    @lowkiq.app.worker
    class Listing(Worker):
        queue_name = "listing"

        def perform_job(self, job: BatchJob) -> Any:
            return [job.id]

    Listing.push(1, None)

    with pytest.raises(HandlerError, match=r"Listing\.perform_job returned a list: is a yield missing"):
        lowkiq.drain()
