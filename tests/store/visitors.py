"""Visitors of a limited queue that a test plays itself, call by call, on a clock that it moves."""

import math
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from random import Random
from uuid import uuid4

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.errors import LeaseLost
from lowkiq_lambda.engine.lease import Lease, Moment
from lowkiq_lambda.store.server.connection import connect
from lowkiq_lambda.store.shard.admitting import Admitted, Full, Limits, PermitSession
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.nodes import GivenTime
from tests.kit.servers import Server

TTL = 10.0


class Visitor(PermitSession):
    """One who may have a permit; it believes in it, and begins ids, for as long as it may."""

    def __init__(self, backend: Backend, shard: ShardRef, limits: Limits) -> None:
        super().__init__(backend, shard, uuid4().hex, limits, TTL)
        clock = backend.clock
        self.permit = Lease(clock, TTL, Moment.now(clock))
        self.grant = Lease(clock, 0.0, Moment.now(clock))
        self.left = 0.0

    def come(self, want: int = 1, patience: float = math.inf) -> Full | None:
        """Ask for a permit; why there is none."""
        started = Moment.now(self.permit.clock)
        answer = self.enter(want, patience, 0.0)
        if isinstance(answer, Full):
            return answer
        self._take(answer, started)
        return None

    def go_on(self, want: int, *, twice: bool = False) -> None:
        """Ask for more, and give back what is left; `twice`: the first answer is lost on the way."""
        started = Moment.now(self.permit.clock)
        try:
            answer = self.stay(want, self.left, 0.0)
            if twice:
                self._calls -= 1
                answer = self.stay(want, self.left, 0.0)
        except LeaseLost:
            self.lose()
        else:
            self._take(answer, started)

    def renew(self) -> None:
        """As the thread that renews does."""
        started = Moment.now(self.permit.clock)
        with suppress(LeaseLost):
            self.keep(0.0)
            self.permit.renewed(started)

    def go(self) -> None:
        """Leave, and give back what is left."""
        self.leave(self.left, 0.0)
        self.lose()

    def lose(self) -> None:
        """Have nothing any more."""
        self.permit.lose()
        self.left = 0.0

    def may_begin(self) -> int:
        """How many ids it may begin now."""
        if self.permit.trust_left() <= 0 or self.grant.trust_left() <= 0:
            return 0
        return int(self.left)

    def begin(self, count: int) -> int:
        """Begin so many, as far as it may; how many those are."""
        count = min(count, self.may_begin())
        self.left -= count
        return count

    def _take(self, answer: Admitted, started: Moment) -> None:
        self.permit.renewed(started)
        self.left, self.grant = answer.ids, Lease(self.permit.clock, answer.slack, started)


class Visitors:
    """Makes visitors of one queue; all go by one clock, and so does the server."""

    def __init__(self, server: Server, queue_name: str, clock: Clock, limits: Limits, shards: int = 4) -> None:
        self.client = connect(server.url, max_connections=2, timeout=5.0, pool_timeout=5.0)
        self.backend = Backend(self.client, clock, partial(GivenTime, clock), clock.sleep, Random(0))
        self.shards = [ShardRef(queue_name, shards, index) for index in range(shards)]
        self.limits = limits

    def new(self, shard: int = 0, limits: Limits | None = None) -> Visitor:
        """One more."""
        return Visitor(self.backend, self.shards[shard], limits or self.limits)

    def close(self) -> None:
        """Let the connections go."""
        self.client.close()


def fullest(begun: Sequence[tuple[float, int]], per: float) -> int:
    """How many began in that window of so many seconds in which most did; of (time, count), in order."""
    most = count = first = 0
    for time, number in begun:
        count += number
        while begun[first][0] <= time - per:
            count -= begun[first][1]
            first += 1
        most = max(most, count)
    return most
