"""Numbers beside those of queues, for those that ask again and again: of processes, duties, limits, entries and tasks.

All are read in one round trip, and the items of open tasks, if there are any, in another one.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.operate.inspect.limits import QueueLimits, QueueLimitsReply
from lowkiq_lambda.operate.operations import Operations
from lowkiq_lambda.schedules.records import late_by, rows_by_entry, views
from lowkiq_lambda.store.shard.duty_claims import DutyState
from lowkiq_lambda.store.shard.entries import rows_in
from lowkiq_lambda.store.shard.heartbeats import processes_call, processes_in
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Reply, script
from lowkiq_lambda.store.shard.timetables import with_timetable
from lowkiq_lambda.tasks.items import counts_of
from lowkiq_lambda.tasks.operations import TaskOperations
from lowkiq_lambda.tasks.record import open_tasks_call, open_tasks_in
from lowkiq_lambda.tasks.views import Status
from lowkiq_lambda.views.processes import Process

MOST_TASKS: Final = 50
"""Of more open tasks the items are not counted: it would take the server milliseconds."""
Of = TypeVar("Of")
EntryState: TypeAlias = Literal["on", "off", "broken"]


class LimitUse(NamedTuple):
    """The limits of a queue that has any, and how much of them is in use; None: no such limit."""

    max_running: float | None
    running: int
    waiting_shards: int
    rate: float | None
    """Ids in a second."""
    ids_left: int | None


class EntryUse(NamedTuple):
    """The schedule entries of a queue that has any: how many by state; and seconds since the oldest missed time."""

    states: Mapping[EntryState, int]
    late: float


class TaskUse(NamedTuple):
    """How many tasks are open, and their items by status, unless there are too many to count."""

    open: int
    items: Mapping[Status, int]


class Gauges(NamedTuple):
    """The numbers; those that the server refused to tell are empty."""

    processes: Sequence[Process]
    duties: Sequence[DutyState]
    limits: Mapping[str, LimitUse]
    """By queue."""
    entries: Mapping[str, EntryUse]
    """By queue."""
    tasks: TaskUse | None
    put_off: Mapping[str, int]
    """Refusals, by limiter that the app declares."""


def read_gauges(operations: Operations, limited: Collection[str]) -> Gauges:
    """Read them; `limited`: the queues with limits that were set at run time. It raises none of the errors of Redis."""
    core = operations.core
    reader = ShardReader(core.backend, 0.0)
    looks = [look for look in operations.duty_looks() if look.duties]
    limits = {
        name: QueueLimits(reader, queue.worker)
        for name, queue in core.queues.items()
        if name in limited or queue.worker.max_running is not None or queue.worker.rate is not None
    }
    shards = [shard for queue in core.queues.values() for shard in with_timetable(queue.shards)]
    if not core.housekeeping.fires_schedules:
        shards = []
    prefix = core.backend.prefix
    calls = [processes_call(prefix), open_tasks_call(prefix, MOST_TASKS), *(look.call for look in looks)]
    calls += [each.look for each in limits.values()]
    calls += [(script("entry_records", shard.features), shard, ()) for shard in shards]
    replies = iter(core.backend.call_each(calls))
    listed, tasks = next(replies), next(replies)
    duties = [*zip(looks, replies, strict=False)]
    return Gauges(
        processes=[] if isinstance(listed, LowkiqError) else processes_in(listed),
        duties=[state for look, reply in duties if not isinstance(reply, LowkiqError) for state in look.states(reply)],
        limits={name: _use(reply) for name, reply in _answered(limits, replies)},
        entries=_entries(operations, [*_answered(shards, replies)]),
        tasks=None if isinstance(tasks, LowkiqError) else _tasks(operations, reader, tasks),
        put_off=_put_off(operations),
    )


def _put_off(operations: Operations) -> Mapping[str, int]:
    limiters = operations.limiters()
    try:
        counts = limiters[0].calls.refusals() if limiters else {}
    except LowkiqError:
        return {}
    return {limiter.name: counts.get(limiter.name, 0) for limiter in limiters}


def _answered(of_each: Iterable[Of], replies: Iterator[Reply | LowkiqError]) -> Iterator[tuple[Of, Reply]]:
    """Each with its reply, but those that got none."""
    for of, reply in zip(of_each, replies, strict=False):
        if not isinstance(reply, LowkiqError):
            yield of, reply


def _use(reply: Reply) -> LimitUse:
    parts = QueueLimitsReply.of(reply)
    return LimitUse(
        max_running=float(parts.most) if parts.most else None,
        running=sum(not one.is_offer for one in parts.taken),
        waiting_shards=len(parts.wait_list),
        rate=float(parts.ids) / float(parts.per) if parts.ids else None,
        ids_left=int(parts.left) if parts.left != b"" else None,
    )


def _entries(operations: Operations, replies: Sequence[tuple[ShardRef, Reply]]) -> Mapping[str, EntryUse]:
    """Those of the queues whose shards have answered."""
    rows = [row for shard, reply in replies for row in rows_in(shard, reply)]
    now = {shard.queue_name: operations.core.backend.now(shard) for shard, _ in replies}
    schedules = operations.schedules
    by_entry, uses = rows_by_entry(rows), dict[str, EntryUse]()
    for view in views((*schedules.declared, *schedules.broken), rows, now):
        states, late = uses.get(view.queue_name, EntryUse({"on": 0, "off": 0, "broken": 0}, 0.0))
        state: EntryState = "broken" if view.problem else "on" if view.is_on else "off"
        missed = None if view.problem else late_by(view, by_entry.get(view.key, []), now[view.queue_name])
        uses[view.queue_name] = EntryUse({**states, state: states[state] + 1}, max(late, missed or 0.0))
    return uses


def _tasks(operations: Operations, reader: ShardReader, reply: Reply) -> TaskUse | None:
    count, tasks = open_tasks_in(reply)
    if count > MOST_TASKS:
        return TaskUse(count, {})
    of_tasks = TaskOperations(operations.core, retry_for=0.0)
    try:
        return TaskUse(count, counts_of(reader, [of_tasks.items_of(task) for task in tasks]).by_status)
    except LowkiqError:
        return TaskUse(count, {})
