"""Wake-on-push by Lambda: the drain function is invoked for a shard that was idle.

`LOWKIQ_WAKE_FUNCTION` in a process that pushes is all that it takes; docs/waking.md tells what it costs.
"""

from typing import Final

from lowkiq_lambda.base.clock import Clock, SystemClock
from lowkiq_lambda.providers.aws.invoker import Invoker, LambdaUnreachable, shared_invoker

REST: Final = 60.0
"""Seconds for which Lambda's API is left alone after it could not be reached: no push is to wait for that again."""


class LambdaStarter:
    """Starts drains by invoking the function of that name or ARN. It may be a `Config(wake_function=...)`."""

    def __init__(self, function: str, invoker: Invoker | None = None, clock: Clock | None = None) -> None:
        self._function = function
        self._invoker = invoker or shared_invoker()
        self._clock = clock or SystemClock()
        self._rests_until: float | None = None

    def __call__(self, queue_name: str, shard: int) -> None:
        """Start a drain of the shard. Raises InvocationRefused."""
        if self._rests_until is not None and self._clock.monotonic() < self._rests_until:
            raise LambdaUnreachable(f"{self._function} is not tried: Lambda's API could not be reached just now.")
        try:
            self._invoker.invoke(self._function, {"queue": queue_name, "shard": shard})
        except LambdaUnreachable:
            self._rests_until = self._clock.monotonic() + REST
            raise
        self._rests_until = None
