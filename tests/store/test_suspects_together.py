"""What a crash left, where batches run side by side: once more together, and alone only if that crashes too."""

import pytest

from lowkiq_lambda.operate.inspect.shard_details import explain_job
from lowkiq_lambda.store.shard.lease_replies import Acquired
from lowkiq_lambda.store.shard.session import ClaimLimits, Settlement
from tests.kit.claimed_shard import ClaimedShard, ids_of
from tests.kit.holders import LIMITS, RETRY_FOR, Holder

TOGETHER = ClaimLimits(10, 100, 10_000, concurrency=4)


def crash_once(shard: ClaimedShard, *ids: str) -> None:
    """A holder dies with all of these in flight."""
    shard.push(*ids)
    assert set(ids) == set(shard.take(concurrency=4)[1])
    shard.die()


def go_on(holder: Holder, limits: ClaimLimits = TOGETHER) -> list[str]:
    """All in flight is done; what comes next."""
    return ids_of(holder.settle(Settlement([], "claim", "0 0 0 0", 0), limits, retry_for=RETRY_FOR))


def test_p6_a_first_crash_costs_one_round(shard: ClaimedShard) -> None:
    """What the dead holder had comes together, and nothing else with it; then all is as before."""
    crash_once(shard, "a", "b", "c")
    shard.push("d")
    holder = shard.holders.new()
    acquired = holder.acquire("somebody", TOGETHER, RETRY_FOR)
    assert isinstance(acquired, Acquired)
    assert acquired.claim
    assert ["a", "b", "c"] == ids_of(acquired.claim)
    assert (False, None) == (acquired.claim.lone_suspect, acquired.claim.charge)
    assert all(delivery.repeated for delivery in acquired.claim.deliveries)
    assert ["d"] == go_on(holder)
    assert {} == shard.now()["suspects"] == shard.now()["trouble"]


def test_p6_what_crashed_together_runs_alone(shard: ClaimedShard) -> None:
    """One of them ends its holder: the next holders run them one by one, and three deaths more kill that one."""
    crash_once(shard, "a", "poison")
    shard.take(concurrency=4)
    shard.die()
    holder, left = shard.take(concurrency=4)
    assert ["a"] == list(left)
    assert ["poison"] == go_on(holder)
    dead: list[str] = []
    for _ in range(3):
        holder.start("poison", RETRY_FOR)
        shard.die()
        holder = shard.holders.new()
        acquired = holder.acquire("somebody", TOGETHER, RETRY_FOR)
        assert isinstance(acquired, Acquired)
        dead += [job_id for job_id, _ in acquired.dead]
    assert ["poison"] == dead
    assert ["poison"] == list(shard.now()["morgue"])


def test_p6_a_queue_without_concurrency_runs_what_crashed_one_by_one(shard: ClaimedShard) -> None:
    """Its holder never had but one batch under way."""
    crash_once(shard, "a", "b")
    holder, left = shard.take()
    assert ["a"] == list(left)
    assert ["b"] == go_on(holder, LIMITS)


def test_p6_people_are_told_of_what_may_run_together(shard: ClaimedShard) -> None:
    """From the crash on, in flight too; and neither of what crashed on it nor of what failed in company."""

    def told(job_id: str) -> tuple[int | None, bool, bool]:
        explanation = explain_job(shard.operator.reader, job_id, bytes.decode)
        return explanation.suspects_ahead, explanation.in_flight, explanation.runs_together

    crash_once(shard, "a", "b")
    assert [(None, True, True)] * 2 == [told("a"), told("b")]
    shard.take(ids=1, concurrency=4)
    assert [(0, True, True), (0, False, True)] == [told("a"), told("b")]
    shard.die()
    shard.take(ids=1, concurrency=4)
    assert [(0, True, False), (0, False, True)] == [told("a"), told("b")]


def test_p6_nothing_comes_beside_suspects_together(shard: ClaimedShard) -> None:
    """Neither what is due nor suspects of another kind, so that a crash is blamed on nothing else."""
    crash_once(shard, "a", "b")
    holder, left = shard.take(concurrency=4)
    shard.push("c")
    del left["a"]
    assert [] == ids_of(holder.write_more(left, ("a", "done"), limits=TOGETHER))
    assert holder.due_at is None
    assert ["c"] == go_on(holder)


def test_p6_suspects_of_a_failure_never_run_together(shard: ClaimedShard) -> None:
    """They failed together, and nobody was named: each is to run alone."""
    shard.push("a", "b", "c")
    holder, _ = shard.take(concurrency=4)
    outcomes = [("a", "suspected", 0), ("b", "suspected", 0), ("c", "done")]
    claim = holder.settle(Settlement(outcomes, "claim", "0 0 0 0", 0), TOGETHER, retry_for=RETRY_FOR)
    assert claim
    assert ["a"] == ids_of(claim)
    assert claim.lone_suspect


def test_p6_suspects_together_that_did_not_begin_stay_together(shard: ClaimedShard) -> None:
    """The visit ended before: the next holder gets it as this one did."""
    crash_once(shard, "a", "b", "c")
    holder, _ = shard.take(concurrency=4)
    holder.give_back(["b", "c"])
    assert ["b", "c"] == list(shard.take(concurrency=4)[1])


@pytest.mark.parametrize(("ids", "payloads"), [(2, 100), (10, 2)])
def test_p6_suspects_together_keep_the_limits_of_a_claim(shard: ClaimedShard, ids: int, payloads: int) -> None:
    """What does not fit comes with the next claim."""
    crash_once(shard, "a", "b", "c")
    holder = shard.holders.new()
    limits = ClaimLimits(ids, payloads, 10_000, concurrency=4)
    acquired = holder.acquire("somebody", limits, RETRY_FOR)
    assert isinstance(acquired, Acquired)
    assert ["a", "b"] == ids_of(acquired.claim)
    assert ["c"] == go_on(holder, limits)
