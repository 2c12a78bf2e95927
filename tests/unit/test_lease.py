"""For how long a holder believes in its lease."""

import pytest

from lowkiq_lambda.engine.lease import MARGIN, Lease, Moment
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
