"""Read-only calls, which leave damaged records in place too."""

from collections import deque

from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.repair import Mender


class LookingBackend(Backend):
    """The connections of another backend. Of damage it raises ShardDamaged, and mends nothing."""

    def __init__(self, other: Backend) -> None:
        vars(self).update(vars(other))
        self._piggyback = deque()
        self._mender = _NoMender(other.clock, lambda *_: [], other.lease_ttl)


class _NoMender(Mender):
    def mend(self, shard: ShardRef) -> bool:
        """Never."""
        del shard
        return False
