"""Which node each shard lies on, and what time it is there, without asking it each time.

Scripts take `now` as an argument. It is the node's own time as measured last, carried on by this machine's
monotonic clock. If the wall clock disagrees about how long that was (the process was frozen, or the clock was
set), the measurement is not trusted any more.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final, Protocol, TypeAlias

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.store.server.connection import Client, is_cluster
from lowkiq_lambda.store.server.faults import translated, unless_error
from lowkiq_lambda.store.server.pipelines import Words, send_each
from lowkiq_lambda.store.shard.keys import Keyed, ScriptTarget, ShardRef
from lowkiq_lambda.store.shard.scripts import CONTRACT_VERSION

Stamp: TypeAlias = tuple[str, str, str]
"""The first arguments of every script: the contract's version, now, and whether now was measured for the call."""

_TIME: Final = ("TIME",)
_ONLY_NODE: Final = ""

FOREVER: Final = 253_402_300_799.0
"""The last second of the year 9999: what has no end has this one, as anything can be counted with it."""
FAR: Final = 253_402_300_800.0
"""When an id is due whose head is blocked: a second that no push may name. Also in include/far.lua."""
MAX_AGE: Final = 60.0
FRESH: Final = 1.0
"""Seconds for which a measurement need not be made anew, though one could be had on the way."""
MAX_DISAGREEMENT: Final = 0.5
DRIFT: Final = 0.001
"""Seconds in a second: twice what a clock that is being set right runs faster or slower, at most."""


class Asking:
    """The command that asks a node for its time, and when it was sent (monotonic)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.at = math.nan

    def __call__(self) -> Words:
        """The time is taken when the command is sent: the wait for a connection is not a part of a round trip."""
        self.at = self._clock.monotonic()
        return _TIME


class NodeTime(Protocol):
    """The current time of a node."""

    def observe(self, seconds: float, asked_at: float) -> float:
        """Takes in what the node said when asked at `asked_at` (monotonic), and returns what time it is."""
        ...

    def now(self) -> float | None:
        """Unix seconds, or None when the node has to be asked."""
        ...

    def is_fresh(self) -> bool:
        """Whether it was asked just now, so that asking again would bring nothing."""
        ...

    def estimate(self) -> float:
        """Unix seconds as estimated without a call: they may be off if the node was not asked lately."""
        ...

    def doubt(self) -> float:
        """Seconds by which `now` may be off, either way."""
        ...


class Nodes:
    """The nodes behind a client, by name, and their clocks."""

    def __init__(self, client: Client, clock: Clock, new_time: Callable[[], NodeTime]) -> None:
        self._client = client
        # Asked for each batch, and slow to ask: the client's classes are protocols.
        self.cluster = client if is_cluster(client) else None
        self._clock = clock
        self._new_time = new_time
        self._times: dict[str, NodeTime] = {}

    def of(self, shard: Keyed) -> str:
        """The name of the node that it lies on."""
        if self.cluster is None:
            return _ONLY_NODE
        return str(self.cluster.get_node_from_key(shard.keys[0]).name)

    def with_a_key(self, targets: Iterable[ScriptTarget]) -> dict[str, str]:
        """The nodes of shards, or groups of them, each with a key of one of them."""
        if self.cluster is None:
            return dict(islice(((_ONLY_NODE, target.keys[0]) for target in targets), 1))
        return {self.of(target): target.keys[0] for target in targets}

    def now(self, shard: Keyed) -> float:
        """Unix seconds by the clock of the shard's node. Raises BackendError if it has to be asked and can't."""
        if self.cluster is None and (measured := self._time_of(_ONLY_NODE).now()) is not None:
            return measured
        with translated():
            now = self._time_of(self.of(shard)).now()
            return self._measure(shard) if now is None else now

    def now_each(self, shards: Sequence[ShardRef]) -> list[float]:
        """As `now` for each shard, asked once for each node."""
        if self.cluster is None:
            return [self.now(shard) for shard in shards[:1]] * len(shards)
        nodes = [self.of(shard) for shard in shards]
        nows = {node: self.now(shard) for node, shard in dict(zip(nodes, shards, strict=True)).items()}
        return [nows[node] for node in nodes]

    def estimate(self, shard: Keyed) -> float:
        """Unix seconds on the shard's node, as far as that can be told without asking it. Raises what redis-py does."""
        return self._time_of(self.of(shard)).estimate()

    def stamp(self, shard: Keyed, *, measure: bool = False) -> Stamp:
        """The stamp for a call, its time measured if `measure` is set, or if that is needed.

        Raises the errors of redis-py.
        """
        now = None if measure else self._time_of(self.of(shard)).now()
        if now is not None:
            return str(CONTRACT_VERSION), f"{now:.6f}", "0"
        return str(CONTRACT_VERSION), f"{self._measure(shard):.6f}", "1"

    def doubt(self, target: Keyed) -> float:
        """Seconds by which the time of the last stamp may be off, either way. Raises what redis-py does."""
        return self._time_of(self.of(target)).doubt()

    def is_known(self, shard: Keyed) -> bool:
        """Whether the clock of the shard's node was read just now."""
        return self._time_of(self.of(shard)).is_fresh()

    def asking(self) -> Asking:
        """The command for a node whose time is needed."""
        return Asking(self._clock)

    def observe(self, node: str, time_reply: tuple[bytes, bytes], asking: Asking) -> float:
        """Take in what a node answered when it was asked; what time it is there."""
        return self._time_of(node).observe(int(time_reply[0]) + int(time_reply[1]) / 1_000_000, asking.at)

    def _measure(self, shard: Keyed) -> float:
        asking = self.asking()
        (time_reply,) = send_each(self._client, [(shard.keys[0], asking)])
        return self.observe(self.of(shard), unless_error(time_reply), asking)

    def _time_of(self, node: str) -> NodeTime:
        if node not in self._times:
            self._times[node] = self._new_time()
        return self._times[node]


class GivenTime:
    """The time of a clock that is moved by hand, instead of the server's."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def observe(self, seconds: float, asked_at: float) -> float:
        """The clock's time; both arguments are set aside."""
        del seconds, asked_at
        return self._clock.time()

    def now(self) -> float | None:
        """The clock's time, never in need of a measurement."""
        return self._clock.time()

    def is_fresh(self) -> bool:
        """Always."""
        return True

    def estimate(self) -> float:
        """The clock's time."""
        return self._clock.time()

    def doubt(self) -> float:
        """None."""
        return 0.0


class ServerTime:
    """The clock of one node."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._measured: tuple[float, float, float] | None = None
        self._doubt = 0.0

    def observe(self, seconds: float, asked_at: float) -> float:
        """The node said `seconds`; it was asked at `asked_at` by the monotonic clock, and answered just now."""
        answered_at = self._clock.monotonic()
        # The node read its clock somewhere between: the middle is at most half a round trip off.
        middle = (asked_at + answered_at) / 2
        self._measured = (seconds, middle, self._clock.time() - (answered_at - middle))
        self._doubt = answered_at - middle
        return seconds + answered_at - middle

    def now(self) -> float | None:
        """Unix seconds on the node, or None when it has to be measured again."""
        if self._measured is None:
            return None
        seconds, at, wall = self._measured
        elapsed = self._clock.monotonic() - at
        if elapsed > MAX_AGE or abs(self._clock.time() - wall - elapsed) > MAX_DISAGREEMENT:
            return None
        return seconds + elapsed

    def is_fresh(self) -> bool:
        """Whether the last measurement is trusted, and less than a second old."""
        if self._measured is None or self.now() is None:
            return False
        return self._clock.monotonic() - self._measured[1] < FRESH

    def estimate(self) -> float:
        """The node's last time plus the seconds since; this machine's time if the node was never asked."""
        if self._measured is None:
            return self._clock.time()
        seconds, at, wall = self._measured
        # The one stands still while a machine is frozen, the other may be set back.
        return seconds + max(self._clock.monotonic() - at, self._clock.time() - wall)

    def doubt(self) -> float:
        """Half the round trip of the measurement, and what two clocks may have drifted apart since."""
        at = self._clock.monotonic() if self._measured is None else self._measured[1]
        return self._doubt + DRIFT * (self._clock.monotonic() - at)
