"""What a failover loses without and with `wait_replicas`, on primaries that are killed (P2)."""

from collections.abc import Iterator

import pytest

from lowkiq_lambda import Config, Lowkiq, NotReplicated, PushInterrupted
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.replicas import Replicas
from tests.kit.apps import closing_app
from tests.kit.handlers import Notes
from tests.kit.servers import ReplicatedCluster, SentinelSetup
from tests.kit.workers import declare
from tests.proof.replicas import Proof, Setup, fail_over, lag, replicated_names, setup_of


@pytest.fixture(scope="module")
def replicated_cluster() -> Iterator[ReplicatedCluster]:
    """A cluster whose first node has a replica."""
    with ReplicatedCluster() as started:
        yield started


def what_a_failover_keeps(setup: Setup) -> list[list[str]]:
    """The ids that are performed after a failover to a replica that lagged: `b` was pushed without waiting for it."""
    notes, name = Notes(), next(replicated_names())
    with (
        closing_app(Lowkiq(Config(redis_url=setup.url))) as careless,
        closing_app(Lowkiq(Config(redis_url=setup.url, redis_timeout=0.5, wait_replicas=1))) as careful,
    ):
        hasty, worker = declare(careless, name, Notes()), declare(careful, name, notes)
        worker.push("a")
        lag(setup.primary, *setup.replicas)
        hasty.push("b")
        with pytest.raises(PushInterrupted, match="may lose it"):
            worker.push("c")
        fail_over(setup)
        setup.heal()
        worker.push("c")
        careful.drain(30.0)
    return notes.ids


def test_p2_a_failover_loses_no_push_that_has_waited(sentinel: SentinelSetup) -> None:
    """P2: of three pushes to a primary that dies one returned though its replica lacked it, and that one is lost."""
    assert [["a"], ["c"]] == what_a_failover_keeps(sentinel)


@pytest.mark.nightly("a failover under Sentinels is tried above, and the replica of a cluster below")
def test_p2_a_failover_of_a_cluster_loses_no_push_that_has_waited(replicated_cluster: ReplicatedCluster) -> None:
    """P2: the same where the nodes decide by themselves."""
    assert [["a"], ["c"]] == what_a_failover_keeps(replicated_cluster)


def test_p2_a_move_in_a_cluster_waits_for_the_replica(replicated_cluster: ReplicatedCluster) -> None:
    """P2: what others have written there counts, and in a cluster a message is not sent to replicas."""
    setup, shards = replicated_cluster, [ShardRef(next(replicated_names()), 1, 0)]
    with closing_app(Lowkiq(Config(redis_url=setup.url))) as app:
        replicas = Replicas(app.core.backend, tries=1)
        replicas.have(shards)
        lag(setup.primary, *setup.replicas)

        with pytest.raises(NotReplicated, match=r"\(--unreplicated\)"):
            replicas.have(shards)

        setup.heal()


@pytest.mark.nightly("two failovers are among the tests above")
@pytest.mark.parametrize("kind", [SentinelSetup, ReplicatedCluster])
def test_p2_random_failovers_lose_no_push_that_has_waited(kind: type[Setup]) -> None:
    """P2: as the program, which kills at random moments while apps push and drain; it sees losses without a wait."""
    with setup_of(kind) as setup:
        proof = Proof(setup, failovers=4, seed=4)

        assert proof.careless.lost() > 0
        assert proof.careful.lost() == 0 or proof.broke_off
        assert proof.careful.accepted > 100 * proof.failovers
