"""Limiters outside of a job, on an event loop, and with odd arguments."""

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from lowkiq_lambda import Batch, Concurrent, Config, Grant, LimitExceeded, Lowkiq, Rate, Refusal
from lowkiq_lambda.store.shard.keys import LimiterRef
from lowkiq_lambda.store.shard.scripts import Reply
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp, closing_app
from tests.kit.servers import Server
from tests.limiters.asking import Limit, LimiterScript


def test_outside_of_a_job_a_refusal_is_an_error(app: Lowkiq, queue_name: str) -> None:
    """`try_acquire` returns it, `acquire` raises it with the seconds; nobody has a ticket."""
    limiter = app.limiter(queue_name, Rate(1, per=10))
    limiter.acquire()

    refusal = limiter.try_acquire()
    with pytest.raises(LimitExceeded, match=f"limit {queue_name}, number 1 in line") as raised:
        limiter.acquire()

    assert isinstance(refusal, Refusal)
    assert (1, 0) == (refusal.position, limiter.explain().waiting)
    assert refusal.seconds == pytest.approx(raised.value.retry_after) == pytest.approx(10.0, abs=1.0)


def test_who_waits_has_a_ticket_as_long_as_it_waits(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """It gets the point when it is free, or an error when its time is over; then its ticket is gone."""
    limiter, began = app.limiter(queue_name, Rate(1, per=10)), clock.time()
    limiter.acquire()

    with pytest.raises(LimitExceeded):
        limiter.acquire(wait=3)
    assert 3.0 == pytest.approx(clock.time() - began)
    assert 0 == limiter.explain().waiting
    assert isinstance(limiter.acquire(wait=30), Grant)
    assert 11.0 == pytest.approx(clock.time() - began, abs=1.0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"points": 0}, "points must be a whole number from 1 on, not 0"),
        ({"points": -1}, "points must be a whole number"),
        ({"points": 1.5}, "points must be a whole number"),
        ({"points": True}, "points must be a whole number"),
        ({"points": 11}, "would never be granted"),
        ({"key": "ä" * 101}, "key has more than 200 bytes"),
        ({"key": 7}, "key must be a text"),
        ({"key": "\ud800"}, "lone surrogate"),
        ({"wait": -1}, "wait must be seconds"),
        ({"wait": float("nan")}, "wait must be seconds"),
    ],
)
def test_odd_arguments_are_refused_before_any_call(app: Lowkiq, arguments: dict[str, Any], sentence: str) -> None:
    """With ValueError, by a sentence; the server is not asked."""
    limiter = app.limiter("odd", Rate(10, per=1))
    app.core.configure(redis_url="redis://localhost:1")

    with pytest.raises(ValueError, match=sentence):
        limiter.acquire(**arguments)


def test_a_place_is_asked_for_alone(app: Lowkiq, queue_name: str) -> None:
    """Two points of a limiter with places would never be granted."""
    with pytest.raises(ValueError, match="would never be granted"):
        app.limiter(queue_name, Concurrent(5)).acquire(points=2)


def test_names_and_keys_have_slots_of_their_own() -> None:
    """No name and key give the keys of another pair."""
    pairs = [("a", "b:c"), ("a:b", "c"), ("a}", "b"), ("a", "}b"), ("a", "")]

    assert len(pairs) == len({LimiterRef(*pair).keys for pair in pairs})


def test_on_an_event_loop(app: Lowkiq, queue_name: str) -> None:
    """`aacquire` lets the loop go on; in a coroutine handler a refusal puts the job off."""
    limiter, places = app.limiter(f"{queue_name}-1", Rate(1, per=10)), app.limiter(f"{queue_name}-2", Concurrent(1))

    @app.worker(queue_name=queue_name, shards_count=1)
    async def worker(_batch: Batch) -> None:
        async with await places.aacquire():
            await limiter.aacquire()

    worker.push("a")
    assert {"done": 1} == app.drain()
    worker.push("b")
    assert {"later": 1} == app.drain()
    assert (1, 1) == (places.explain().left, limiter.explain().waiting)
    with pytest.raises(LimitExceeded):
        asyncio.run(limiter.aacquire())


def test_a_grant_that_comes_too_late_is_not_used(
    app: Lowkiq, clock: ManualClock, queue_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows that its points would be used in their time, so they are given back, and it asks again."""
    limiter, call = app.limiter(queue_name, Rate(10, per=2)), app.core.backend.call

    def slow(*args: Any, **more: Any) -> Reply:
        reply = call(*args, **more)
        clock.advance(0.11)
        return reply

    monkeypatch.setattr(app.core.backend, "call", slow)
    refusal = limiter.try_acquire()
    monkeypatch.undo()

    assert isinstance(refusal, Refusal)
    assert 10 == limiter.explain().left


def test_a_killed_process_gives_its_place_back_after_hold(server: Server, queue_name: str) -> None:
    """The points of a window stay spent. Until it was killed, it had renewed its place."""
    command = [sys.executable, "-m", "tests.limiters.holding_child", server.url, queue_name]
    with (
        closing_app(Lowkiq(Config(redis_url=server.url))) as app,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child,
    ):
        assert child.stdout is not None
        assert "held\n" == child.stdout.readline()
        places, rate = (
            app.limiter(f"{queue_name}-places", Concurrent(1, hold=1.0)),
            app.limiter(f"{queue_name}-rate", Rate(2, per=60)),
        )
        # Longer than `hold`: it was renewed.
        with pytest.raises(LimitExceeded):
            places.acquire(wait=1.5)

        child.kill()

        assert isinstance(places.acquire(wait=30.0), Grant)
        assert not rate.try_acquire()


def test_the_clock_of_a_server_goes_back(server: Server, queue_name: str) -> None:
    """After a failover: what was spent counts for as long as before, and a time that was measured wins."""
    for kind in ("rate", "leaky", "concurrent"):
        asking, now = LimiterScript(server, f"{queue_name}-{kind}", Limit(kind, 2, 10.0)), 1_000_000.0
        for number in range(2):
            assert "OK" == asking(now, nonce=str(number))[0]
        assert "FULL" == asking(now + 4.0, nonce="2", who="a")[0]

        assert ["SKEW", now + 4.0] == asking(now - 500.0, nonce="2", who="a")
        asking.measured = True
        assert "FULL" == asking(now - 500.0, nonce="2", who="a")[0]
        assert "FULL" == asking(now - 496.0, nonce="2", who="b")[0]
        assert "OK" == asking(now - 493.9, nonce="2", who="a")[0]


def test_a_flood_of_tickets_has_a_bound(server: Server, queue_name: str) -> None:
    """At most 10,000 stand in line; others are told its end, and leave nothing. A ticket takes less than 300 bytes."""
    asking, now = LimiterScript(server, queue_name, Limit("rate", 10, 1.0)), 1_000_000.0
    for number in range(10):
        asking(now, who=str(number))
    keys = LimiterRef(queue_name, "").keys
    waiting = {f"queue/job-{number}": number for number in range(9_999)}
    server.admin.zadd(keys[2], waiting)
    server.admin.zadd(keys[3], dict.fromkeys(waiting, now + 1.0))

    last, over = (asking(now, who=who)[1:] for who in ("last", "over"))

    assert [(9_999.0, 10_000.0), (10_000.0, 10_000.0)] == [tuple(reply[1:]) for reply in (last, over)]
    assert over[0] == pytest.approx(1_001.0, abs=1.0)
    assert 10_000 == server.admin.zcard(keys[2])
    assert sum(server.admin.memory_usage(key, samples=0) or 0 for key in keys[2:]) < 300 * 10_000
    # They lapse a hundred a call, and the keys end by themselves.
    assert "FULL" == asking(now + 1_200.0, who="over")[0]
    assert 10_000 - 100 + 1 == server.admin.zcard(keys[2])
    assert {True} == {0 < server.admin.pttl(key) < 1_400_000 for key in keys[2:]}


def test_one_call_is_one_round_trip(make_app: MakeApp, own_server: Server, queue_name: str) -> None:
    """And one more a second, for what operators have set; who has no limiter makes none, and has no key."""
    app = make_app(redis_url=own_server.url)
    limiter = app.limiter(queue_name, Rate(100, per=60))
    limiter.acquire()
    before = own_server.admin.info("commandstats")
    for _ in range(10):
        limiter.acquire()
    after = own_server.admin.info("commandstats")

    calls = {
        name: after[name]["calls"] - before.get(name, {"calls": 0})["calls"]
        for name in ("cmdstat_evalsha", "cmdstat_hget")
    }
    assert {"cmdstat_evalsha": 10, "cmdstat_hget": 0} == calls
    assert [LimiterRef(queue_name, "").keys[0].encode()] == own_server.admin.keys()
