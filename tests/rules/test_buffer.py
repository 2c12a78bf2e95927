"""Pushes that wait in the process until Redis can take them: order, place, bounds, refusals (S-3 to S-6)."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import pytest

from lowkiq_lambda import (
    BackendFull,
    BackendUnavailable,
    Buffer,
    BufferFull,
    JobError,
    Lowkiq,
    PushInterrupted,
    QueueMismatch,
    Worker,
)
from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.push import redelivery, reliable
from lowkiq_lambda.push.buffer import BufferedJobs
from lowkiq_lambda.push.client import PushClient
from lowkiq_lambda.store.shard.chunks import CHUNK_JOBS
from lowkiq_lambda.store.shard.declarations import read_registered
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.looks import look
from tests.kit.servers import FaultProxy, Server
from tests.kit.workers import declare, jobs_of

FRAME = CHUNK_JOBS
"""Jobs that travel in one call."""


class Outages:
    """Redis as a producer sees it: behind a proxy that hangs up."""

    def __init__(self, proxy: FaultProxy) -> None:
        self.proxy = proxy

    def begin(self) -> None:
        """Nothing answers."""
        self.proxy.refuse()
        self.proxy.cut()

    def begin_after_next(self, marker: bytes) -> None:
        """The next request with the marker is performed, but not answered; then nothing answers."""
        self.proxy.drop_reply_after(marker)
        self.proxy.refuse()

    def begin_before_next(self, marker: bytes) -> None:
        """The next request with the marker does not get there, and nothing answers."""
        self.proxy.drop_request(marker)
        self.proxy.refuse()

    def end(self) -> None:
        """All is well."""
        self.proxy.heal()


@pytest.fixture
def outages(fault_proxy: FaultProxy) -> Outages:
    """Begin and end on command."""
    return Outages(fault_proxy)


@pytest.fixture
def make_producer(
    make_app: MakeApp, fault_proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Lowkiq]]:
    """Builds apps that keep pushes, as on Lambda: no thread delivers them, so that each step is the test's."""
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "producer")
    made: list[Lowkiq] = []

    def make(buffer: Buffer | Literal["buffer"] = "buffer", **settings: Any) -> Lowkiq:
        made.append(make_app(redis_url=fault_proxy.url, when_unavailable=buffer, **settings))
        return made[-1]

    yield make
    # Else the end of the tests would wait for their servers.
    for app in made:
        if app.core.pushes.clients.redelivery:
            app.core.pushes.clients.redelivery._ours = app.core.pushes.clients.redelivery._nothing()


@pytest.fixture
def producer(make_producer: Callable[..., Lowkiq]) -> Lowkiq:
    """One of these, with default settings."""
    return make_producer()


def opened(app: Lowkiq, queue_name: str, **fields: Any) -> type[Worker]:
    """A worker whose queue is declared in Redis."""
    worker = declare(app, queue_name, Notes(), **fields)
    app.core.queues.agreed(worker)
    return worker


def pushing_already(app: Lowkiq, queue_name: str, **fields: Any) -> type[Worker]:
    """The queue in another process, which has pushed: the server knows the script, and performs the next call."""
    worker = declare(app, queue_name, Notes(), **fields)
    worker.push_many(jobs_of("z"))
    return worker


def scores_of(app: Lowkiq, worker: type[Worker], job_id: str) -> list[tuple[Any, float]]:
    """What waits under the id, with its scores."""
    found = look(app, worker, job_id)
    return found.payloads if found else []


def payloads_of(app: Lowkiq, worker: type[Worker], job_id: str) -> list[object]:
    """What waits under the id, in its order."""
    return [payload for payload, _ in scores_of(app, worker, job_id)]


def test_s3_a_push_that_redis_cannot_take_is_kept_and_written_when_it_can(
    producer: Lowkiq, outages: Outages, clock: ManualClock, queue_name: str
) -> None:
    """S-3: the push succeeds and says so; the job gets the score of its push, however much later it is written."""
    worker = opened(producer, queue_name)
    outages.begin()

    (pushed,) = worker.push_many([{"id": "a", "payload": 1}])
    pushed_at = clock.time()
    left_away = producer.flush(1)
    outages.end()
    clock.advance(30)
    left = producer.flush()

    assert (True, False, "a", 1, 0) == (pushed.buffered, pushed.merged, pushed.id, left_away, left)
    assert {1: pytest.approx(pushed_at, abs=1)} == dict(scores_of(producer, worker, "a"))


def test_p3_pushes_of_one_process_keep_their_order_through_an_outage(
    producer: Lowkiq, outages: Outages, clock: ManualClock, queue_name: str
) -> None:
    """P3: what was pushed before, in and after an outage is handed over in that order."""
    worker = opened(producer, queue_name, merge="never")
    worker.push_many(jobs_of("a", payload=1))
    outages.begin()
    kept = [worker.push_many(jobs_of("a", payload=payload))[0].buffered for payload in (2, 3)]
    outages.end()
    clock.advance(10)
    direct = [worker.push_many(jobs_of("a", payload=payload))[0].buffered for payload in (4, 5)]

    assert ([True, True], [False, False]) == (kept, direct)
    assert [1, 2, 3, 4, 5] == payloads_of(producer, worker, "a")


def test_a_kept_job_takes_its_place_before_what_others_pushed_later(
    producer: Lowkiq, app: Lowkiq, outages: Outages, clock: ManualClock, queue_name: str
) -> None:
    """Another process pushes to the id while this one cannot: the score of the push that came first is smaller."""
    worker = opened(producer, queue_name)
    outages.begin()
    worker.push_many(jobs_of("a", payload="first"))
    clock.advance(5)
    declare(app, queue_name, Notes()).push_many(jobs_of("a", payload="second"))
    outages.end()
    clock.advance(5)

    assert 0 == producer.flush()
    assert ["first", "second"] == payloads_of(producer, worker, "a")


def test_a_score_ahead_of_the_servers_clock_is_not_used(
    producer: Lowkiq, outages: Outages, clock: ManualClock, queue_name: str
) -> None:
    """A producer that never heard the server's time goes by its own: what it pushes later still comes later."""
    worker = opened(producer, queue_name, merge="never")
    outages.begin()
    worker.push_many(jobs_of("a", payload=1))
    outages.end()
    clock.set_wall(clock.time() - 3_600)

    assert 0 == producer.flush()
    worker.push_many(jobs_of("a", payload=2))
    assert [1, 2] == payloads_of(producer, worker, "a")


@pytest.mark.parametrize("begin", [Outages.begin_before_next, Outages.begin_after_next])
def test_e13_a_push_that_broke_off_is_there_once(
    producer: Lowkiq, app: Lowkiq, outages: Outages, queue_name: str, begin: Callable[[Outages, bytes], None]
) -> None:
    """E-13: lost before it was written, or only its answer lost, and others push meanwhile: the token tells."""
    worker = opened(producer, queue_name, merge="never")
    other = pushing_already(app, queue_name, merge="never")
    begin(outages, b"the-marked-one")

    (pushed,) = worker.push_many([{"id": "a", "payload": "the-marked-one"}])
    for number in range(3):
        other.push_many([{"id": "b", "payload": number}])
    outages.end()

    assert (True, 0) == (pushed.buffered, producer.flush())
    assert ["the-marked-one"] == payloads_of(producer, worker, "a")


@pytest.mark.parametrize("begin", [Outages.begin_before_next, Outages.begin_after_next])
def test_e13_a_push_behind_one_that_broke_off_is_written_too(
    producer: Lowkiq, app: Lowkiq, outages: Outages, queue_name: str, begin: Callable[[Outages, bytes], None]
) -> None:
    """E-13: it has a token of its own, though both wait for the same shard: the server has perhaps seen the other."""
    worker = opened(producer, queue_name, merge="never", shards_count=1)
    pushing_already(app, queue_name, merge="never", shards_count=1)
    begin(outages, b"the-marked-one")

    for payload in ("the-marked-one", "later", "latest"):
        worker.push_many([{"id": "a", "payload": payload}])
    outages.end()

    assert 0 == producer.flush()
    assert ["the-marked-one", "later", "latest"] == payloads_of(producer, worker, "a")


@pytest.fixture
def pushed_ahead(app: Lowkiq, server: Server, clock: ManualClock, queue_name: str) -> None:
    """A pusher whose clock is ahead has pushed to the queue, which has one shard."""
    pushing_already(app, queue_name, merge="never", shards_count=1)
    server.admin.hset(ShardRef(queue_name, 1, 0).key("meta"), "last_score", clock.time() + 0.9)


@pytest.mark.usefixtures("pushed_ahead")
def test_p3_a_push_behind_one_that_was_written_ahead_of_time_comes_later(
    producer: Lowkiq, outages: Outages, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P3: the one whose answer was lost may have a later score than is known here; what is kept then takes more."""
    worker = opened(producer, queue_name, merge="never", shards_count=1)
    # The attempts may end before that time has come, as where the next one is refused.
    monkeypatch.setattr(reliable, "PATIENCE", 0.0)
    outages.begin_after_next(b"the-marked-one")

    for payload in ("the-marked-one", "later"):
        worker.push_many([{"id": "a", "payload": payload}])
    outages.end()
    clock.advance(5)

    assert 0 == producer.flush()
    assert ["the-marked-one", "later"] == payloads_of(producer, worker, "a")


def test_s5_one_job_more_than_fits_fails_its_push_and_changes_nothing(
    producer: Lowkiq, outages: Outages, queue_name: str
) -> None:
    """S-5: by default a thousand jobs wait; the next push raises, and those before it are all written."""
    worker = opened(producer, queue_name, shards_count=3)
    outages.begin()
    worker.push_many([{"id": number} for number in range(999)])

    with pytest.raises(BufferFull, match=r"999 jobs wait, 2 more do not fit: jobs=1,000"):
        worker.push_many([{"id": "x"}, {"id": "y"}])
    worker.push_many([{"id": "z"}])
    with pytest.raises(BufferFull):
        worker.push_many([{"id": "x"}])
    outages.end()

    assert 0 == producer.flush()
    assert ({"x": None, "y": None}, 1_000) == (
        {job_id: look(producer, worker, job_id) for job_id in "xy"},
        producer.operate.stats()["total"]["length"],
    )


def test_s5_where_the_oldest_gives_way_the_last_thousand_are_kept(
    make_producer: Callable[..., Lowkiq], outages: Outages, queue_name: str
) -> None:
    """S-5: with `drop_oldest` every push succeeds, and `on_lost` gets the jobs that gave way, such as push takes."""
    lost: list[tuple[type[Worker], list[dict[str, Any]]]] = []
    app = make_producer(Buffer(jobs=3, full="drop_oldest", on_lost=lambda *told: lost.append(told)))
    worker = opened(app, queue_name, shards_count=2)
    outages.begin()
    for number in range(5):
        worker.push_many([{"id": number, "payload": number * 10}])
    outages.end()

    assert 0 == app.flush()
    assert [(worker, "0", 0), (worker, "1", 10)] == [
        (whose, str(job["id"]), job["payload"]) for whose, jobs in lost for job in jobs
    ]
    for whose, jobs in lost:
        whose.push_many(jobs)
    assert [[0], [10], [20], [30], [40]] == [payloads_of(app, worker, str(number)) for number in range(5)]


def test_the_buffer_is_bounded_in_bytes(producer: Lowkiq, outages: Outages, queue_name: str) -> None:
    """Few large jobs do not fill the memory of the process: 16 MiB wait at most."""
    worker = opened(producer, queue_name)
    outages.begin()
    large = "x" * (4 * 1024 * 1024)
    for job_id in "abc":
        worker.push_many([{"id": job_id, "payload": large}])

    with pytest.raises(BufferFull, match="16,777,216 bytes"):
        worker.push_many([{"id": "d", "payload": large}])


def test_s6_an_outage_is_told_once_and_each_kept_push_to_the_hook(
    make_producer: Callable[..., Lowkiq], outages: Outages, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """S-6: the log has a line when an outage begins and one when it is over; `on_buffered` gets how many wait."""
    waiting: list[int] = []
    app = make_producer(Buffer(on_buffered=waiting.append))
    worker = opened(app, queue_name)
    outages.begin()
    with caplog.at_level(logging.WARNING, "lowkiq_lambda.push"):
        for job_id in "abc":
            worker.push_many([{"id": job_id}])
        outages.end()
        app.flush()

    assert [1, 2, 3] == waiting
    assert ["Redis is unreachable", "Redis is back"] == [record.message.partition(":")[0] for record in caplog.records]


def test_s6_a_hook_that_raises_fails_no_push(
    make_producer: Callable[..., Lowkiq], outages: Outages, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What `on_buffered` raises goes to the log; the job is kept."""

    def broken(_waiting: int) -> None:
        raise OSError("no network for the pager either")

    app = make_producer(Buffer(on_buffered=broken))
    worker = opened(app, queue_name)
    outages.begin()

    assert worker.push_many([{"id": "a"}])[0].buffered
    assert "on_buffered raised" in caplog.text


def test_e41_a_full_redis_is_no_outage(make_app: MakeApp, own_server: Server, queue_name: str) -> None:
    """E-41: what no waiting heals is raised as without a buffer, and nothing is kept."""
    app = make_app(redis_url=own_server.url, when_unavailable="buffer")
    worker = opened(app, queue_name)
    own_server.admin.config_set("maxmemory", "1mb")

    with pytest.raises(BackendFull):
        worker.push_many([{"id": "a"}])
    assert 0 == app.flush()


def test_a_push_that_was_written_in_part_is_kept_in_part(producer: Lowkiq, outages: Outages, queue_name: str) -> None:
    """PushInterrupted is not raised: what was not written, or perhaps not, waits, and all is there once."""
    worker = opened(producer, queue_name, merge="never")
    outages.begin_after_next(b"the-marked-one")
    jobs: list[dict[str, Any]] = [{"id": number, "payload": "plain"} for number in range(FRAME)]
    jobs += [{"id": "last", "payload": "the-marked-one"}]

    pushed = worker.push_many(jobs)
    outages.end()

    assert [False] * FRAME + [True] == [one.buffered for one in pushed]
    assert 0 == producer.flush()
    assert FRAME + 1 == producer.operate.stats()["total"]["length"]
    assert ["the-marked-one"] == payloads_of(producer, worker, "last")


def test_a_push_that_is_kept_only_in_part_says_so(
    make_producer: Callable[..., Lowkiq], outages: Outages, queue_name: str
) -> None:
    """Where what was not written does not fit, the push raises what it raises without a buffer."""
    app = make_producer(Buffer(jobs=1))
    worker = opened(app, queue_name)
    outages.begin_before_next(b"the-marked-one")
    jobs = [{"id": number, "payload": "plain"} for number in range(FRAME)]

    with pytest.raises(PushInterrupted, match="jobs=1") as raised:
        worker.push_many([*jobs, *jobs_of("xy", payload="the-marked-one")])
    assert (FRAME, [FRAME, FRAME + 1], 0) == (len(raised.value.written), raised.value.unknown, app.flush(0))


def test_a_cold_start_without_redis_keeps_jobs(
    producer: Lowkiq, outages: Outages, clock: ManualClock, queue_name: str
) -> None:
    """Nobody could compare the declaration yet, nor tell the time of the server: the code's declaration counts."""
    worker = declare(producer, queue_name, Notes(), shards_count=3)
    outages.begin()
    began_at = clock.time()

    pushed = worker.push_many([{"id": "a"}, {"id": "b", "delay": 60}, {"id": "c", "due_at": began_at + 99}])
    outages.end()

    assert ([True] * 3, 0) == ([one.buffered for one in pushed], producer.flush())
    # The attempts to connect take a moment, in which a delay has not begun to count.
    told = {job_id: pushed[place].due_at - began_at for place, job_id in enumerate("bc", 1)}
    assert {"b": pytest.approx(60, abs=5), "c": pytest.approx(99)} == told
    waiting = {job_id: look(producer, worker, job_id) for job_id in "bc"}
    assert told == {job_id: found.due_at - began_at for job_id, found in waiting.items() if found}


def test_a_declaration_that_redis_does_not_agree_with_is_raised_by_later_pushes(
    producer: Lowkiq, app: Lowkiq, outages: Outages, queue_name: str
) -> None:
    """What was kept before anybody could know stays, and is told; no push passes it, or is kept behind it."""
    declare(app, queue_name, Notes(), shards_count=2).push_many(jobs_of("a"))
    worker = declare(producer, queue_name, Notes(), shards_count=3)
    outages.begin()
    worker.push_many(jobs_of("b"))
    outages.end()

    assert 1 == producer.flush(0)
    with pytest.raises(QueueMismatch):
        worker.push_many(jobs_of("b"))
    assert 1 == producer.flush(0)


def test_middlewares_see_a_push_once(producer: Lowkiq, outages: Outages, queue_name: str) -> None:
    """A kept job has passed the client middlewares, and does not pass them again when it is written."""
    seen: list[int] = []

    def mark(_worker: object, jobs: list[dict[str, Any]], call_next: Callable[..., Any]) -> object:
        seen.append(len(jobs))
        return call_next(_worker, [{**job, "payload": "marked"} for job in jobs])

    producer.client_middlewares.append(mark)
    worker = opened(producer, queue_name)
    outages.begin()
    worker.push_many(jobs_of("a"))
    outages.end()

    assert 0 == producer.flush()
    assert ([1], ["marked"]) == (seen, payloads_of(producer, worker, "a"))


def test_a_key_holds_for_kept_jobs_too(producer: Lowkiq, app: Lowkiq, outages: Outages, queue_name: str) -> None:
    """Of two jobs with a key, one kept and one pushed by another process meanwhile, one counts."""
    worker = opened(producer, queue_name, merge="never")
    outages.begin()
    worker.push_many([{"id": "a", "payload": 1, "key": "event-17"}])
    declare(app, queue_name, Notes(), merge="never").push_many([{"id": "a", "payload": 2, "key": "event-17"}])
    outages.end()

    assert 0 == producer.flush()
    assert [2] == payloads_of(producer, worker, "a")


def test_bad_jobs_are_refused_in_an_outage_too(producer: Lowkiq, outages: Outages, queue_name: str) -> None:
    """Nothing is kept that could never be written."""
    worker = opened(producer, queue_name)
    outages.begin()

    with pytest.raises(JobError, match="job 1: id: is required"):
        worker.push_many([{"id": "a"}, {"payload": 1}])
    assert 0 == producer.flush(0)


def test_a_push_from_a_loop_is_kept(producer: Lowkiq, outages: Outages, queue_name: str) -> None:
    """`apush_many` answers as `push_many` does."""
    worker = opened(producer, queue_name)
    outages.begin()

    (pushed,) = asyncio.run(worker.apush_many([{"id": "a"}]))
    outages.end()

    assert (True, 0) == (pushed.buffered, producer.flush())
    assert [""] == payloads_of(producer, worker, "a")


def test_a_push_of_a_task_is_never_kept(producer: Lowkiq, outages: Outages, queue_name: str) -> None:
    """Its items would not be there yet, so that the task could be complete without them: it raises instead."""
    worker = declare(producer, queue_name, Notes())
    task = producer.task("enrol")
    worker.push_many(jobs_of("1"))
    outages.begin_before_next(b"EVALSHA")

    with pytest.raises(BackendUnavailable):
        task.push_many(worker, jobs_of("2"))

    assert 0 == producer.flush(0.0)
    outages.end()
    assert 0 == task.progress().total


def test_p3_a_push_that_has_to_be_written_passes_none_that_is_kept(
    producer: Lowkiq, outages: Outages, queue_name: str
) -> None:
    """It delivers what the process has kept before; where that is in vain it raises, and is not kept itself."""
    notes = Notes()
    worker = declare(producer, queue_name, notes, merge="never")
    worker.push_many(jobs_of("1", payload="first"))
    outages.begin()
    worker.push_many(jobs_of("1", payload="kept"))

    with pytest.raises(BackendUnavailable):
        producer.core.pushes.push_or_raise(worker, jobs_of("1", payload="rejected"))
    outages.end()
    producer.core.pushes.push_or_raise(worker, jobs_of("1", payload="written"))
    producer.drain()

    assert [{"1": ["first", "kept", "written"]}] == notes.batches


def test_p3_a_push_passes_none_that_is_kept_for_a_shard_that_its_id_has_left(
    producer: Lowkiq, make_app: MakeApp, outages: Outages, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P3, E-94: the queue was resharded in the outage. Redis is back, but the first attempt for the old shard fails."""
    worker, other = (opened(producer, name, shards_count=1, merge="never") for name in (queue_name, f"{queue_name}-2"))
    outages.begin()
    for each in (worker, other):
        each.push_many(jobs_of("a", payload="kept"))
    mover = make_app()
    mover.operate(declare(mover, queue_name, Notes(), shards_count=1, merge="never")).reshard(to=2)
    outages.end()
    there = read_registered(producer.core.backend, queue_name, 1.0)
    assert there is not None
    producer.core.queues.agreed(worker).learn(there)
    send, waiting = redelivery._send, producer.core.pushes.clients.redelivery
    assert waiting is not None

    def fail_at_old_shard(
        client: PushClient, buffered: Sequence[BufferedJobs]
    ) -> tuple[dict[bytes, LowkiqError], Mapping[bytes, int]]:
        old = {each.token: BackendUnavailable("cut") for each in buffered if each.shard.queue_name == queue_name}
        errors, written = send(client, [each for each in buffered if each.token not in old])
        return {**old, **errors}, {**dict.fromkeys(old, 0), **written}

    with monkeypatch.context() as patch:
        patch.setattr(redelivery, "_send", fail_at_old_shard)
        patch.setattr(waiting._ours, "rest_until", 0.0)
        (later,) = worker.push_many(jobs_of("a", payload="later"))
    assert ["kept"] == payloads_of(producer, other, "a")
    producer.flush()

    assert later.buffered
    assert ["kept", "later"] == payloads_of(producer, worker, "a")


def test_written_jobs_wake_a_drain(make_producer: Callable[..., Lowkiq], outages: Outages, queue_name: str) -> None:
    """The drain of an idle shard is started when the job is there, not when it was kept."""
    started: list[tuple[str, int]] = []
    app = make_producer(wake_function=lambda *which: started.append(which))
    worker = opened(app, queue_name)
    outages.begin()
    worker.push_many(jobs_of("a"))
    before = list(started)
    outages.end()
    app.flush()

    assert ([], [(queue_name, 0)]) == (before, started)


def test_past_the_life_of_its_token_a_push_may_be_applied_twice_unless_it_has_a_key(
    producer: Lowkiq, app: Lowkiq, outages: Outages, clock: ManualClock, queue_name: str
) -> None:
    """The limit that the docs name: an answer is lost, others push for more than two minutes, then it is sent again."""
    worker = opened(producer, queue_name, merge="never")
    other = declare(app, queue_name, Notes(), merge="never")
    # Else the server would not know the script, and the lost answer would only say so.
    other.push_many([{"id": "z", "key": "any"}])
    outages.begin_after_next(b"unanswered")

    worker.push_many([{"id": "a", "payload": "unanswered"}, {"id": "b", "payload": "unanswered", "key": "one"}])
    for number in range(3):
        clock.advance(70)
        other.push_many([{"id": "c", "payload": number}])
    outages.end()

    assert 0 == producer.flush()
    assert ["unanswered"] * 2 == payloads_of(app, other, "a")
    assert ["unanswered"] == payloads_of(app, other, "b")


def test_why_kept_jobs_cannot_be_delivered_is_logged_once(
    producer: Lowkiq, app: Lowkiq, outages: Outages, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A queue that turns out to be declared otherwise needs somebody who acts, whether or not pushes go on."""
    declare(app, queue_name, Notes(), shards_count=2).push_many(jobs_of("a"))
    worker = declare(producer, queue_name, Notes(), shards_count=1)
    outages.begin()
    worker.push_many(jobs_of("b"))
    outages.end()

    assert 1 == producer.flush(1)
    assert 1 == sum("was made with shards_count=2" in message for message in caplog.messages)
