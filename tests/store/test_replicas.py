"""`wait_replicas`: a push returns once replicas have it, and a drain goes on with a warning where they do not (P2)."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from lowkiq_lambda import Config, Lowkiq, LowkiqError, NotReplicated, PushInterrupted, Worker
from lowkiq_lambda.store.shard.chunks import Chunk, NewJob, packed
from lowkiq_lambda.store.shard.replicas import Waits
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import closing_app
from tests.kit.handlers import Notes
from tests.kit.servers import Cluster, SentinelSetup
from tests.kit.workers import declare, jobs_of, shard_of


@contextmanager
def waiting(url: str, clock: ManualClock | None = None, **settings: Any) -> Iterator[Lowkiq]:
    """An app whose pushes wait for a replica; a call waits for a fifth of a second."""
    fields: dict[str, Any] = {"redis_url": url, "redis_timeout": 0.4, "wait_replicas": 1, **settings}
    with closing_app(Lowkiq(Config(**fields), clock=clock)) as app:
        yield app


@contextmanager
def lagging(sentinel: SentinelSetup) -> Iterator[None]:
    """The replica stands still inside the block."""
    (replica,) = sentinel.replicas
    with replica.frozen():
        yield


def push_once(app: Lowkiq, worker: type[Worker], token: bytes, job_id: str = "a") -> bytes | LowkiqError:
    """The status of one attempt to push a job, or its error; it is a repeat of an earlier one with the same token."""
    chunk = Chunk(shard_of(app, worker, job_id), token, [NewJob(0, job_id, packed(None, None, b"1"), None)])
    (answer,) = app.core.backend.run_each([chunk.call(worker.merge, "", b"")])
    return answer if isinstance(answer, LowkiqError) else bytes(answer[0])


def test_p2_a_push_that_has_returned_is_on_the_replica(sentinel: SentinelSetup, queue_name: str) -> None:
    """P2: nobody has to wait for the replica afterwards, however many chunks and shards there are."""
    with waiting(sentinel.url) as app:
        worker = declare(app, queue_name, Notes(), shards_count=2)
        worker.push_many(jobs_of([str(number) for number in range(5_000)]))

        (replica,) = sentinel.replicas
        shards = app.core.queues.agreed(worker).shards
        assert 5_000 == sum(replica.admin.hlen(shard.key("jobs")) for shard in shards)


def test_p2_a_push_that_no_replica_has_says_so_and_a_repeat_changes_nothing(
    sentinel: SentinelSetup, queue_name: str
) -> None:
    """P2: the jobs are unknown, as a failover may lose them; pushed again they meet themselves and run once."""
    notes = Notes()
    with waiting(sentinel.url) as app:
        worker = declare(app, queue_name, notes)
        with lagging(sentinel), pytest.raises(PushInterrupted, match="0 of 1 replicas had it 200 ms later") as raised:
            worker.push_many(jobs_of("ab"))

        assert isinstance(raised.value.__cause__, NotReplicated)
        assert ([], [], [0, 1]) == (raised.value.written, raised.value.not_written, raised.value.unknown)
        assert [True, True] == [pushed.merged for pushed in worker.push_many(jobs_of("ab"))]
        assert {"done": 2} == app.drain(30.0)
        assert [["a"], ["b"]] == notes.ids


def test_p2_a_repeat_of_an_attempt_is_not_taken_for_replicated(sentinel: SentinelSetup, queue_name: str) -> None:
    """P2: it writes nothing itself, and waits for what is there; so does one that had to give the server its script."""
    with waiting(sentinel.url) as app, closing_app(Lowkiq(Config(redis_url=sentinel.url))) as other:
        worker = declare(app, queue_name, Notes())
        worker.push("warm")
        declare(other, queue_name, Notes()).push("warm")
        with lagging(sentinel):
            sentinel.primary.admin.script_flush()
            unknown = push_once(app, worker, b"first")
            written = push_once(other, worker, b"second", "b")
            answers = [push_once(app, worker, b"first"), push_once(app, worker, b"second", "b")]

        assert [NotReplicated] * 3 == [type(answer) for answer in (unknown, *answers)]
        assert [b"OK", b"OK"] == [push_once(app, worker, b"first"), written]
        assert 3 == sentinel.primary.admin.hlen(shard_of(app, worker, "a").key("jobs"))


@pytest.mark.nightly("the buffer is given what any error that passes leaves unknown, and the tests of it are many")
def test_a_push_that_waits_for_its_replica_is_buffered(sentinel: SentinelSetup, queue_name: str) -> None:
    """The buffer delivers it under its token until a replica has it, and then it is there once."""
    with waiting(sentinel.url, when_unavailable="buffer") as app:
        worker = declare(app, queue_name, Notes())
        with lagging(sentinel):
            pushed = worker.push("a")
            left = app.flush(0.0)

        assert (True, 1, 0) == (pushed.buffered, left, app.flush(30.0))
        assert {"done": 1} == app.drain(30.0)


def waits_of_a_drain(sentinel: SentinelSetup, app: Lowkiq, producer: type[Worker]) -> int:
    """How often the primary is asked to wait for replicas while the app drains a job."""
    producer.push("a")
    sentinel.primary.admin.config_resetstat()
    app.drain(3_600.0)
    return int(sentinel.primary.admin.info("commandstats").get("cmdstat_wait", {"calls": 0})["calls"])


def test_a_drain_goes_on_without_a_replica_and_warns_once_a_minute(
    sentinel: SentinelSetup, queue_name: str, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """What it writes stands. For five seconds it does not wait again: a replica that is away slows it little."""
    notes, asked = Notes(), list[int]()
    with (
        waiting(sentinel.url, clock) as app,
        waiting(sentinel.url, clock, wait_replicas=0) as pushing,
        caplog.at_level(logging.WARNING),
    ):
        declare(app, queue_name, notes)
        producer = declare(pushing, queue_name, Notes())
        # The first one gives the server the scripts.
        asked += [waits_of_a_drain(sentinel, app, producer) for _ in range(2)][1:]
        with lagging(sentinel):
            for seconds in (0.0, 1.0, 6.0):
                clock.advance(seconds)
                asked.append(waits_of_a_drain(sentinel, app, producer))
        clock.advance(60.0)
        asked.append(waits_of_a_drain(sentinel, app, producer))

    assert [2, 1, 0, 1, 2] == asked
    assert [["a"]] * 6 == notes.ids
    (warning,) = [record for record in caplog.records if "too few replicas" in record.message]
    assert ("0 of 1 replicas had it 200 ms later", 1) == (vars(warning)["why"], vars(warning)["calls"])


@pytest.mark.parametrize("command", ["wait", "eval"])
def test_a_server_that_refuses_to_wait_is_told_with_the_way_out(
    sentinel: SentinelSetup, queue_name: str, command: str
) -> None:
    """Pushes say which command it is, and what to set; drains go on."""
    url = sentinel.primary.add_user(f"without-{command}", "~*", "&*", "+@all", f"-{command}")
    with waiting(sentinel.url) as app, waiting(url) as refused:
        declare(app, queue_name, Notes()).push("a")
        worker = declare(refused, queue_name, Notes())
        refused.core.queues.agreed(worker)

        answer = push_once(refused, worker, b"token")

        assert isinstance(answer, NotReplicated)
        assert {"WAIT", "EVAL", "wait_replicas=0."} <= {*str(answer).replace(",", "").split()}
        assert f"'{command}'" in str(answer)
        assert {"done": 1} == refused.drain(30.0)


def test_what_another_node_has_written_is_not_taken_for_replicated(cluster: Cluster, queue_name: str) -> None:
    """P2: WAIT asks the node that the slot was thought to be on; the attempt after the move asks the right one."""
    with waiting(cluster.url, wait_replicas=0) as app:
        worker = declare(app, queue_name, Notes())
        # So that each node has the script.
        declare(app, f"{queue_name}-2", Notes(), shards_count=20).push_many(jobs_of([*map(str, range(100))]))
        worker.push("a")
        backend = app.core.backend
        # No node of this cluster has a replica: none is waited for, and that is confirmed.
        backend.replicated = Waits(backend, 0, 1.0).send
        slot = cluster.slot_of(shard_of(app, worker, "a").keys[0])
        source = cluster.node_for(shard_of(app, worker, "a").keys[0])
        target = next(node for node in cluster.nodes if node is not source)

        before = push_once(app, worker, b"before")
        cluster.move_slot(slot, target)
        moved, afterwards = push_once(app, worker, b"moved"), push_once(app, worker, b"moved")

        assert isinstance(moved, NotReplicated)
        assert "its keys have just moved to another node" in str(moved)
        assert [b"OK", b"OK"] == [before, afterwards]


def test_a_call_waits_for_less_time_than_its_connection_does(sentinel: SentinelSetup) -> None:
    """Else the answer would be taken for a lost one: half of it, and half a second at most."""
    with waiting(sentinel.url) as app:
        backend = app.core.backend
        assert [1, 16, 500] == [Waits(backend, 1, timeout)._milliseconds for timeout in (0.001, 0.033, 60.0)]
