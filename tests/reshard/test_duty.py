"""Moves that were begun and left go on by themselves."""

import math

from lowkiq_lambda.aws.ticking import tasks_of
from lowkiq_lambda.declare.duty import MOVES
from lowkiq_lambda.reshard.duty import ReshardDuty, move_runner
from lowkiq_lambda.settings.aws import Settings
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.workers import declare
from tests.reshard.filled import Fill


def test_a_move_that_stands_still_goes_on_after_a_minute(fill: Fill, make_app: MakeApp, clock: ManualClock) -> None:
    """Its mover may only be slow before that; and nobody looks but processes that know of a queue which moves."""
    filled, other = fill(4), make_app()
    was = filled.held()
    worker = declare(other, filled.worker.queue_name, Notes(), shards_count=4)
    knew = [other.core.housekeeping.follows_moves]
    filled.resharding.begin(6)
    other.core.queues.agreed(worker)
    knew.append(other.core.housekeeping.follows_moves)
    clock.advance(59.0)
    early = ReshardDuty(other.core).run(lambda: math.inf)
    clock.advance(1.0)

    ran = move_runner(other.core, clock).run_due(lambda: math.inf)

    assert [False, True] == knew
    assert ({}, {MOVES: {filled.worker.queue_name: "moved"}}) == (early, ran.results)
    assert was == filled.held(6)


def test_a_run_that_has_no_time_left_leaves_the_rest_to_the_next(fill: Fill, clock: ManualClock) -> None:
    """What was carried has been carried; a group may break off between two chunks."""
    filled = fill(4)
    was, resharding = filled.held(), filled.resharding
    resharding.begin(6)
    spans = iter([1.0] * 3)

    assert not resharding.go_on(lambda *_: None, lambda: next(spans, 0.0))
    assert resharding.layout.left

    clock.advance(60.0)
    assert resharding.go_on(lambda *_: None)
    assert was == filled.held(6)


def test_a_tick_has_the_duty_only_while_a_queue_moves(fill: Fill, make_app: MakeApp) -> None:
    """Nobody else pays for it."""
    filled, other = fill(2, rounds=0), make_app()
    worker = declare(other, filled.worker.queue_name, Notes(), shards_count=2)
    settings = Settings()
    before = tasks_of(other, settings)
    filled.resharding.begin(3)
    other.core.queues.agreed(worker)

    assert {"moves"} == tasks_of(other, settings).keys() - before.keys()
