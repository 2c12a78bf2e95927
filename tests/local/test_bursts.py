"""`burst_after`: drains that leave to daemons what has not waited for long, by a clock that the test moves."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from lowkiq_lambda import BackendUnavailable, Batch, Config, Lowkiq, LowkiqError
from lowkiq_lambda.store.shard.heartbeats import HeartbeatSender
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.state import ProbeResult
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.processes import Process
from tests.kit.apps import MakeApp, close_app
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Notes
from tests.kit.workers import declare, jobs_of

AFTER = 10.0
BURST = "lowkiq_lambda.engine.burst"


@pytest.fixture
def make_app(server_url: str, queue_name: str, clock: ManualClock) -> Iterator[MakeApp]:
    """Builds apps on the shared server that go by the clock of the test, with a namespace of the test alone."""
    with ExitStack() as stack:

        def make(**settings: Any) -> Lowkiq:
            config = Config(**{"redis_url": server_url, "namespace": queue_name, "burst_after": AFTER, **settings})
            app = Lowkiq(config, clock=clock)
            stack.callback(close_app, app)
            return app

        yield make


class Sleeping(ManualClock):
    """A clock that tells before each sleep."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []
        self.meanwhile: Callable[[], object] = lambda: None

    def sleep(self, seconds: float) -> None:
        """Note it, let the others act, and go on at once."""
        self.slept.append(seconds)
        self.meanwhile()
        super().sleep(seconds)


@pytest.fixture
def clock() -> Sleeping:
    """The time of the test, the apps and the server."""
    return Sleeping()


def tell_of_a_daemon(app: Lowkiq, threads: int = 5) -> None:
    """A daemon that lives, and does nothing."""
    sender = HeartbeatSender(app.core.drains.drainer.backend, "web-1:17")
    process = Process(
        host="web-1", pid=17, kind="daemon", version="1", since=sender.now(), threads=threads, state="running"
    )
    sender.send(process)


def test_what_has_not_waited_is_left_to_daemons(make_app: MakeApp, clock: Sleeping, queue_name: str) -> None:
    """A drain finds nothing to do, and waits for nothing; behind the time it performs all that is due."""
    app = make_app()
    worker = declare(app, queue_name, Notes(), shards_count=3)
    worker.push_many(jobs_of("abc"))
    young = app.drain()
    clock.advance(AFTER)

    assert ({}, {"done": 3}, []) == (young, app.drain(), clock.slept)


def test_the_jobs_of_a_dead_holder_are_taken_when_they_have_waited_without_one(
    make_app: MakeApp, clock: Sleeping, queue_name: str
) -> None:
    """First its lease has to end."""
    daemon, notes = make_app(burst_after=0.0, lease_ttl=30.0), Notes()
    mortal = Mortal(daemon)
    held = declare(daemon, queue_name, mortal.die)
    held.push("a")
    mortal.drain()
    app = make_app()
    declare(app, queue_name, notes)
    clock.advance(20.0)
    assert ({}, []) == (app.drain(), notes.ids)
    outlive(daemon, clock, held)

    assert ({"recovered": 1, "done": 1}, [["a"]]) == (app.drain(), notes.ids)


def test_a_job_that_becomes_due_is_not_waited_for(make_app: MakeApp, clock: Sleeping, queue_name: str) -> None:
    """A daemon takes it, and a drain that burst for another shard ends."""
    app = make_app()
    worker = declare(app, queue_name, Notes(), shards_count=3)
    worker.push_many(jobs_of("a"))
    clock.advance(AFTER)
    worker.push_many([{"id": job_id, "delay": 0.5} for job_id in "bcdefgh"])

    assert ({"done": 1}, []) == (app.drain(), clock.slept)


def test_an_idle_daemon_is_given_way_to_after_a_turn(make_app: MakeApp, clock: Sleeping, queue_name: str) -> None:
    """It takes the shard while the drain waits, which then has nothing left to do."""
    app, daemon, performed = make_app(), make_app(burst_after=0.0), Notes()
    notes = Notes(lambda _batch: clock.advance(0.3))
    worker = declare(app, queue_name, notes, batch_size=1)
    declare(daemon, queue_name, performed, batch_size=1)
    worker.push_many(jobs_of("abcde"))
    clock.advance(AFTER)
    tell_of_a_daemon(app)
    clock.meanwhile = daemon.drain

    assert {"done": 1} == app.drain()
    assert (1, 4) == (len(notes.ids), len(performed.ids))


def test_a_daemon_that_lets_a_shard_lie_is_not_believed(make_app: MakeApp, clock: Sleeping, queue_name: str) -> None:
    """It may be one of another app: the drain has waited for it once, and performs the rest."""
    app = make_app(poll_interval=1.0)
    worker = declare(app, queue_name, Notes(lambda _batch: clock.advance(0.3)), batch_size=1)
    worker.push_many(jobs_of("abcde"))
    clock.advance(AFTER)
    tell_of_a_daemon(app)

    assert ({"done": 5}, 1) == (app.drain(), len(clock.slept))
    assert clock.slept[0] <= 2.0


def test_a_shard_that_no_probe_reaches_is_waited_for_once(
    make_app: MakeApp, clock: Sleeping, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was left to a daemon, and then its node was away: a drain with nothing else to do ends."""
    app = make_app(poll_interval=1.0)
    worker = declare(app, queue_name, Notes(lambda _batch: clock.advance(0.3)), batch_size=1, shards_count=1)
    worker.push_many(jobs_of("abcde"))
    clock.advance(AFTER)
    tell_of_a_daemon(app)
    probe_each = app.core.drains.drainer.probe_each

    def probing(shards: Sequence[ShardRef], retry_for: float) -> Mapping[ShardRef, ProbeResult | LowkiqError]:
        if clock.slept:
            return {shard: BackendUnavailable("away") for shard in shards}
        return probe_each(shards, retry_for)

    monkeypatch.setattr(app.core.drains.drainer, "probe_each", probing)
    with pytest.raises(BackendUnavailable):
        app.drain(30.0)

    assert 1 == len(clock.slept)


def test_without_a_daemon_a_visit_goes_on_to_the_end(make_app: MakeApp, clock: Sleeping, queue_name: str) -> None:
    """One whose threads are all busy, or that ends, is none either."""
    app, tokens = make_app(), set[int]()

    def perform(batch: Batch) -> None:
        tokens.add(batch.token)
        clock.advance(0.3)

    worker = declare(app, queue_name, perform, batch_size=1)
    worker.push_many(jobs_of("abcde"))
    clock.advance(AFTER)
    tell_of_a_daemon(app, threads=0)

    assert ({"done": 5}, 1, []) == (app.drain(), len(tokens), clock.slept)


def test_who_does_not_burst_loads_nothing_of_it(
    make_app: MakeApp, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The module is imported by the first drain with the setting."""
    monkeypatch.delitem(sys.modules, BURST, raising=False)
    declare(plain := make_app(burst_after=0.0), queue_name, Notes()).push("a")
    plain.drain()
    before = BURST in sys.modules
    make_app().drain()

    assert (False, True) == (before, BURST in sys.modules)
