"""Sets aside records of a shard that a script, or this library, cannot read. Loaded only after such a record."""

import logging
import math
import struct
from collections.abc import Callable
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from lowkiq_lambda.base.clock import Clock
from lowkiq_lambda.base.errors import LowkiqError, ShardDamaged
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.scripts import ReplyShape

logger = logging.getLogger(__name__)

LOOK_AGAIN: Final = 60.0
"""Seconds after a look without damage in which there is no other look: it takes as long as the shard is large."""
_UNREADABLE: Final = (ValueError, TypeError, LookupError, struct.error, msgspec.MsgspecError)
"""The errors of a reader that meets a broken record."""

Result = TypeVar("Result")
Step: TypeAlias = Callable[[ShardRef, list[Any], float], list[Any]]
"""Calls repair.lua: the shard, the arguments, and the seconds of retries."""


class RepairReply(ReplyShape, frozen=True):
    """The reply of repair.lua: the key and cursor to go on with, and the damage."""

    scripts = ("repair",)
    status: bytes
    part: bytes
    cursor: bytes
    recounts: bytes
    damaged: int
    notes: list[bytes]
    """Of each record four: key, field, why, and whether it was set aside."""


class Mender:
    """Mends shards, whole ones, when something in them was found to be damaged."""

    def __init__(self, clock: Clock, step: Step, lease_ttl: float) -> None:
        self._clock = clock
        self._step = step
        self._lease_ttl = lease_ttl
        self._in_vain: dict[ShardRef, float] = {}

    def mend(self, shard: ShardRef) -> bool:
        """Set aside what is damaged; whether something was, so that another try is worth it."""
        now = self._clock.monotonic()
        if self._in_vain.get(shard, -math.inf) > now - LOOK_AGAIN:
            return False
        try:
            damaged = self.repair(shard)
        except LowkiqError as error:
            logger.warning("shard %s of %s could not be repaired: %s", shard.number, shard.queue_name, error)
            return False
        if not damaged:
            self._in_vain[shard] = now
        return damaged > 0

    def read_again(self, error: Exception, shard: ShardRef, parse: Callable[[], Result]) -> Result:
        """The result of `parse` after a repair. Raises ShardDamaged, or the error if it is not a sign of damage."""
        if not isinstance(error, _UNREADABLE):
            raise error
        if not self.mend(shard):
            raise ShardDamaged from error
        try:
            return parse()
        except LowkiqError:
            raise
        except _UNREADABLE as again:
            raise ShardDamaged from again

    def repair(self, shard: ShardRef) -> int:
        """Look through the whole shard, and tell the log what was damaged; how many records that were.

        Raises BackendError, QueueMismatch.
        """
        part, cursor, recounts = b"", b"", b""
        damaged = 0
        while True:
            args = [self._lease_ttl, part, cursor, recounts]
            step = RepairReply.of(self._step(shard, args, self._lease_ttl))
            part, cursor, recounts, notes = step.part, step.cursor, step.recounts, step.notes
            damaged += step.damaged
            for at in range(0, len(notes), 4):
                _tell(shard, *notes[at : at + 4])
            if step.damaged > len(notes) // 4:
                more = step.damaged - len(notes) // 4
                logger.warning("%s more damaged records: shard %s of %s", more, shard.number, shard.queue_name)
            if not part:
                return damaged


def _tell(shard: ShardRef, key: bytes, field: bytes, why: bytes, value: bytes) -> None:
    became = "set aside" if value else "repaired"
    texts = [part.decode(errors="backslashreplace") for part in (key, field, why)]
    logger.warning(
        "a damaged record was %s: %s of shard %s of %s, %r: %s",
        *(became, texts[0], shard.number, shard.queue_name, *texts[1:]),
        extra={"queue": shard.queue_name, "shard": shard.number, "key": texts[0], "id": texts[1], "became": became},
    )
