"""How long batches of a queue take: for the size of the next claim, and to know what still fits."""

from typing import Final

import msgspec

MAX_IDS: Final = 1_000
"""The largest claim, in ids: more saves no round trips worth having, and makes recovery longer."""

_WEIGHT: Final = 0.1
"""Of the last batch in the mean."""
_DECAY: Final = 0.99
"""How fast the slowest batch is forgotten, for each batch since."""


class BatchTiming(msgspec.Struct):
    """Seconds a batch takes: `mean` as of late, and `slowest`, of the slowest one, which is forgotten by and by."""

    mean: float | None = None
    slowest: float = 0.0

    def observe(self, seconds: float) -> None:
        """Take in how long a batch took."""
        self.mean = seconds if self.mean is None else self.mean + _WEIGHT * (seconds - self.mean)
        self.slowest = max(seconds, self.slowest * _DECAY)

    def window(self, batch_size: int, ack_interval: float) -> int:
        """How many ids to claim, so that what is finished waits about `ack_interval` for its acknowledgement."""
        if self.mean is None:
            return batch_size
        batches = int(ack_interval / max(self.mean, 1e-9))
        return batch_size * max(1, min(batches, MAX_IDS // batch_size))

    def dump(self) -> str:
        """As it is kept in Redis, so that a cold start knows."""
        return f"{self.mean or 0.0:.6f} {self.slowest:.6f}"

    def adopt(self, dumped: str) -> None:
        """Take over what another process measured, where this one has measured nothing yet."""
        if self.mean is None and dumped:
            mean, _, slowest = dumped.partition(" ")
            self.mean, self.slowest = float(mean), float(slowest)
