"""A double of the shop: it changes by a plan, and sends a webhook of each change, late, twice, or never."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import pi, sin
from pathlib import Path
from random import Random
from threading import Event
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from examples.erp_sync.http import Unreachable, ask
from examples.erp_sync.knobs import Knobs

ORDERS = "/webhooks/orders"
STOCK = "/webhooks/stock"
STATUSES = ("new", "paid", "packed", "sent", "returned")
LATE = 2.0
"""Seconds that a webhook may be late; a later change overtakes it."""
REPEATED = 0.1
"""The share of webhooks that come twice."""
NOON = 0.8
"""The share by which more changes come at noon than in the mean; at midnight it is as many fewer."""
_HALVINGS = 30
MOVES = 0.3
"""The share of changes that move stock."""
NO_PICTURE = 10
"""Each product that this divides has none."""
PAGE = 50
ACCEPTED = 202
PATIENCE = 60.0
"""Seconds for which a webhook is sent again."""


@dataclass(frozen=True, slots=True)
class Change:
    """Something changed: `at` so many seconds after the start; its webhook is sent at each of `sent_at`."""

    at: float
    path: str
    body: dict[str, Any]
    sent_at: tuple[float, ...]


def order_id(number: int) -> str:
    """The number as customers see it."""
    return str(1000 + number)


def plan(knobs: Knobs, now: float) -> list[Change]:
    """All that is to change, by time. Versions grow with the time `now` (Unix seconds), as those of a real shop do."""
    random = Random(knobs.seed)
    count = max(knobs.poison, round(knobs.rate * knobs.seconds))
    at = _time_of_day if knobs.day else float
    return [
        _change(knobs, random, number, knobs.seconds * at(number / count), int(now * 1000)) for number in range(count)
    ]


def _time_of_day(share: float) -> float:
    """The share of a day after which that share of its changes has come: at noon they come fastest."""
    earliest, latest = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (earliest + latest) / 2
        if middle - NOON * sin(2 * pi * middle) / (2 * pi) < share:
            earliest = middle
        else:
            latest = middle
    return earliest


def _change(knobs: Knobs, random: Random, number: int, at: float, version: int) -> Change:
    # Poison orders come first, so that there are as many as was asked for.
    is_poison = number < knobs.poison
    lateness = [random.uniform(0, LATE) for _ in range(2 if random.random() < REPEATED else 1)]
    if not is_poison and random.random() < MOVES:
        sku = f"sku-{random.randrange(knobs.products)}"
        moved = {"sku": sku, "movement": version + number, "by": random.choice((-3, -2, -1, 1, 2, 3))}
        return Change(at, STOCK, moved, tuple(at + late for late in lateness))
    order = {
        "id": order_id(number if is_poison else random.randrange(knobs.orders)),
        "version": version + number,
        "status": random.choice(STATUSES),
        "total": random.randrange(100, 100_000),
    }
    is_lost = random.random() < knobs.failures and not is_poison
    return Change(at, ORDERS, order, () if is_lost else tuple(at + late for late in lateness))


class Shop:
    """What it has, and what it has sent."""

    def __init__(self, knobs: Knobs) -> None:
        self.orders: dict[str, dict[str, Any]] = {}
        self.stock: Counter[str] = Counter()
        self.products = [
            {"sku": f"sku-{n}", "name": f"product {n}", "picture": f"{n}.png" if n % NO_PICTURE else None}
            for n in range(knobs.products)
        ]
        self.counts: Counter[str] = Counter()
        self.app = Starlette(routes=[Route("/orders", self._page), Route("/products", self._catalogue)])

    def live(self, changes: list[Change], send_to: str, stop: Event, tick: Callable[[float], object]) -> None:
        """Change as planned, and return when all webhooks are accepted, or `stop` is set.

        `tick` is called before each step, with the seconds since the start.
        """
        began_at = time.monotonic()
        with ThreadPoolExecutor(8) as senders:
            for at, change, is_sent in steps(changes):
                if stop.wait(max(0.0, began_at + at - time.monotonic())):
                    break
                tick(at)
                if is_sent:
                    senders.submit(self._send, send_to, change, stop)
                else:
                    self.apply(change)

    def apply(self, change: Change) -> None:
        """It has changed so."""
        self.counts["changes"] += 1
        if change.path == STOCK:
            self.stock[change.body["sku"]] += change.body["by"]
        else:
            self.orders[change.body["id"]] = change.body
        if not change.sent_at:
            self.counts["lost"] += 1

    def _send(self, url: str, change: Change, stop: Event) -> None:
        gives_up_at = time.monotonic() + PATIENCE
        while not stop.is_set() and time.monotonic() < gives_up_at:
            try:
                if ask("POST", url + change.path, change.body).status == ACCEPTED:
                    self.counts["webhooks"] += 1
                    return
            except Unreachable:
                pass
            self.counts["sent again"] += 1
            stop.wait(0.2)
        self.counts["given up"] += 1

    def _page(self, request: Request) -> JSONResponse:
        after = request.query_params.get("after", "")
        ids = sorted(id for id in list(self.orders) if id > after)[:PAGE]
        return JSONResponse([self.orders[id] for id in ids])

    def _catalogue(self, _request: Request) -> JSONResponse:
        return JSONResponse(self.products)


def steps(changes: Sequence[Change]) -> list[tuple[float, Change, bool]]:
    """By the seconds since the start: what changes, and (True) what is sent of it."""
    all_steps = [(change.at, change, False) for change in changes]
    all_steps += [(at, change, True) for change in changes for at in change.sent_at]
    return sorted(all_steps, key=lambda step: step[0])


def write_trace(changes: Sequence[Change], path: Path) -> int:
    """Write when which order is sent, for `lowkiq simulate --trace`; how many there are."""
    rows = [
        f"{at:.3f},{change.body['id']}" for at, change, is_sent in steps(changes) if is_sent and change.path == ORDERS
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["at,id", *rows]) + "\n")
    return len(rows)
