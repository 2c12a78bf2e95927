"""A process whose clocks are wrong, and that asks limiters as often as it can; it prints the nonces of its grants.

`python -m tests.limiters.skewed_child URL NAME NUMBER SECONDS LIMIT PER KEYS`
"""

import sys
import time
from typing import Any

_HOURS = 3600.0
_RUNS_FAST = 0.0005
"""What a clock that is being set right gains in a second, at most."""


def _set_wrong(number: int) -> None:
    """Before the library is imported: the wall clock is hours off, and both clocks run fast, or slow."""
    wall, monotonic, speed = time.time, time.monotonic, 1.0 + (number % 3 - 1) * _RUNS_FAST
    began = wall(), monotonic()
    time.time = lambda: began[0] + (wall() - began[0]) * speed + (number - 4) * _HOURS
    time.monotonic = lambda: began[1] + (monotonic() - began[1]) * speed


def main(url: str, name: str, *numbers: str) -> None:
    """Ask until the time is over."""
    number, most, keys = (int(numbers[place]) for place in (0, 2, 4))
    seconds, per = float(numbers[1]), float(numbers[3])
    _set_wrong(number)
    from unittest.mock import patch  # noqa: PLC0415 - the clocks are set before

    from lowkiq_lambda import Config, Grant, Lowkiq, Rate  # noqa: PLC0415 - as above

    nonce = ""

    class Named:
        """In place of a random id."""

        @property
        def hex(self) -> str:
            """The next one."""
            return nonce

    app = Lowkiq(Config(redis_url=url, client_pool_size=1))
    limiter, calls = app.limiter(name, Rate(most, per=per)), 0
    with patch("lowkiq_lambda.limiters.limiter.uuid4", Named):
        sys.stdin.readline()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            calls += 1
            nonce = f"{number}-{calls}"
            answer: Any = limiter.try_acquire(f"key-{calls % keys}")
            if isinstance(answer, Grant):
                sys.stdout.write(f"{nonce}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
