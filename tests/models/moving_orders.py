"""The orders of movers, as the model has them: each looks at a shard or the layout, and changes it or is refused."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from tests.models.moving import NEW, OLD, Guard, ModelLayout, ModelShard, Mover, Order, Push, recovered


class Move(NamedTuple):
    """A step of a mover. `mover`: what it does next, None when it has ended."""

    label: str
    mover: Mover | None
    source: ModelShard
    target: ModelShard
    layout: ModelLayout


class Call(NamedTuple):
    """A mover before its step, and what it may look at. `is_late`: a message to the target has not arrived."""

    mover: Mover
    source: ModelShard
    target: ModelShard
    layout: ModelLayout
    without: Guard | None
    is_late: bool

    def is_of(self, shard: ModelShard) -> bool:
        """Whether the shard has its role by this mover's epoch."""
        return shard.epoch == self.mover.epoch or self.without == "epochs"

    def is_before(self, shard: ModelShard) -> bool:
        """Whether the shard has its role by an earlier epoch."""
        return shard.epoch < self.mover.epoch or self.without == "epochs"

    def then(self, label: str, order: Order, rows: frozenset[Push] = frozenset(), **shards: ModelShard) -> Move:
        """Go on with this order."""
        after = Mover(self.mover.epoch, order, tuple(sorted(rows)))
        return self.over(label, **shards)._replace(mover=after)

    def over(self, label: str, **shards: ModelShard) -> Move:
        """The mover has no more to do."""
        return Move(label, None, shards.get("source", self.source), shards.get("target", self.target), self.layout)


def moves(call: Call) -> Iterator[Move]:
    """What this mover may do next. None: it has to wait."""
    yield from ORDERS[call.mover.next](call)


def _turn(call: Call) -> Iterator[Move]:
    """Walk back what has moved. What has not is opened again, if it is not closed; else the first movers end it."""
    old, epoch = call.target, call.mover.epoch
    if call.layout.epoch == epoch:
        yield call.then("turned already", "admit") if call.layout.home == NEW else call.over("settled already")
    elif call.layout.home == NEW:
        yield call.then("turn", "admit")._replace(layout=ModelLayout(epoch, NEW))
    elif old.role in {"open", "still"}:
        noted = old.epoch if call.without == "reopening noted" else epoch
        yield call.then("reopen", "settle", target=old._replace(role="open", epoch=noted))


def _settle(call: Call) -> Iterator[Move]:
    """The layout follows if nobody has changed it since."""
    if call.layout == ModelLayout(1, OLD):
        yield call.over("settle")._replace(layout=ModelLayout(call.mover.epoch, OLD))
    else:
        yield call.then("settle refused", "turn")


def _again(call: Call) -> Iterator[Move]:
    """Another move forth, once the walk back has come to its end."""
    if call.layout == ModelLayout(2, OLD):
        yield call.then("begin again", "admit")._replace(layout=ModelLayout(call.mover.epoch, OLD))


def _admit(call: Call) -> Iterator[Move]:
    target, epoch = call.target, call.mover.epoch
    if target.role in {"absent", "receiving", "closed"} and (target.role == "absent" or call.is_before(target)):
        if not call.is_late or call.without == "late pushes":
            yield call.then("admit", "still", target=target._replace(role="receiving", epoch=epoch))
    elif target.epoch == epoch:
        yield call.then("admit again", "still")
    else:
        yield call.over("admit refused")


def _still(call: Call) -> Iterator[Move]:
    source, epoch = call.source, call.mover.epoch
    if source.role == "open" and call.is_before(source):
        yield call.then("still", "seal", source=source._replace(role="still", epoch=epoch))
    elif source.role in {"still", "closed"} and source.epoch == epoch:
        yield call.then("still again", "seal")
    else:
        yield call.over("still refused")


def _seal(call: Call) -> Iterator[Move]:
    source = call.source
    if not call.is_of(source) or source.role not in {"still", "closed"}:
        yield call.over("seal refused")
    elif source.role == "closed":
        yield call.then("seal again", "carry")
    elif source.holder != "runs":
        yield call.then("seal", "carry", source=recovered(source)._replace(role="closed"))
    elif call.without == "seal waits":
        # The handler runs on; what it has claimed is taken for the work of a dead one.
        waiting = recovered(source).waiting
        yield call.then("seal too early", "carry", source=source._replace(role="closed", waiting=waiting))


def _carry(call: Call) -> Iterator[Move]:
    source = call.source
    if source.role != "closed" or not call.is_of(source):
        yield call.over("carry refused")
    elif not source.waiting:
        yield call.then("nothing left to carry", "open")
    else:
        for rows in {frozenset({min(source.waiting)}), source.waiting}:
            yield call.then(f"carry {len(rows)}", "receive", rows)
        if call.without == "open waits":
            yield call.then("leave the rest", "open")


def _receive(call: Call) -> Iterator[Move]:
    target, rows = call.target, frozenset(call.mover.rows)
    is_receiving = target.role == "receiving" and call.is_of(target)
    if is_receiving or call.without == "receive fenced":
        yield call.then("receive", "drop", rows, target=target._replace(waiting=target.waiting | rows))
    else:
        yield call.over("receive refused")


def _drop(call: Call) -> Iterator[Move]:
    source, rows = call.source, frozenset(call.mover.rows)
    if (source.role == "closed" and call.is_of(source)) or call.without == "drop fenced":
        yield call.then("drop", "carry", source=source._replace(waiting=source.waiting - rows))
    else:
        yield call.over("drop refused")


def _open(call: Call) -> Iterator[Move]:
    if call.target.role == "receiving" and call.is_of(call.target):
        yield call.then("open", "note", target=call.target._replace(role="open"))
    elif call.target.epoch == call.mover.epoch:
        yield call.then("open again", "note")
    else:
        yield call.over("open refused")


def _note(call: Call) -> Iterator[Move]:
    if call.layout.epoch == call.mover.epoch:
        yield call.over("note")._replace(layout=ModelLayout(call.mover.epoch, call.mover.target))
    else:
        yield call.over("note refused")


OrderOfModel: TypeAlias = Callable[[Call], Iterator[Move]]
ORDERS: Final[Mapping[Order, OrderOfModel]] = {
    "turn": _turn,
    "settle": _settle,
    "again": _again,
    "admit": _admit,
    "still": _still,
    "seal": _seal,
    "carry": _carry,
    "receive": _receive,
    "drop": _drop,
    "open": _open,
    "note": _note,
}
