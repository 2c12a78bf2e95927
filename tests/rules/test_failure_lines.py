"""The log of failures: a line for each, and a traceback for those that are alike once a minute."""

import logging
import threading
from typing import Any

import pytest

from lowkiq_lambda import Batch, BatchJob, Worker
from lowkiq_lambda.engine.failure_log import MOST, PERIOD, FailureLog
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.workers import jobs_of

LOGGER = "lowkiq_lambda.engine.failure_log"


def find_amount(order: dict[str, int]) -> int:
    """Where the handlers of these tests fail."""
    return order["amount"]


def failures_of(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """The fields of the lines, and whether there is a traceback."""
    records = [record for record in caplog.records if record.name == LOGGER]
    return [vars(record) | {"traced": record.exc_info is not None} for record in records]


class FailingShop(Worker[Any]):
    """One by one."""

    batch_size = 10

    def perform_job(self, _job: BatchJob[Any]) -> None:
        """Fail."""
        find_amount({})


class FailingErp(Worker[Any]):
    """All at once."""

    batch_size = 10

    def perform(self, _batch: Batch[Any]) -> None:
        """Fail."""
        find_amount({})


class FailingAsyncShop(Worker[Any]):
    """On a loop."""

    batch_size = 10

    async def perform_job(self, _job: BatchJob[Any]) -> None:
        """Fail."""
        find_amount({})


class FailingAsyncErp(Worker[Any]):
    """On a loop, all at once."""

    batch_size = 10

    async def perform(self, _batch: Batch[Any]) -> None:
        """Fail."""
        find_amount({})


@pytest.mark.parametrize("worker", [FailingShop, FailingErp, FailingAsyncShop, FailingAsyncErp])
def test_each_failure_is_a_line_and_the_first_alone_has_a_traceback(
    worker: type[Worker[Any]], make_app: MakeApp, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The others name the error, and the places in the user's code: none of ours."""
    app = make_app()
    declared: type[Worker[Any]] = type("Declared", (worker,), {"queue_name": queue_name, "shards_count": 1})
    app.worker(declared)
    declared.push_many(jobs_of("abc"))

    app.drain()

    first, *others = failures_of(caplog)
    assert (True, "KeyError: 'amount'", queue_name) == (first["traced"], first["error"], first["queue"])
    assert {False} == {line["traced"] for line in others}
    assert {"KeyError: 'amount'"} == {line["error"] for line in others}
    for line in others:
        places = line["frames"].split(" > ")
        assert 2 == len(places)
        assert places[0].startswith("tests/rules/test_failure_lines.py:")
        assert places[0].endswith((" in perform_job", " in perform"))
        assert places[1].endswith(" in find_amount")
    assert {"a", "b", "c"} == {job_id for line in (first, *others) for job_id in line["ids"]}


def fail(log: FailureLog, error: BaseException, queue: str = "shop") -> None:
    """Once more."""
    log.write("a job failed", {"queue": queue}, error)


def test_a_minute_later_there_is_a_traceback_that_counts_those_without(caplog: pytest.LogCaptureFixture) -> None:
    """Alike are errors that differ in their numbers, of one queue."""
    clock = ManualClock()
    log = FailureLog(clock)

    for number in range(4):
        fail(log, ValueError(f"order {number} has no amount"))
    clock.advance(PERIOD)
    fail(log, ValueError("order 5 has no amount"))
    fail(log, ValueError("order 6 has no amount"))
    fail(log, ValueError("order 7 has no amount"), "erp")
    fail(log, TypeError("order 8 has no amount"))

    lines = failures_of(caplog)
    assert [True, False, False, False, True, False, True, True] == [line["traced"] for line in lines]
    assert [None, None, None, None, 3, None, None, None] == [line.get("repeats") for line in lines]


def test_what_is_remembered_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """Of many kinds of errors the one that had its traceback first is forgotten."""
    log = FailureLog(ManualClock())
    kinds = [type(f"Error{number}", (Exception,), {}) for number in range(MOST + 1)]

    for kind in kinds:
        fail(log, kind("no"))
    caplog.clear()
    fail(log, kinds[1]("no"))
    fail(log, kinds[0]("no"))

    assert [False, True] == [line["traced"] for line in failures_of(caplog)]


def test_threads_that_fail_alike_share_one_traceback(caplog: pytest.LogCaptureFixture) -> None:
    """None of them is missing, and none is counted twice."""
    clock = ManualClock()
    log, begin = FailureLog(clock), threading.Barrier(8)

    def run() -> None:
        begin.wait()
        for _ in range(50):
            fail(log, ValueError("no"))

    with caplog.at_level(logging.WARNING):
        threads = [threading.Thread(target=run) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        clock.advance(PERIOD)
        fail(log, ValueError("no"))

    lines = failures_of(caplog)
    assert (401, 2) == (len(lines), sum(line["traced"] for line in lines))
    assert 399 == lines[-1]["repeats"]


class Unreadable(Exception):
    """Raises wherever it is read."""

    def __str__(self) -> str:
        raise ValueError("this cannot be read")

    @property
    def exceptions(self) -> Any:
        """As above."""
        raise ValueError("this cannot be read")


def test_an_error_that_cannot_be_read_has_its_lines(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever the user's class does."""
    log = FailureLog(ManualClock())

    fail(log, Unreadable())
    fail(log, Unreadable())

    assert [True, False] == [line["traced"] for line in failures_of(caplog)]
    assert all("Unreadable" in line["error"] for line in failures_of(caplog))
