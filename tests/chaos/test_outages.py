"""Servers that die, freeze, load or turn into replicas in the middle of a drain: no job pays for it."""

import itertools
import threading
from collections.abc import Sequence
from contextlib import suppress
from os import urandom as random_bytes

import msgspec
import pytest

from lowkiq_lambda.base.errors import (
    BackendDenied,
    BackendError,
    BackendUnavailable,
    LowkiqError,
    PushInterrupted,
    QueueMismatch,
)
from lowkiq_lambda.store.server.faults import is_transient
from lowkiq_lambda.store.shard import backend
from lowkiq_lambda.store.shard.backend import Backend, Call
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.scripts import Reply
from tests.chaos.scenario import Scenario
from tests.chaos.steps import (
    IDS,
    check_that_nobody_paid,
    disturbed,
    drain_to_the_end,
    is_empty,
    numbered,
    opened,
    push,
    shard_of,
    state_of,
    visit,
    when_waiting,
)
from tests.chaos.storm.disk import FullDisk
from tests.kit.servers import MakeServer, Server


@pytest.fixture
def lasting(make_server: MakeServer, scenario: Scenario) -> tuple[Server, Scenario]:
    """A server that keeps what it acknowledged, and a queue on it."""
    server = make_server(appendonly=True)
    return server, msgspec.structs.replace(scenario, url=server.url, lease_ttl=3.0)


def test_p2_a_server_killed_mid_drain_loses_nothing(lasting: tuple[Server, Scenario]) -> None:
    """E-36: killed and started anew, again and again, with appendfsync always, and even the drain goes on."""
    server, scenario = lasting
    push(scenario, numbered(IDS, 1, 2))

    def restart() -> None:
        server.kill()
        server.start()

    with disturbed(scenario, (1, 3, 6), restart) as app:
        while not is_empty(state_of(server, scenario)):
            with suppress(BackendError):
                app.drain(10.0)
    check_that_nobody_paid(scenario, [state_of(server, scenario)], deliveries=3)


def test_a_server_that_stands_still_for_longer_than_a_call_waits_costs_nothing(
    server: Server, scenario: Scenario
) -> None:
    """E-44: the call timed out, was performed nevertheless, and was sent again; every job ran once."""
    server.admin.ping()
    push(scenario, numbered(IDS, 1, 2))
    scenario = msgspec.structs.replace(scenario, lease_ttl=6.0, redis_timeout=1.0)
    with disturbed(scenario, (2, 4), server.freeze) as app:
        waits = when_waiting(app, server.thaw)
        assert "empty" == visit(app).reason
    assert len(waits) >= 2
    check_that_nobody_paid(scenario, [state_of(server, scenario)], deliveries=1)


def test_a_server_that_stands_still_for_longer_than_a_lease_ends_the_visit(server: Server, scenario: Scenario) -> None:
    """E-43: the drain ends with an error that says so; the jobs run again, none is counted as failed."""
    push(scenario, numbered(IDS, 1, 2))
    with disturbed(scenario, (2,), server.freeze) as app:
        with pytest.raises(BackendUnavailable):
            visit(app)
        server.thaw()
    end = drain_to_the_end(server, scenario)
    check_that_nobody_paid(scenario, [end], deliveries=2)


def test_a_server_that_turns_into_a_replica_for_a_while_costs_nothing(
    make_server: MakeServer, scenario: Scenario
) -> None:
    """E-39: READONLY is waited for, and is no failure of a job."""
    server = make_server()
    scenario = msgspec.structs.replace(scenario, url=server.url, lease_ttl=10.0)
    push(scenario, numbered(IDS, 1, 2))
    with disturbed(scenario, (2, 5), lambda: server.admin.replicaof(server.host, 1)) as app:
        waits = when_waiting(app, lambda: server.admin.replicaof("NO", "ONE"))
        assert "empty" == visit(app).reason
    assert len(waits) >= 2
    check_that_nobody_paid(scenario, [state_of(server, scenario)], deliveries=1)


def test_a_server_that_loads_its_data_is_waited_for(
    make_server: MakeServer, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-39: LOADING is no failure of a job either."""
    # It reads slowly, and looks after its clients meanwhile.
    server = make_server(settings=["key-load-delay 10000", "loading-process-events-interval-bytes 1024"])
    scenario = msgspec.structs.replace(scenario, url=server.url, lease_ttl=20.0)
    push(scenario, numbered(IDS, 1, 2))
    for number in range(60):
        server.admin.set(f"ballast {number}", random_bytes(2_000))
    seen: list[str] = []

    def noted(error: Exception) -> bool:
        seen.append(type(error).__name__)
        return is_transient(error)

    monkeypatch.setattr(backend, "is_transient", noted)
    starting = threading.Thread(target=server.start)

    def restart() -> None:
        server.admin.save()
        server.kill()
        starting.start()

    with disturbed(scenario, (2,), restart) as app:
        assert "empty" == visit(app).reason
    starting.join()
    assert "BusyLoadingError" in seen
    check_that_nobody_paid(scenario, [state_of(server, scenario)], deliveries=1)


def test_a_full_disk_refuses_what_it_does_not_keep(make_server: MakeServer, scenario: Scenario) -> None:
    """E-39, P2: pushes and drains wait until there is room; all that was accepted is there, also after a restart."""
    server = make_server(appendonly=True, appendfsync="everysec")
    scenario = msgspec.structs.replace(scenario, url=server.url, lease_ttl=10.0)
    disk = FullDisk(server)
    with opened(scenario) as app:
        waits = when_waiting(app, disk.make_room)
        disk.fill()
        app.push_many(app.workers[0], numbered(IDS, 1))
        waited = len(waits)
        disk.fill()
        assert "empty" == visit(app).reason
        assert 0 < waited < len(waits)
    push(scenario, numbered(IDS, 2))
    server.restart()
    end = drain_to_the_end(server, scenario)
    check_that_nobody_paid(scenario, [end], deliveries=2)


@pytest.mark.unverified("its calls have little time, with thousands of jobs each")
def test_a_broken_off_push_says_what_was_written(
    lasting: tuple[Server, Scenario], monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-70: what it calls written is there, what it calls not written is not, and the rest may be either."""
    server, scenario = lasting
    scenario = msgspec.structs.replace(scenario, shards_count=4, redis_timeout=1.5)
    jobs = [{"id": number, "payload": number} for number in range(20_000)]
    push(scenario, [])
    waves = itertools.count(1)
    send = Backend.run_each

    def sent(self: Backend, calls: Sequence[Call]) -> list[Reply | LowkiqError]:
        replies = send(self, calls)
        if next(waves) != 2:
            return replies
        server.kill()
        return send(self, calls)

    monkeypatch.setattr(Backend, "run_each", sent)
    with pytest.raises(PushInterrupted) as raised:
        push(scenario, jobs)
    monkeypatch.undo()
    told = raised.value
    assert sorted(range(20_000)) == sorted([*told.written, *told.not_written, *told.unknown])
    assert told.written
    assert told.not_written
    assert told.unknown

    server.start()
    there = ids_of(server, scenario)
    assert {str(number) for number in told.written} <= there
    assert not {str(number) for number in told.not_written} & there
    push(scenario, [jobs[position] for position in [*told.not_written, *told.unknown]])
    assert {str(number) for number in range(20_000)} == ids_of(server, scenario)


def test_a_push_refused_after_a_lost_reply_may_be_written(
    server: Server, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-70, E-38: the first attempt was written, its answer lost, and the second is denied: that says nothing."""
    push(scenario, [])
    send, answers = Backend.run_each, [BackendUnavailable("The answer was lost."), BackendDenied("Nobody may write.")]

    def lost(self: Backend, calls: Sequence[Call]) -> list[Reply | LowkiqError]:
        if len(answers) > 1:
            send(self, calls)
        return [answers.pop(0)] * len(calls)

    monkeypatch.setattr(Backend, "run_each", lost)
    with pytest.raises(PushInterrupted, match="of 2 it is unknown") as raised:
        push(scenario, numbered("ab", 1))
    assert ([0, 1], []) == (raised.value.unknown, raised.value.not_written)
    assert {"a", "b"} == ids_of(server, scenario)


def test_a_push_that_was_written_is_so_though_the_shard_takes_no_more(
    server: Server, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E-70, E-38: the answer is lost, then the shard refuses this library: it looks at the token first."""
    push(scenario, [])
    send = Backend.run_each

    def lost(self: Backend, calls: Sequence[Call]) -> list[Reply | LowkiqError]:
        monkeypatch.undo()
        send(self, calls)
        allow_only_newer_versions(server, shard_of(scenario))
        return [BackendUnavailable("The answer was lost.")] * len(calls)

    monkeypatch.setattr(Backend, "run_each", lost)
    push(scenario, numbered("ab", 1))

    assert {"a", "b"} == ids_of(server, scenario)


def test_a_push_that_some_shards_refuse_says_what_was_written(server: Server, scenario: Scenario) -> None:
    """E-70: while a queue is being declared anew, the shards that still take jobs are told from those that do not."""
    scenario = msgspec.structs.replace(scenario, shards_count=2)
    push(scenario, [])
    allow_only_newer_versions(server, shard_of(scenario, 1))
    with pytest.raises(PushInterrupted) as raised:
        push(scenario, [{"id": number, "payload": number} for number in range(20)])
    told = raised.value
    assert isinstance(told.__cause__, QueueMismatch)
    assert list(range(20)) == sorted([*told.written, *told.not_written])
    assert {str(number) for number in told.written} == ids_of(server, scenario)


def allow_only_newer_versions(server: Server, shard: ShardRef) -> None:
    """The shard refuses this version of the library from now on."""
    server.admin.hset(shard.key("meta"), "least_version", 99)


def ids_of(server: Server, scenario: Scenario) -> set[str]:
    """All that waits, each under one payload."""
    found: set[str] = set()
    for index in range(scenario.shards_count):
        waiting = state_of(server, scenario, index)["waiting"]
        assert all(len(job[0]) == 1 for job in waiting.values())
        found |= waiting.keys()
    return found
