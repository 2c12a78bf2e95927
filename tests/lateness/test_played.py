"""Each cause played on a real server, and told right; and a busy queue that is not late, of which none is told."""

import re

import pytest

from lowkiq_lambda import Rate
from lowkiq_lambda.engine import visit
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.playing import Played

WAITED = 600.0
MANY = range(900)
"""Ids, of a second each: more than the minutes that are played."""


@pytest.fixture
def make(make_app: MakeApp, clock: ManualClock, queue_name: str) -> "MakePlayed":
    """Makes a queue in a namespace of its own, so that no process of another test is among its own."""
    return MakePlayed(make_app, clock, queue_name)


class MakePlayed:
    """Makes the queue of a test."""

    def __init__(self, make_app: MakeApp, clock: ManualClock, queue_name: str) -> None:
        self._make_app, self.clock, self._name = make_app, clock, queue_name

    def __call__(self, **fields: object) -> Played:
        """One with these fields of its worker."""
        return Played(self._make_app(namespace=self._name), self.clock, self._name, **fields)


@pytest.fixture
def computes(monkeypatch: pytest.MonkeyPatch, clock: ManualClock) -> None:
    """Handlers use a processor for half of their time, by the clock that is moved by hand."""
    monkeypatch.setattr(visit, "thread_time", lambda: clock.monotonic() / 2)


def test_a_busy_queue_that_is_not_late_has_no_cause(make: MakePlayed) -> None:
    """Its shard is full nearly all the time, and no id waits for long."""
    played = make()
    for _ in range(10):
        played.push(range(55))
        played.minute()

        late = played.late()
        assert (False, None, "") == (late.is_late, late.cause, late.advice)


@pytest.mark.usefixtures("computes")
def test_full_shards_are_told(make: MakePlayed) -> None:
    """Handlers compute, ids are spread, and nothing else is short."""
    played = make()
    played.push(MANY, waited=WAITED)

    late = played.minutes()

    assert ("shards", 8, 8) == (late.cause, late.minutes, late.looked)
    assert late.says.endswith("1 of its 1 shards are full, and nothing else is short.")
    assert f"lowkiq reshard {late.queue} --to 2" in late.advice


def test_full_slots_are_told(make: MakePlayed) -> None:
    """Handlers wait, and may do so side by side."""
    played = make()
    played.push(MANY, waited=WAITED)

    late = played.minutes()

    assert "slots" == late.cause
    assert "0% of their time is computing" in late.says


def test_a_hot_id_is_told(make: MakePlayed) -> None:
    """Most payloads are of one id, which is in one shard however many there are."""
    played = make()
    played.push(MANY, waited=WAITED)
    played.push(["hot"], payloads=9_000, waited=WAITED - 1)

    late = played.minutes()

    assert "hot ids" == late.cause
    assert re.search(
        "the id 'hot' has 9[0-9]% of what is due in its shard, and twice the shards would leave", late.says
    )


def test_too_little_compute_is_told(make: MakePlayed) -> None:
    """Nobody drains."""
    played = make(shards_count=3)
    played.push(MANY, waited=WAITED)
    played.threads = 0

    late = played.minutes(drains=False)

    assert "compute" == late.cause
    assert "3 of its 3 late shards wait for a process that takes them, and no process drains" in late.says


def test_threads_that_take_turns_are_told(make: MakePlayed) -> None:
    """One thread drains three shards, of which each is held for a part of the time."""
    played = make(shards_count=3)
    played.threads = 1
    played.push(MANY, waited=WAITED)

    assert "compute" == played.minutes().cause


@pytest.mark.usefixtures("computes")
def test_a_processor_at_its_end_is_told(make: MakePlayed) -> None:
    """Shards are full as handlers wait for the processor: more shards would not help."""
    played = make()
    played.cpu = 0.97
    played.push(MANY, waited=WAITED)

    late = played.minutes()

    assert "processor" == late.cause
    assert "97% of the processors" in late.says


@pytest.mark.usefixtures("computes")
def test_slow_handlers_are_told(make: MakePlayed) -> None:
    """For hours a call took a second, and now it takes three."""
    played = make()
    for _ in range(5):
        played.push(range(30))
        played.minute()
        played.clock.advance(3_600 - 60)
    played.seconds = 3.0
    played.push(MANY, waited=WAITED)

    late = played.minutes()

    assert "slow handlers" == late.cause
    assert "a call takes 3.0 s, and usually 1.0 s" in late.says


def test_a_limit_is_told_by_its_name(make: MakePlayed) -> None:
    """The rate lets ten ids a minute begin."""
    played = make(rate=Rate(10, per=60))
    played.push(MANY, waited=WAITED)

    late = played.minutes()

    assert "limits" == late.cause
    assert "the limit rate = 10 ids in 60 s sets the pace" in late.says


def test_failures_are_told(make: MakePlayed) -> None:
    """A tenth of all ids fails, again and again."""
    played = make()
    played.failing = lambda job_id: job_id.endswith("7")
    played.push(MANY, waited=WAITED)

    late = played.minutes()

    assert "failures" == late.cause
    assert "% of its outcomes are failures" in late.says


def test_somebody_at_it_is_told_at_once(make: MakePlayed) -> None:
    """A pause is a fact, which no minute has to confirm."""
    played = make()
    played.push(MANY, waited=WAITED)
    played.minutes(2)
    played.app.operate(played.worker).pause()
    played.clock.advance(130)

    late = played.late()

    assert "somebody is at it" == late.cause
    assert late.says.endswith("1 of its 1 shards is paused.")


def test_another_count_of_shards_is_told_for_ten_minutes(make: MakePlayed) -> None:
    """Also where no act of an operator tells of it."""
    played = make()
    played.push(MANY, waited=WAITED)
    played.app.operate(played.worker).reshard(to=2, unreplicated=True)
    played.clock.advance(590)
    late = played.late()
    assert "somebody is at it" == late.cause
    assert late.says.endswith("it got 2 shards 10 minutes ago.")

    played.clock.advance(20)

    assert "somebody is at it" != played.late().cause


def test_a_queue_that_nobody_watched_is_told_by_the_present(make: MakePlayed) -> None:
    """What needs minutes is not told then, and how they come about is."""
    played = make()
    played.push(MANY, waited=WAITED)
    played.threads = 0

    unheld = played.late()

    assert ("compute", 0, 0) == (unheld.cause, unheld.minutes, unheld.looked)
