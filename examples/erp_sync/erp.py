"""A double of the ERP: it serves so many requests a second, is slow, fails, and knows what it has."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from random import Random
from typing import Any, TypeAlias

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from examples.erp_sync.clients import BROKEN, REFUSED, THROTTLED, TOO_OLD

Tell: TypeAlias = Callable[[str, Any], Response]
"""Given an id and a body: the answer."""

SLOW = 0.4
"""Seconds that a slow request takes."""
FAILURES_IN_A_ROW = 3
"""More of one path never come, so that retries reach their end with poison alone."""
TIMED_OUT = 504


class Erp:
    """What it has and what it was asked. `failures` is a share of the requests, and `latency` is in seconds."""

    def __init__(
        self, rate: int, failures: float, poison: Collection[str], seed: int, *, latency: float = 0.01
    ) -> None:
        self.orders: dict[str, dict[str, Any]] = {}
        self.stock: Counter[str] = Counter()
        self.products: dict[str, dict[str, Any]] = {}
        self.catalogues: dict[str, dict[str, int]] = {}
        self.answers: Counter[str] = Counter()
        """How often it said what."""
        self.rate = rate
        """Requests a second that it serves."""
        self._failures = failures
        self._latency = latency
        self._poison = poison
        self._random = Random(seed)
        self._movements: set[int] = set()
        self._second, self._served, self._asked = 0, 0, 0
        self._failed_in_a_row: Counter[str] = Counter()
        self.app = Starlette(
            routes=[
                self._route("/orders/{id}", "PUT", self._put_order),
                self._route("/stock", "POST", self._move_stock),
                self._route("/versions", "POST", self._versions),
                self._route("/products/{id}", "PUT", self._put_product),
                self._route("/catalogues/{id}", "PUT", self._put_catalogue),
            ]
        )

    def _route(self, path: str, method: str, tell: Tell) -> Route:
        async def answer(request: Request) -> Response:
            return await self._answer(request, tell)

        endpoint: Callable[[Request], Awaitable[Response]] = answer
        return Route(path, endpoint, methods=[method])

    async def _answer(self, request: Request, tell: Tell) -> Response:
        if self._is_too_much():
            return self._said("throttled", THROTTLED, "too many requests", {"retry-after": "1"})
        body = msgspec.json.decode(await request.body())
        await asyncio.sleep(SLOW if self._draw("slow") else self._latency)
        path, id = request.url.path, request.path_params.get("id", "")
        # An order that is poison has its own failure, each time: that one is what its job dies of.
        if id not in self._poison and self._failed_in_a_row[path] < FAILURES_IN_A_ROW and self._draw("failed"):
            self._failed_in_a_row[path] += 1
            if self._random.random() < 1 / 2:
                return self._said("failed", BROKEN, "out of order")
            # Done, and the caller does not learn it: it has to ask again, and that must change nothing.
            tell(id, body)
            return self._said("done without an answer", TIMED_OUT, "no answer in time")
        self._failed_in_a_row.pop(path, None)
        return tell(id, body)

    def _is_too_much(self) -> bool:
        if self._second != (second := int(time.monotonic())):
            self._second, self._served = second, 0
        self._served += 1
        self._asked += 1
        return self._served > self.rate or self._is_used_up_by_others()

    def _is_used_up_by_others(self) -> bool:
        """By number and not by chance, so that each run is throttled, on a machine too slow for the rate as well."""
        return self._failures > 0 and self._asked % round(1 / self._failures) == 0

    def _draw(self, _what: str) -> bool:
        return self._random.random() < self._failures

    def _said(self, what: str, status: int, reason: str, headers: dict[str, str] | None = None) -> Response:
        self.answers[what] += 1
        return JSONResponse({"reason": reason}, status, headers)

    def _done(self, answer: object = None) -> Response:
        self.answers["done"] += 1
        return JSONResponse(answer)

    def _put_order(self, id: str, order: dict[str, Any]) -> Response:
        if id in self._poison:
            return self._said("failed", BROKEN, f"cannot compute the tax of order {id}")
        if id in self.orders and self.orders[id]["version"] > order["version"]:
            return self._said("older version", TOO_OLD, "a newer version is known")
        self.orders[id] = order
        return self._done()

    def _move_stock(self, _id: str, moves: dict[str, list[dict[str, int]]]) -> Response:
        for sku, moved in moves.items():
            for each in moved:
                if each["movement"] not in self._movements:
                    self._movements.add(each["movement"])
                    self.stock[sku] += each["by"]
        return self._done()

    def _versions(self, _id: str, ids: list[str]) -> Response:
        return self._done({id: self.orders[id]["version"] for id in ids if id in self.orders})

    def _put_product(self, sku: str, product: dict[str, Any]) -> Response:
        if product["picture"] is None:
            return self._said("rejected", REFUSED, f"{product['name']} has no picture")
        self.products[sku] = product
        return self._done()

    def _put_catalogue(self, id: str, counts: dict[str, int]) -> Response:
        self.catalogues[id] = counts
        return self._done()
