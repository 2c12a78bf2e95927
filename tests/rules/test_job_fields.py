"""Scores and times (E-63, E-64, E-67), and what a call of `perform_async` takes (E-72)."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from itertools import product
from types import MappingProxyType
from typing import Any

import pytest

from lowkiq_lambda import JobError, Lowkiq, Worker
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Notes, raising
from tests.kit.workers import declare, jobs_of
from tests.kit.looks import look


def test_e63_ties_of_scores_keep_the_order_of_arrival(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """E-63, LB-14: equal scores come by arrival, in one call and over many, and still after a retry."""
    notes = Notes(raising())
    worker = declare(app, queue_name, notes)
    payloads = ["z", "a", "m", "b", "y"]
    worker.perform_async({"id": "a", "payload": payload, "score": 7} for payload in payloads[:3])
    for payload in payloads[3:]:
        worker.perform_async([{"id": "a", "payload": payload, "score": 7}])

    app.drain()
    clock.advance(10)
    app.drain()

    assert [payloads, payloads] == [batch["a"] for batch in notes.batches]


def test_e63_defaulted_scores_never_go_back(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """E-63, E-6: a producer whose clock is a little behind does not reverse an id."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    worker.perform_async([{"id": "a", "payload": "first"}])
    clock.set_wall(clock.time() - 0.5)
    worker.perform_async([{"id": "a", "payload": "second"}])
    clock.set_wall(clock.time() + 0.5)

    app.drain()

    assert (["first", "second"], 1) == (notes.last.payloads, len(set(notes.last.scores)))


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, True, None, "1", Decimal(1), [1], 1j])
def test_e64_scores_that_are_no_finite_numbers_are_refused(app: Lowkiq, queue_name: str, score: object) -> None:
    """E-64: NaN, infinities, bools and other types are refused."""
    worker = declare(app, queue_name, Notes())

    with pytest.raises(JobError, match="job 0: score: must be a finite number, not "):
        worker.perform_async([{"id": "a", "score": score}])


def test_e64_nanoseconds_are_refused(app: Lowkiq, queue_name: str) -> None:
    """E-64: two times in nanoseconds could fall into one double, so they are no scores."""
    worker = declare(app, queue_name, Notes())

    with pytest.raises(JobError, match=r"score: 1800000000000000001 is beyond ±2\^53"):
        worker.perform_async([{"id": "a", "score": 1_800_000_000_000_000_001}])


def test_e64_negative_zero_and_tiny_scores_have_their_place(app: Lowkiq, queue_name: str) -> None:
    """E-64: -0.0 is 0.0 (so it merges with it), and order holds around zero."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    scores = [1e-300, -1e-300, 5e-324, -5e-324, 0.0, -(2**53), 2**53]

    worker.perform_async({"id": "a", "payload": score, "score": score} for score in scores)
    worker.perform_async([{"id": "b", "score": 0.0}, {"id": "b", "score": -0.0}])
    app.drain()

    (a,), (b,) = notes.jobs
    assert (sorted(scores), "[0.0]") == (a.scores, str(b.scores))


@pytest.mark.parametrize("job", [{"id": "b", "payload": {10**5_000: 1}}, {"id": "b", 10**5_000: 1}])
def test_e64_integers_as_names_are_refused(app: Lowkiq, queue_name: str, job: dict[Any, Any]) -> None:
    """E-64: names that Python itself will not write out are the job's error, too."""
    worker = declare(app, queue_name, Notes())

    with pytest.raises(JobError, match="job 1: ") as caught:
        worker.perform_async([{"id": "a"}, job])

    assert 1 == caught.value.position


@pytest.mark.parametrize(("field", "digits"), [*product(["score", "perform_in", "delay"], [400, 5_000]), ("id", 5_000)])
def test_e64_integers_that_no_float_holds_are_refused(app: Lowkiq, queue_name: str, field: str, digits: int) -> None:
    """E-64: however large a number is, the error is the job's, with its position and field."""
    worker = declare(app, queue_name, Notes())

    with pytest.raises(JobError, match="job 1: ") as caught:
        worker.perform_async([{"id": "a"}, {"id": "b", field: 10**digits}])

    assert (1, field) == (caught.value.position, caught.value.field)


@pytest.mark.parametrize(
    ("perform_in", "why"),
    [
        (1_800_000_000_000, "looks like milliseconds: give seconds"),
        (1_800_000_000_000.5, "looks like milliseconds"),
        (253_402_300_800, "looks like milliseconds"),
        (datetime.max.replace(tzinfo=UTC), "lies beyond the year 9999"),
        (60, "for seconds from now use delay"),
        (0, "for seconds from now use delay"),
        (-1, "for seconds from now use delay"),
        (math.nan, "must be Unix seconds or an aware datetime"),
        (math.inf, "must be Unix seconds or an aware datetime"),
        (True, "must be Unix seconds or an aware datetime"),
        (None, "must be Unix seconds or an aware datetime"),
        ("1800000000", "must be Unix seconds or an aware datetime"),
        (timedelta(seconds=5), "must be Unix seconds or an aware datetime"),
        (datetime(2030, 1, 1), "a datetime needs a time zone"),  # noqa: DTZ001 - that is the point
        (datetime(1980, 1, 1, tzinfo=UTC), "lies before 2001"),
    ],
)
def test_e67_times_that_are_none_are_refused(app: Lowkiq, queue_name: str, perform_in: object, why: str) -> None:
    """E-67, LB-15: milliseconds, seconds from now and negative numbers never become an invisible job."""
    worker = declare(app, queue_name, Notes())

    with pytest.raises(JobError, match=f"job 0: perform_in: .*{why}"):
        worker.perform_async([{"id": "a", "perform_in": perform_in}])


@pytest.mark.parametrize("delay", [-0.1, -5, math.nan, math.inf, True, None, "5", timedelta(seconds=-1), 1e12])
def test_e67_delays_that_are_none_are_refused(app: Lowkiq, queue_name: str, delay: object) -> None:
    """E-67: a delay is at least 0 seconds, and ends before the year 10000."""
    worker = declare(app, queue_name, Notes())

    with pytest.raises(JobError, match=r"job 0: delay: (must be seconds from now|lies beyond the year 9999)"):
        worker.perform_async([{"id": "a", "delay": delay}])


def test_e67_a_time_in_the_past_is_due_at_once(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """E-67: a past time is kept as it is, so the lag is told from it, and the job runs now."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    at = clock.time() - 86_400

    (pushed,) = worker.perform_async([{"id": "a", "perform_in": at}])
    (state,) = app.drainer.probe(app.queue_of(worker).shards)
    app.drain()

    assert (at, 86_400, at) == (pushed.perform_in, state.lag, notes.last.perform_in)


@pytest.mark.parametrize(
    "perform_in",
    [
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2030, 6, 1, 12, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    ],
)
def test_e67_aware_datetimes_are_their_moments(app: Lowkiq, queue_name: str, perform_in: datetime) -> None:
    """E-67: up to the year 9999, in any time zone."""
    worker = declare(app, queue_name, Notes())

    (pushed,) = worker.perform_async([{"id": "a", "perform_in": perform_in}])

    assert perform_in.timestamp() == pushed.perform_in


def test_a_time_and_a_delay_are_one_too_many(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Giving both is an error that says what each is."""
    worker = declare(app, queue_name, Notes())

    with pytest.raises(JobError, match=r"job 0: delay: give perform_in \(a time\) or delay \(from now\), not both"):
        worker.perform_async([{"id": "a", "perform_in": clock.time(), "delay": 1}])


@pytest.mark.parametrize("job", [None, "a", 5, ["id", "a"], ("id", "a")])
def test_a_job_is_a_mapping(app: Lowkiq, queue_name: str, job: Any) -> None:
    """What is no mapping is refused by its place."""
    worker = declare(app, queue_name, Notes())

    with pytest.raises(JobError, match="job 1: a job is a mapping with an id, not "):
        worker.perform_async([{"id": "a"}, job])


def test_any_mapping_and_any_iterable_will_do(app: Lowkiq, queue_name: str) -> None:
    """Jobs may come as a generator, and be mappings of other types than dict."""
    notes = Notes()
    worker = declare(app, queue_name, notes, batch_size=9)

    def jobs() -> Iterator[MappingProxyType[str, Any]]:
        for n in range(3):
            yield MappingProxyType({"id": n})

    pushed = worker.perform_async(jobs())
    app.drain()

    assert (["0", "1", "2"], [["0", "1", "2"]]) == ([one.id for one in pushed], notes.ids)


def test_e72_an_empty_push_does_nothing(app: Lowkiq, queue_name: str) -> None:
    """E-72: no jobs are no error."""
    worker = declare(app, queue_name, Notes())

    assert ([], [], {}) == (worker.perform_async([]), worker.perform_async(iter(())), app.drain())


def test_l42_perform_async_may_be_overridden(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """L-42: a worker derives id, score and perform_in from what it is given, and calls super()."""

    class Derived(Worker):
        @classmethod
        def perform_async(cls, jobs: Any) -> Any:
            at = clock.time() + 5
            return super().perform_async(
                {"id": order["no"], "payload": order, "score": order["version"], "perform_in": at} for order in jobs
            )

        def perform(self, batch: object) -> None:
            """Nothing."""

    Derived.queue_name = queue_name
    app.worker(Derived)
    (pushed,) = Derived.perform_async([{"no": 17, "version": 3}])

    assert ("17", clock.time() + 5) == (pushed.id, pushed.perform_in)
    assert ([({"no": 17, "version": 3}, 3.0)], clock.time() + 5, -1.0, None) == look(app, Derived, "17")


def test_a_push_tells_what_became_of_each_job(app: Lowkiq, queue_name: str) -> None:
    """LB-30: id, shard, whether it met a waiting one, and the time that holds, by position."""
    worker = declare(app, queue_name, Notes(), shards_count=4)
    worker.perform_async(jobs_of("b"))

    pushed = worker.perform_async(jobs_of("abca"))

    assert [("a", False), ("b", True), ("c", False), ("a", True)] == [(one.id, one.merged) for one in pushed]


def test_one_job_in_place_of_a_list_is_refused_with_what_to_write(app: Lowkiq, queue_name: str) -> None:
    """A mapping is a job, and its names would be taken for jobs."""
    worker = declare(app, queue_name, Notes())

    with pytest.raises(JobError, match=r"takes a list of jobs, not one job: write perform_async\(\[\{\.\.\.\}\]\)"):
        worker.perform_async({"id": 1})  # type: ignore[dict-item]  # wrong on purpose
