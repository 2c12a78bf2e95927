"""Acts of two operators on one id, in every order of steps within bounds; and the scripts go the way of the model."""

from functools import cache
from random import Random
from typing import Final, cast, get_args
from uuid import uuid4

import pytest

from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.examples import examples, mostly_nightly
from tests.kit.servers import Server
from tests.models.catalog import REQUESTS, ModelBounds
from tests.models.conforming_requests import LONGEST, play_requests, random_trace, tells
from tests.models.explorer import Explored
from tests.models.planting import plant
from tests.models.requests import Guard

TRACES: Final = 200
"""A sixth of them in each check, twice as many at night."""
SEEN: Final = (
    *("a push", "a pause", "a resume", "a holder comes", "the lease is lost", "the shard moves", "settles done"),
    *("settles returned", "settles failed", "and it is cancelled", "too late", "cancels: done", "cancels: asked"),
    *("cancels: gone", "edits: waiting", "edits: runs", "edits: changed", "edits: gone", "a put", "a take", "a edit"),
    "ran meanwhile",
)
"""What traces have to do: one that never does a thing says nothing of it."""
GUARDS: Final = {
    "honoured at the end": ("has_requests and is_outcome and honour(merge, id, record)", "false"),
    "honoured on recovery": ("if has_requests and honour(merge, id, record) then", "if false then"),
    "upto": ("number_of_arrival(entry) <= cancel.upto and gone or left", "gone"),
    "newer": ("function(entry) return not newer(entry) end", "function() return true end"),
    "touched": ("  if touched_since(touched) then return false end\n", ""),
    "held back": ("if has_requests then at = requested.held_back(id, at) end", ""),
    "rests while in flight": ("        if has_requests then rest_paused(id) end\n", ""),
    "own time": ("pause and pause.p.due or ", ""),
    "a row goes": ("  undo_log.drop(number, fields)\n", ""),
    "still waits": ("if not lies_in(record, id, entry) then return nil, 'ran meanwhile' end", ""),
    "changed since": ("if touched_of(record) ~= row.stamp then return nil, 'changed since' end", ""),
    "failed since": ("if (counts[number] or -1) > (expected[number] or -1) then return nil, 'ran meanwhile' end", ""),
    "died since": ("if t.abandoned and not row.abandoned then return nil, 'ran meanwhile' end", ""),
    "died before": ("t.abandoned and 1 or nil", "nil"),
    "as it was seen": ("~= seen_digest then return told('changed') end", "== '' then return told('changed') end"),
    "runs": ("if is_in_flight(id) then return told('runs') end", ""),
    "requests travel": ("if has_requests and not is_full() then carry_requests() end", ""),
    "token of an act": ("if last and last[1] == token then return last[2] end", ""),
    "call that cancelled": ("noted[1] == this_call and noted[2]", "noted[2]"),
}
"""Text of the scripts that the model has, too, and the text without it."""


@cache
def whole(words: str) -> Explored:
    """All orders of steps within these bounds; gone through once."""
    return next(bounds.explored(None) for bounds in REQUESTS.quick if bounds.words == words)


@pytest.mark.parametrize("bounds", REQUESTS.quick, ids=[bounds.words for bounds in REQUESTS.quick])
@pytest.mark.timeout(120)
def test_no_order_of_steps_breaks_a_promise_to_operators(bounds: ModelBounds) -> None:
    """What is cancelled goes, what is paused rests, an undo brings back what was, and nothing is lost or doubled."""
    explored = whole(bounds.words)

    assert (None, (), True) == (explored.fault, explored.trace, explored.whole)


def test_all_that_may_happen_to_an_id_happens_in_the_model() -> None:
    """Each action is taken in some order."""
    labels = {label for bounds in REQUESTS.quick for label in whole(bounds.words).labels}

    assert [] == REQUESTS.never_done(labels)


@pytest.mark.parametrize("guard", REQUESTS.guards)
@pytest.mark.timeout(120)
def test_without_any_of_its_guards_a_promise_to_operators_is_broken(guard: str) -> None:
    """The model finds what each guard prevents, and tells the steps that lead there."""
    promise, bounds = REQUESTS.guards[guard]
    explored = bounds.explored(guard)

    assert promise == explored.fault
    assert explored.trace


@pytest.mark.timeout(900)
def test_the_scripts_of_operators_go_the_way_of_the_model(
    make_app: MakeApp, clock: ManualClock, server: Server, queue_name: str
) -> None:
    """After each step what waits, runs, is asked for and can be undone is equal; two copies of a call are one."""
    labels = play_requests(make_app, clock, server.admin, queue_name, range(examples(TRACES)))

    assert [] == [word for word in SEEN if not any(word in label for label in labels)]


@pytest.mark.parametrize("guard", mostly_nightly(GUARDS, "token of an act", "own time"))
@pytest.mark.timeout(300)
def test_a_script_without_a_guard_of_operators_leaves_the_way_of_the_model(
    make_app: MakeApp, clock: ManualClock, server: Server, monkeypatch: pytest.MonkeyPatch, guard: str
) -> None:
    """Traces that find no planted fault would say nothing of the scripts."""
    changed = plant(monkeypatch, *GUARDS[guard])
    is_modelled = guard in get_args(Guard)
    seeds = (
        seed
        for seed in range(8 * TRACES)
        if not is_modelled or tells(random_trace(Random(seed), LONGEST), cast("Guard", guard))
    )

    with pytest.raises(AssertionError, match="trace"):
        play_requests(make_app, clock, server.admin, f"guard-{uuid4().hex}", seeds)
    assert changed
