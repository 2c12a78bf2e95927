"""A bound of the ids that wait: the push that would go beyond it is refused, and nothing else is."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from lowkiq_lambda import Buffer, Config, DeclarationError, Lowkiq, PushInterrupted, QueueFull
from lowkiq_lambda.jobs.debounce import Debounce
from lowkiq_lambda.store.shard.keys import BOUNDED
from lowkiq_lambda.store.shard.scripts import script
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp, close_app, closing_app
from tests.kit.firing import MINUTE, at_noon
from tests.kit.handlers import Notes, failing
from tests.kit.servers import FaultProxy, Server
from tests.kit.workers import declare


def jobs(*ids: int) -> list[dict[str, object]]:
    """One job of each id."""
    return [{"id": id} for id in ids]


def test_a_push_beyond_the_bound_is_refused_and_leaves_nothing(app: Lowkiq, queue_name: str) -> None:
    """The error names the queue, its bound and the ids that wait; once some are done, the push is taken."""
    worker = declare(app, queue_name, Notes(), shards_count=1, max_waiting=2)
    worker.push_many(jobs(1, 2))
    with pytest.raises(QueueFull) as refused:
        worker.push(3, expires_in=60, headers={"a": "b"}, key="k")

    assert (queue_name, 2) == (refused.value.queue_name, refused.value.waiting)
    assert (
        f"Queue {queue_name!r} takes no new id: 2 wait in shard 0, and its max_waiting is 2. Push again when some are "
        "done."
    ) == str(refused.value)
    assert [] == app.operate(worker).waiting.fetch(["3"])
    app.drain()
    assert (False, False) == ((pushed := worker.push(3, key="k")).merged, pushed.repeated)


def test_a_push_of_many_is_taken_up_to_the_bound(app: Lowkiq, queue_name: str) -> None:
    """Its error says which jobs are written; each shard has a bound of its own."""
    worker = declare(app, queue_name, Notes(), shards_count=1, max_waiting=5)
    worker.push(0)
    with pytest.raises(PushInterrupted) as broken:
        worker.push_many(jobs(*range(10)))

    assert ([0, 1, 2, 3, 4], [5, 6, 7, 8, 9], []) == (
        broken.value.written,
        broken.value.not_written,
        broken.value.unknown,
    )
    assert isinstance(broken.value.__cause__, QueueFull)
    assert 5 == app.operate(worker).waiting.count()
    several = declare(app, f"{queue_name}-2", Notes(), shards_count=2, max_waiting=1)
    with pytest.raises(PushInterrupted) as one_full:
        several.push_many(jobs(*range(8)))
    assert 2 == len(one_full.value.written) == app.operate(several).waiting.count()


def test_payloads_of_ids_that_wait_are_taken(app: Lowkiq, queue_name: str) -> None:
    """They make the backlog no longer: whether they merge, join, or come in the same call."""
    notes = Notes()
    worker = declare(app, queue_name, notes, shards_count=1, max_waiting=1)
    worker.push_many([{"id": 1, "payload": number} for number in range(3)])
    worker.push(1, 7)
    assert worker.push(1, 7).merged
    app.drain()
    assert {"1": [0, 1, 2, 7]} == dict(notes.batches[0])


def test_retries_and_requeued_jobs_are_never_refused(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """They were taken before; beside them no new id is."""
    worker = declare(app, queue_name, Notes(failing("1")), shards_count=1, max_waiting=1, max_retry_count=1)
    worker.push(1)
    app.drain()
    assert 1 == app.operate(worker).waiting.count()
    with pytest.raises(QueueFull):
        worker.push(2)
    clock.advance(3_600.0)
    app.drain()
    worker.push(2, delay=60)
    app.operate(worker).morgue.requeue(["1"])
    assert 2 == app.operate(worker).waiting.count()


def test_schedule_entries_fire_into_a_full_queue(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A planned time is decided once, so nobody could push it again; a run that people ask for is refused."""
    worker = declare(app, queue_name, Notes(), shards_count=1, max_waiting=1)
    at_noon(clock)
    app.every(MINUTE, worker, id="poll")
    worker.push(1)
    app.schedules.tick()
    with pytest.raises(QueueFull):
        app.schedules.run("poll")
    clock.advance(61.0)
    assert ["pushed"] == [one.outcome for one in app.schedules.tick().fired]


def test_producers_side_by_side_never_pass_the_bound(app: Lowkiq, queue_name: str) -> None:
    """The script that writes counts: nothing lies between."""
    worker = declare(app, queue_name, Notes(), shards_count=1, max_waiting=20)

    def push(id: int) -> bool:
        try:
            worker.push(id)
        except QueueFull:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        taken = [*pool.map(push, range(60))]
    assert 20 == sum(taken) == app.operate(worker).waiting.count()


def test_a_push_whose_answer_was_lost_is_not_refused_when_it_comes_again(
    fault_proxy: FaultProxy, make_app: MakeApp, queue_name: str
) -> None:
    """Its token comes first, so it is told that it was written."""
    app = make_app(redis_url=fault_proxy.url)
    worker = declare(app, queue_name, Notes(), shards_count=1, max_waiting=1)
    fault_proxy.drop_reply_after(b"EVALSHA", 1)
    assert not worker.push(3).merged
    assert 1 == app.operate(worker).waiting.count()
    with pytest.raises(QueueFull):
        worker.push(4)


def test_the_buffer_keeps_jobs_that_a_full_queue_refuses(
    fault_proxy: FaultProxy, make_app: MakeApp, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They go when there is room, each once, and new pushes to the shard are refused until then."""
    # As in a function, no thread of its own delivers beside the test.
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "pushes")
    notes = Notes()
    app = make_app(redis_url=fault_proxy.url, when_unavailable=Buffer(), redis_timeout=0.3)
    worker = declare(app, queue_name, notes, shards_count=1, max_waiting=2, merge="never")
    worker.push(1)
    fault_proxy.refuse()
    fault_proxy.cut()
    kept = worker.push_many(jobs(2, 3, 4, 5))
    assert [True] * 4 == [one.buffered for one in kept]
    fault_proxy.accept()
    assert [3, 3] == [app.flush(0.0), app.flush(0.0)]
    with pytest.raises(QueueFull):
        worker.push(6)
    for left in (1, 0):
        app.drain()
        assert left == app.flush(0.0)
    app.drain()
    assert [["1"], ["2"], ["3"], ["4"], ["5"]] == notes.ids


def test_it_goes_with_a_debounce(app: Lowkiq, queue_name: str) -> None:
    """Both are in the last argument of the push."""
    worker = declare(app, queue_name, Notes(), shards_count=1, max_waiting=1, debounce=Debounce(2.0, at_most=10.0))
    first = worker.push(1)
    assert worker.push(1, "more").due_at >= first.due_at
    with pytest.raises(QueueFull):
        worker.push(2)


def test_a_queue_without_a_bound_pays_nothing(own_server: Server, queue_name: str) -> None:
    """Its push counts nothing; with a bound it counts once in a call."""
    counts = []
    with closing_app(Lowkiq(Config(redis_url=own_server.url))) as app:
        for bound in (None, 1_000):
            worker = declare(app, f"{queue_name}-{bound}", Notes(), shards_count=1, max_waiting=bound)
            worker.push(0)
            own_server.admin.config_resetstat()
            worker.push_many(jobs(*range(1, 500)))
            stats = own_server.admin.info("commandstats")
            counts.append((stats["cmdstat_evalsha"]["calls"], stats.get("cmdstat_zcard", {"calls": 0})["calls"]))
    assert [(1, 0), (1, 1)] == counts
    assert [True, False] == ["function room_left" in script("enqueue", of).source for of in ((BOUNDED,), ())]


@pytest.mark.parametrize("bound", [0, -1, True, 1.5, "10"])
def test_a_bound_is_a_whole_number_from_one(queue_name: str, bound: object) -> None:
    """A queue that takes nothing is paused instead."""
    app = Lowkiq()
    with pytest.raises(DeclarationError, match="max_waiting must be"):
        declare(app, queue_name, Notes(), max_waiting=bound)
    close_app(app)
