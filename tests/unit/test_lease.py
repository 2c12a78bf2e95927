"""For how long a holder believes in its lease."""

import pytest

from lowkiq_lambda.engine.lease import MARGIN, Lease, LeaseRenewer, Moment
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.testing import ManualClock

TTL = 30.0


@pytest.fixture
def lease(clock: ManualClock) -> Lease:
    """A lease that has begun now."""
    return Lease(clock, TTL, Moment.now(clock))


def test_a3_a_clock_that_is_a_tenth_slower_than_the_servers_ends_trust_in_time(
    clock: ManualClock, lease: Lease
) -> None:
    """A3, P1: when the server has counted the whole TTL, the holder has no trust left."""
    clock.advance(TTL * (1 - MARGIN))

    assert 0.0 == lease.trust_left()


def test_trust_begins_anew_at_the_start_of_the_call_that_renewed(clock: ManualClock, lease: Lease) -> None:
    """The server began to count at the start of the call at the earliest; an older call changes nothing."""
    earlier = Moment.now(clock)
    clock.advance(10.0)
    started = Moment.now(clock)
    clock.advance(5.0)
    lease.renewed(started)
    lease.renewed(earlier)

    assert TTL * (1 - MARGIN) - 5.0 == pytest.approx(lease.trust_left())
    assert TTL / 3 - 5.0 == pytest.approx(lease.renewal_due_in())


def test_a_lost_lease_has_no_trust(lease: Lease) -> None:
    """The server has said that the shard has another holder."""
    lease.lose()

    assert 0.0 == lease.trust_left()


@pytest.mark.parametrize(
    ("stands_still", "redis_takes", "stalled"),
    [(0.0, 0.0, 0.0), (TTL / 3 - 0.1, 0.0, 0.0), (TTL / 3 + 0.1, 0.0, TTL / 3 + 0.1), (0.0, TTL, 0.0)],
)
def test_a_process_that_is_late_by_itself_to_renew_is_told_of(
    clock: ManualClock, lease: Lease, stands_still: float, redis_takes: float, stalled: float
) -> None:
    """From a third of the TTL on; a renewal that waits for Redis is not the process's fault, nor is the next one."""
    renewer = LeaseRenewer(clock.monotonic)
    with renewer.keep(ShardRef("queue", 1, 0), lease, lambda: clock.advance(redis_takes)):
        clock.advance(TTL / 3 + stands_still)
        renewer.renew_due()
        renewer.renew_due()
    renewer.end()

    assert stalled == pytest.approx(lease.stalled)


def test_a_stall_counts_if_the_batch_ends_before_the_thread_that_renews_looks(clock: ManualClock, lease: Lease) -> None:
    """After a freeze both threads go on, in any order."""
    renewer = LeaseRenewer(clock.monotonic)
    with renewer.keep(ShardRef("queue", 1, 0), lease, lambda: None):
        clock.advance(TTL)
    renewer.end()

    assert TTL * 2 / 3 == pytest.approx(lease.stalled)
