"""The engine on a cluster, behind Sentinels, and over TLS."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from lowkiq_lambda import BackendError, Batch, Config, Lowkiq, Worker
from tests.servers import Cluster, SentinelSetup, Server, TlsProxy
from tests.waiting import eventually

IDS, VERSIONS = 60, 3


class Recorder:
    """A worker of several shards that notes the versions it was given of each id."""

    def __init__(self, url: str, queue_name: str, **settings: Any) -> None:  # noqa: ANN401 - any setting
        self.app = Lowkiq(Config(redis_url=url, redis_timeout=1.0, lease_ttl=2.0, **settings))
        self.applied: defaultdict[str, list[int]] = defaultdict(list)
        fields = {"queue_name": queue_name, "shards_count": 12, "batch_size": 5, "perform": self._perform}
        self.worker: type[Worker] = self.app.worker(type("Recording", (Worker,), fields))
        self.before_batch: Iterator[int] = count()
        self.disturb: dict[int, Callable[[], object]] = {}

    def _perform(self, batch: Batch) -> None:
        disturbance = self.disturb.pop(next(self.before_batch), None)
        if disturbance:
            disturbance()
        for job_id, payloads in batch.items():
            self.applied[job_id] += payloads

    def push(self) -> None:
        """Push all versions of all ids, the newest first."""
        self.worker.perform_async(
            [
                {"id": f"id-{number}", "payload": version, "score": version}
                for version in reversed(range(VERSIONS))
                for number in range(IDS)
            ]
        )

    def drain(self) -> None:
        """Drain until nothing is left, whatever the server is going through."""

        def is_drained() -> bool:
            try:
                self.app.drain(seconds=5)
                return self.app.stats()["total"]["length"] == 0 and not self.app.queries(self.worker).processing()
            except BackendError:
                return False

        eventually(is_drained, timeout=40)

    def close(self) -> None:
        """Give the connections back."""
        self.app.backend.client.close()
        self.app.drainer._backend.client.close()


def in_order(applied: dict[str, list[int]]) -> bool:
    """Whether each id's versions came in order, each delivery of all that had gathered repeated at most whole."""
    whole = list(range(VERSIONS))
    return all(versions == whole * (len(versions) // VERSIONS) for versions in applied.values())


@pytest.fixture
def recorder(request: pytest.FixtureRequest, queue_name: str) -> Iterator[Recorder]:
    """A recorder on what the test names as its place."""
    place = request.getfixturevalue(request.param)
    made = Recorder(place.url, queue_name)
    yield made
    made.close()


@pytest.mark.parametrize("recorder", ["cluster", "sentinel"], indirect=True)
def test_jobs_are_performed_in_order_on(recorder: Recorder) -> None:
    """All shards of a queue drain, each id's payloads in order and at once, wherever the shards' keys lie."""
    recorder.push()

    counts = recorder.app.drain(seconds=20)

    assert {"done": IDS} == counts
    assert IDS == len(recorder.applied)
    assert all(versions == list(range(VERSIONS)) for versions in recorder.applied.values())


@pytest.mark.parametrize("recorder", ["cluster"], indirect=True)
def test_e40_slots_that_move_during_a_drain_lose_and_reverse_nothing(recorder: Recorder, cluster: Cluster) -> None:
    """A shard whose slot moves to another node is drained to its end there."""
    recorder.push()
    shards = recorder.app.queue_of(recorder.worker).shards

    def move_all() -> None:
        for shard in shards:
            home = cluster.node_for(shard.keys[0])
            away = next(node for node in cluster.nodes if node.port != home.port)
            cluster.move_slot(cluster.slot_of(shard.keys[0]), away)

    recorder.disturb[2] = move_all
    recorder.drain()

    assert not recorder.disturb
    assert IDS == len(recorder.applied)
    assert in_order(recorder.applied)


@pytest.mark.parametrize("recorder", ["sentinel"], indirect=True)
def test_e37_a_failover_during_a_drain_repeats_at_most_and_in_order(
    recorder: Recorder, sentinel: SentinelSetup
) -> None:
    """After a failover the drain goes on at the new primary: what was acknowledged too late runs again, in order."""
    recorder.push()

    recorder.disturb[2] = sentinel.failover
    recorder.drain()

    assert not recorder.disturb
    assert IDS == len(recorder.applied)
    assert in_order(recorder.applied)
    assert 0 == recorder.app.stats()["total"]["morgue_length"]


def test_jobs_travel_over_tls(server: Server, queue_name: str) -> None:
    """With a rediss:// URL and the authority's certificate, push and drain go through TLS."""
    with TlsProxy(server) as proxy:
        recorder = Recorder(proxy.url, queue_name)
        recorder.push()

        assert {"done": IDS} == recorder.app.drain(seconds=20)
        recorder.close()


def test_e46_a_certificate_of_an_unknown_authority_is_refused_in_a_sentence(server: Server, queue_name: str) -> None:
    """The first call says what is wrong with TLS and what to do; nothing is sent in the clear."""
    with TlsProxy(server) as proxy:
        recorder = Recorder(proxy.bare_url, queue_name)

        with pytest.raises(BackendError, match="TLS certificate is not accepted"):
            recorder.push()
        recorder.close()
