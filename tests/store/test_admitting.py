"""Permits of a limited queue, and ids that may begin: never one too many, and none is lost for long."""

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from random import Random
from typing import TypeAlias

import pytest

from lowkiq_lambda.base.errors import LeaseLost
from lowkiq_lambda.store.shard.admitting import NO_LIMITS, Full, Limits, visits_running
from lowkiq_lambda.store.shard.keys import QueueRef, notification_channel
from lowkiq_lambda.testing import ManualClock
from tests.kit.servers import Server
from tests.store.visitors import TTL, Visitor, Visitors, fullest

MakeVisitors: TypeAlias = Callable[..., Visitors]


class Left(BaseException):
    """The process has ended itself."""


@pytest.fixture
def make_visitors(server: Server, queue_name: str, clock: ManualClock) -> Iterator[MakeVisitors]:
    """Makes visitors of the queue, under these limits."""
    with ExitStack() as stack:

        def make(limits: Limits, shards: int = 4) -> Visitors:
            visitors = Visitors(server, queue_name, clock, limits, shards)
            stack.callback(visitors.close)
            return visitors

        yield make


def disturb(random: Random, visitor: Visitor) -> None:
    """One of the things that a visitor may do, or that may happen to it."""
    what = random.random()
    if what < 0.4:
        visitor.go_on(random.randint(1, 8), twice=random.random() < 0.3)
    elif what < 0.6:
        visitor.renew()
    elif what < 0.75:
        visitor.go()
    elif what < 0.8:
        visitor.lose()


@pytest.mark.parametrize("seed", range(6))
def test_x30_no_permit_and_no_id_too_many_whatever_happens(
    make_visitors: MakeVisitors, clock: ManualClock, seed: int
) -> None:
    """Visitors that die, oversleep, renew between, and send calls twice never have more than is allowed."""
    random = Random(seed)
    limits = Limits(random.randint(1, 3), random.randint(1, 12), random.choice([0.5, 2.0, 10.0, 60.0]))
    assert limits.permits is not None
    assert limits.ids is not None
    visitors, known = make_visitors(limits), list[Visitor]()
    begun: list[tuple[float, int]] = []
    most_permits = 0
    for _ in range(250):
        clock.advance(random.choice([0.0, 0.01, 0.1, limits.per / 10, limits.per / 3, TTL / 4, TTL * 0.9]))
        known = [visitor for visitor in known if visitor.permit.trust_left() > 0]
        if random.random() < 0.5:
            visitor = visitors.new(random.randrange(4))
            if visitor.come(random.randint(1, 8), random.choice([0.0, math.inf])) is None:
                known.append(visitor)
        elif known:
            disturb(random, random.choice(known))
        begun += [(clock.monotonic(), visitor.begin(random.choice([0, 1, 8]))) for visitor in known]
        most_permits = max(most_permits, sum(visitor.permit.trust_left() > 0 for visitor in known))

    assert 0 < most_permits <= limits.permits
    assert 0 < fullest(begun, limits.per) <= limits.ids


@pytest.mark.parametrize("per", [0.5, 2.0, 60.0])
def test_a_rate_is_used_up(make_visitors: MakeVisitors, clock: ManualClock, per: float) -> None:
    """Who asks whenever more may begin gets at least 85 % of what is allowed, whatever the size of the batches."""
    random, ids, began_at = Random(7), 20, clock.monotonic()
    visitor = make_visitors(Limits(None, ids, per)).new()
    visitor.come(1)
    begun: list[tuple[float, int]] = []
    while clock.monotonic() < began_at + 20 * per:
        begun.append((clock.monotonic(), visitor.begin(random.randint(1, 7))))
        clock.advance(random.choice([0.0, per / 100]))
        if not visitor.may_begin():
            visitor.go_on(20)
            if not visitor.may_begin():
                clock.advance(per / 100)

    assert fullest(begun, per) <= ids
    assert sum(count for _, count in begun) >= 0.85 * 20 * ids


def test_ids_that_did_not_begin_may_begin_elsewhere(make_visitors: MakeVisitors) -> None:
    """What is given back is free at once, and once only, though the call is sent twice."""
    visitors = make_visitors(Limits(None, 10, 60.0))
    one, other = visitors.new(0), visitors.new(1)
    one.come(10)
    one.begin(4)
    one.go_on(1, twice=True)
    other.come(10)

    assert (1, 5) == (one.may_begin(), other.may_begin())


@pytest.mark.parametrize("call", ["enter", "stay"])
def test_ids_that_are_promised_to_a_shard_begin_nowhere_else(
    make_visitors: MakeVisitors, clock: ManualClock, call: str
) -> None:
    """X-30: the id that goes with an offered permit is kept for the shard that was first, whoever asks."""
    visitors = make_visitors(Limits(None, 1, 10.0))
    one, in_line, late = visitors.new(0), visitors.new(1), visitors.new(2)
    one.come(1)
    one.begin(1)
    assert in_line.come(1) is not None
    for _ in range(8):
        clock.advance(11.5 / 8)
        one.renew()

    if call == "stay":
        one.go_on(1)
        assert (True, 0) == (one.permit.trust_left() > 0, one.may_begin())
    else:
        one.go()
        # The offer lasts a second: asking again before it ends would be in vain.
        assert late.come(1) == Full(1.0)

    assert in_line.come(1) is None
    assert 1 == in_line.may_begin()


@pytest.mark.parametrize("call", ["enter", "stay"])
def test_who_never_heard_what_it_was_granted_gives_all_of_it_back(make_visitors: MakeVisitors, call: str) -> None:
    """A visit that leaves after an answer was lost takes nothing from the rate but what has begun."""
    visitors = make_visitors(Limits(None, 10, 60.0))
    one, other = visitors.new(0), visitors.new(1)
    one.come(10)
    if call == "stay":
        one.begin(2)
        one.stay(8, one.left, 0.0)
    one._calls -= 1
    one.go()
    other.come(10)

    assert (10 if call == "enter" else 8) == other.may_begin()


def test_a_dead_visitor_frees_its_permit_by_itself(make_visitors: MakeVisitors, clock: ManualClock) -> None:
    """A permit is a time: nobody has to notice a death, and it is told how long to wait."""
    visitors = make_visitors(Limits(1))
    dead = visitors.new(0)
    dead.come()
    clock.advance(TTL - 1)
    told = visitors.new(1).come()
    clock.advance(1.0)

    assert Full(1.0) == told
    assert visitors.new(1).come() is None
    with pytest.raises(LeaseLost, match="has lost its permit"):
        dead.keep(0.0)


def test_permits_are_offered_in_the_order_of_the_wait_list(
    make_visitors: MakeVisitors, server: Server, queue_name: str
) -> None:
    """Who has waited longest is rung, and nobody else gets the permit meanwhile."""
    visitors = make_visitors(Limits(1))
    holder = visitors.new(0)
    holder.come()
    for shard in (2, 1):
        visitors.new(shard).come()
    with server.admin.pubsub() as bell:
        bell.subscribe(notification_channel(queue_name))
        bell.get_message(timeout=5.0)
        holder.go()
        rung = bell.get_message(timeout=5.0)
    entered = [visitors.new(shard).come() is None for shard in (1, 3, 2)]

    assert rung is not None
    assert b"offer 2" == rung["data"]
    assert [False, False, True] == entered


def test_an_offer_that_nobody_takes_lapses(make_visitors: MakeVisitors, clock: ManualClock) -> None:
    """A waiter that is gone costs the others a second, once."""
    visitors = make_visitors(Limits(1))
    holder = visitors.new(0)
    holder.come()
    visitors.new(1).come()
    holder.go()
    told = visitors.new(2).come()
    clock.advance(1.0)

    assert Full(1.0) == told
    assert visitors.new(2).come() is None


def test_who_does_not_wait_is_on_no_wait_list(make_visitors: MakeVisitors) -> None:
    """A permit that is free goes to whoever comes, where those before it went away for good."""
    visitors = make_visitors(Limits(1))
    holder = visitors.new(0)
    holder.come()
    visitors.new(1).come(patience=TTL - 1)
    holder.go()

    assert visitors.new(2).come() is None


def test_a_holder_hears_that_others_wait(make_visitors: MakeVisitors) -> None:
    """Also where it is one too many, as the limit has become smaller since it came."""
    visitors = make_visitors(Limits(2))
    holders = [visitors.new(shard) for shard in range(2)]
    for holder in holders:
        holder.come()
    before = holders[0].stay(1, 0, 0.0).waiting
    visitors.new(2).come()
    lowered = visitors.new(3, Limits(1))
    lowered.come()

    assert [0, 2] == [before, holders[0].keep(0.0).waiting]


@pytest.mark.parametrize("waiting_for", ["permits", "ids"])
def test_no_shard_waits_longer_than_its_turn(make_visitors: MakeVisitors, clock: ManualClock, waiting_for: str) -> None:
    """Of S shards that always have work each is visited once in S / permits visits, or as the rate allows."""
    shards, permits = 12, 2
    limits = Limits(permits) if waiting_for == "permits" else Limits(None, 2, 1.0)
    visitors = make_visitors(limits, shards)
    order: list[int] = []
    inside: dict[int, Visitor] = {}
    for _ in range(5 * shards):
        for index in range(shards):
            visitor = visitors.new(index)
            if index not in inside and visitor.come() is None:
                inside[index] = visitor
                order.append(index)
        clock.advance(0.5)
        for index in list(inside):
            inside.pop(index).go() if waiting_for == "permits" else inside.pop(index).leave(0.0, 0.0)
    gaps = [later - earlier for earlier, later in _visits_of_each(order)]

    assert set(range(shards)) == set(order)
    assert max(gaps) <= shards + permits


def _visits_of_each(order: list[int]) -> Iterator[tuple[int, int]]:
    """The positions of each two visits to the same shard that follow each other."""
    last: dict[int, int] = {}
    for position, shard in enumerate(order):
        if shard in last:
            yield last[shard], position
        last[shard] = position


def test_a_clock_that_was_ahead_keeps_nobody_out(make_visitors: MakeVisitors, clock: ManualClock) -> None:
    """When it is set right, permits and what has begun last for as long as they had left, and not an hour more."""
    visitors = make_visitors(Limits(1, 10, 60.0))
    clock.set_wall(clock.time() + 3_600)
    dead = visitors.new(0)
    dead.come(10)
    dead.begin(10)
    clock.set_wall(clock.time() - 3_600)
    refused = [visitors.new(1).come(patience=0.0)]
    clock.advance(TTL)
    refused.append(visitors.new(1).come(patience=0.0))
    clock.advance(61.0 - TTL)

    assert [Full(61.0), Full(61.0 - TTL)] == refused
    assert visitors.new(1).come() is None


def test_a_caller_whose_time_is_old_measures_again(make_visitors: MakeVisitors, clock: ManualClock) -> None:
    """A caller that is a little behind goes by the latest time that the queue has seen: nothing ends later for it."""
    visitors = make_visitors(Limits(1))
    visitors.new(0).come()
    clock.set_wall(clock.time() - 0.5)

    assert Full(TTL) == visitors.new(1).come()


def test_two_versions_go_by_their_own_limits(make_visitors: MakeVisitors) -> None:
    """While a deploy is under way the older code allows what it declares."""
    visitors = make_visitors(Limits(1))
    entered = [visitors.new(shard, Limits(permits)).come() is None for shard, permits in enumerate((1, 2, 1, 2))]

    assert [True, True, False, False] == entered


def test_x32_a_queue_tells_whether_visits_run(make_visitors: MakeVisitors, queue_name: str, clock: ManualClock) -> None:
    """For those who wait for it; without a limit each visit has a permit."""
    visitors = make_visitors(NO_LIMITS)
    before = visits_running(visitors.backend, queue_name, 0.0)
    holders = [visitors.new(shard) for shard in range(3)]
    for holder in holders:
        holder.come()
        clock.advance(1.0)
    during = visits_running(visitors.backend, queue_name, 0.0)
    for holder in holders:
        holder.go()

    assert ((0, 0.0), (3, TTL - 1)) == (before, during)
    assert (0, 0.0) == visits_running(visitors.backend, queue_name, 0.0)


def test_what_cannot_be_read_is_no_permit_and_uses_up_the_rate(
    make_visitors: MakeVisitors, server: Server, queue_name: str, clock: ManualClock
) -> None:
    """Damage lets nobody begin sooner, and holds nobody up for longer than the rate does."""
    visitors, queue = make_visitors(Limits(1, 5, 2.0)), QueueRef(queue_name)
    server.admin.hset(queue.key("permits"), "somebody", b"\xc1")
    server.admin.hset(queue.key("limits"), "log", b"\xc1")
    refused = visitors.new(0).come()
    clock.advance(2.2)

    assert Full(2.2) == refused
    assert visitors.new(0).come() is None


def test_a_full_server_admits_and_lets_go(
    make_server: Callable[[], Server], queue_name: str, clock: ManualClock
) -> None:
    """What frees memory must run when there is none."""
    own = make_server()
    visitors = Visitors(own, queue_name, clock, Limits(1, 5, 2.0))
    visitors.new(0).come(patience=0.0)
    own.admin.config_set("maxmemory", 1)
    visitor = visitors.new(1)
    clock.advance(TTL)

    assert visitor.come() is None
    visitor.go_on(2)
    visitor.go()
    assert (0, 0.0) == visits_running(visitors.backend, queue_name, 0.0)
    visitors.close()


@pytest.mark.parametrize("call", [lambda one: one.go_on(1), Visitor.renew, Visitor.go], ids=["stay", "keep", "leave"])
def test_a_process_that_was_forked_has_no_permit(
    make_visitors: MakeVisitors, monkeypatch: pytest.MonkeyPatch, call: Callable[[Visitor], None]
) -> None:
    """It ends at its first call, before that is made: its parent has the permit."""
    visitors = make_visitors(Limits(1))
    visitor = visitors.new()
    assert visitor.come() is None

    def leave(_error: BaseException | None) -> None:
        raise Left

    monkeypatch.setattr("lowkiq_lambda.base.forks._leave", leave)
    calls: list[object] = []
    monkeypatch.setattr(visitors.backend, "call", lambda *call, **_: calls.append(call))
    monkeypatch.setattr(visitor, "_pid", -1)
    with pytest.raises(Left):
        call(visitor)
    assert [] == calls
