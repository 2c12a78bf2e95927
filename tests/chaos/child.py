"""A process that stops at named points, so that a test can kill or freeze it exactly there.

It is forked by a server that has imported this module. At a point it says so to the test, and waits for its answer. The
points lie around the calls of the store, so the production code knows nothing of them.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import wraps
from multiprocessing.connection import Connection
from typing import Any

import msgspec

from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.store.shard import backend
from lowkiq_lambda.store.shard.pushing import Pusher
from lowkiq_lambda.store.shard.session import LeaseSession
from tests.chaos.scenario import Ended, Reach, Scenario
from tests.chaos.storm.versions import upgraded_script

CALLS: Sequence[tuple[type, str, str]] = (
    (LeaseSession, "acquire", "acquire"),
    (LeaseSession, "settle", "settle"),
    (LeaseSession, "start", "start"),
    (LeaseSession, "checkpoint", "checkpoint"),
    (Pusher, "push", "push"),
)


class Orders(msgspec.Struct, frozen=True):
    """What to do, and at which points to stop: "before settle" is the first time, "before settle 2" the second.

    `upgraded`: as the next version of the library, whose scripts differ.
    """

    scenario: Scenario
    work: str
    stops: list[str] = []
    jobs: list[dict[str, Any]] = []
    upgraded: bool = False


class ChildLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line from a child: the point that it stands at, or how it ended."""

    at: str = ""
    ended: Ended | None = None


def main(text: bytes, test: Connection) -> None:
    """Do as ordered."""
    orders = msgspec.json.decode(text, type=Orders)
    if orders.upgraded:
        vars(backend)["script"] = upgraded_script
    reach = stopping_at(orders.stops, test)
    for owner, method, name in CALLS:
        setattr(owner, method, stopping_around(getattr(owner, method), name, reach))
    try:
        ended = WORK[orders.work](orders, reach)
    except LowkiqError as error:
        ended = Ended(error=type(error).__name__)
    tell(test, ChildLine(ended=ended))


def visit(orders: Orders, reach: Reach) -> Ended:
    """Visit the first shard once."""
    drainer, budget = (
        orders.scenario.app(reach).core.drains.drainer,
        Budget(SystemClock(), orders.scenario.visit_seconds),
    )
    budget.is_hard = orders.scenario.is_hard
    return Ended.of(drainer.visit(drainer.shards()[0], budget))


def push(orders: Orders, reach: Reach) -> Ended:
    """Push the jobs in one call."""
    app = orders.scenario.app(reach)
    app.push_many(app.workers[0], orders.jobs)
    return Ended()


WORK: dict[str, Callable[[Orders, Reach], Ended]] = {"visit": visit, "push": push}


def stopping_at(stops: Sequence[str], test: Connection) -> Reach:
    """Says that a point is reached, and waits, where that was ordered."""
    reached: Counter[str] = Counter()

    def reach(point: str) -> None:
        reached[point] += 1
        if point in stops or f"{point} {reached[point]}" in stops:
            tell(test, ChildLine(at=point))
            test.recv_bytes()

    return reach


def stopping_around(call: Callable[..., Any], name: str, reach: Reach) -> Callable[..., Any]:
    """The call with a point before it and one after it."""

    @wraps(call)
    def with_points(*args: Any, **options: Any) -> Any:
        reach(f"before {name}")
        answer = call(*args, **options)
        reach(f"after {name}")
        return answer

    return with_points


def tell(test: Connection, told: ChildLine) -> None:
    """Say it to the test."""
    test.send_bytes(msgspec.json.encode(told))
