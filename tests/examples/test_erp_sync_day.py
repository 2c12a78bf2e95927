"""The example's day in simulated time: by the simulation of its trace, and by its jobs with the clock moved by hand."""

import json
from collections import deque
from math import inf
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import msgspec
import pytest

from examples.erp_sync import clients
from examples.erp_sync.__main__ import main as example
from examples.erp_sync.erp import Erp
from examples.erp_sync.http import Answer
from examples.erp_sync.jobs import (
    NIGHTLY,
    OrderChanged,
    Reconcile,
    StockMoved,
    SyncOrder,
    UpdateStock,
    export_catalogue,
)
from examples.erp_sync.knobs import Knobs
from examples.erp_sync.report import Report
from examples.erp_sync.shop import ORDERS, Change, Shop, order_id, plan, steps
from examples.erp_sync.web import web
from lowkiq_lambda.cli import main
from lowkiq_lambda.engine.budget import Budget
from lowkiq_lambda.operate.auto.duty import AutoDuty
from lowkiq_lambda.operate.lateness.duty import WatchDuty
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.testing import AppUnderTest
from tests.kit.playing import MINUTE, tell_of_daemon
from tests.kit.web import Browser

CALL: Final = 2.0
"""Seconds that the ERP takes for a request."""
DAY: Final = Knobs(seconds=3_600, rate=0.875, day=True, orders=1_500, failures=0.02, latency=CALL)
"""In an hour: at noon 1.2 orders are sent a second, and a shard carries half a one."""
NOON: Final = 30
"""In minutes."""
LAG: Final = 5.0
"""The target of orders, in seconds."""
THREADS: Final = 8


class PlayedDay:
    """The day of a shop, drained by a daemon whose every thread has a shard, with housekeeping behind each minute."""

    def __init__(self, kit: AppUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
        self.app, self.clock = kit.app, kit.clock
        self.shop, self.erp = Shop(DAY), Erp(10**9, 0.0, [order_id(0)], 1, latency=0.0)
        self.lags: list[float] = []
        """Of orders, in seconds, at the end of each minute."""
        self._free_at: dict[ShardRef, float] = {}
        """When each shard of orders is to be looked at, in seconds of the day; infinity: when an order comes."""
        self._others = {"http://erp": Browser(self.erp.app), "http://shop": Browser(self.shop.app)}
        monkeypatch.setenv("ERP_URL", "http://erp")
        monkeypatch.setenv("SHOP_URL", "http://shop")
        monkeypatch.setattr(clients, "ask", self._ask)

    def _ask(self, method: str, url: str, body: object = None) -> Answer:
        """As the example's, without a socket; the ERP takes its time."""
        place = url.index("/", len("http://"))
        self.clock.advance(CALL)
        answer = self._others[url[:place]].ask(method, url[place:], body=msgspec.json.encode(body))
        return Answer(answer.status, answer.headers, answer.json)

    def live(self) -> None:
        """From midnight to midnight: what comes next is a webhook, the end of a minute, or the next call of a shard."""
        began_at = self.clock.monotonic()
        coming = deque(steps(plan(DAY, self.clock.time())))
        minute = MINUTE
        while minute <= DAY.seconds + MINUTE:
            shards = self._shards()
            shard = min(shards, key=lambda shard: self._free_at.get(shard, 0.0))
            at = min(minute, coming[0][0] if coming else minute, self._free_at.get(shard, 0.0))
            self.clock.advance(began_at + at - self.clock.monotonic())
            if coming and coming[0][0] <= at:
                _, change, is_sent = coming.popleft()
                self._come(change, is_sent=is_sent)
                if is_sent and change.path == ORDERS:
                    self._awake(shards[crc32(change.body["id"].encode()) % len(shards)], at)
            elif minute <= at:
                minute += MINUTE
                self._minute()
                # Some are to be retried by now.
                self._free_at = {shard: free_at for shard, free_at in self._free_at.items() if free_at < inf}
            else:
                has_worked = self._call(shard)
                self._free_at[shard] = self.clock.monotonic() - began_at if has_worked else inf
        self.clock.advance(began_at + minute - self.clock.monotonic())

    def _awake(self, shard: ShardRef, at: float) -> None:
        if self._free_at.get(shard) == inf:
            self._free_at[shard] = at

    def _shards(self) -> list[ShardRef]:
        return [shard for shard in self.app.core.drains.drainer.shards() if shard.queue_name == SyncOrder.queue_name]

    def _call(self, shard: ShardRef) -> bool:
        """One call, which lasts, if there is work for it."""
        begins_at = self.clock.monotonic()
        over = Budget(self.clock, MINUTE, turn_over=lambda: self.clock.monotonic() > begins_at)
        return any(self.app.core.drains.drainer.visit(shard, over).counts.values())

    def _come(self, change: Change, *, is_sent: bool) -> None:
        body: dict[str, Any] = change.body
        if not is_sent:
            self.shop.apply(change)
        elif change.path == ORDERS:
            SyncOrder.push(body["id"], OrderChanged(body["status"], body["total"]), score=body["version"])
        else:
            UpdateStock.push(body["sku"], StockMoved(body["movement"], body["by"]))

    def _minute(self) -> None:
        """Housekeeping, and all other queues at once: no other thread would wait for them."""
        began_at, drainer = self.clock.monotonic(), self.app.core.drains.drainer
        for shard in drainer.shards():
            if shard.queue_name != SyncOrder.queue_name:
                drainer.visit(shard, Budget(self.clock, MINUTE))
                self.clock.advance(began_at - self.clock.monotonic())
        tell_of_daemon(self.app, SyncOrder.queue_name, THREADS, 0.3)
        WatchDuty(self.app.core).run(lambda: MINUTE)
        AutoDuty(self.app.core).run(lambda: MINUTE)
        self.lags.append(self.app.operate.metrics()[SyncOrder.queue_name].lag)

    def end(self, kit: AppUnderTest) -> Report:
        """The night comes, all is worked off, and this is what it came to."""
        for number in range(12):
            if number == 6:
                self.app.schedules.run(NIGHTLY, worker=Reconcile)
            kit.advance(minutes=1)
            kit.drain(raises=False)
        status = Browser(web).get("/status").json
        assert 0 == status["waiting"]
        return Report(self.shop, self.erp, [order_id(0)], status["morgue"], 0, status["moves"])


def test_a_day_gets_the_shards_that_its_noon_lacks(lowkiq: AppUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two shards lag before noon, with four the lag is under its target again, and the ERP has what the shop has."""
    day = PlayedDay(lowkiq, monkeypatch)
    with lowkiq.app.core.rebound(lowkiq.app.config.evolve(auto="act"), lowkiq.clock):
        export_catalogue()
        day.live()
        report = day.end(lowkiq)

    before, after = day.lags[:NOON], day.lags[NOON:]
    assert max(after) < LAG < max(before)
    assert (["2 to 4"], []) == (report.moves, report.faults())


def test_the_trace_of_a_day_is_simulated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its command writes when which order is sent, and `lowkiq simulate` tells the lag of each choice by that."""
    trace = tmp_path / "day.csv"
    knobs = [f"--{name}={getattr(DAY, name)}" for name in ("seconds", "rate", "orders", "failures")]
    assert 0 == example(["--day", *knobs, f"--trace={trace}"])
    assert f"webhooks of orders are in {trace}" in capsys.readouterr().out

    took = [f"--took={CALL}s", "--spread=0", "--computing=0"]
    tried = ["--try=shards=2,4", f"--try=compute=daemon:1x{THREADS}", f"--lag-p95={LAG}s"]
    assert 0 == main(["simulate", f"--trace={trace}", *took, *tried, "--json"])

    two, four = map(json.loads, capsys.readouterr().out.splitlines())
    assert two["p95"] > 4 * LAG > LAG > four["p95"]
