"""Which shard is next."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from lowkiq_lambda.local.overrides import LagScheduler, SeqScheduler
from lowkiq_lambda.settings.protocols import Scheduler


@dataclass(frozen=True)
class State:
    """A shard as a scheduler sees it."""

    ref: str
    lag: float | None = 0.0
    has_work: bool = True
    weight: float = 1.0


def names(scheduler: Scheduler, states: list[State], times: int) -> list[str | None]:
    """What the scheduler picks, so many times in a row."""
    picked = [scheduler.next(states) for _ in range(times)]
    return [None if state is None else state.ref for state in picked]


def test_lag_scheduler_takes_the_longest_waiting() -> None:
    """L-63: the shard whose oldest due job has waited longest is next."""
    states = [State("a", lag=1.0), State("b", lag=7.5), State("c", lag=3.0)]

    assert names(LagScheduler(), states, 2) == ["b", "b"]


def test_x33_a_second_of_a_heavy_queue_counts_as_several() -> None:
    """X-33: the lag is weighed; what has just come counts by its weight alone, and no weight keeps others for ever."""
    assert names(LagScheduler(), [State("a", lag=9.0), State("b", lag=5.0, weight=2.0)], 1) == ["b"]
    assert names(LagScheduler(), [State("a", lag=11.0), State("b", lag=5.0, weight=2.0)], 1) == ["a"]
    assert names(LagScheduler(), [State("a"), State("b", weight=2.0)], 1) == ["b"]
    assert names(LagScheduler(), [State("a", lag=1e6, weight=0.001), State("b", lag=0.5, weight=1_000.0)], 1) == ["a"]


def test_lag_scheduler_skips_what_has_no_work() -> None:
    """A shard that is held, or has nothing due, is not picked, whatever its lag."""
    states = [State("a", lag=9.0, has_work=False), State("b", lag=1.0)]

    assert names(LagScheduler(), states, 1) == ["b"]


def test_lag_scheduler_takes_work_without_lag() -> None:
    """Work that a dead holder left counts even where nothing is due, and equals go in order (E-14)."""
    assert names(LagScheduler(), [State("a", lag=None), State("b", lag=None)], 1) == ["a"]
    assert names(LagScheduler(), [State("a", lag=None), State("b", lag=0.0)], 1) == ["b"]
    assert names(LagScheduler(), [State("a", lag=-1.0), State("b", lag=None)], 1) == ["a"]


def test_seq_scheduler_goes_round() -> None:
    """L-62: shard after shard, and from the last to the first."""
    assert names(SeqScheduler(), [State("a"), State("b"), State("c")], 5) == ["a", "b", "c", "a", "b"]


def test_seq_scheduler_skips_what_has_no_work() -> None:
    """L-62: a shard without work is passed over, and comes again in its turn."""
    scheduler = SeqScheduler()
    quiet = [State("a"), State("b", has_work=False), State("c")]

    assert names(scheduler, quiet, 2) == ["a", "c"]
    assert names(scheduler, [State("a"), State("b"), State("c")], 2) == ["a", "b"]


def test_seq_scheduler_keeps_its_place_when_states_are_left_out() -> None:
    """A list without the last shard goes on where that one stood."""
    scheduler = SeqScheduler()
    assert names(scheduler, [State("a"), State("b"), State("c")], 2) == ["a", "b"]

    assert names(scheduler, [State("a"), State("c")], 1) == ["c"]


def test_seq_scheduler_finds_a_moved_shard() -> None:
    """The place is the last shard's, not a number: a list in another order goes on behind that shard."""
    scheduler = SeqScheduler()
    assert names(scheduler, [State("a"), State("b"), State("c")], 1) == ["a"]

    assert names(scheduler, [State("b"), State("c"), State("a"), State("d")], 1) == ["d"]


@given(st.lists(st.booleans(), max_size=8))
def test_both_pick_none_only_where_there_is_no_work(work: list[bool]) -> None:
    """L-61: a scheduler gives a shard exactly while one has work."""
    states = [State(str(number), has_work=has_work) for number, has_work in enumerate(work)]

    for scheduler in (LagScheduler(), SeqScheduler()):
        picked = scheduler.next(states)
        assert (picked is not None) == any(work)
        assert picked is None or picked.has_work


def test_each_scheduler_has_its_own_place() -> None:
    """L-61: two threads' schedulers do not move each other."""
    states = [State("a"), State("b")]
    first, second = SeqScheduler(), SeqScheduler()

    assert names(first, states, 1) == ["a"]
    assert names(second, states, 1) == ["a"]
    assert names(first, states, 1) == ["b"]
