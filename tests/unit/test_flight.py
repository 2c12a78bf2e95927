"""What a visit does next whose batches run side by side."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowkiq_lambda.engine.budget import MAX_IDS, BatchTiming
from lowkiq_lambda.engine.flight import (
    FIRST_LOOK,
    LONGEST_LOOK,
    Move,
    Standing,
    low_mark,
    next_look,
    next_move,
    turn_of,
)

ACK = 0.5
IDLE = Standing(waiting=0, running=0, concurrency=4, unsettled_since=None, look_at=0.0, may_claim=True)


@pytest.mark.parametrize(
    ("changes", "move", "until"),
    [
        ({"waiting": 1}, "begin", 10.0),
        ({"waiting": 9, "running": 3, "unsettled_since": 0.0}, "begin", 10.0),
        ({"waiting": 9, "running": 4}, "wait", math.inf),
        ({"waiting": 9, "running": 4, "low": 9}, "wait", math.inf),
        ({"waiting": 8, "running": 4, "low": 9}, "more", 10.0),
        ({"waiting": 8, "running": 4, "low": 9, "look_at": 10.4}, "wait", 10.4),
        ({"waiting": 8, "running": 4, "low": 9, "may_claim": False}, "wait", math.inf),
        ({"waiting": 9, "running": 4, "unsettled_since": 9.8}, "wait", 10.3),
        ({"waiting": 9, "running": 4, "unsettled_since": 9.5}, "more", 10.0),
        ({"running": 3, "unsettled_since": 9.9}, "more", 10.0),
        ({"running": 3, "unsettled_since": 9.9, "look_at": 10.1}, "wait", 10.1),
        ({"running": 3, "look_at": 11.0}, "wait", 11.0),
        ({"running": 3}, "more", 10.0),
        ({"running": 3, "may_claim": False}, "wait", math.inf),
        ({"running": 3, "may_claim": False, "unsettled_since": 9.0}, "part", 10.0),
        ({}, "end", 10.0),
        ({"unsettled_since": 0.0}, "end", 10.0),
    ],
)
def test_each_standing_has_one_move(changes: dict[str, Any], move: Move, until: float) -> None:
    """Slots are filled first; what ended is written in time, or at once where a slot has nothing to do."""
    assert (move, until) == next_move(msgspec.structs.replace(IDLE, **changes), 10.0, ACK)


@given(
    st.lists(st.floats(0.001, 3.0), min_size=1, max_size=60),
    st.integers(1, 8),
    st.integers(0, 12),
    st.sampled_from([0.0, 0.05, 0.5]),
)
def test_moves_end_and_leave_nothing_unwritten(took: list[float], concurrency: int, room: int, ack: float) -> None:
    """All that is due runs, never more at once than there are slots, and no end waits for longer than it may."""
    due, now, ended = list(took), 0.0, 0
    waiting = [due.pop() for _ in range(min(len(due), concurrency))]
    running: list[float] = []
    since: float | None = None
    look_at, looks = 0.0, 0
    while True:
        standing = Standing(len(waiting), len(running), concurrency, since, look_at, may_claim=True)
        move, until = next_move(standing, now, ack)
        assert since is None or now <= since + ack
        if move == "begin":
            running.append(now + waiting.pop())
        elif move == "wait":
            now = min([until, *running])
            gone = [end for end in running if end <= now]
            running = [end for end in running if end > now]
            ended += len(gone)
            since = now if gone and since is None else since
        elif move == "more":
            since = None
            taken = [due.pop() for _ in range(min(len(due), max(0, concurrency + room - len(running) - len(waiting))))]
            waiting += taken
            looks = 0 if taken else looks + 1
            look_at = 0.0 if taken else next_look(looks, now, None)
        elif due:
            since = None
            waiting = [due.pop() for _ in range(min(len(due), concurrency + room))]
        else:
            break
        assert len(running) <= concurrency
    assert len(took) == ended


@pytest.mark.parametrize(
    ("looks", "due_in", "expected"),
    [(1, None, FIRST_LOOK), (3, None, 0.4), (99, None, LONGEST_LOOK), (9, 0.3, 0.3), (9, -5.0, FIRST_LOOK)],
)
def test_looks_become_rarer(looks: int, due_in: float | None, expected: float) -> None:
    """While nothing is found, up to a second apart, but a job that is known is claimed when it is due."""
    assert 7.0 + expected == pytest.approx(next_look(looks, 7.0, due_in))


@pytest.mark.parametrize(
    ("mean", "batch_size", "concurrency", "expected"),
    [(None, 10, 4, 40), (0.05, 1, 20, 40), (5.0, 1, 20, 20), (1e-6, 1, 8, MAX_IDS), (0.0001, 100, 10, 1_000)],
)
def test_spare_ids_last_for_one_interval(mean: float | None, batch_size: int, concurrency: int, expected: int) -> None:
    """Each slot has one batch, and what it needs until the next settling; a thousand ids at most."""
    timing = BatchTiming(mean, 0.0)

    assert expected == timing.beside(batch_size, 0.05, concurrency)


@pytest.mark.parametrize(
    ("took", "mean", "spare", "low"),
    [(0.0, 0.05, 50, 0), (0.002, 0.05, 50, 4), (0.002, 0.005, 900, 40), (0.05, 0.05, 50, 25), (0.002, None, 0, 0)],
)
def test_more_is_claimed_while_the_last_begin(took: float, mean: float | None, spare: int, low: int) -> None:
    """As many as end during two claims, but never so many that a claim brings less than half."""
    assert low == low_mark(took, mean, 50, spare)


@pytest.mark.parametrize(("mean", "seconds"), [(None, 0.0), (0.0, 0.0), (0.05, 1.0), (3.0, 5.0)])
def test_a_turn_lasts_long_enough_to_fill_the_slots(mean: float | None, seconds: float) -> None:
    """Twenty times as long as a batch, and five seconds at most."""
    assert seconds == turn_of(mean)
