"""A task whose queues lie on several nodes of a cluster."""

from lowkiq_lambda import Batch, Config, Lowkiq, Rejected
from lowkiq_lambda.store.shard.keys import TasksRef
from tests.kit.apps import closing_app
from tests.kit.handlers import Notes
from tests.kit.servers import Cluster
from tests.kit.workers import declare
from tests.tasks.watching import counts, forget_tasks


def test_a_task_goes_over_the_nodes_of_a_cluster(cluster: Cluster, queue_name: str) -> None:
    """Three queues of four shards: counts, pages, the callback, a cancel, and that it is forgotten; on three nodes."""

    def handler(batch: Batch) -> None:
        for job_id in batch:
            if int(job_id) % 5 == 0:
                batch.fail(job_id, Rejected("no"))

    told = Notes()
    with closing_app(Lowkiq(Config(redis_url=cluster.url))) as app:
        workers = [declare(app, f"{queue_name}-{at}", handler, shards_count=4, batch_size=10) for at in range(3)]
        callback = declare(app, f"{queue_name}-callback", told)
        with app.task("export", on_complete=(callback, "all")) as task:
            for worker in workers:
                task.push_many(worker, [{"id": number, "payload": 1} for number in range(20)])
        cancelled = app.task("cancelled")
        cancelled.push_many(workers[0], [{"id": f"1{number}", "payload": 2} for number in range(20)])
        cancelled.cancel()
        app.drain(60.0)
        pages = [task.items(status="failed", limit=7)]
        pages.append(task.items(status="failed", after=pages[0].next, limit=7))

        nodes = {
            app.core.backend.node_of(shard) for worker in workers for shard in app.core.queues.agreed(worker).shards
        }
        assert 3 == len(nodes)
        assert app.core.backend.node_of(TasksRef()) in nodes
        assert ({"done": 48, "failed": 12}, "completed") == (counts(task), task.progress().state)
        assert ["0", "5", "10", "15", "0", "5", "10"] == [item.id for item in pages[0].items]
        assert (5, None) == (len(pages[1].items), pages[1].next)
        assert [{task.id: ["all"]}] == told.batches
        assert {"cancelled": 20} == counts(cancelled)
        forget_tasks(app)
