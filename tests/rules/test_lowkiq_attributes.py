"""What a job consists of, and its defaults (L-12 to L-19)."""

import time
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from lowkiq_lambda import JobError, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes, raising
from tests.kit.workers import declare, jobs_of


def test_l12_an_integer_id_is_its_text(app: Lowkiq, queue_name: str) -> None:
    """L-12, E-61: 1 and "1" are one id, delivered as "1"; a UUID is its text too."""
    notes = Notes()
    worker = declare(app, queue_name, notes, batch_size=9)
    uuid = UUID("12345678-1234-5678-1234-567812345678")

    worker.perform_async([{"id": 1, "payload": "int"}, {"id": "1", "payload": "str"}, {"id": uuid}])
    app.drain()

    assert [{"1": ["int", "str"], str(uuid): [""]}] == notes.batches


def test_l13_payloads_are_a_set_ordered_by_score(app: Lowkiq, queue_name: str) -> None:
    """L-13, L-15: payloads come oldest first, whatever order they were pushed in, equal ones once."""
    notes = Notes()
    worker = declare(app, queue_name, notes)

    for score in (3.5, -1, 1e9, 0, 3.5):
        worker.perform_async([{"id": "a", "payload": {"score": score}, "score": score}])
    app.drain()

    assert [-1.0, 0.0, 3.5, 1e9] == notes.last.scores
    assert [{"score": score} for score in (-1, 0, 3.5, 1e9)] == notes.last.payloads


def test_l14_payload_is_any_json(app: Lowkiq, queue_name: str) -> None:
    """L-14: a payload comes back as it was, whatever JSON value it is."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    payloads: list[object] = [None, True, False, 0, -1, 1.5, 2**60, "", "день 😀 \x00", [], {}, [1, [2, {"k": [None]}]]]

    worker.perform_async({"id": "a", "payload": payload, "score": n} for n, payload in enumerate(payloads))
    app.drain()

    assert payloads == notes.last.payloads
    assert [type(payload) for payload in payloads] == [type(payload) for payload in notes.last.payloads]


def test_l14_codec_is_pluggable(make_app: MakeApp, queue_name: str) -> None:
    """L-14, LN-3: `dump_payload` and `load_payload` take the place of JSON."""
    app = make_app(
        dump_payload=lambda payload: str(payload).upper().encode(), load_payload=lambda dumped: dumped.decode()
    )
    notes = Notes()
    worker = declare(app, queue_name, notes)

    worker.perform_async([{"id": "a", "payload": "loud"}])
    app.drain()

    assert [{"a": ["LOUD"]}] == notes.batches


def test_l16_score_is_now_by_default(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """L-16, L-41: without a score the time of the push is it, and without a payload "" is."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    started = clock.time()

    worker.perform_async([{"id": "a"}])
    clock.advance(1.5)
    worker.perform_async([{"id": "a", "payload": "later"}])
    app.drain()

    assert ([started, started + 1.5], ["", "later"]) == (notes.last.scores, notes.last.payloads)


def test_l17_perform_in_is_an_absolute_time(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """L-17: in spite of its name it is a time; a job waits for it, and it is now by default."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    at = clock.time() + 60.5

    (late,) = worker.perform_async([{"id": "late", "perform_in": at}])
    (fresh,) = worker.perform_async([{"id": "now"}])
    app.drain()
    assert ([["now"]], at, at - 60.5) == (notes.ids, late.perform_in, fresh.perform_in)
    clock.advance(60.4)
    app.drain()
    assert [["now"]] == notes.ids
    clock.advance(0.1)
    app.drain()

    assert [["now"], ["late"]] == notes.ids


def test_l17_perform_in_may_be_a_datetime_and_delay_is_the_relative_form(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """L-17: an aware datetime is its moment; `delay` counts from now, in seconds or as a timedelta."""
    worker = declare(app, queue_name, Notes())
    now = clock.time()
    moment = datetime.fromtimestamp(now + 5, UTC)

    pushed = worker.perform_async(
        [
            {"id": "a", "perform_in": moment},
            {"id": "b", "delay": 2.5},
            {"id": "c", "delay": timedelta(minutes=1)},
            {"id": "d", "delay": 0},
        ]
    )

    assert [now + 5, now + 2.5, now + 60, now] == [one.perform_in for one in pushed]


def test_l18_retry_count_starts_at_minus_one_and_counts_planned_retries(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """L-18: a new job has -1, one that failed once has 0, and so on."""
    notes = Notes(raising())
    worker = declare(app, queue_name, notes)
    worker.perform_async(jobs_of("a"))

    for _ in range(3):
        app.drain()
        clock.advance(100)

    assert [-1.0, 0.0, 1.0] == [job.retry_count for (job,) in notes.jobs]


@pytest.mark.parametrize("score", [2**53, -(2**53), 2**53 - 1, 1_700_000_000_123_457])
def test_l19_integers_are_exact_within_two_to_53(app: Lowkiq, queue_name: str, score: int) -> None:
    """L-19, E-48: scores pass through Redis without a digit lost, as far as a double has them."""
    notes = Notes()
    worker = declare(app, queue_name, notes)

    worker.perform_async([{"id": "a", "score": score}])
    app.drain()

    assert [score] == notes.last.scores


@pytest.mark.parametrize("decimals", [0.123457, 0.000001, 0.999999])
def test_l19_times_keep_their_microseconds(app: Lowkiq, clock: ManualClock, queue_name: str, decimals: float) -> None:
    """L-19, E-48: a time passes through Redis and Lua without being rounded to 14 digits."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    at = 1_700_000_000 + decimals

    (pushed,) = worker.perform_async([{"id": "a", "perform_in": at}])
    (again,) = worker.perform_async([{"id": "a", "payload": 2}])
    app.drain()

    assert [at] * 3 == [pushed.perform_in, again.perform_in, notes.last.perform_in]
    assert at < clock.time()


def test_fields_that_are_no_fields_are_refused(app: Lowkiq, queue_name: str) -> None:
    """A misspelled field would silently do nothing, so it is an error that names the fields there are."""
    worker = declare(app, queue_name, Notes())

    with pytest.raises(JobError, match="job 0: perform_at: no such field: a job has delay, id, payload"):
        worker.perform_async([{"id": "a", "perform_at": time.time()}])
