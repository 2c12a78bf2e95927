"""Pushes that Redis cannot take go to an object of the user's (S-3)."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lowkiq_lambda import BackendError, BackendFull, JobError, Lowkiq, Pushed, PushInterrupted, QueueMismatch, Worker
from lowkiq_lambda.store.shard.chunks import CHUNK_JOBS
from lowkiq_lambda.store.shard.pushing import Pusher
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.servers import FaultProxy, Server
from tests.kit.workers import declare, jobs_of

FRAME = CHUNK_JOBS
"""Jobs that travel in one call."""


class Attic:
    """Takes jobs, all or the first `most` of them, or raises what it is told to."""

    def __init__(self, most: int | None = None) -> None:
        self.most = most
        self.error: Exception | None = None
        self.taken: list[tuple[type[Worker], dict[str, Any]]] = []

    def take(self, worker: type[Worker], jobs: Sequence[Mapping[str, Any]]) -> list[Pushed]:
        """Note them, and say so."""
        if self.error:
            raise self.error
        taken = jobs[: self.most]
        self.taken += [(worker, dict(job)) for job in taken]
        if len(taken) < len(jobs):
            places = range(len(jobs))
            raise PushInterrupted("The attic is full.", written=places[: self.most], not_written=places[self.most :])
        return [Pushed(str(job["id"]), 0, merged=False, due_at=0.0, buffered=True) for job in jobs]


@pytest.fixture
def attic() -> Attic:
    """One that takes everything."""
    return Attic()


@pytest.fixture
def overflowing(make_app: MakeApp, fault_proxy: FaultProxy, attic: Attic) -> Lowkiq:
    """An app with the attic, whose way to Redis can be cut."""
    return make_app(redis_url=fault_proxy.url, when_unavailable=attic)


def test_what_redis_takes_does_not_overflow(overflowing: Lowkiq, attic: Attic, queue_name: str) -> None:
    """A push to a server that answers is a push as ever."""
    (pushed,) = declare(overflowing, queue_name, Notes()).push_many(jobs_of("a"))

    assert (False, []) == (pushed.buffered, attic.taken)


def test_what_redis_cannot_take_goes_to_the_overflow_as_it_was_given(
    overflowing: Lowkiq, attic: Attic, fault_proxy: FaultProxy, queue_name: str
) -> None:
    """Also where nobody could compare the declaration; the jobs have passed the client middlewares."""
    overflowing.client_middlewares.append(
        lambda worker, jobs, call_next: call_next(worker, [{**job, "payload": "marked"} for job in jobs])
    )
    worker = declare(overflowing, queue_name, Notes())
    fault_proxy.refuse()

    (pushed,) = worker.push_many([{"id": "a", "score": 3, "delay": 60, "key": "k"}])

    assert ("a", True) == (pushed.id, pushed.buffered)
    assert [(worker, {"id": "a", "score": 3, "delay": 60, "key": "k", "payload": "marked"})] == attic.taken
    assert 0 == overflowing.flush(0)


def test_only_what_was_not_written_overflows(
    overflowing: Lowkiq, attic: Attic, fault_proxy: FaultProxy, queue_name: str
) -> None:
    """Each job of a push has its answer in its place."""
    worker = declare(overflowing, queue_name, Notes())
    overflowing.core.queues.agreed(worker)
    fault_proxy.drop_request(b"the-marked-one")
    fault_proxy.refuse()
    jobs: list[dict[str, Any]] = [{"id": number} for number in range(FRAME)]

    pushed = worker.push_many([*jobs, {"id": "last", "payload": "the-marked-one"}])

    assert [False] * FRAME + [True] == [one.buffered for one in pushed]
    assert ["last"] == [job["id"] for _, job in attic.taken]


def test_an_overflow_that_takes_a_part_says_which(make_app: MakeApp, fault_proxy: FaultProxy, queue_name: str) -> None:
    """PushInterrupted counts in the positions of the push; what Redis was sent and did not answer stays unknown."""
    app = make_app(redis_url=fault_proxy.url, when_unavailable=Attic(most=1))
    worker = declare(app, queue_name, Notes())
    app.core.queues.agreed(worker)
    fault_proxy.drop_request(b"the-marked-one")
    fault_proxy.refuse()
    jobs: list[dict[str, Any]] = [{"id": number} for number in range(FRAME)]

    with pytest.raises(PushInterrupted, match="attic is full") as raised:
        worker.push_many([*jobs, *jobs_of("xyz", payload="the-marked-one")])

    told = raised.value
    assert (list(range(FRAME + 1)), [], [FRAME + 1, FRAME + 2]) == (told.written, told.not_written, told.unknown)


def test_what_waiting_does_not_heal_is_raised(overflowing: Lowkiq, app: Lowkiq, attic: Attic, queue_name: str) -> None:
    """A bad job, and a declaration that Redis does not agree with: the overflow sees neither."""
    declare(app, queue_name, Notes(), shards_count=2).push_many(jobs_of("a"))
    worker = declare(overflowing, queue_name, Notes(), shards_count=3)

    with pytest.raises(JobError):
        worker.push_many([{"payload": 1}])
    with pytest.raises(QueueMismatch):
        worker.push_many(jobs_of("a"))
    assert [] == attic.taken


def test_an_overflow_that_refuses_the_rest_of_a_push_leaves_it_interrupted(
    overflowing: Lowkiq, attic: Attic, fault_proxy: FaultProxy, queue_name: str
) -> None:
    """What Redis has is not to be pushed again, so the error tells of each job, and why in its cause."""
    worker = declare(overflowing, queue_name, Notes())
    overflowing.core.queues.agreed(worker)
    fault_proxy.drop_request(b"the-marked-one")
    fault_proxy.refuse()
    attic.error = BackendError("The attic is locked.")

    with pytest.raises(PushInterrupted, match="The attic is locked") as raised:
        worker.push_many([*({"id": number} for number in range(FRAME)), *jobs_of("x", payload="the-marked-one")])

    told = raised.value
    assert (list(range(FRAME)), [FRAME]) == (told.written, told.unknown)
    assert attic.error is told.__cause__


def test_in_an_outage_pushes_go_past_redis_between_two_attempts(
    overflowing: Lowkiq, attic: Attic, fault_proxy: FaultProxy, clock: ManualClock, queue_name: str
) -> None:
    """A push does not wait for an answer that the one before it has not got either, and tries again a little later."""
    worker = declare(overflowing, queue_name, Notes())
    overflowing.core.queues.agreed(worker)
    fault_proxy.refuse()
    fault_proxy.cut()
    worker.push_many(jobs_of("a"))
    began_at = clock.time()
    worker.push_many(jobs_of("b"))
    waited = clock.time() - began_at
    fault_proxy.heal()
    (resting,) = worker.push_many(jobs_of("c"))
    clock.advance(60)
    (direct,) = worker.push_many(jobs_of("d"))

    assert (0.0, True, False) == (waited, resting.buffered, direct.buffered)
    assert ["a", "b", "c"] == [job["id"] for _, job in attic.taken]


@pytest.fixture
def cut_off(overflowing: Lowkiq, fault_proxy: FaultProxy, queue_name: str) -> type[Worker]:
    """A worker of that app, whose first push has gone to the attic."""
    worker = declare(overflowing, queue_name, Notes())
    overflowing.core.queues.agreed(worker)
    fault_proxy.refuse()
    fault_proxy.cut()
    worker.push_many(jobs_of("a"))
    return worker


def test_in_an_outage_one_push_at_a_time_asks_redis(
    cut_off: type[Worker], attic: Attic, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others go past it meanwhile, in place of waiting for an answer, too."""
    clock.advance(60)
    write, asked = Pusher.write, list[str]()

    def push_another_and_write(pusher: Pusher, *given: Any) -> Any:
        asked.append("asked")
        if len(asked) == 1:
            cut_off.push_many(jobs_of("c"))
        return write(pusher, *given)

    monkeypatch.setattr(Pusher, "write", push_another_and_write)
    cut_off.push_many(jobs_of("b"))

    assert (["asked"], ["a", "c", "b"]) == (asked, [job["id"] for _, job in attic.taken])


def test_e41_a_full_redis_is_no_outage_for_the_overflow(
    make_app: MakeApp, own_server: Server, attic: Attic, queue_name: str
) -> None:
    """E-41: no waiting heals that, so each push raises."""
    app = make_app(redis_url=own_server.url, when_unavailable=attic)
    worker = declare(app, queue_name, Notes())
    app.core.queues.agreed(worker)
    own_server.admin.config_set("maxmemory", "1mb")

    for _ in range(2):
        with pytest.raises(BackendFull):
            worker.push_many(jobs_of("a"))
    assert [] == attic.taken


def test_what_no_replica_has_overflows_though_redis_has_it(make_app: MakeApp, attic: Attic, queue_name: str) -> None:
    """A push that returns outlives a failover, by the one or the other; a key makes it count once."""
    app, inbox = make_app(redis_timeout=0.05, wait_replicas=1, when_unavailable=attic), make_app()
    pushed = declare(app, queue_name, Notes()).push_many([{"id": "a", "key": "k"}, {"id": "b"}])
    delivered = declare(inbox, queue_name, Notes()).push_many([job for _, job in attic.taken])

    assert [True, True] == [one.buffered for one in pushed]
    assert [("a", True), ("b", False)] == [(one.id, one.repeated) for one in delivered]
