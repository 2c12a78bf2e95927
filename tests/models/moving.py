"""A model of the move of a group of shards: one id, its old and its new shard, and all who touch them.

A client pushes payload 1, then payload 2, each acknowledged before the next is sent; each message arrives up to twice
and as late as it likes. One holder may die. Movers may stall between any two of their steps, for as long as they like.
What stands still while a group moves ("still") only helps the movers to get their turn, so here a holder may take it:
no promise may rest on it.
"""

from typing import Final, Literal, NamedTuple, TypeAlias

Side: TypeAlias = Literal[0, 1]
OLD: Final = 0
NEW: Final = 1
Role: TypeAlias = Literal["absent", "receiving", "open", "still", "closed"]
Order: TypeAlias = Literal[
    "turn", "settle", "again", "admit", "still", "seal", "carry", "receive", "drop", "open", "note"
]
Guard: TypeAlias = Literal[
    "token before role",
    "receiving rests",
    "seal waits",
    "receive fenced",
    "drop fenced",
    "open waits",
    "epochs",
    "late pushes",
    "reopening noted",
]
"""What keeps the promises: each can be left out, and then the model has to find what it prevents."""
PAYLOADS: Final = 2
DELIVERIES: Final = 2


class Push(NamedTuple):
    """One sending of a payload: a token of its own, and the place of the payload in the order."""

    payload: int
    attempt: int
    to: Side


class Message(NamedTuple):
    """A push on its way, and how often it may still arrive."""

    push: Push
    left: int


class ModelShard(NamedTuple):
    """`flight`: what a holder has claimed. `applied`: the tokens of pushes that it knows."""

    role: Role
    epoch: int = 0
    holder: Literal["nobody", "runs", "is dead"] = "nobody"
    flight: Push | None = None
    waiting: frozenset[Push] = frozenset()
    applied: frozenset[Push] = frozenset()


class ModelClient(NamedTuple):
    """`payload`: the one that it pushes. `attempt`: how often it began. `home`: where it believes the id to live."""

    payload: int = 1
    attempt: int = 0
    home: Side = OLD
    waits: bool = False
    """Whether it waits for the answer to its last attempt."""


class ModelLayout(NamedTuple):
    """What the layout says: the epoch of the last move, and where the id lives."""

    epoch: int = 1
    home: Side = OLD


class Mover(NamedTuple):
    """`rows`: what it has read from its source, and not dropped there yet."""

    epoch: int
    next: Order = "admit"
    rows: tuple[Push, ...] = ()

    @property
    def source(self) -> Side:
        """Movers of the second epoch walk back, those of the third go forth again."""
        return NEW if self.epoch == 2 else OLD

    @property
    def target(self) -> Side:
        """The other shard."""
        return OLD if self.epoch == 2 else NEW


class ModelWorld(NamedTuple):
    """All that matters at one moment. `settled`: how many payloads are done. `deaths`: how many may still happen."""

    shards: tuple[ModelShard, ModelShard]
    movers: tuple[Mover, ...]
    layout: ModelLayout = ModelLayout()
    client: ModelClient = ModelClient()
    messages: frozenset[Message] = frozenset()
    settled: int = 0
    deaths: int = 1

    def having(self, side: Side, shard: ModelShard) -> "ModelWorld":
        """With this shard at that side."""
        return self._replace(shards=(shard, self.shards[NEW]) if side == OLD else (self.shards[OLD], shard))


def at_first(movers: tuple[Mover, ...]) -> ModelWorld:
    """The old shard is open, the new one was never there."""
    return ModelWorld((ModelShard("open"), ModelShard("absent")), movers)


def fault(world: ModelWorld) -> str | None:
    """P1: one holder at a time. P3: what runs is the first that is not done, so none is lost, passed or repeated."""
    running = [shard.flight for shard in world.shards if shard.holder == "runs"]
    if len(running) > 1:
        return "P1"
    return "P3" if any(push and push.payload != world.settled + 1 for push in running) else None


def fault_of_end(world: ModelWorld) -> str | None:
    """P2: at the end all was pushed, all is done, nothing is left, and one shard is open, as the layout says."""
    is_done = world.client.payload > PAYLOADS and world.settled == PAYLOADS
    is_empty = not any(shard.waiting or shard.flight for shard in world.shards)
    is_open = [side for side in (OLD, NEW) if world.shards[side].role == "open"]
    return None if is_done and is_empty and is_open == [world.layout.home] else "P2"


def recovered(shard: ModelShard) -> ModelShard:
    """What its holder had claimed waits again."""
    back = {shard.flight} if shard.flight else set()
    return shard._replace(holder="nobody", flight=None, waiting=shard.waiting | back)
