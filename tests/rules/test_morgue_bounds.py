"""The bounds of the morgue (E-77, LB-23, S-16)."""

import pytest

from lowkiq_lambda import Batch, Lowkiq, MorgueLimits, Worker
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Broken, failing, raising
from tests.kit.looks import counters, left_behind
from tests.kit.servers import Server
from tests.kit.stored import stored
from tests.kit.workers import declare, jobs_of, shard_of


def lying(app: Lowkiq, queue_name: str) -> dict[str, list[object]]:
    """Payloads in the morgue by id."""
    (worker,) = (worker for worker in app.workers if worker.queue_name == queue_name)
    jobs = app.operate(worker).morgue.list("id", "-", "+")
    return {job.id: [payload for payload, _ in job.payloads] for job in jobs}


def test_e77_the_morgue_is_bounded_by_count(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """E-77, LB-23: the oldest go, counted, and the drain is not blocked."""
    app = make_app(morgue=MorgueLimits(entries=3))
    worker = declare(app, queue_name, raising(), max_retry_count=0)
    for job_id in "abcde":
        worker.push_many(jobs_of(job_id))
        app.drain()
        clock.advance(1)

    assert {"c": [""], "d": [""], "e": [""]} == lying(app, queue_name)
    assert (5, 2) == (counters(app, worker)["dead"], counters(app, worker)["trimmed"])
    assert {} == left_behind(app, worker)


def test_e77_one_id_does_not_outgrow_the_bound(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """LB-23: the bound counts payloads, so a single id cannot pass it; no more goes than has to."""
    app = make_app(morgue=MorgueLimits(entries=3))
    worker = declare(app, queue_name, raising(), max_retry_count=0)
    for n in range(5):
        worker.push_many([{"id": "a", "payload": n, "score": n}])
        app.drain()
        clock.advance(1)

    assert {"a": [2, 3, 4]} == lying(app, queue_name)


def test_e77_the_morgue_is_bounded_by_bytes(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """LB-23: a few large payloads are as many as many small ones."""
    app = make_app(morgue=MorgueLimits(bytes=25_000))
    worker = declare(app, queue_name, raising(), max_retry_count=0)
    for n in range(4):
        worker.push_many(jobs_of(f"{n}", payload="x" * 10_000))
        app.drain()
        clock.advance(1)

    assert ["2", "3"] == sorted(lying(app, queue_name))
    assert 2 == counters(app, worker)["trimmed"]


def test_s16_the_morgue_is_bounded_by_age(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """S-16: what lies longer than the `age` of `MorgueLimits` goes when the next one comes."""
    app = make_app(morgue=MorgueLimits(age=100.0))
    worker = declare(app, queue_name, raising(), max_retry_count=0)
    for job_id, age in (("a", 60), ("b", 50), ("c", 0)):
        worker.push_many(jobs_of(job_id))
        app.drain()
        clock.advance(age)

    assert ["b", "c"] == sorted(lying(app, queue_name))
    assert 1 == counters(app, worker)["trimmed"]


def test_bytes_are_counted_through_death_and_trimming(
    make_app: MakeApp, server: Server, clock: ManualClock, queue_name: str
) -> None:
    """The morgue's bytes are what lies there, so the bound neither drifts nor leaks."""
    app = make_app(morgue=MorgueLimits(entries=2))
    worker = declare(app, queue_name, failing("a", "b", "c"), batch_size=3, max_retry_count=0)
    for n in range(5):
        worker.push_many(jobs_of("abc", payload="x" * n))
        app.drain()
        clock.advance(1)

    # Raises where the count is another than what lies there.
    found = stored(server.admin, shard_of(app, worker, "a"))
    assert 2 == sum(len(entries) for _, _, entries in found["morgue"].values())
    assert found["morgue_bytes"] > 0


def test_what_is_in_the_morgue_is_counted_to_the_byte(make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """Payloads, errors and failures: when all of it has left, nothing is counted, whichever way it left."""
    app = make_app(morgue=MorgueLimits(bytes=30_000))
    worker = declare(app, queue_name, fail_all)
    for n in range(3):
        worker.push_many([{"id": id_, "payload": n, "score": n} for id_ in "abcdefghi"])
        for _ in range(3):
            app.drain()
            clock.advance(100)
        app.operate(worker).waiting.kill(everything=True)
    assert 0 < counters(app, worker)["morgue_bytes"] <= 30_000

    queued = app.operate(worker).morgue.requeue(list("abcde"))
    deleted = app.operate(worker).morgue.delete(everything=True)

    assert queued + deleted > 0
    assert 0 == counters(app, worker)["morgue_bytes"]


def kill(app: Lowkiq, worker: type[Worker], jobs: list[dict[str, object]]) -> None:
    """Push jobs whose first failure is their last, and drain."""
    worker.push_many(jobs)
    app.drain()


def long_error(job_id: str) -> str:
    """What others have not."""
    return f"{job_id} " * 1_000


def fail_all(batch: Batch) -> None:
    """Each for a reason of its own."""
    for job_id in batch:
        batch.fail(job_id, long_error(job_id))


@pytest.mark.parametrize("batch_size", [1, 1_000])
def test_the_morgue_is_within_its_bounds_however_many_die_at_once(
    make_app: MakeApp, queue_name: str, batch_size: int
) -> None:
    """E-77, LB-23: a settling may kill a thousand: as many go, counted, and the bytes are bounded with the errors."""
    app = make_app(morgue=MorgueLimits(entries=100))
    worker = declare(app, queue_name, fail_all, max_retry_count=0, batch_size=batch_size)
    kill(app, worker, [{"id": n} for n in range(3_000)])

    told = counters(app, worker)
    assert (3_000, 2_900, 100) == (told["dead"], told["trimmed"], app.operate.stats()["total"]["morgue_length"])

    app = make_app(morgue=MorgueLimits(bytes=1_000_000))
    worker = declare(app, f"{queue_name}-bytes", fail_all, max_retry_count=0, batch_size=batch_size)
    kill(app, worker, [{"id": n} for n in range(3_000)])

    told = counters(app, worker)
    assert 990_000 < told["morgue_bytes"] <= 1_000_000
    assert 3_000 == told["trimmed"] + app.operate.stats()["total"]["morgue_length"]


def test_the_morgue_is_within_its_bounds_however_many_are_killed_at_once(
    make_app: MakeApp, server: Server, queue_name: str
) -> None:
    """E-77: what operators send there, whether many ids or many payloads of one, is bounded like the rest."""
    app = make_app(morgue=MorgueLimits(entries=100))
    worker = declare(app, queue_name, fail_all)
    worker.push_many([*({"id": n} for n in range(2_000)), *({"id": "many", "payload": n} for n in range(1_500))])
    app.drain()

    assert 2_001 == app.operate(worker).waiting.kill(everything=True)

    found = stored(server.admin, shard_of(app, worker, "a"))
    assert 100 == sum(len(entries) for _, _, entries in found["morgue"].values())
    assert 3_400 == found["counters"]["trimmed"]


def test_a_morgue_above_its_bounds_comes_down_with_each_death(make_app: MakeApp, queue_name: str) -> None:
    """Where a limit was lowered, each death removes more than it brings, in bounded work, until the limit holds."""
    before = make_app()
    worker = declare(before, queue_name, fail_all, max_retry_count=0, batch_size=1_000)
    kill(before, worker, [{"id": n} for n in range(3_500)])
    app, lengths = make_app(morgue=MorgueLimits(entries=10)), [3_500]
    worker = declare(app, queue_name, fail_all, max_retry_count=0)
    while lengths[-1] > 10:
        kill(app, worker, [{"id": f"more {len(lengths)}"}])
        lengths.append(app.operate.stats()["total"]["morgue_length"])

    assert [3_500, 2_501, 1_502, 503, 10] == lengths


def test_one_large_payload_in_the_morgue_makes_room_for_itself(make_app: MakeApp, queue_name: str) -> None:
    """The bytes never rise above the limit: as much goes as came, though it is thousands of small ones."""
    app = make_app(morgue=MorgueLimits(bytes=300_000))
    worker = declare(app, queue_name, failing(*map(str, range(2_500)), "large"), max_retry_count=0, batch_size=1_000)
    kill(app, worker, [{"id": n} for n in range(2_500)])
    assert 2_500 == app.operate.stats()["total"]["morgue_length"]

    kill(app, worker, [{"id": "large", "payload": "x" * 290_000}])

    assert counters(app, worker)["morgue_bytes"] <= 300_000
    assert ["large"] == [job.id for job in app.operate(worker).morgue.fetch(["large"])]


def test_what_is_too_old_leaves_the_morgue_however_much_it_is(
    make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """S-16: no death leaves anything behind that is older than the bound, unless it is more than a thousand."""
    app = make_app(morgue=MorgueLimits(age=100.0))
    worker = declare(app, queue_name, fail_all, max_retry_count=0, batch_size=1_000)
    kill(app, worker, [{"id": n} for n in range(1_000)])
    clock.advance(101)

    kill(app, worker, [{"id": "new"}])

    assert ["new"] == [job.id for job in app.operate(worker).morgue.list()]


def test_an_error_that_many_have_is_counted_once(make_app: MakeApp, queue_name: str) -> None:
    """An outage that kills a thousand by one long text leaves all of them in the morgue."""
    app = make_app(morgue=MorgueLimits(bytes=500_000))
    worker = declare(app, queue_name, raising(Broken("x" * 4_000)), max_retry_count=0, batch_size=1_000, isolate=False)
    kill(app, worker, [{"id": n} for n in range(1_000)])

    assert (1_000, 0) == (app.operate.stats()["total"]["morgue_length"], counters(app, worker).get("trimmed", 0))


def test_the_morgue_keeps_ten_thousand_for_half_a_year_by_default(app: Lowkiq) -> None:
    """SK-6, S-16: 10,000 entries and 180 days for each shard are the bounds that nobody has to set."""
    assert (10_000, 180 * 86_400) == (app.config.morgue.entries, app.config.morgue.age)
