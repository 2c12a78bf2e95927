"""Children that are killed, while leases last for longer than any test: what they held is free at once."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from signal import SIGKILL, SIGTERM
from typing import Final

import pytest

from lowkiq_lambda.store.shard.keys import ShardRef
from tests.kit.process_states import lives
from tests.kit.servers import Server
from tests.kit.stage import Stage
from tests.kit.stored import stored
from tests.kit.waiting import eventually
from tests.local.children import SHARDS, TIMEOUT, TWO, await_start, children, freeze, id_of, performed_in_order
from tests.local.conftest import APP

HOUR: Final = 3_600
ALONE: Final = 3
"""How often an id may kill its process when it runs alone."""


@pytest.fixture
def stage(server: Server, queue_name: str, tmp_path: Path) -> Iterator[Stage]:
    """A queue of several shards on the shared server, with two jobs in a batch."""
    with closing(Stage(server, queue_name, tmp_path, APP, shards_count=SHARDS, batch_size=2)) as made:
        yield made


def shard(queue_name: str, index: int) -> ShardRef:
    """One of the queue's shards."""
    return ShardRef(queue_name, SHARDS, index)


def lease(server: Server, of: ShardRef) -> list[bytes | str | None]:
    """Whose it is."""
    return server.admin.hmget(of.key("meta"), "token", "nonce", "owner")


def test_p2_what_a_killed_child_held_runs_again_at_once_and_what_another_holds_goes_on(
    stage: Stage, server: Server, queue_name: str
) -> None:
    """P1, P2: only leases of the process that is gone are released, so nothing runs twice at once."""
    daemon = stage.daemon(*TWO, lease_ttl=HOUR)
    pids = await_start(stage, daemon)
    lost, kept = id_of(0), id_of(1)
    stage.push([lost, kept], "wait")
    stage.await_told("begin", times=2)
    before = lease(server, shard(queue_name, 1))
    os.kill(pids[0], SIGKILL)
    again = stage.await_told("begin", times=2, id=lost)[-1]

    assert again["pid"] != pids[0]
    assert before == lease(server, shard(queue_name, 1))
    released = f'the leases that a child left are released child=0 shards=["{queue_name} 0"]'
    eventually(lambda: released in daemon.log)
    for job_id in (lost, kept):
        stage.release(job_id)
        stage.await_told("end", id=job_id)
    assert [pids[1]] == [one["pid"] for one in stage.told("begin", id=kept)]
    assert [] == stage.told("overlap")


def test_p2_what_a_child_held_that_exited_uninvited_runs_again_at_once(
    stage: Stage, server: Server, queue_name: str
) -> None:
    """P2: the process is gone with its handlers, whatever its exit code says: its leases are released."""
    daemon = stage.daemon(*TWO, lease_ttl=HOUR)
    await_start(stage, daemon)
    stage.push([id_of(0)], "vanish")
    first, *again = stage.await_told("begin", times=1 + ALONE, id=id_of(0))
    eventually(lambda: stored(server.admin, shard(queue_name, 0))["morgue"], TIMEOUT)

    assert first["pid"] not in {one["pid"] for one in again}
    assert "a child was ended and is replaced" in daemon.log
    assert [] == stage.told("overlap")


def test_p6_what_kills_its_child_each_time_is_found_and_dies_alone(
    stage: Stage, server: Server, queue_name: str
) -> None:
    """P6: that the shard is free at once takes nothing from suspicion: once in company, then alone, then the morgue."""
    daemon = stage.daemon(*TWO, lease_ttl=HOUR)
    await_start(stage, daemon)
    killer, neighbour = id_of(0), id_of(0, but=id_of(0))
    stage.worker.push_many([{"id": killer, "payload": {"do": "die"}}, {"id": neighbour, "payload": {"do": "note"}}])
    stage.await_told("begin", times=1 + ALONE, id=killer)
    stage.await_told("end", id=neighbour)
    eventually(lambda: stored(server.admin, shard(queue_name, 0))["morgue"], TIMEOUT)
    eventually(lambda: daemon.log.count("a child died and is replaced") > ALONE)

    assert [killer] == [*stored(server.admin, shard(queue_name, 0))["morgue"]]
    killed = [one["pid"] for one in stage.told("begin", id=killer)]
    assert (1 + ALONE, 1 + ALONE) == (len(killed), daemon.log.count("a child died and is replaced"))
    assert not any(map(lives, killed))
    assert [] == stage.told("overlap")


def test_two_daemons_of_two_processes_on_the_same_shards_perform_nothing_twice_at_once(stage: Stage) -> None:
    """Whichever of the four has a shard, and whichever of them are killed: all is performed, and in order."""
    daemons = [stage.daemon(*TWO, lease_ttl=HOUR) for _ in range(2)]
    pids = [await_start(stage, daemon) for daemon in daemons]
    ids = [id_of(index) for index in range(SHARDS)]
    held = [id_of(index, but=ids[index]) for index in range(2)]
    for number in range(1, 4):
        stage.push(ids, number=number)
    stage.push(held, "wait")
    begun = stage.await_told("begin", times=1, id=held[0]) + stage.await_told("begin", times=1, id=held[1])
    for victim in {one["pid"] for one in begun} | {pids[0][0]}:
        os.kill(victim, SIGKILL)
    for number in range(4, 7):
        stage.push(ids, number=number)
    for job_id in held:
        stage.await_told("begin", times=2, id=job_id)
        stage.release(job_id)
        stage.await_told("end", id=job_id)
    eventually(lambda: sum(6 in one["numbers"] for one in stage.told("end")) >= SHARDS, TIMEOUT)

    assert [] == stage.told("overlap")
    assert performed_in_order(stage, ids)


def test_what_a_child_held_that_had_to_be_killed_is_free_when_the_daemon_has_ended(stage: Stage) -> None:
    """The next daemon, of a deployment for one, need not wait for leases of a process that stood still."""
    daemon = stage.daemon(*TWO, lease_ttl=HOUR, shutdown_timeout=0)
    pids = await_start(stage, daemon)
    stage.push([id_of(0)], "wait")
    stage.await_told("begin", id=id_of(0))
    freeze(pids[0])
    daemon.send(SIGTERM)

    assert 1 == daemon.exit_code()
    assert [pids[0]] == [one["pid"] for one in stage.told("begin")]
    stage.daemon(lease_ttl=HOUR)
    again = stage.await_told("begin", times=2, id=id_of(0))[-1]
    stage.release(id_of(0))
    stage.await_told("end", id=id_of(0))
    assert again["pid"] not in {*children(daemon)}
    assert [] == stage.told("overlap")
