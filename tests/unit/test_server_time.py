"""What time it is on a node, between two measurements of it."""

import pytest

from lowkiq_lambda.store.shard.nodes import ServerTime
from lowkiq_lambda.testing import ManualClock


@pytest.mark.parametrize(("frozen", "set_back", "passed"), [(0.0, 0.0, 5.0), (600.0, 0.0, 605.0), (0.0, 3_600.0, 5.0)])
def test_an_estimate_goes_by_the_clock_that_tells_of_more_time(frozen: float, set_back: float, passed: float) -> None:
    """The monotonic clock stands still while a machine is frozen, and the wall clock may be set back."""
    clock = ManualClock()
    node = ServerTime(clock)
    node.observe(1_000.0, clock.monotonic())

    clock.advance(5.0)
    clock.set_wall(clock.time() + frozen - set_back)

    assert 1_000.0 + passed == node.estimate()
    assert (None if frozen or set_back else 1_000.0 + passed) == node.now()
