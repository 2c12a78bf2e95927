"""What each of those who touch a moving id may do next: the client and its messages, the holders, the movers."""

from collections.abc import Iterator
from typing import Final, TypeAlias

from tests.models.moving import (
    DELIVERIES,
    NEW,
    OLD,
    PAYLOADS,
    Guard,
    Message,
    ModelClient,
    ModelWorld,
    Push,
    Side,
    recovered,
)
from tests.models.moving_orders import Call, moves

Step: TypeAlias = tuple[str, ModelWorld]
DRAINED: Final = ("open", "still")
TAKES_PUSHES: Final = (*DRAINED, "receiving")


def steps(world: ModelWorld, without: Guard | None = None) -> Iterator[Step]:
    """All that can happen next."""
    yield from _of_client(world)
    for message in world.messages:
        yield from _of_message(world, message, without)
    for side in (OLD, NEW):
        yield from _of_holder(world, side, without)
    for position, mover in enumerate(world.movers):
        if mover not in world.movers[:position]:
            yield from _of_mover(world, position, without)


def _of_client(world: ModelWorld) -> Iterator[Step]:
    client = world.client
    if client.payload <= PAYLOADS and not client.waits:
        client = client._replace(attempt=client.attempt + 1, waits=True)
        message = Message(Push(client.payload, client.attempt, client.home), DELIVERIES)
        label = f"the client sends payload {client.payload} to shard {client.home}"
        yield label, world._replace(client=client, messages=world.messages | {message})


def _of_message(world: ModelWorld, message: Message, without: Guard | None) -> Iterator[Step]:
    """It arrives, and the answer is heard or lost. The client repeats a push until it hears the last answer."""
    push, client = message.push, world.client
    is_applied, arrived = _arrived(world, message, without)
    label = f"payload {push.payload} arrives at shard {push.to}: {'applied' if is_applied else 'closed'}"
    if not client.waits or (push.payload, push.attempt) != (client.payload, client.attempt):
        yield label, _forgetting(arrived, push) if is_applied else arrived
        return
    if message.left > 1:
        yield f"{label}, not heard", arrived
    if is_applied:
        yield (
            f"{label}, heard",
            _forgetting(arrived, push)._replace(client=ModelClient(push.payload + 1, home=client.home)),
        )
    else:
        elsewhere = client._replace(waits=False, home=NEW if client.home == OLD else OLD)
        yield f"{label}, heard", arrived._replace(client=elsewhere)


def _arrived(world: ModelWorld, message: Message, without: Guard | None) -> tuple[bool, ModelWorld]:
    """Whether the shard says that it has the push, and the world afterwards."""
    push, shard = message.push, world.shards[message.push.to]
    takes = shard.role in TAKES_PUSHES
    is_known = push in shard.applied and (takes or without != "token before role")
    if takes and not is_known:
        shard = shard._replace(waiting=shard.waiting | {push}, applied=shard.applied | {push})
    left = world.messages - {message}
    if message.left > 1:
        left |= {message._replace(left=message.left - 1)}
    return is_known or takes, world.having(push.to, shard)._replace(messages=left)


def _forgetting(world: ModelWorld, push: Push) -> ModelWorld:
    """Nobody waits for its answer and its token is known: whatever arrives of it again changes nothing."""
    shard = world.shards[push.to]
    left = frozenset(message for message in world.messages if message.push != push)
    return world.having(push.to, shard._replace(applied=shard.applied - {push}))._replace(messages=left)


def _of_holder(world: ModelWorld, side: Side, without: Guard | None) -> Iterator[Step]:
    shard = world.shards[side]
    drained = TAKES_PUSHES if without == "receiving rests" else DRAINED
    if shard.holder == "nobody" and shard.role in drained and shard.waiting:
        first = min(shard.waiting)
        runs = shard._replace(holder="runs", flight=first, waiting=shard.waiting - {first})
        yield f"payload {first.payload} runs at shard {side}", world.having(side, runs)
    if shard.holder == "runs" and shard.flight:
        after = world.having(side, shard._replace(holder="nobody", flight=None))
        yield f"shard {side} settles", after._replace(settled=world.settled + 1)
        if world.deaths:
            dead = world.having(side, shard._replace(holder="is dead"))
            yield f"the holder of shard {side} dies", dead._replace(deaths=world.deaths - 1)
    if shard.holder == "is dead" and shard.role in drained:
        yield f"shard {side} is recovered", world.having(side, recovered(shard))


def _of_mover(world: ModelWorld, position: int, without: Guard | None) -> Iterator[Step]:
    mover = world.movers[position]
    others = (*world.movers[:position], *world.movers[position + 1 :])
    is_late = any(message.push.to == mover.target for message in world.messages)
    source, target = world.shards[mover.source], world.shards[mover.target]
    for move in moves(Call(mover, source, target, world.layout, without, is_late)):
        shards = (move.source, move.target) if mover.source == OLD else (move.target, move.source)
        left = (*others, move.mover) if move.mover else others
        # In one order: movers of an epoch do the same, and nobody looks at which of them it is.
        after = world._replace(shards=shards, movers=tuple(sorted(left)), layout=move.layout)
        yield f"mover {mover.epoch}: {move.label}", after
