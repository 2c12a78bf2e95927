"""Scores: their default, their order, and the numbers that are refused (E-63, E-64, L-16, L-19, D-5)."""

import math
from datetime import UTC, datetime
from decimal import Decimal
from itertools import product
from typing import Any

import pytest

from lowkiq_lambda import JobError
from lowkiq_lambda.testing import AppUnderTest, Drained
from tests.kit.handlers import Notes, raising
from tests.kit.workers import declare


def test_l16_score_is_now_by_default(lowkiq: AppUnderTest) -> None:
    """L-16, L-41: without a score the time of the push is it, and without a payload "" is."""
    notes = Notes()
    worker = declare(lowkiq.app, "orders", notes)
    started = lowkiq.clock.time()

    worker.push_many([{"id": "a"}])
    lowkiq.advance(seconds=1.5)
    worker.push_many([{"id": "a", "payload": "later"}])
    lowkiq.drain()

    assert ([started, started + 1.5], ["", "later"]) == (notes.last.scores, notes.last.payloads)


def test_e63_ties_of_scores_keep_the_order_of_arrival(lowkiq: AppUnderTest) -> None:
    """E-63, LB-14: equal scores come by arrival, in one call and over many, and still after a retry."""
    notes = Notes(raising())
    worker = declare(lowkiq.app, "orders", notes)
    payloads = ["z", "a", "m", "b", "y"]
    worker.push_many({"id": "a", "payload": payload, "score": 7} for payload in payloads[:3])
    for payload in payloads[3:]:
        worker.push_many([{"id": "a", "payload": payload, "score": 7}])

    lowkiq.drain(raises=False)
    lowkiq.advance(seconds=10)
    lowkiq.drain(raises=False)

    assert [payloads, payloads] == [batch["a"] for batch in notes.batches]


def test_e63_defaulted_scores_never_go_back(lowkiq: AppUnderTest) -> None:
    """E-63, E-6: a producer whose clock is a little behind does not reverse an id."""
    notes = Notes()
    worker = declare(lowkiq.app, "orders", notes)
    worker.push_many([{"id": "a", "payload": "first"}])
    lowkiq.clock.set_wall(lowkiq.clock.time() - 0.5)
    worker.push_many([{"id": "a", "payload": "second"}])
    lowkiq.clock.set_wall(lowkiq.clock.time() + 0.5)

    lowkiq.drain()

    assert (["first", "second"], 1) == (notes.last.payloads, len(set(notes.last.scores)))


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf, True, None, "1", Decimal(1), [1], 1j])
def test_e64_scores_that_are_no_finite_numbers_are_refused(lowkiq: AppUnderTest, score: object) -> None:
    """E-64: NaN, infinities, bools and other types are refused."""
    worker = declare(lowkiq.app, "orders", Notes())

    with pytest.raises(JobError, match="job 0: score: must be a finite number or an aware datetime, not "):
        worker.push_many([{"id": "a", "score": score}])


def test_a_score_may_be_an_aware_datetime(lowkiq: AppUnderTest) -> None:
    """It stands for its Unix seconds; one without a zone would mean another moment on another machine."""
    notes = Notes()
    worker = declare(lowkiq.app, "orders", notes)
    noon = datetime(2026, 11, 27, 12, 0, 0, 250_000, tzinfo=UTC)

    worker.push("a", "second", score=noon)
    worker.push("a", "first", score=noon.timestamp() - 1)
    with pytest.raises(JobError, match=r"score: a datetime needs a time zone, say datetime.now\(UTC\)"):
        worker.push("a", "third", score=noon.replace(tzinfo=None))
    lowkiq.drain()

    assert (["first", "second"], noon.timestamp()) == (notes.last.payloads, notes.last.scores[1])


def test_e64_nanoseconds_are_refused(lowkiq: AppUnderTest) -> None:
    """E-64: two times in nanoseconds could fall into one double, so they are no scores."""
    worker = declare(lowkiq.app, "orders", Notes())

    with pytest.raises(JobError, match=r"score: 1800000000000000001 is beyond ±2\^53"):
        worker.push_many([{"id": "a", "score": 1_800_000_000_000_000_001}])


def test_e64_negative_zero_and_tiny_scores_have_their_place(lowkiq: AppUnderTest) -> None:
    """E-64: -0.0 is 0.0 (so it merges with it), and order holds around zero."""
    notes = Notes()
    worker = declare(lowkiq.app, "orders", notes)
    scores = [1e-300, -1e-300, 5e-324, -5e-324, 0.0, -(2**53), 2**53]

    worker.push_many({"id": "a", "payload": score, "score": score} for score in scores)
    worker.push_many([{"id": "b", "score": 0.0}, {"id": "b", "score": -0.0}])
    lowkiq.drain()

    (a,), (b,) = notes.jobs
    assert (sorted(scores), "[0.0]") == (a.scores, str(b.scores))


@pytest.mark.parametrize("job", [{"id": "b", "payload": {10**5_000: 1}}, {"id": "b", 10**5_000: 1}])
def test_e64_integers_as_names_are_refused(lowkiq: AppUnderTest, job: dict[Any, Any]) -> None:
    """E-64: names that Python itself will not write out are the job's error, too."""
    worker = declare(lowkiq.app, "orders", Notes())

    with pytest.raises(JobError, match="job 1: ") as caught:
        worker.push_many([{"id": "a"}, job])

    assert 1 == caught.value.position


@pytest.mark.parametrize(("field", "digits"), [*product(["score", "due_at", "delay"], [400, 5_000]), ("id", 5_000)])
def test_e64_integers_that_no_float_holds_are_refused(lowkiq: AppUnderTest, field: str, digits: int) -> None:
    """E-64: however large a number is, the error is the job's, with its position and field."""
    worker = declare(lowkiq.app, "orders", Notes())

    with pytest.raises(JobError, match="job 1: ") as caught:
        worker.push_many([{"id": "a"}, {"id": "b", field: 10**digits}])

    assert (1, field) == (caught.value.position, caught.value.field)


@pytest.mark.parametrize("score", [2**53, -(2**53), 2**53 - 1, 1_700_000_000_123_457])
def test_l19_integers_are_exact_within_two_to_53(lowkiq: AppUnderTest, score: int) -> None:
    """L-19, E-48: scores pass through Redis without a digit lost, as far as a double has them."""
    notes = Notes()
    worker = declare(lowkiq.app, "orders", notes)

    worker.push_many([{"id": "a", "score": score}])
    lowkiq.drain()

    assert [score] == notes.last.scores


def test_d5_times_and_scores_are_floats(lowkiq: AppUnderTest) -> None:
    """D-5: fractions of seconds and of scores are kept as they were given."""
    notes = Notes()
    worker = declare(lowkiq.app, "orders", notes)
    at = lowkiq.clock.time() + 0.123456

    worker.push_many([{"id": "a", "score": 0.1, "due_at": at}])
    lowkiq.advance(seconds=0.123)
    assert Drained() == lowkiq.drain()
    lowkiq.advance(seconds=0.001)
    lowkiq.drain()

    assert (at, [0.1]) == (notes.last.due_at, notes.last.scores)


@pytest.mark.parametrize("score", [2**53 + 1, -(2**53) - 1, 1e300])
def test_d5_numbers_beyond_what_a_float_has_exactly_are_refused(lowkiq: AppUnderTest, score: float) -> None:
    """D-5, L-19, E-64: a score beyond 2^53 is refused, naming the rule; up to there each integer is exact."""
    notes = Notes()
    worker = declare(lowkiq.app, "orders", notes)

    with pytest.raises(JobError, match=r"job 0: score: .* beyond ±2\^53"):
        worker.push_many([{"id": "a", "score": score}])
    worker.push_many([{"id": "a", "score": 2**53, "payload": 1}, {"id": "a", "score": 2**53 - 1}])
    lowkiq.drain()

    assert [2**53 - 1, 2**53] == notes.last.scores
