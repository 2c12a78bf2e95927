"""Claims beside what is in flight: what is due and not there yet, while the holder's other batches run."""

import pytest

from lowkiq_lambda.base.errors import LeaseLost
from lowkiq_lambda.store.shard.session import ClaimLimits
from tests.kit.claimed_shard import TTL, ClaimedShard, ids_of
from tests.kit.holders import RETRY_FOR


def test_p1_what_is_new_comes_beside_what_runs(shard: ClaimedShard) -> None:
    """Outcomes are applied, what is not named stays in flight, the lease is kept, and only new ids are handed out."""
    shard.push("a", "b", "c")
    holder, left = shard.take(ids=2)
    del left["a"]

    claim = holder.write_more(left, ("a", "done"))

    assert ["c"] == ids_of(claim)
    state = shard.now()
    assert {"b", "c"} == state["flight"].keys()
    assert 1 == state["counters"]["done"]
    assert state["lease"][1:] == (shard.clock.time() + TTL, True)


def test_p1_a_repeat_hands_out_no_running_id(shard: ClaimedShard) -> None:
    """The answer was lost, and the repeat is answered with all that is in flight: only what is new there is taken."""
    shard.push("a", "b", "c")
    holder, left = shard.take(ids=2)
    del left["a"]
    holder.write_more(left, ("a", "done"))
    holder.forget_the_reply()
    shard.push("d")

    again = holder.write_more(left, ("a", "done"))

    assert ["c"] == ids_of(again)
    assert shard.clock.time() == holder.due_at
    assert {"b", "c"} == shard.now()["flight"].keys()


def test_p1_an_id_that_came_back_by_the_same_call_is_new_to_its_repeat_too(shard: ClaimedShard) -> None:
    """It is named, so its handler has ended; it is due at once, and is claimed by the call that gave it back."""
    shard.push("a", "b")
    holder, left = shard.take()
    del left["a"]
    assert ["a"] == ids_of(holder.write_more(left, ("a", "returned")))
    holder.forget_the_reply()
    assert ["a"] == ids_of(holder.write_more(left, ("a", "returned")))


def test_p1_p3_an_id_is_passed_over_while_an_earlier_chunk_runs(shard: ClaimedShard) -> None:
    """Its other payloads are due, and others that came later get their turn; it comes again once that chunk ended."""
    shard.push("a", payload=1)
    shard.push("a", payload=2)
    holder, left = shard.take(of_one=1)
    shard.push("b")

    assert ["b"] == ids_of(holder.write_more(left))
    assert ["a"] == list(shard.now()["waiting"])
    claim = holder.write_more({"b": shard.clock.time()}, ("a", "done"))

    assert claim
    assert [("a", [b"2"])] == [(one.id, [entry[14:] for entry in one.entries]) for one in claim.deliveries]


def test_p2_what_is_passed_over_goes_on_waiting(shard: ClaimedShard) -> None:
    """A newer payload of a running id is the first that is due: not it, but what was claimed leaves what waits."""
    shard.push("a", payload=1)
    holder, left = shard.take()
    shard.push("a", payload=2)
    shard.push("b", "c")

    assert ["b", "c"] == ids_of(holder.write_more(left))

    state = shard.now()
    assert ["a"] == list(state["waiting"])
    assert {"a", "b", "c"} == state["flight"].keys()
    holder.write_more({"b": 0.0, "c": 0.0}, ("a", "done"))
    assert {"a", "b", "c"} == shard.now()["flight"].keys()


def test_p6_nothing_is_claimed_beside_while_there_are_suspects(shard: ClaimedShard) -> None:
    """So flight runs dry, and then each of them runs with nothing beside it."""
    shard.push("a", "b")
    holder, left = shard.take()
    shard.push("c")
    del left["a"]

    assert [] == ids_of(holder.write_more(left, ("a", "suspected", 0)))
    assert holder.due_at is None
    assert {"b"} == shard.now()["flight"].keys()
    claim = holder.write([("b", "done")])

    assert claim
    assert ["a"] == ids_of(claim)
    assert claim.lone_suspect


def test_p6_nothing_is_claimed_beside_a_lone_suspect(shard: ClaimedShard) -> None:
    """It may be the last suspect, and what ends its holder must not be held against another."""
    shard.push("a")
    shard.take()
    shard.die()
    holder, left = shard.take()
    shard.operator.waiting.delete(["a"])
    shard.push("b")

    assert [] == ids_of(holder.write_more(left))
    assert holder.due_at is None


def test_a_pause_is_told_and_nothing_is_claimed(shard: ClaimedShard) -> None:
    """What has ended is written, and the lease is kept for what still runs."""
    shard.push("a", "b", "c")
    holder, left = shard.take(ids=2)
    del left["a"]
    shard.operator.pause(60.0)

    assert [] == ids_of(holder.write_more(left, ("a", "done")))

    assert "paused" == holder.stop_request
    state = shard.now()
    assert {"b"} == state["flight"].keys()
    assert ["c"] == list(state["waiting"])
    assert state["lease"][1:] == (shard.clock.time() + TTL, True)


def test_a_holder_that_is_to_let_go_claims_nothing_beside(shard: ClaimedShard) -> None:
    """An operator has asked it to."""
    shard.push("a", "b")
    holder, left = shard.take(ids=1)
    assert shard.operator.in_flight.quiet_holder(shard.shard, holder.token)
    assert [] == ids_of(holder.write_more(left))
    assert "quiet" == holder.stop_request


def test_a_started_job_goes_on_beside_others(shard: ClaimedShard) -> None:
    """It comes with its progress, and what was pushed for it meanwhile waits."""
    shard.push("a", "b")
    holder, left = shard.take()
    del left["a"]
    holder.write_more(left, ("a", "saved", b"so far"), ("a", "later", str(shard.clock.time() + 5.0), 1))
    shard.push("a", payload=2)
    assert [] == ids_of(holder.write_more(left))
    shard.clock.advance(5.0)

    claim = holder.write_more(left)

    assert claim
    assert [("a", b"so far", 1)] == [(one.id, one.progress, len(one.entries)) for one in claim.deliveries]
    assert ["a"] == list(shard.now()["waiting"])


def test_what_runs_may_save_its_progress_and_stay(shard: ClaimedShard) -> None:
    """A record of what it has saved is no outcome."""
    shard.push("a", "b")
    holder, left = shard.take(ids=1)
    assert ["b"] == ids_of(holder.write_more(left, ("a", "saved", b"so far")))
    assert {"a": "so far"} == shard.now()["progress"]
    assert {"a", "b"} == shard.now()["flight"].keys()


@pytest.mark.parametrize(
    ("limits", "claimed"),
    [
        (ClaimLimits(0, 100, 10_000), []),
        (ClaimLimits(2, 100, 10_000), ["b", "c"]),
        (ClaimLimits(10, 1, 10_000), ["b"]),
        (ClaimLimits(10, 0, 10_000), []),
        (ClaimLimits(10, 100, 20), ["b"]),
    ],
)
def test_a_claim_beside_keeps_its_limits(shard: ClaimedShard, limits: ClaimLimits, claimed: list[str]) -> None:
    """They count what is new; what else is due stays, and its time is told."""
    shard.push("a")
    holder, left = shard.take()
    shard.push("b", "c", "d")

    assert claimed == ids_of(holder.write_more(left, limits=limits))

    assert 3 - len(claimed) == len(shard.now()["waiting"])
    assert shard.clock.time() == holder.due_at


def test_the_next_time_is_of_an_id_that_could_be_claimed(shard: ClaimedShard) -> None:
    """Payloads of a running id are due, but wait for its end: they would have the holder ask again and again."""
    shard.push("a")
    holder, left = shard.take()
    shard.push("a", payload=2)
    assert [] == ids_of(holder.write_more(left))
    assert holder.due_at is None
    shard.push("b", after=60.0)
    assert [] == ids_of(holder.write_more(left))
    assert shard.clock.time() + 60.0 == holder.due_at


def test_p9_a_straggler_counts_for_the_lag_until_it_ends(shard: ClaimedShard) -> None:
    """However much is claimed beside it, and settled: the lag is that of the oldest in flight."""
    shard.push("slow")
    holder, left = shard.take()
    since = left["slow"]
    shard.push("a")
    holder.write_more(left)
    assert since == shard.now()["flight_since"]
    shard.push("b")
    holder.write_more(left, ("a", "done"))
    assert since == shard.now()["flight_since"]
    holder.write_more({"b": shard.clock.time()}, ("slow", "done"))
    assert shard.clock.time() == shard.now()["flight_since"]


def test_p9_an_older_id_that_comes_beside_counts_for_the_lag(shard: ClaimedShard) -> None:
    """It was not claimed before, as it did not fit."""
    shard.push("a")
    shard.push("b")
    holder, left = shard.take(ids=1)
    first = left.pop("a")
    assert ["a"] == ids_of(holder.write_more({}, ("a", "returned"), limits=ClaimLimits(1, 10, 1_000)))
    assert first == shard.now()["flight_since"]


def test_p9_a_save_leaves_the_lag_of_others(shard: ClaimedShard) -> None:
    """A job that comes further is no lag; what has run beside it for long is."""
    shard.push("slow", "a")
    holder, left = shard.take()
    shard.clock.advance(5.0)
    holder.checkpoint("a", b"1", clears=False, retry_for=RETRY_FOR, left_since=left["slow"])
    assert left["slow"] == shard.now()["flight_since"]
    holder.write_more({"a": shard.clock.time()}, ("slow", "done"))
    assert shard.clock.time() == shard.now()["flight_since"]


def test_p4_a_former_holder_claims_nothing(shard: ClaimedShard) -> None:
    """Neither its outcomes nor its claim count."""
    shard.push("a", "b")
    former, left = shard.take(ids=1)
    shard.die()
    shard.take()
    before = shard.now()
    with pytest.raises(LeaseLost):
        former.write_more(left, ("a", "done"))
    assert before == shard.now()


def test_p2_all_in_flight_is_recovered(shard: ClaimedShard) -> None:
    """Whether claimed at once or beside others."""
    shard.push("a", "b")
    holder, left = shard.take(ids=1)
    shard.push("c")
    holder.write_more(left)
    shard.die()
    _, lone = shard.take()
    assert ["a"] == list(lone)
    assert {"a", "b", "c"} == shard.now()["suspects"].keys()
