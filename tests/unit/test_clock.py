"""The machine's clocks."""

import time

from lowkiq_lambda.clock import Clock, SystemClock


def test_system_clock_reads_both_clocks() -> None:
    """The system clock gives Unix seconds and a clock that does not go back."""
    clock: Clock = SystemClock()

    assert abs(clock.time() - time.time()) < 1
    assert clock.monotonic() <= clock.monotonic() <= time.monotonic()
