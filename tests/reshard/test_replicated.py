"""A move waits for replicas, so that a failover does not take back what has been dropped elsewhere (P2)."""

from collections.abc import Iterator
from typing import Any

import pytest

from lowkiq_lambda import Config, Lowkiq, NotReplicated, Worker
from lowkiq_lambda.reshard.resharding import Resharding
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.replicas import Replicas
from tests.kit.apps import closing_app
from tests.kit.handlers import Notes
from tests.kit.servers import SentinelSetup
from tests.kit.waiting import eventually
from tests.kit.workers import declare, jobs_of


@pytest.fixture
def app(sentinel: SentinelSetup) -> Iterator[Lowkiq]:
    """An app on a primary with a replica."""
    with closing_app(Lowkiq(Config(redis_url=sentinel.url))) as app:
        yield app


@pytest.fixture
def worker(app: Lowkiq, queue_name: str) -> type[Worker]:
    """Five jobs wait in its queue of two shards."""
    worker = declare(app, queue_name, Notes(), shards_count=2)
    worker.push_many(jobs_of("abcde"))
    return worker


def impatient(app: Lowkiq, worker: type[Worker], **options: Any) -> Resharding:
    """Moves of the queue that wait for half a second."""
    resharding = app.operate(worker).resharding(**options)
    if resharding._replicas:
        resharding._replicas = Replicas(app.core.backend, tries=1)
    resharding.begin(3)
    return resharding


def test_a_replica_has_what_has_moved(app: Lowkiq, worker: type[Worker], sentinel: SentinelSetup) -> None:
    """When the move is over no write of it is on its way to the replica any more."""
    app.operate(worker).reshard(to=3)

    (replica,) = sentinel.replicas
    kept = {key for shard in app.core.queues.agreed(worker).shards for key in replica.admin.hkeys(shard.key("jobs"))}
    assert {b"a", b"b", b"c", b"d", b"e"} == kept


def test_a_replica_that_hangs_stops_the_move_and_nothing_is_dropped(
    app: Lowkiq, worker: type[Worker], sentinel: SentinelSetup
) -> None:
    """The error says what to do; once the replica follows again the same command goes on."""
    (replica,) = sentinel.replicas
    replica.freeze()
    with pytest.raises(NotReplicated, match=r"No replica has what was moved, 0\.5 s after .*\(--unreplicated\)"):
        impatient(app, worker).go_on(lambda *_: None)
    replica.thaw()

    app.operate(worker).reshard(to=3)

    assert list("abcde") == sorted(job.id for job in app.operate(worker).waiting.list("id"))


def test_a_move_need_not_wait(app: Lowkiq, worker: type[Worker], sentinel: SentinelSetup) -> None:
    """Whoever gives up what a failover takes moves beside a replica that hangs."""
    (replica,) = sentinel.replicas
    replica.freeze()

    assert impatient(app, worker, unreplicated=True).go_on(lambda *_: None)

    replica.thaw()


def test_a_replica_that_comes_back_is_waited_for(app: Lowkiq, sentinel: SentinelSetup) -> None:
    """Whether there is one is asked at each step."""
    replicas, shards = Replicas(app.core.backend, tries=1), [ShardRef("any", 1, 0)]
    (replica,) = sentinel.replicas
    replica.kill()
    eventually(lambda: not sentinel.primary.admin.info("replication")["connected_slaves"], what="a primary alone")
    replicas.have(shards)
    sentinel.heal()
    replica.freeze()

    with pytest.raises(NotReplicated):
        replicas.have(shards)

    replica.thaw()


@pytest.mark.parametrize("command", ["wait", "info"])
def test_a_server_that_does_not_tell_is_not_trusted(sentinel: SentinelSetup, queue_name: str, command: str) -> None:
    """Where a command is forbidden the error names it, and the option that does without."""
    url = sentinel.primary.add_user(f"without-{command}", "~*", "&*", "+@all", f"-{command}")
    with closing_app(Lowkiq(Config(redis_url=url))) as app:
        worker = declare(app, queue_name, Notes(), shards_count=2)
        worker.push_many(jobs_of("abcde"))

        with pytest.raises(NotReplicated, match=rf"does not tell .*{command}.*\(--unreplicated\)"):
            app.operate(worker).reshard(to=3)
        app.operate(worker).reshard(to=3, unreplicated=True)

        assert list("abcde") == sorted(job.id for job in app.operate(worker).waiting.list("id"))
