"""A move that breaks off anywhere is gone on with; several movers do no harm; and it may be turned round."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any

import pytest

from lowkiq_lambda.base.errors import LowkiqError, ShardClosed
from lowkiq_lambda.reshard.resharding import Resharding
from lowkiq_lambda.store.shard.moving import MovingShards, Overtaken, raise_floors
from lowkiq_lambda.testing import ManualClock
from tests.reshard.filled import Fill

NEVER = -1
REST = 120.0
SCRIPTS_OF_A_MOVE = 7


class MoverKilled(BaseException):
    """The process is gone."""


class Arrows:
    """Counts the calls of a mover, and kills it before or after one of them; `after`: which."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = NEVER
        self.after = False
        self.is_reached = True
        for owner, name in ((MovingShards, "_all"), (Resharding, "_swap")):
            monkeypatch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, call: Any) -> Any:
        def counted(*args: Any, **more: Any) -> Any:
            self.left -= 1
            if self.left == 0 and not self.after:
                raise MoverKilled
            answer = call(*args, **more)
            if self.left == 0:
                raise MoverKilled
            return answer

        return counted

    def each(self) -> Iterator[int]:
        """Each arrow, before it and after it, until one is not reached."""
        arrow = 0
        while self.is_reached:
            arrow += 1
            for self.after in (False, True):
                yield arrow

    @contextmanager
    def aimed_at(self, arrow: int) -> Iterator[None]:
        """Kills within the block, if it comes so far."""
        self.left = arrow
        try:
            yield
        finally:
            left, self.left = self.left, NEVER
            self.is_reached = left <= 0


def test_a_mover_may_die_before_and_after_each_call(fill: Fill, monkeypatch: pytest.MonkeyPatch) -> None:
    """P2, P3: wherever a move breaks off, another process takes all that is left where it belongs, once."""
    before, after, deaths = 2, 3, 0
    arrows = Arrows(monkeypatch)
    for arrow in arrows.each():
        filled = fill(before, f"-{arrow}-{arrows.after}", rounds=0)
        was = filled.held()
        with suppress(MoverKilled), arrows.aimed_at(arrow):
            filled.app.operate(filled.worker).reshard(to=after)
            deaths -= 1
        deaths += 1

        filled.app.operate(filled.worker).reshard(to=after)

        assert was == filled.held(after), f"killed at {arrow}"

    assert deaths > 2 * SCRIPTS_OF_A_MOVE


def test_two_movers_at_once_do_what_one_does(fill: Fill) -> None:
    """Each finds done what the other has done, whichever is ahead."""
    filled = fill(4)
    was = filled.held()
    filled.resharding.begin(6)
    errors: list[BaseException] = []

    def move(mover: Resharding) -> None:
        try:
            mover.go_on(lambda *_: None)
        except BaseException as error:  # noqa: BLE001 - shown by the test
            errors.append(error)

    movers = [Thread(target=move, args=(filled.resharding,)) for _ in range(3)]
    for mover in movers:
        mover.start()
    for mover in movers:
        mover.join(60)

    assert [] == errors
    assert was == filled.held(6)


def test_a_move_that_is_turned_round_walks_back(fill: Fill) -> None:
    """What has moved walks back once its old shards have rested; what has not stays; then all is as it was."""
    filled = fill(4)
    was, resharding = filled.held(), filled.resharding
    resharding.begin(6)
    assert not resharding.go_on(lambda *_: None, lambda: 0.0 if resharding.layout.moved else 1.0)

    began = filled.clock.time()
    layout = resharding.abort(lambda *_: None)
    assert (6, 4, [0]) == (layout.before, layout.after, layout.left)
    assert layout == resharding.abort(lambda *_: None), "an order that is given twice is one order"
    assert resharding.go_on(lambda *_: None)

    assert filled.clock.time() - began >= REST
    assert was == filled.held()
    assert not resharding.layout.is_moving


def test_a_move_goes_on_whose_turning_broke_off(fill: Fill) -> None:
    """Who turns a move round stops its movers before the layout says so: where it dies between, the move goes on."""
    filled = fill(4)
    was = filled.held()
    layout = filled.resharding.begin(6)
    MovingShards(filled.app.core.backend, layout.epoch + 1, "min", 1.0).reopen(filled.shards(4)[:1])

    assert filled.resharding.go_on(lambda *_: None)

    assert was == filled.held(6)


def test_a_mover_of_an_earlier_move_has_nothing_to_say(fill: Fill) -> None:
    """Whatever a mover has read before the move was turned round, none of its calls changes a shard any more."""
    filled = fill(4)
    layout = filled.resharding.begin(6)
    sources, targets = filled.shards(4)[:1], filled.shards(6)[:1]
    stale = MovingShards(filled.app.core.backend, layout.epoch, "min", 1.0)
    (told,) = stale.tell(sources, 30.0)
    filled.resharding.abort(lambda *_: None)
    was = filled.held()

    calls: list[Callable[[], object]] = [
        lambda: stale.tell(sources, 30.0),
        lambda: stale.carry([(sources[0], 0, ())]),
        lambda: stale.receive([(targets[0], ())]),
        lambda: stale.open(targets[0], (), {}),
        lambda: stale.reopen(sources),
    ]
    for call in calls:
        with pytest.raises(Overtaken):
            call()

    assert not told.is_sealed
    assert was == filled.held()


def test_a_move_whose_shards_obey_another_order_says_so(fill: Fill) -> None:
    """Nothing of it can go on, and no other process says so in the declaration: it ends, after a few tries."""
    filled = fill(2, rounds=0)
    layout = filled.resharding.begin(3)
    for shard in filled.shards(2):
        filled.admin.hset(shard.key("meta"), "generation", 2**52)

    with pytest.raises(LowkiqError, match="its shards have had other orders since"):
        filled.resharding.go_on(lambda *_: None)
    assert layout == filled.resharding.layout


def test_two_changes_of_a_layout_at_once_are_both_made(fill: Fill, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who finds that another process has written since it read reads again, and undoes nothing of that."""
    filled = fill(2, rounds=0)
    swap = Resharding._swap

    def late(mover: Resharding, *given: Any, **more: Any) -> bool:
        monkeypatch.undo()
        filled.resharding.accept(5)
        return swap(mover, *given, **more)

    monkeypatch.setattr(Resharding, "_swap", late)
    filled.resharding.accept(7)

    assert {5, 7} <= {*filled.resharding.layout.accepts}


def test_who_pushes_may_be_several_moves_behind(fill: Fill, clock: ManualClock) -> None:
    """The floors that a shard told which an earlier move has closed raise those of a shard of the next move too."""
    filled = fill(2, rounds=0)
    filled.app.operate(filled.worker).reshard(to=3)
    with pytest.raises(ShardClosed) as told:
        filled.app.core.backend.run("pause", filled.shards(2)[0], [""], retry_for=0.0)
    clock.advance(REST + 1)
    filled.app.operate(filled.worker).reshard(to=4)
    assert told.value.floors is not None
    epoch, arrival, _, token = told.value.floors.split()
    later = b"%b %b %d %b" % (epoch, arrival, clock.time() + 5, token)

    assert raise_floors(filled.app.core.backend, filled.shards(4), later, 1.0)

    scores = [float(filled.admin.hget(shard.key("meta"), "last_score") or 0) for shard in filled.shards(4)]
    assert [int(clock.time() + 5)] * 4 == scores


def test_a_second_move_is_refused_while_one_is_under_way(fill: Fill) -> None:
    """Ids are on their way between two counts of shards, never three."""
    filled = fill(4, rounds=0)
    filled.resharding.begin(6)

    with pytest.raises(LowkiqError, match="on its way from 4 to 6 shards"):
        filled.app.operate(filled.worker).reshard(to=8)
