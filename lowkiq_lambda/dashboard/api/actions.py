"""What programs of operators may do to chosen jobs, to a queue, and to a holder. Each call is safe to send again."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated

import msgspec
from msgspec import Meta

from lowkiq_lambda.dashboard import audit
from lowkiq_lambda.dashboard.api.asked import ChosenJobs, QueueName, worker_named
from lowkiq_lambda.dashboard.api.operations import Refused
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.store.inspect.actions import Actions
from lowkiq_lambda.store.shard.keys import ShardRef


class Pause(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For how long; without `seconds` until the queue is resumed."""

    queue: QueueName
    seconds: Annotated[float, Meta(gt=0, le=1e9)] | msgspec.UnsetType = msgspec.UNSET


class WholeQueue(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A queue."""

    queue: QueueName


class Holder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who holds a shard, by the token that was seen."""

    queue: QueueName
    shard: Annotated[int, Meta(ge=0, le=2**31)]
    token: Annotated[int, Meta(ge=0, le=2**53)]


class Changed(msgspec.Struct, frozen=True):
    """How many ids were changed: those that were there, and had not come after the call."""

    changed: int


class Paused(msgspec.Struct, frozen=True):
    """Until when the queue is paused, in Unix seconds: the year 9999 where that has no end; null where it is not."""

    until: float | None


class Evicted(msgspec.Struct, frozen=True):
    """Whether the holder was evicted: not so where it held the shard no more."""

    evicted: bool


def delete_waiting(visit: Visit, asked: ChosenJobs) -> Changed:
    """Delete jobs that wait; what is in flight stays."""
    return _to_chosen(visit, asked, "delete", lambda actions: actions.delete(asked.ids))


def expedite(visit: Visit, asked: ChosenJobs) -> Changed:
    """Make jobs that wait for a later time due now, in their order."""
    return _to_chosen(visit, asked, "expedite", lambda actions: actions.perform_jobs_now(asked.ids))


def kill(visit: Visit, asked: ChosenJobs) -> Changed:
    """Send jobs that wait and have failed to the morgue; those that have not failed stay."""
    return _to_chosen(visit, asked, "kill", lambda actions: actions.kill_failed_jobs(asked.ids))


def requeue(visit: Visit, asked: ChosenJobs) -> Changed:
    """Put jobs from the morgue back among those that wait, due now."""
    return _to_chosen(visit, asked, "requeue", lambda actions: actions.morgue_queue_up(asked.ids))


def delete_buried(visit: Visit, asked: ChosenJobs) -> Changed:
    """Delete jobs from the morgue."""
    return _to_chosen(visit, asked, "delete_buried", lambda actions: actions.morgue_delete(asked.ids))


def pause(visit: Visit, asked: Pause) -> Paused:
    """Have nobody take a shard of the queue, for a time or until it is resumed; pushes go on."""
    worker = worker_named(visit, asked.queue)
    seconds = None if isinstance(asked.seconds, msgspec.UnsetType) else asked.seconds
    until = visit.app.actions(worker).pause(seconds)
    audit.note(visit, "pause", asked.queue, f"until {until:.0f}", worker.shards_count)
    return Paused(until)


def resume(visit: Visit, asked: WholeQueue) -> Paused:
    """End a pause, if there is one."""
    worker = worker_named(visit, asked.queue)
    paused = sum(shard.is_paused for shard in visit.app.queries(worker).shards())
    visit.app.actions(worker).resume()
    audit.note(visit, "resume", asked.queue, "all shards", paused)
    return Paused(None)


def evict(visit: Visit, asked: Holder) -> Evicted:
    """Refuse all further writes of who holds a shard; it is free when the lease would have ended."""
    worker = worker_named(visit, asked.queue)
    if asked.shard >= worker.shards_count:
        raise Refused(HTTPStatus.NOT_FOUND, "unknown_shard", "The queue has no shard of that number.")
    shard = ShardRef(worker.queue_name, worker.shards_count, asked.shard)
    evicted = visit.app.actions(worker).evict(shard, asked.token)
    audit.note(visit, "evict", asked.queue, f"holder {asked.token} of shard {asked.shard}", int(evicted))
    return Evicted(evicted)


def _to_chosen(visit: Visit, asked: ChosenJobs, action: str, act: Callable[[Actions], int]) -> Changed:
    worker = worker_named(visit, asked.queue)
    changed = act(visit.app.actions(worker))
    audit.note(visit, action, asked.queue, audit.selected(asked.ids), changed)
    return Changed(changed)
