"""Visits to limited queues that only have a permit: what others see of them."""

from uuid import uuid4

from lowkiq_lambda import Lowkiq, Worker
from lowkiq_lambda.store.shard.admitting import Admitted, Full, Limits, PermitSession


def visit_permit(app: Lowkiq, worker: type[Worker], index: int, ttl: float = 30.0) -> PermitSession:
    """A visit to that shard, which may ask for a permit."""
    rate, shard = worker.rate, app.core.queues.agreed(worker).shards[index]
    limits = Limits(worker.max_running) if rate is None else Limits(worker.max_running, rate.ids, rate.per)
    return PermitSession(app.core.backend, shard, uuid4().hex, limits, ttl)


def come(app: Lowkiq, worker: type[Worker], *indexes: int, want: int = 1) -> list[Admitted | Full]:
    """A visit to each of these shards asks for a permit and ids, and would wait for long: what each is told."""
    return [visit_permit(app, worker, index).enter(want, 3_600.0, 1.0) for index in indexes]
