"""Leases that are renewed while batches take long: each for as long as its visit, whatever another node does."""

import threading
from collections.abc import Callable
from functools import partial
from threading import Event, Thread

import pytest

from lowkiq_lambda import Batch, Config, Lowkiq
from lowkiq_lambda.base.errors import BackendUnavailable
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.engine.lease import Lease, LeaseRenewer, LeaseRenewers, Moment
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.session import LeaseSession
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import closing_app
from tests.kit.handlers import Notes
from tests.kit.servers import Cluster
from tests.kit.waiting import eventually
from tests.kit.workers import declare, jobs_of, shard_of


def without_renewers(start: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
    """Begin any thread but one that renews leases, as a process does that has as many threads as it may have."""

    def begin(thread: threading.Thread) -> None:
        if thread.name == "lowkiq-renewer":
            raise RuntimeError("can't start new thread")
        start(thread)

    return begin


def test_e6_the_last_tenth_of_a_lease_is_not_trusted() -> None:
    """E-6, A3: clocks of a holder and of the server may run at speeds that differ by that much."""
    clock = ManualClock()
    lease = Lease(clock, 30.0, Moment.now(clock))

    clock.advance(26.0)
    assert pytest.approx(1.0) == lease.trust_left()
    clock.advance(1.0)
    assert 0.0 == lease.trust_left()


def test_two_visits_that_come_first_to_a_node_have_one_renewer(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread renews the leases of a node, whichever of two visits has made it first."""
    shard, second = ShardRef("queue", 1, 0), list[LeaseRenewer]()
    renewers = LeaseRenewers(lambda _shard: "node")

    def renewer() -> LeaseRenewer:
        if not second:
            second.append(LeaseRenewer())
            second[0] = renewers.of(shard)
        return LeaseRenewer()

    monkeypatch.setattr("lowkiq_lambda.engine.lease.LeaseRenewer", renewer)

    assert [renewers.of(shard)] == second


def test_a_lease_stays_with_its_renewer_when_its_shard_goes_to_another_node(clock: ManualClock) -> None:
    """It is renewed as before, and the renewer of the other node has what was taken since."""
    nodes, renewals = ["old", "new"], list[str]()
    shard, lease = ShardRef("queue", 1, 0), Lease(clock, 30.0, Moment.now(clock))
    renewers = LeaseRenewers(lambda _shard: nodes[0])
    with renewers.of(shard).keep(shard, lease, lambda: renewals.append(nodes[0])):
        old = renewers.of(shard)
        nodes.pop(0)
        clock.advance(10.0)

        assert renewers.of(shard).renew_due() is None
        assert old.renew_due() is not None
    renewers.end()

    assert ["new"] == renewals
    assert 27.0 == lease.trust_left()


@pytest.mark.parametrize("concurrency", [1, 4])
def test_e2_a_visit_that_cannot_renew_its_lease_leaves_no_lease_behind(
    app: Lowkiq, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch, concurrency: int
) -> None:
    """E-2: no handler ran, so the shard is free at once, and nobody renews its lease from then on."""
    notes = Notes()
    worker = declare(app, queue_name, notes, concurrency=concurrency)
    worker.push_many(jobs_of("a"))
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", without_renewers(threading.Thread.start))
        with pytest.raises(RuntimeError, match="can't start new thread"):
            app.drain()
    assert [] == notes.ids
    (shard,) = app.core.queues.agreed(worker).shards
    assert app.core.drains.drainer._renewers.of(shard).renew_due() is None

    clock.advance(1)
    eventually(lambda: "done" in app.drain())
    assert [["a"]] == notes.ids


def test_p1_a_node_that_hangs_costs_no_lease_on_another(
    cluster: Cluster, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P1: while a renewal on one node gets no answer, those on another go on, each in its time."""
    let_go, hangs = Event(), Event()
    begun: list[str] = []
    renewed: list[int] = []
    really_renew = LeaseSession.renew

    def wait(batch: Batch) -> None:
        begun.extend(batch)
        let_go.wait(60)

    def renew(session: LeaseSession, retry_for: float) -> None:
        if session.shard == fine:
            really_renew(session, retry_for)
            renewed.append(session.token)
            return
        hangs.set()
        let_go.wait(60)
        raise BackendUnavailable("no answer")

    monkeypatch.setattr(LeaseSession, "renew", renew)
    with closing_app(Lowkiq(Config(redis_url=cluster.url, lease_ttl=6.0))) as app:
        worker = declare(app, queue_name, wait, shards_count=6)
        ids = {shard_of(app, worker, str(number)): str(number) for number in range(60)}
        hung, *others = ids
        fine = next(shard for shard in others if app.core.backend.node_of(shard) != app.core.backend.node_of(hung))
        budget = Budget(app.core.drains.drainer.clock, 60)
        visits = [Thread(target=app.core.drains.drainer.visit, args=(shard, budget)) for shard in (hung, fine)]
        for job_id, visit in zip((ids[hung], ids[fine]), visits, strict=True):
            worker.push_many(jobs_of([job_id]))
            visit.start()
            eventually(partial(begun.count, job_id))
        try:
            # It was due first: one thread for all would stand still now.
            assert hangs.wait(60)
            eventually(lambda: renewed, timeout=30)
        finally:
            let_go.set()
            for visit in visits:
                visit.join(60)
