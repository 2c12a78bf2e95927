"""Operations that change given jobs, a queue, a holder or a process. Each is idempotent."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from lowkiq_lambda.dashboard import activity, durations
from lowkiq_lambda.dashboard.api.operations import ApiError, NoParams
from lowkiq_lambda.dashboard.api.requests import JobIds, QueueAct, ReasonedAct, worker_named
from lowkiq_lambda.dashboard.context import RequestContext
from lowkiq_lambda.dashboard.orders import NO_PROCESS, give
from lowkiq_lambda.dashboard.undoing import undo_action
from lowkiq_lambda.operate.acts.bulk_progress import Changed
from lowkiq_lambda.operate.acts.forgetting import ALL_KEYS, FORGET_KEYS, forget
from lowkiq_lambda.operate.acts.undoing import UndoableAction, undoable_in_all
from lowkiq_lambda.operate.presentation.formatting import selected
from lowkiq_lambda.operate.presentation.queues import ForgottenKeys, ForgottenTiming, Paused
from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.push.checking import MAX_KEY_BYTES
from lowkiq_lambda.views.activity import need_reason
from lowkiq_lambda.views.processes import Process


class Pause(QueueAct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pause; without `seconds` it has no end."""

    seconds: Annotated[float, Meta(gt=0, le=1e9)] | msgspec.UnsetType = msgspec.UNSET


class Holder(QueueAct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The holder of a shard, identified by its token."""

    shard: Annotated[int, Meta(ge=0, le=2**31)]
    token: Annotated[int, Meta(ge=0, le=2**53)]


class Unblocked(JobIds, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Blocked jobs of one queue. `how`: "retry" tries their oldest payloads again, "skip" sends them to the morgue."""

    how: Literal["retry", "skip"] = "retry"


class Deletion(JobIds, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Jobs of one queue. `forget_keys`: their keys are forgotten, so that jobs with them can be pushed again."""

    forget_keys: bool = False


class ForgetKeys(JobIds, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All keys of these ids, or the one `key` of each. More than 100 ids need a `reason`."""

    key: Annotated[str, Meta(min_length=1, max_length=MAX_KEY_BYTES)] | msgspec.UnsetType = msgspec.UNSET


class ChangedJobs(msgspec.Struct, frozen=True):
    """The number of changed ids. Jobs that were pushed after the call do not change.

    `action_id`: POST actions/{id}/undo takes the action back, for ten minutes, for `undoable` of the ids; null if it
    cannot. `paused`: how many more did not change, as they are paused.
    """

    changed: int
    action_id: str | None
    undoable: int
    paused: int


class OneAction(ReasonedAct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An action, by its id."""

    id: Annotated[str, Meta(min_length=1, max_length=100, description="The `action_id` of a response.")]


class UndoResult(msgspec.Struct, frozen=True, kw_only=True):
    """The ids that are as they were, and how many were skipped, by the reason: they have run or changed since.

    `action_id`: by this id the undo itself can be undone; null if it cannot.
    """

    queue: str
    restored: int
    skipped: dict[str, int]
    action_id: str | None


class UndoableActions(msgspec.Struct, frozen=True, kw_only=True):
    """The actions of the last ten minutes that can be undone, by queue, the newest first."""

    actions: dict[str, list[UndoableAction]]


class Evicted(msgspec.Struct, frozen=True):
    """Whether the holder was evicted; false if it no longer held the shard."""

    evicted: bool


def delete_waiting(context: RequestContext, params: Deletion) -> ChangedJobs:
    """Delete waiting jobs. Jobs in flight stay."""
    return _to_chosen(
        context, params, "delete", lambda queue: queue.waiting.delete(params.ids, forget_keys=params.forget_keys)
    )


def run_now(context: RequestContext, params: JobIds) -> ChangedJobs:
    """Make waiting jobs due now, in their order."""
    return _to_chosen(context, params, "run_now", lambda queue: queue.waiting.run_now(params.ids))


def kill(context: RequestContext, params: JobIds) -> ChangedJobs:
    """Kill waiting jobs that have failed. Jobs that have not failed stay."""
    return _to_chosen(context, params, "kill", lambda queue: queue.waiting.kill(params.ids))


def unblock(context: RequestContext, params: Unblocked) -> ChangedJobs:
    """Let blocked jobs go on. Jobs that are not blocked stay."""
    action = "unblock" if params.how == "retry" else "unblock_skipping"
    return _to_chosen(context, params, action, lambda queue: queue.unblock(params.ids, params.how))


def requeue(context: RequestContext, params: JobIds) -> ChangedJobs:
    """Requeue jobs from the morgue, due now."""
    return _to_chosen(context, params, "requeue", lambda queue: queue.morgue.requeue(params.ids))


def delete_dead(context: RequestContext, params: Deletion) -> ChangedJobs:
    """Delete jobs from the morgue."""
    return _to_chosen(
        context, params, "delete_dead", lambda queue: queue.morgue.delete(params.ids, forget_keys=params.forget_keys)
    )


def undoable(context: RequestContext, params: NoParams) -> UndoableActions:
    """The actions on jobs that can be undone."""
    del params
    by_queue = undoable_in_all(context.app.core)
    return UndoableActions(actions={name: actions for name, actions in by_queue.items() if actions})


def undo(context: RequestContext, params: OneAction) -> UndoResult:
    """Take back an action on jobs, for ten minutes. Ids that have run or changed since stay as they are."""
    try:
        queue, undone = undo_action(context, params.id)
    except ValueError as error:
        raise ApiError(HTTPStatus.NOT_FOUND, "unknown_action", str(error)) from error
    except PermissionError as error:
        raise ApiError(HTTPStatus.FORBIDDEN, "forbidden", str(error)) from error
    return UndoResult(
        queue=queue, restored=undone.restored, skipped=dict(undone.skipped), action_id=undone.action_id or None
    )


def pause(context: RequestContext, params: Pause) -> Paused:
    """Pause the queue for a time or until it is resumed. Drains acquire none of its shards; clients can still push."""
    worker = worker_named(context, params.queue)
    seconds = None if isinstance(params.seconds, msgspec.UnsetType) else params.seconds
    queue = context.app.operate(worker)
    until = queue.pause(seconds)
    activity.note(context, "pause", params.queue, durations.in_words(seconds), len(queue.reader.shards))
    return Paused(paused=True, until=None if seconds is None else until)


def resume(context: RequestContext, params: QueueAct) -> Paused:
    """Resume the queue if it is paused."""
    worker = worker_named(context, params.queue)
    paused = sum(shard.is_paused for shard in context.app.operate(worker).shards())
    context.app.operate(worker).resume()
    activity.note(context, "resume", params.queue, "all shards", paused)
    return Paused(paused=False, until=None)


def forget_timing(context: RequestContext, params: QueueAct) -> ForgottenTiming:
    """Forget how long batches took until now: drains leave no time unused for one that was far slower than usual."""
    queue = context.app.operate(worker_named(context, params.queue))
    queue.forget_timing()
    activity.note(context, "forget timing", params.queue, "all shards", len(queue.reader.shards))
    return ForgottenTiming(queue=params.queue)


def forget_keys(context: RequestContext, params: ForgetKeys) -> ForgottenKeys:
    """Forget keys of jobs, so that jobs with them can be pushed again. Jobs that wait or run stay."""
    queue = context.app.operate(worker_named(context, params.queue))
    need_reason(params.reason, len(params.ids))
    key = "" if isinstance(params.key, msgspec.UnsetType) else params.key
    forgotten = forget(queue.reader, params.ids, key)
    activity.note(context, FORGET_KEYS, params.queue, selected(params.ids), forgotten)
    return ForgottenKeys(queue=params.queue, forgotten=forgotten)


def forget_all_keys(context: RequestContext, params: QueueAct) -> ForgottenKeys:
    """Forget all keys of the queue's jobs. Jobs that wait or run stay."""
    forgotten = context.app.operate(worker_named(context, params.queue)).forget_all_keys()
    activity.note(context, FORGET_KEYS, params.queue, ALL_KEYS, forgotten)
    return ForgottenKeys(queue=params.queue, forgotten=forgotten)


def evict(context: RequestContext, params: Holder) -> Evicted:
    """Reject all further writes of a shard's holder. The shard is free when the lease ends."""
    worker = worker_named(context, params.queue)
    queue = context.app.operate(worker)
    if params.shard >= len(queue.reader.shards):
        raise ApiError(HTTPStatus.NOT_FOUND, "unknown_shard", "The queue has no shard of this number.")
    evicted = queue.in_flight.evict_holder(params.shard, params.token)
    activity.note(context, "evict", params.queue, f"holder {params.token} of shard {params.shard}", int(evicted))
    return Evicted(evicted)


def _to_chosen(
    context: RequestContext, params: JobIds, action: str, act: Callable[[QueueOperations], Changed]
) -> ChangedJobs:
    worker = worker_named(context, params.queue)
    need_reason(params.reason, len(params.ids))
    changed = act(context.app.operate(worker))
    activity.note(context, action, params.queue, selected(params.ids), int(changed), action_id=changed.action_id)
    return ChangedJobs(int(changed), changed.action_id or None, changed.undoable, changed.paused)


class ProcessParams(ReasonedAct, frozen=True, kw_only=True):
    """One process."""

    id: Annotated[str, Meta(min_length=1, max_length=1_000, description="The id of a process, as listed.")]


class ProcessesResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Those that live first, by host and age, then those that are gone. Times are Unix seconds."""

    processes: list[Process]


class OrderedResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The order was noted; the process hears it with its next heartbeat."""

    order: Literal["quiet", "stop"]


def processes(context: RequestContext, params: NoParams) -> ProcessesResponse:
    """Get the daemons and invocations that drain, each as of its last heartbeat. Those of other apps are among them."""
    del params
    return ProcessesResponse(processes=[*context.app.operate.processes()])


def quiet(context: RequestContext, params: ProcessParams) -> OrderedResponse:
    """Have a process begin nothing new: a daemon stays until it is stopped, an invocation ends."""
    return _ordered(context, params, "quiet")


def stop(context: RequestContext, params: ProcessParams) -> OrderedResponse:
    """Have a process end; what it runs comes to its end."""
    return _ordered(context, params, "stop")


def _ordered(context: RequestContext, params: ProcessParams, order: Literal["quiet", "stop"]) -> OrderedResponse:
    if not give(context, params.id, order):
        raise ApiError(HTTPStatus.NOT_FOUND, "unknown_process", NO_PROCESS)
    return OrderedResponse(order=order)
