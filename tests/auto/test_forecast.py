"""How long ids are expected to wait with other shards: by which minutes, which calls and which ids."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from lowkiq_lambda.engine.skew import HOUR
from lowkiq_lambda.operate.auto.forecast import PAST, forecast_of
from lowkiq_lambda.operate.lateness.minutes import Minute, ShardMinute
from lowkiq_lambda.store.shard.keys import queue_key
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.processes import Process
from tests.kit.apps import MakeApp
from tests.kit.playing import Played

DAEMON: Final = Process(
    host="web-1",
    pid=1,
    kind="daemon",
    version="1",
    since=0.0,
    threads=40,
    state="running",
    doing=(),
    cpu=0.3,
    cores=4.0,
)
CALM: Final = 6
"""Pushes a minute, to calls that take a second."""
BUSY: Final = 300
MINUTES: Final = int(PAST / 60)

PlayOf = Callable[..., Played]


@pytest.fixture
def play(make_app: MakeApp, clock: ManualClock, queue_name: str) -> PlayOf:
    """A queue at the begin of a minute, with these settings of its app."""
    clock.set_wall(1_800_000_000.0)

    def played(**settings: Any) -> Played:
        played = Played(make_app(namespace=queue_name, **settings), clock, queue_name, shards_count=1)
        played.seconds = 0.05
        return played

    return played


def a_minute(busy: float = 0.9, held: float = 0.9) -> Minute:
    """A minute in which a call took a second, and the shard's slot was busy for such a share of it."""
    shard = ShardMinute(lag=30.0, waited=0.0, busy=busy, held=held, has_work=True)
    return Minute(
        seconds=60.0,
        ended=54,
        failed=0,
        length=10,
        retries=0,
        held_back=0.0,
        took=1.0,
        fill=1.0,
        computing=0.0,
        processors=0.1,
        threads=40,
        shards=(shard,),
    )


def expected(played: Played, shards: int = 1, minute: Minute | None = None) -> float:
    """The 95th percentile of waits with so many shards."""
    worker, backend = played.worker, played.app.core.backend
    p95 = forecast_of(backend, worker, 1, [minute or a_minute()], [DAEMON], 1.0)(shards)
    assert p95 is not None
    return p95


def play_minutes(played: Played, pushes: int, count: int = MINUTES) -> None:
    """So many minutes with so many pushes in each."""
    for _ in range(count):
        played.push(range(pushes))
        played.minute()


def test_what_was_pushed_earlier_does_not_count(play: PlayOf) -> None:
    """A burst that is over for more than ten minutes would need more shards, and comes no more."""
    played = play()
    play_minutes(played, BUSY, 2)
    play_minutes(played, CALM, 2)
    assert expected(played) > 60.0

    play_minutes(played, CALM)

    assert expected(played) < 5.0


def test_calls_vary_as_those_of_the_past(play: PlayOf) -> None:
    """With the same mean, ids wait for longer behind calls of which some take much longer than others."""
    played = play()
    play_minutes(played, 40)
    alike = expected(played)
    for number in range(MINUTES):
        played.seconds = 0.05 if number % 2 else 1.0
        play_minutes(played, 40, 1)

    assert alike < 10.0
    assert expected(played) > 2 * alike


def test_what_passes_between_two_calls_is_as_it_was_measured(play: PlayOf) -> None:
    """A slot that was busy for six sevenths of the time that its shard was held gets one call less in seven."""
    played = play()
    play_minutes(played, 54)

    at_once, after_claims = (
        expected(played, minute=a_minute(busy, held)) for busy, held in ((0.95, 0.95), (0.857, 1.0))
    )
    assert after_claims > 2 * at_once


def test_frequent_ids_are_as_frequent_as_they_were_counted(play: PlayOf) -> None:
    """Payloads that wait for one id are one call: a queue that would be too slow for as many ids is not."""
    played = play(skew=True)
    played.seconds = 0.0
    for _ in range(MINUTES):
        played.push(["hot"], payloads=100)
        played.push(range(10))
        played.minute()
    counted = expected(played)

    backend = played.app.core.backend
    hours = [int(played.clock.time() // HOUR) - back for back in (0, 1)]
    backend.client.delete(*[queue_key(played.worker.queue_name, f"skew:{hour}", backend.prefix) for hour in hours])

    assert counted < 10.0 < expected(played)


@pytest.mark.parametrize("processes", [(), (DAEMON,)])
def test_without_pushes_or_a_daemon_nothing_is_expected(play: PlayOf, processes: tuple[Process, ...]) -> None:
    """There is nothing to simulate, or nobody whose pace shards would change."""
    played = play()
    if not processes:
        play_minutes(played, CALM, 2)

    assert None is forecast_of(played.app.core.backend, played.worker, 1, [a_minute()], processes, 1.0)(1)
