"""Samples of each minute: what arrived in a queue, without a command of any push, and the numbers of the app."""

import math
from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowkiq_lambda import Lowkiq, Worker
from lowkiq_lambda.core import Core
from lowkiq_lambda.declare.duty import WATCH
from lowkiq_lambda.operate.doctor import checkup
from lowkiq_lambda.operate.doctor.checkup import look_and_sample, look_for_needs
from lowkiq_lambda.operate.doctor.queue_state import FoundQueues, read_queues
from lowkiq_lambda.operate.inspect.sampling import (
    LONGEST,
    PAST,
    QueueSample,
    arrived_between,
    following,
    read_sampled,
)
from lowkiq_lambda.operate.lateness.duty import watch_runner
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.queues import Series, Span
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.servers import Server
from tests.kit.workers import declare, jobs_of

MINUTE: Final = 60.0
NOW: Final = 1_800_000_000.0
UNKNOWN: Final = None


class Sampled:
    """A queue of two shards in an app that somebody looks at, at the beginning of each minute."""

    def __init__(self, app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
        self.app, self.clock = app, clock
        self.worker: type[Worker[Any]] = declare(app, queue_name, Notes(), shards_count=2, merge="min")
        # A queue is there from its first push on.
        self.push(1)
        self.clock.advance(-self.clock.time() % MINUTE)

    def push(self, *payloads: int) -> None:
        """One job for each, all of them of a few ids."""
        self.worker.push_many([{"id": number % 3, "payload": payload} for number, payload in enumerate(payloads)])

    def look(self) -> None:
        """Look what needs somebody; what that writes travels with the next call."""
        look_and_sample(self.app.operate)
        self.app.operate.stats()

    def minute(self, *payloads: int) -> None:
        """These are pushed in the course of a minute, at whose end somebody looks."""
        self.push(*payloads)
        self.clock.advance(MINUTE)
        self.look()

    def series(self, span: Span = "1h") -> Series:
        """What the page of the queue shows."""
        # Behind what a process may hold back.
        self.clock.advance(10.0)
        with self.app.operate.overview(span, self.worker) as overview:
            (queue,) = overview.queues
        return queue.history.series

    def arrived(self) -> list[int | None]:
        """Of each minute from the first that is known."""
        counts = [*self.series().arrived]
        known = [place for place, count in enumerate(counts) if count is not None]
        return counts[known[0] : known[-1] + 1] if known else []


@pytest.fixture
def sampled(make_app: MakeApp, clock: ManualClock, queue_name: str) -> Sampled:
    """The app's only queue."""
    return Sampled(make_app(namespace=queue_name), clock, queue_name)


def test_each_payload_that_is_pushed_is_counted_in_its_minute(sampled: Sampled) -> None:
    """Equal ones too, which merge, and whatever drains and retries do meanwhile."""
    sampled.look()
    sampled.minute(1, 2, 3, 4, 4, 4)
    sampled.app.drain()
    sampled.minute()
    sampled.minute(*range(40))

    assert [6, 0, 40] == sampled.arrived()


def test_arrivals_are_spread_over_points_of_seconds_and_added_up_in_longer_ones(sampled: Sampled) -> None:
    """Their sum stays; a longer point with a minute of which nobody knows is not known."""
    sampled.look()
    for _ in range(6):
        sampled.minute(*range(7))

    seconds, minutes = sampled.series("10m"), sampled.series("6h")
    known = [count for count in seconds.arrived if count is not None]
    assert [7] * 6 == [sum(known[place : place + 12]) for place in range(0, len(known), 12)]
    assert {0, 1} == {*known}
    assert {UNKNOWN, 21} >= {*minutes.arrived}
    assert 21 in minutes.arrived
    assert () == sampled.series("72h").arrived
    assert len(minutes.ended) == len(minutes.arrived)


def test_a_minute_that_nobody_looked_at_is_told_by_the_next_look_and_a_longer_gap_by_none(sampled: Sampled) -> None:
    """Never as nothing, and never as a peak."""
    sampled.look()
    sampled.minute(*range(9))
    sampled.push(*range(10))
    sampled.clock.advance(MINUTE)
    sampled.minute(*range(20))
    sampled.push(*range(500))
    sampled.clock.advance(LONGEST + 30.0)
    sampled.look()
    sampled.minute(1)

    assert [9, 15, 15, UNKNOWN, UNKNOWN, UNKNOWN, 1] == sampled.arrived()


def test_a_move_is_a_gap_and_never_a_peak(sampled: Sampled) -> None:
    """Up and back, the numbers of payloads jump; what comes before, between and after is exact."""
    operations = sampled.app.operate(sampled.worker)
    sampled.look()
    sampled.minute(*range(5))
    operations.reshard(to=4)
    sampled.minute(*range(6))
    sampled.minute(*range(7))
    # A shard that was left takes no part in a move for a while.
    for _ in range(2):
        sampled.minute(1)
    operations.reshard(to=2)
    sampled.minute(*range(8))
    sampled.minute(*range(9))

    assert [5, UNKNOWN, 7, 1, 1, UNKNOWN, 9] == sampled.arrived()


def test_a_server_that_lost_its_data_is_a_gap(make_app: MakeApp, clock: ManualClock, own_server: Server) -> None:
    """The samples are gone with it; then counting begins anew."""
    sampled = Sampled(make_app(redis_url=own_server.url), clock, "orders")
    sampled.look()
    sampled.minute(*range(5))
    own_server.admin.flushall()
    sampled.minute(*range(6))
    sampled.minute(*range(7))

    assert [7] == sampled.arrived()


def test_of_two_that_look_one_writes(sampled: Sampled, make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
    """Both have read the same sample before; and a look in the same minute adds none."""
    other = make_app(namespace=queue_name)
    declare(other, queue_name, Notes(), shards_count=2, merge="min")
    sampled.look()
    sampled.push(*range(10))
    clock.advance(MINUTE)
    look_and_sample(sampled.app.operate)
    sampled.push(*range(3))
    look_and_sample(other.operate)
    # The second may write first.
    for app in (other, sampled.app):
        app.operate.stats()
    for _ in range(3):
        clock.advance(15.0)
        sampled.look()
    _, past = look_and_sample(other.operate)
    clock.advance(15.0)
    sampled.look()
    sampled.minute()

    assert 2 == len(past)
    assert [13, 0, 0] == sampled.arrived()


def watching(app: Lowkiq, clock: ManualClock) -> object:
    """Housekeeping of an app with a history."""
    return watch_runner(app.core, clock).run_due(lambda: math.inf).results.get(WATCH)


@pytest.mark.parametrize("look", [watching, lambda app, _: look_and_sample(app.operate)])
def test_the_app_is_sampled_once_a_minute_for_ten(
    make_app: MakeApp, clock: ManualClock, queue_name: str, look: Callable[[Lowkiq, ManualClock], object]
) -> None:
    """By whoever looks: its longest lag, its due ids, how long ids waited, and how many processes live."""
    app = make_app(namespace=queue_name, history_days=1)
    worker = declare(app, queue_name, Notes())
    worker.push_many(jobs_of("abc"))
    for _ in range(25):
        clock.advance(MINUTE / 2)
        look(app, clock)
        app.operate.stats()

    _, past = look_and_sample(app.operate)

    assert PAST / MINUTE <= len(past) <= PAST / MINUTE + 1
    assert [clock.time() - past[-1].at + sample.at - past[0].at for sample in past] == [
        MINUTE * number + clock.time() - past[-1].at for number in range(len(past))
    ]
    assert {(3, 0.0, 0)} == {(sample.due, sample.waited, sample.processes) for sample in past}
    assert past[-1].at - past[0].at == pytest.approx(past[-1].lag - past[0].lag)


def test_a_worker_that_is_declared_during_a_look_is_sampled_by_the_next(
    sampled: Sampled, make_app: MakeApp, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread may import its module between the reading of the samples and that of the queues."""
    late = f"{queue_name}-late"
    declare(make_app(namespace=queue_name), late, Notes()).push("a")

    def read(core: Core, backend: Backend, *, only_own: bool = False) -> FoundQueues:
        if late not in core.queues:
            declare(sampled.app, late, Notes())
        return read_queues(core, backend, only_own=only_own)

    monkeypatch.setattr(checkup, "read_queues", read)

    sampled_queues = []
    for _ in range(2):
        sampled.look()
        there = read_sampled(sampled.app.core.backend, [queue_name, late], 0.0).queues
        sampled_queues.append([name for name, stored in there.items() if stored])

    assert [[queue_name], [queue_name, late]] == sampled_queues


def test_who_only_asks_what_needs_somebody_writes_nothing(
    make_app: MakeApp, clock: ManualClock, own_server: Server
) -> None:
    """No push, no drain and no such look leaves a sample."""
    app = make_app(redis_url=own_server.url)
    worker = declare(app, "orders", Notes())
    for _ in range(3):
        worker.push_many(jobs_of("abc"))
        app.drain()
        look_for_needs(app.operate)
        app.operate.stats()
        clock.advance(MINUTE)

    assert [] == [key for key in own_server.admin.scan_iter("*") if b"arrivals" in key or b"samples" in key]


@pytest.mark.parametrize(
    ("seconds", "shape", "arrivals", "expected"),
    [
        (60.0, "", 2**40 + 7, 7),
        (LONGEST, "", 2**40, 0),
        (LONGEST + 1, "", 2**40 + 7, UNKNOWN),
        (0.0, "", 2**40 + 7, UNKNOWN),
        (60.0, "other", 2**40 + 7, UNKNOWN),
        (60.0, "", 2**40 - 1, UNKNOWN),
        (60.0, "", 2**40 + 2**31, UNKNOWN),
        (60.0, "", 2**40 + 2**31 - 1, 2**31 - 1),
    ],
)
def test_what_cannot_be_is_not_counted(seconds: float, shape: str, arrivals: int, expected: int | None) -> None:
    """Numbers that fell or jumped, other shards, and samples that are no minute apart."""
    before, after = QueueSample(NOW, "", 2**40), QueueSample(NOW + seconds, shape, arrivals)

    assert expected == arrived_between(before, after)


@given(
    st.lists(st.tuples(st.floats(50, LONGEST), st.integers(0, 10**6)), min_size=1, max_size=12),
    st.floats(1.0, MINUTE),
)
def test_what_arrived_is_in_one_minute_each(steps: list[tuple[float, int]], offset: float) -> None:
    """Whatever the times of the samples are: all that came is in one minute, or in the one that goes on."""
    sample, total, told = QueueSample(NOW, "", 0, begun=0), 0, dict[float, int]()
    for number, (seconds, arrived) in enumerate(steps):
        total += arrived
        at = sample.at + (seconds if number else offset)
        sample, minutes = following(sample, QueueSample(at, "", total))
        assert not told.keys() & dict(minutes).keys()
        told |= minutes

    assert total == sum(told.values()) + (sample.begun or 0)
    assert [NOW + MINUTE * number for number in range(len(told))] == [*told]
    assert all(count >= 0 for count in told.values())
