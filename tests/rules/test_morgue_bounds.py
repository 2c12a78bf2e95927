"""The bounds of the morgue (E-77, LB-23, S-16)."""

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.apps import MakeApp
from tests.rules.support import counters, declare, failing, jobs_of, left_behind, raising, shard_of


def lying(app: Lowkiq, queue_name: str) -> dict[str, list[object]]:
    """Payloads in the morgue by id."""
    (worker,) = (worker for worker in app.workers if worker.queue_name == queue_name)
    jobs = app.queries(worker).morgue_range_by_id("-", "+")
    return {job.id: [payload for payload, _ in job.payloads] for job in jobs}


def test_e77_the_morgue_is_bounded_by_count(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """E-77, LB-23: the oldest go, counted, and the drain is not blocked."""
    app = make_app(morgue_max_entries=3)
    worker = declare(app, queue_name, raising(), max_retry_count=0)
    for job_id in "abcde":
        worker.perform_async(jobs_of(job_id))
        app.drain()
        clock.advance(1)

    assert {"c": [""], "d": [""], "e": [""]} == lying(app, queue_name)
    assert (5, 2) == (counters(app, worker)["dead"], counters(app, worker)["trimmed"])
    assert {} == left_behind(app, worker)


def test_e77_one_id_does_not_outgrow_the_bound(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """LB-23: the bound counts payloads, so a single id cannot pass it; no more goes than has to."""
    app = make_app(morgue_max_entries=3)
    worker = declare(app, queue_name, raising(), max_retry_count=0)
    for n in range(5):
        worker.perform_async([{"id": "a", "payload": n, "score": n}])
        app.drain()
        clock.advance(1)

    assert {"a": [2, 3, 4]} == lying(app, queue_name)


def test_e77_the_morgue_is_bounded_by_bytes(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """LB-23: a few large payloads are as many as many small ones."""
    app = make_app(morgue_max_bytes=25_000)
    worker = declare(app, queue_name, raising(), max_retry_count=0)
    for n in range(4):
        worker.perform_async(jobs_of(f"{n}", payload="x" * 10_000))
        app.drain()
        clock.advance(1)

    assert ["2", "3"] == sorted(lying(app, queue_name))
    assert 2 == counters(app, worker)["trimmed"]


def test_s16_the_morgue_is_bounded_by_age(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """S-16: what lies longer than `morgue_max_age` goes when the next one comes."""
    app = make_app(morgue_max_age=100.0)
    worker = declare(app, queue_name, raising(), max_retry_count=0)
    for job_id, age in (("a", 60), ("b", 50), ("c", 0)):
        worker.perform_async(jobs_of(job_id))
        app.drain()
        clock.advance(age)

    assert ["b", "c"] == sorted(lying(app, queue_name))
    assert 1 == counters(app, worker)["trimmed"]


def test_bytes_are_counted_through_burial_and_trimming(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """The morgue's bytes are what lies there, so the bound neither drifts nor leaks."""
    app = make_app(morgue_max_entries=2)
    worker = declare(app, queue_name, failing("a", "b", "c"), batch_size=3, max_retry_count=0)
    for n in range(5):
        worker.perform_async(jobs_of("abc", payload="x" * n))
        app.drain()
        clock.advance(1)

    key = shard_of(app, worker, "a").key("morgue_payloads")
    members = app.backend.client.zrange(key, 0, -1)
    assert isinstance(members, list)
    assert sum(len(member) for member in members) == counters(app, worker)["morgue_bytes"]


def test_the_morgue_keeps_ten_thousand_for_half_a_year_by_default(app: Lowkiq) -> None:
    """SK-6, S-16: 10,000 entries and 180 days for each shard are the bounds that nobody has to set."""
    assert (10_000, 180 * 86_400) == (app.config.morgue_max_entries, app.config.morgue_max_age)
