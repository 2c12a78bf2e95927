"""The shards of a process that is one of several: its own, and those that it helps with."""

from random import Random
from typing import Any, Literal

from hypothesis import given
from hypothesis import strategies as st

from lowkiq_lambda import Config
from lowkiq_lambda.engine.board import ShardBoard
from lowkiq_lambda.engine.budget import VisitResult
from lowkiq_lambda.local.processes.child import HELP_AFTER, HelpingBoard, ProcessDealer
from lowkiq_lambda.local.splitters import DefaultSplitter
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.state import ProbeResult
from lowkiq_lambda.testing import ManualClock

MINE, OTHERS = ShardRef("Queue", 2, 0), ShardRef("Queue", 2, 1)


def boards(number: int, processes: int, shards: list[ShardRef], **settings: Any) -> list[ShardBoard]:
    """The boards of the threads of a process."""
    config = Config(**{"threads_per_node": 2, **settings})
    return ProcessDealer(number, processes).boards(config, shards, ManualClock(), Random(1))


def helping(clock: ManualClock) -> ShardBoard:
    """The board of the first of two processes."""
    (board, _) = ProcessDealer(0, 2).boards(Config(threads_per_node=2), [MINE, OTHERS], clock, Random(1))
    return board


def probed(shard: ShardRef, lag: float, obstacle: Literal["held", "empty"] | None = None) -> ProbeResult:
    """A shard as a probe shows it."""
    return ProbeResult(
        ref=shard,
        has_work=obstacle is None,
        lag=lag,
        next_at=None,
        ready_in=-lag if obstacle is None else 1.0,
        obstacle=obstacle,
        is_open=True,
        risky=False,
    )


@given(st.integers(0, 20), st.lists(st.integers(1, 4), min_size=1, max_size=3))
def test_each_shard_is_one_process_s_own(shards_count: int, processes: list[int]) -> None:
    """Over all processes of all nodes, also where nodes have different numbers of them; each helps in its node."""
    shards = [ShardRef("Queue", 2, index) for index in range(shards_count)]
    own: list[ShardRef] = []
    for node, count in enumerate(processes):
        found = [boards(n, count, shards, number_of_nodes=len(processes), node_number=node)[0] for n in range(count)]
        assert all(board.shards == found[0].shards for board in found)
        own += [shard for board in found if isinstance(board, HelpingBoard) for shard in board.own()]

    assert shards == sorted(own, key=lambda shard: shard.index)


def test_a_splitter_deals_to_the_threads_of_all_processes() -> None:
    """What the user deals to a thread stays with that thread."""
    shards = [ShardRef("Queue", 2, index) for index in range(5)]
    found = [boards(number, 2, shards, build_splitter=DefaultSplitter) for number in range(2)]

    assert [[[0, 4], [1]], [[2], [3]]] == [[[shard.index for shard in board.shards] for board in two] for two in found]


def test_a_push_into_a_shard_of_another_process_is_left_to_it() -> None:
    """It has heard of it as well."""
    board = helping(ManualClock())
    board.notify([OTHERS])
    assert board.next() is None
    board.notify([MINE])
    assert MINE == board.next()


def test_a_shard_of_another_process_is_visited_where_a_probe_shows_that_it_waits() -> None:
    """Neither one that was due just now, nor one that somebody has; and our own come first."""
    board = helping(ManualClock())
    for probe in (probed(OTHERS, HELP_AFTER), probed(OTHERS, 9.0, "held"), probed(OTHERS, 0.0, "empty")):
        board.update([probe], board.events)
        assert board.next() is None
    board.update([probed(OTHERS, 5.0), probed(MINE, 0.1)], board.events)

    assert [MINE, OTHERS, None] == [board.next() for _ in range(3)]


def test_a_shard_of_another_process_that_somebody_took_first_is_forgotten() -> None:
    """Its own process sees to it: it is nothing to wait for here."""
    clock = ManualClock()
    board = helping(clock)
    board.update([probed(OTHERS, 5.0)], board.events)
    assert OTHERS == board.next()
    board.visited(OTHERS, VisitResult("held"), 0.5)
    clock.advance(1.0)
    assert board.next() is None


def test_a_visit_that_leaves_work_is_followed_by_another() -> None:
    """Who helps goes on with it, in turns with its own shards."""
    board = helping(ManualClock())
    board.update([probed(OTHERS, 5.0)], board.events)
    assert OTHERS == board.next()
    board.visited(OTHERS, VisitResult("turn over", token=1), -4.0)
    assert OTHERS == board.next()
