"""A queue moves over the nodes of a cluster whose clocks are a second apart, while it is pushed to and drained."""

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lowkiq_lambda import Batch, Config, Lowkiq, Worker
from lowkiq_lambda.store.shard.nodes import Asking, Nodes
from tests.chaos.repeating import repeating
from tests.kit.apps import closing_app
from tests.kit.looks import left_behind
from tests.kit.servers import Cluster
from tests.kit.waiting import eventually
from tests.kit.workers import declare

IDS = [f"id-{number}" for number in range(20)]


@pytest.fixture
def clocks_apart(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second node is a second ahead of the first, and the third a second behind it."""
    names = [f"{host}:{port}" for host, port in cluster.addresses]
    ahead = dict(zip(names, (0, 1, -1), strict=True))
    observe = Nodes.observe

    def observe_its_clock(nodes: Nodes, node: str, said: tuple[bytes, bytes], asking: Asking) -> float:
        return observe(nodes, node, (b"%d" % (int(said[0]) + ahead[node]), said[1]), asking)

    monkeypatch.setattr(Nodes, "observe", observe_its_clock)


class SteadyProducer:
    """Pushes 1, 2, 3 and so on to each id, in a thread of its own."""

    def __init__(self, worker: type[Worker]) -> None:
        self._worker = worker
        self._over = threading.Event()
        self.pushed = 0

    def _push(self) -> None:
        while not self._over.wait(0.005):
            self._worker.push_many([{"id": job_id, "payload": self.pushed + 1} for job_id in IDS])
            self.pushed += 1

    @contextmanager
    def pushing(self) -> Iterator[None]:
        """While the block lasts."""
        thread = threading.Thread(target=self._push)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def await_more(self) -> None:
        """Wait until each id has five payloads more."""
        goal = self.pushed + 5
        eventually(lambda: self.pushed >= goal, timeout=60.0, what="more pushes")


@pytest.mark.usefixtures("clocks_apart")
def test_p3_e93_order_holds_over_moves_between_clocks_that_are_apart(cluster: Cluster, queue_name: str) -> None:
    """P3, E-93: from 24 to 25 shards, all in one move, and to 3; no id goes back, and nothing is handled twice."""
    handled: dict[str, list[object]] = defaultdict(list)

    def note(batch: Batch) -> None:
        for job_id, payloads in batch.items():
            handled[job_id] += payloads

    with closing_app(Lowkiq(Config(redis_url=cluster.url))) as app:
        worker = declare(app, queue_name, note, shards_count=24, batch_size=10)
        producer = SteadyProducer(worker)
        with repeating(lambda: app.drain(seconds=0.5), lambda: 0.01):
            with producer.pushing():
                for count in (25, 3):
                    producer.await_more()
                    app.operate(worker).reshard(to=count)
                    producer.await_more()
            eventually(
                lambda: not app.operate.stats()["total"]["length"] and not left_behind(app, worker), timeout=60.0
            )

    assert {job_id: [*range(1, producer.pushed + 1)] for job_id in IDS} == handled
