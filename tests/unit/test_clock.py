"""The machine's clocks."""

import time

from lowkiq_lambda.base.clock import Clock, SystemClock


def test_system_clock_reads_both_clocks() -> None:
    """The system clock gives Unix seconds and a clock that does not go back."""
    clock: Clock = SystemClock()

    assert time.time() <= clock.time() <= time.time()
    assert clock.monotonic() <= clock.monotonic() <= time.monotonic()


def test_system_clock_lets_time_pass() -> None:
    """To sleep is to let at least that much time go by."""
    clock: Clock = SystemClock()
    begun_at = clock.monotonic()

    clock.sleep(0.001)

    assert clock.monotonic() - begun_at >= 0.001
