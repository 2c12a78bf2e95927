"""One shard, whoever holds it, and a look at it, at times that the test makes."""

from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.layout import only
from lowkiq_lambda.store.shard.lease_replies import Acquired, StoredClaim
from lowkiq_lambda.store.shard.nodes import GivenTime
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.session import ClaimLimits
from lowkiq_lambda.testing import ManualClock
from tests.kit.holders import RETRY_FOR, Holder, Holders
from tests.kit.operators import operator_of
from tests.kit.servers import Server
from tests.kit.stored import State, stored

TTL = 30.0


class ClaimedShard:
    """One shard, whoever holds it, and a look at it."""

    def __init__(self, server: Server, queue_name: str) -> None:
        self.clock = ManualClock()
        self.shard = ShardRef(queue_name, 1, 0)
        self.holders = Holders(server.url, self.shard, ttl=TTL, clock=self.clock, new_time=GivenTime)
        reader = ShardReader(self.holders.backend, RETRY_FOR, only(self.shard))
        self.operator = operator_of(reader)
        self._server = server

    def push(self, *ids: str, payload: object = 1, after: float = 0.0) -> None:
        """One payload for each of the ids, a second after what came before."""
        self.clock.advance(1.0)
        at = self.clock.time() + after
        self.holders.push([{"id": job_id, "payload": payload, "due_at": at} for job_id in ids])

    def take(self, ids: int = 10, of_one: int = 0, concurrency: int = 1) -> tuple[Holder, dict[str, float]]:
        """A holder, and what it got, with the time since when each waits."""
        holder = self.holders.new()
        acquired = holder.acquire("somebody", ClaimLimits(ids, 100, 10_000, of_one, concurrency), RETRY_FOR)
        assert isinstance(acquired, Acquired)
        assert acquired.claim
        return holder, {one.id: one.due_at for one in acquired.claim.deliveries}

    def now(self) -> State:
        """The shard."""
        return stored(self._server.admin, self.shard)

    def die(self) -> None:
        """The holder is gone, and its lease has ended."""
        self.clock.advance(TTL + 1)
        self._server.admin.delete(self.shard.key("lease"))


def ids_of(claim: StoredClaim | None) -> list[str]:
    """What the holder got."""
    return [delivery.id for delivery in claim.deliveries] if claim else []
