"""A limiter in a cluster, whose node is away while the node of the jobs serves."""

from itertools import count

from lowkiq_lambda import BatchJob, Config, Lowkiq, Rate, Worker
from lowkiq_lambda.store.shard.keys import LimiterRef, ShardRef
from tests.kit.apps import closing_app
from tests.kit.looks import counters, left_behind
from tests.kit.servers import Cluster
from tests.kit.workers import declare


def test_a_job_that_cannot_ask_goes_on_later(cluster: Cluster, queue_name: str) -> None:
    """Closed, and no failure: the job says why it waits, and goes on when the limiter can be asked."""
    shard = cluster.node_for(ShardRef(queue_name, 1, 0).keys[0])
    keys = (f"key-{number}" for number in count())
    key = next(key for key in keys if cluster.node_for(LimiterRef(queue_name, key).keys[0]) is not shard)
    node = cluster.node_for(LimiterRef(queue_name, key).keys[0])
    answers: list[bool] = []
    with closing_app(Lowkiq(Config(redis_url=cluster.url, redis_timeout=0.3))) as app:
        limiter = app.limiter(queue_name, Rate(10, per=60))
        limiter.acquire(key)

        def perform_job(_self: Worker, _job: BatchJob) -> None:
            if not answers:
                node.freeze()
            answers.append(bool(limiter.try_acquire(key)))
            limiter.acquire(key)

        worker = declare(app, queue_name, print, perform_job=perform_job)
        worker.push("a")
        assert {"later": 1} == app.drain()
        node.thaw()

        situation = app.operate(worker).explain("a")
        assert f"the limiter {queue_name} cannot be asked" == situation.put_off
        assert (situation.due_at or 0.0) - situation.shard.at > 3.0
        app.operate(worker).waiting.run_now(["a"])
        assert {"done": 1} == app.drain()
        assert [False, True] == answers
        assert {} == left_behind(app, worker)
        assert "retried" not in counters(app, worker)
