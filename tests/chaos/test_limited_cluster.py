"""A limited queue in a cluster, where what is kept of the queue and its shard lie on different nodes."""

import threading
from itertools import count

import pytest

from lowkiq_lambda import Batch, Config, Lowkiq
from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.base.errors import BackendUnavailable
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.store.shard.admitting import visits_running
from lowkiq_lambda.store.shard.keys import QueueRef, ShardRef
from tests.kit.apps import closing_app
from tests.kit.looks import left_behind
from tests.kit.servers import Cluster
from tests.kit.workers import declare, jobs_of


def apart(cluster: Cluster, queue_name: str) -> str:
    """A name of a queue whose slot is on another node than its only shard."""
    names = (f"{queue_name}-{number}" for number in count())
    return next(
        name
        for name in names
        if cluster.node_for(QueueRef(name).keys[0]) is not cluster.node_for(ShardRef(name, 1, 0).keys[0])
    )


def test_limits_fail_closed_where_only_the_queues_node_is_away(cluster: Cluster, queue_name: str) -> None:
    """The visit that runs is told to stop when its permit may be another's, and no other begins; no job pays for it."""
    name = apart(cluster, queue_name)
    node = cluster.node_for(QueueRef(name).keys[0])
    told: list[bool] = []

    def outlast_the_permit(batch: Batch) -> None:
        if not told:
            node.freeze()
            rest = threading.Event()
            told.append(not all(not batch.stopping and not rest.wait(0.02) for _ in range(1_000)))

    with closing_app(Lowkiq(Config(redis_url=cluster.url, lease_ttl=1.5))) as app:
        worker = declare(app, name, outlast_the_permit, batch_size=1, max_running=1)
        worker.push_many(jobs_of("abc"))
        shard = app.core.queues.agreed(worker).shards[0]
        result = app.core.drains.drainer.visit(shard, Budget(SystemClock(), 60.0))
        with pytest.raises(BackendUnavailable):
            app.core.drains.drainer.visit(shard, Budget(SystemClock(), 60.0))
        node.thaw()
        counts = app.drain(60.0)

        assert ([True], "limited", {"done": 1}) == (told, result.reason, dict(result.counts))
        assert {"done": 2} == counts
        assert {} == left_behind(app, worker)
        assert 0 == visits_running(app.core.backend, name, 5.0).running
