"""What programs of operators may do. Each call is bounded, and safe to send again.

What concerns a whole list is done in steps: an answer that is not the last has a `next`, which the next call is given
back. What has come since the first call is left alone, whenever the others come.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from lowkiq_lambda.dashboard import audit
from lowkiq_lambda.dashboard.api.asked import ChosenJobs, QueueName, worker_named
from lowkiq_lambda.dashboard.api.operations import Refused, Run
from lowkiq_lambda.dashboard.tickets import Ticket, packed, unpacked
from lowkiq_lambda.dashboard.visit import Visit
from lowkiq_lambda.store.actions import Act, Actions
from lowkiq_lambda.store.keys import ShardRef
from lowkiq_lambda.store.sweeps import prepare, steps

PATIENCE: Final = 5.0
"""Seconds after which an answer is given, done or not."""
LARGEST_NEXT: Final = 512 * 1024
"""Bytes of a `next`: a body may have twice that."""


class WholeList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All jobs of a list; or, with the `next` of an answer, those that are left."""

    queue: QueueName
    next: Annotated[str, Meta(description="Of the answer before.")] | msgspec.UnsetType = msgspec.UNSET
    limit: Annotated[int, Meta(ge=1, le=1_000_000, description="After about how many jobs an answer is given.")] = (
        10_000
    )


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


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """How far it is: of about `total` ids `handled` were looked at and `changed` changed, by all calls so far.

    `next`: to be sent with the next call; null where all is done.
    """

    total: int
    handled: int
    changed: int
    next: str | None


class Paused(msgspec.Struct, frozen=True):
    """Until when the queue is paused, in Unix seconds; null where it is not."""

    until: float | None


class Evicted(msgspec.Struct, frozen=True):
    """Whether the holder was evicted: not so where it held the shard no more."""

    evicted: bool


def delete_waiting(visit: Visit, asked: ChosenJobs) -> Changed:
    """Delete jobs that wait; what is in flight stays."""
    return _to_chosen(visit, asked, "delete", lambda actions: actions.delete(asked.ids))


def requeue(visit: Visit, asked: ChosenJobs) -> Changed:
    """Put jobs from the morgue back among those that wait, due now."""
    return _to_chosen(visit, asked, "requeue", lambda actions: actions.morgue_queue_up(asked.ids))


def delete_buried(visit: Visit, asked: ChosenJobs) -> Changed:
    """Delete jobs from the morgue."""
    return _to_chosen(visit, asked, "delete_buried", lambda actions: actions.morgue_delete(asked.ids))


def to_all(act: Act, name: str, about: str) -> Run[WholeList]:
    """What does the act to a whole list."""

    def run(visit: Visit, asked: WholeList) -> Step:
        return _step(visit, asked, act)

    run.__name__, run.__doc__ = name, about
    return run


expedite_all = to_all("expedite", "expedite_all", "Make jobs that wait for a later time due now, in their order.")
kill_all_failed = to_all("kill", "kill_all_failed", "Send jobs that wait and have failed to the morgue.")
delete_all_failed = to_all("delete_failed", "delete_all_failed", "Delete jobs that wait and have failed.")
requeue_all = to_all("requeue", "requeue_all", "Put all jobs from the morgue back among those that wait, due now.")
delete_all_buried = to_all("delete_buried", "delete_all_buried", "Delete all jobs from the morgue.")


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
    visit.app.actions(worker).resume()
    audit.note(visit, "resume", asked.queue, "all shards", worker.shards_count)
    return Paused(None)


def evict(visit: Visit, asked: Holder) -> Evicted:
    """Refuse all further writes of who holds a shard; it is free when the lease would have ended."""
    worker = worker_named(visit, asked.queue)
    if asked.shard >= worker.shards_count:
        raise Refused(HTTPStatus.NOT_FOUND, "The queue has no shard of that number.")
    shard = ShardRef(worker.queue_name, worker.shards_count, asked.shard)
    evicted = visit.app.actions(worker).evict(shard, asked.token)
    audit.note(visit, "evict", asked.queue, f"holder {asked.token} of shard {asked.shard}", int(evicted))
    return Evicted(evicted)


def _to_chosen(visit: Visit, asked: ChosenJobs, action: str, act: Callable[[Actions], int]) -> Changed:
    worker = worker_named(visit, asked.queue)
    changed = act(visit.app.actions(worker))
    audit.note(visit, action, asked.queue, f"{len(asked.ids)} selected", changed)
    return Changed(changed)


def _step(visit: Visit, asked: WholeList, act: Act) -> Step:
    actions = visit.app.actions(worker_named(visit, asked.queue))
    ticket = _ticket(asked, act) or Ticket(queue=asked.queue, sweep=prepare(actions, act))
    sweep, following = ticket.sweep, None
    changed, enough, ends_at = sweep.changed, sweep.handled + asked.limit, time.monotonic() + PATIENCE
    try:
        for at in steps(actions, sweep):
            sweep = at
            if sweep.is_done or (sweep.handled < enough and time.monotonic() < ends_at):
                continue
            following = packed(msgspec.structs.replace(ticket, sweep=sweep))
            # Long ids may wait for their turn in it; these come first, then.
            if len(following) <= LARGEST_NEXT:
                break
    except ValueError as error:
        raise Refused(HTTPStatus.CONFLICT, str(error)) from error
    finally:
        audit.note(visit, act, asked.queue, ticket.what, sweep.changed - changed)
    return Step(
        total=sweep.total,
        handled=sweep.handled,
        changed=sweep.changed,
        next=None if sweep.is_done else following,
    )


def _ticket(asked: WholeList, act: Act) -> Ticket | None:
    if isinstance(asked.next, msgspec.UnsetType):
        return None
    with suppress(ValueError):
        ticket = unpacked(asked.next)
        if (ticket.queue, ticket.sweep.act) == (asked.queue, act):
            return ticket
    raise Refused(HTTPStatus.NOT_FOUND, "There is no such action to go on with: give the `next` of its answer.")
