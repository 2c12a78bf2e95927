"""What an operator does to shards as a whole: pauses, their holders, what was set aside, and the journal."""

from collections.abc import Callable, Iterable, Sequence

from lowkiq_lambda.jobs.job import is_number
from lowkiq_lambda.operate.inspect.action_scripts import PauseReply
from lowkiq_lambda.operate.inspect.damaged_records import delete_damaged
from lowkiq_lambda.operate.inspect.jobs import UNLIMITED
from lowkiq_lambda.operate.inspect.journal_level import JournalLevel, set_journal_level
from lowkiq_lambda.operate.inspect.orders import order_each
from lowkiq_lambda.operate.inspect.tenant_pauses import pause_tenant
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.nodes import FOREVER
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Argument, StatusReply


class ShardActions:
    """The part of `Actions` that is about no jobs in particular. Raises BackendError where Redis cannot serve."""

    def __init__(self, reader: ShardReader) -> None:
        self.reader = reader

    def pause(self, seconds: float | None = None) -> float:
        """Let no drain take a shard of the queue for so long (None: until `resume`); the time when the pause ends.

        A holder claims nothing more. Pushes go on. A second call counts from its own time. Raises ValueError if
        `seconds` is not above 0.
        """
        return self._set_pause(_end_of_pause(seconds))

    def resume(self) -> None:
        """End a pause, if there is one."""
        self._set_pause(lambda _now: "")

    def pause_tenant(self, tenant: str, seconds: float | None = None) -> float:
        """Let nothing of the tenant be claimed for so long (None: until it is resumed); the time when the pause ends.

        What is in flight comes to its end, and so do suspects of the tenant, which run first. Other tenants go on. A
        second call counts from its own time. Raises ValueError if `seconds` is not above 0, if the worker declares no
        tenants, or for a name with a colon, which no tenant has.
        """
        return pause_tenant(self.reader, tenant, _end_of_pause(seconds))

    def resume_tenant(self, tenant: str) -> None:
        """End a pause of the tenant, if there is one. Raises ValueError if the worker declares no tenants."""
        pause_tenant(self.reader, tenant, lambda _now: "")

    def evict(self, shard: ShardRef | int, token: int) -> bool:
        """Refuse all further writes of the shard's holder, if it holds it under this token; whether it does.

        `shard` may be its number. The shard is free when the lease would have ended without a renewal, not before:
        until then a handler may still run. What is in flight counts as abandoned (docs/lease.md).
        """
        return self._to_holder("evict", shard, token)

    def quiet(self, shard: ShardRef | int, token: int) -> bool:
        """Ask the shard's holder to let go of it, if it holds it under this token; whether it does.

        `shard` may be its number. What runs comes to its end, nothing more is begun, and jobs that were claimed and not
        begun go back as they were. Anybody may take the shard then, the same process too.
        """
        return self._to_holder("quiet", shard, token)

    def _to_holder(self, name: str, shard: ShardRef | int, token: int) -> bool:
        reply = self.reader.backend.run(name, self._shard(shard), [str(token)], retry_for=self.reader.retry_for)
        return StatusReply.of(reply).status == b"OK"

    def repair(self) -> int:
        """Set aside all records of the queue that no script wrote; how many records were damaged.

        Drains and readers set aside the damaged records that they meet; this finds the others.
        """
        mender = self.reader.backend.mender
        return sum(mender.repair(shard) for shard in self.reader.shards)

    def delete_damaged(self, last: int | None = None) -> int:
        """Delete records that were set aside (see `queries.damaged`), up to a number; how many records were deleted."""
        return delete_damaged(self.reader, UNLIMITED if last is None else last)

    def journal(
        self, level: JournalLevel, seconds: float = 600.0, shards: Sequence[ShardRef | int] | None = None
    ) -> None:
        """Write pushes, claims and outcomes into the journal too for so long ("all"), or from now on not ("trouble").

        `shards` (None: all of the queue) may be their numbers. Raises ValueError if `seconds` is not above 0 or more
        than a day, and for what is no shard of the queue.
        """
        given: object = shards
        if not (given is None or isinstance(given, Iterable)):
            raise TypeError(f"shards are given as a list, not as one {type(given).__name__}")
        chosen = self.reader.shards if shards is None else [self._shard(shard) for shard in shards]
        set_journal_level(self.reader, level, seconds, chosen)

    def _notify(self, shard: ShardRef) -> None:
        """Say that the shard has work sooner than before."""
        self.reader.backend.publish(shard.channel, str(shard.number))

    def _shard(self, shard: ShardRef | int) -> ShardRef:
        given: object = shard
        shards = self.reader.shards
        if isinstance(given, ShardRef) and given in shards:
            return given
        if isinstance(given, int) and not isinstance(given, bool) and 0 <= given < len(shards):
            return shards[given]
        raise ValueError(f"A shard is one of the queue, or its number from 0 to {len(shards) - 1}, not {given!r}.")

    def _set_pause(self, until_of: Callable[[float], Argument]) -> float:
        reader, until = self.reader, until_of(self.reader.backend.now(self.reader.shards[0]))
        for shard, reply in order_each(reader, "pause", reader.shards, lambda _: [until]):
            if PauseReply.of(reply).due_at and not until:
                self._notify(shard)
        return float(until or 0)


def _end_of_pause(seconds: float | None) -> Callable[[float], Argument]:
    """When a pause that begins at a time ends. Raises ValueError if `seconds` is not above 0."""
    if seconds is not None and not (is_number(seconds) and seconds > 0):
        raise ValueError(f"seconds must be more than 0, or None for a pause without an end, not {seconds!r}.")
    # An int may be larger than any float.
    lasts = FOREVER if seconds is None else min(seconds, FOREVER)
    return lambda now: min(now + lasts, FOREVER)
