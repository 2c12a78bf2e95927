"""P8: few round trips, and a budget of commands for each job."""

import pytest

from lowkiq_lambda import Config, Debounce, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Notes
from tests.kit.sends import counted_sends
from tests.kit.servers import MakeServer, Server
from tests.kit.workers import declare


class Counted:
    """An app on a server of its own, and what it sends."""

    def __init__(self, server: Server, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
        # Claims of ten payloads at most, so that claims can be counted.
        self.app = Lowkiq(Config(redis_url=server.url, claim_payloads=10), clock=clock)
        self._server = server
        self._uncounted = 0
        self._sent = counted_sends(monkeypatch)

    @property
    def round_trips(self) -> int:
        """Those of the app."""
        return len(self._sent) - self._uncounted

    def commands(self, *names: str) -> int:
        """How many commands the server has run, those inside scripts too; only these where some are named."""
        stats = self._server.admin.info("commandstats")
        self._uncounted += 1
        return sum(one["calls"] for name, one in stats.items() if not names or name[8:] in names)


@pytest.fixture
def counted(make_server: MakeServer, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> Counted:
    """An app that is counted."""
    return Counted(make_server(), clock, monkeypatch)


def test_p8_one_round_trip_for_each_claim(counted: Counted, queue_name: str) -> None:
    """P8: on a warm connection settling, renewing and making the next claim is one call."""
    worker = declare(counted.app, queue_name, Notes(), batch_size=10)
    worker.push_many({"id": n} for n in range(10))
    counted.app.drain()
    worker.push_many({"id": n} for n in range(1_000))
    calls, trips = counted.commands("evalsha"), counted.round_trips

    counted.app.drain()

    # A probe, the acquisition with the first of 100 claims, a settling for each claim, a probe that finds nothing.
    assert (1 + 1 + 100 + 1, 1 + 1 + 100 + 1) == (counted.commands("evalsha") - calls, counted.round_trips - trips)


def test_p8_an_idle_tick_over_all_shards_is_one_round_trip(counted: Counted, queue_name: str) -> None:
    """P8, E-31: with nothing due, three queues of 20 shards are looked at in one round trip."""
    for n in range(3):
        declare(counted.app, f"{queue_name}-{n}", Notes(), shards_count=20)
    counted.app.drain()
    trips = counted.round_trips

    counted.app.drain()

    assert 1 == counted.round_trips - trips


def test_p8_a_push_is_one_round_trip_and_a_notification(counted: Counted, queue_name: str) -> None:
    """P8: jobs for all shards travel together; the notification is the second trip, only where somebody waits."""
    worker = declare(counted.app, queue_name, Notes(), shards_count=10)
    worker.push_many([{"id": "warm"}])
    trips = counted.round_trips

    worker.push_many({"id": n} for n in range(100))
    notified = counted.round_trips - trips
    worker.push_many({"id": n, "payload": 1} for n in range(100))

    assert (2, 3) == (notified, counted.round_trips - trips)


def test_p8_a_time_that_was_put_off_costs_one_look(counted: Counted, clock: ManualClock, queue_name: str) -> None:
    """P8: who comes at the time that an id had before a push put it off asks once, and acquires nothing."""
    worker = declare(counted.app, queue_name, Notes(), debounce=Debounce(2.0))
    worker.push_many([{"id": "a"}])
    counted.app.drain()
    clock.advance(1.0)
    worker.push_many([{"id": "a", "payload": 1}])
    clock.advance(1.0)
    calls, trips = counted.commands("evalsha"), counted.round_trips

    assert {} == counted.app.drain()

    assert (1, 1) == (counted.commands("evalsha") - calls, counted.round_trips - trips)


@pytest.mark.parametrize(("batch_size", "most"), [(1, 0.05), (10, 0.05), (100, 0.05)])
def test_p8_commands_for_each_job_stay_within_their_budget(
    counted: Counted, clock: ManualClock, queue_name: str, batch_size: int, most: float
) -> None:
    """P8: all commands that the server runs for a drained blank job, inside scripts too, have a budget."""
    app = Lowkiq(counted.app.config.evolve(claim_payloads=1_000), clock=clock)
    worker = declare(app, queue_name, lambda _batch: None, shards_count=2, batch_size=batch_size)
    worker.push_many({"id": n} for n in range(10))
    app.drain()
    worker.push_many({"id": n} for n in range(10_000))
    before = counted.commands()

    assert {"done": 10_000} == app.drain()

    assert (counted.commands() - before) / 10_000 <= most


def test_p8_commands_for_each_push_stay_within_their_budget(counted: Counted, queue_name: str) -> None:
    """P8: fresh jobs are pushed by a few commands for each call."""
    worker = declare(counted.app, queue_name, Notes(), shards_count=2)
    worker.push_many([{"id": "warm"}])
    before = counted.commands()

    worker.push_many({"id": n} for n in range(10_000))

    assert (counted.commands() - before) / 10_000 <= 0.01
