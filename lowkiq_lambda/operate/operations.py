"""`app.operate`: what operators see of all queues of an app, and do to them."""

from typing import TYPE_CHECKING, Final, Literal, Unpack, overload

import msgspec

from lowkiq_lambda.declare.worker import AnyWorker, worker_of
from lowkiq_lambda.jobs.job import id_text
from lowkiq_lambda.store.shard.layout import QueueShards

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from contextlib import AbstractContextManager

    from lowkiq_lambda.core import Core
    from lowkiq_lambda.operate.audit.auditor import AuditReport
    from lowkiq_lambda.operate.inspect.actions import Actions
    from lowkiq_lambda.operate.inspect.id_filter import Wanted
    from lowkiq_lambda.operate.inspect.inspector import Inspector
    from lowkiq_lambda.operate.inspect.limits import QueueLimits
    from lowkiq_lambda.operate.inspect.processes import Processes
    from lowkiq_lambda.operate.inspect.queries import Queries
    from lowkiq_lambda.operate.inspect.redrive_terms import RedriveOptions
    from lowkiq_lambda.operate.inspect.redriving import RedrivePreview
    from lowkiq_lambda.reshard.resharding import Resharding
    from lowkiq_lambda.schedules.schedules import Schedules
    from lowkiq_lambda.store.shard.duty_claims import DutyState
    from lowkiq_lambda.views.errors import ErrorGrouping, ErrorGroups
    from lowkiq_lambda.views.journal import Recovered
    from lowkiq_lambda.views.queues import FoundIds, MetricsByQueue, Overview, Span, Stats


class Operations:
    """The queues of one app, for operators and for the dashboard and the command line that they use."""

    def __init__(self, core: "Core", schedules: "Callable[[], Schedules]") -> None:
        self.core: Final = core
        """What code below the face needs; private."""
        self._schedules = schedules

    @property
    def schedules(self) -> "Schedules":
        """The schedule entries of the app."""
        return self._schedules()

    @property
    def inspector(self) -> "Inspector":
        """Reads queues that are given as shards, and changes them."""
        return self.core.part(_inspector)

    def stats(self) -> "Stats":
        """How much waits, how much is in the morgue, and the lag, in total and by queue name.

        A queue that was made with another declaration is among the `skipped`. Raises BackendError.
        """
        return self.inspector.stats(*self.core.current_queues())

    def metrics(self) -> "MetricsByQueue":
        """All that is counted, by queue name.

        A queue that was made with another declaration is among the `skipped` of it. Raises BackendError.
        """
        return self.inspector.metrics(*self.core.current_queues())

    def overview(self, span: "Span" = "10m", worker: "AnyWorker | None" = None) -> "AbstractContextManager[Overview]":
        """All queues, their recent history, and the servers, in a `with` block: one round trip for each node.

        With a `worker` its queue alone.

        The queues come one by one, once, and end with the block; until then one of the app's connections is in use.
        Raises BackendError, there and from the queues.
        """
        only = None if worker is None else worker_of(worker).queue_name
        wanted = {name: queue for name, queue in self.core.queues.items() if only in {None, name}}
        return self.inspector.overview(wanted, span)

    def find(self, text: str, limit: int = 100) -> "FoundIds":
        """An id in all queues of the app, and up to `limit` ids that begin with the text.

        It takes a few calls, however much the queues hold, so ids that begin with it may be missing: `cut` says so.
        Raises TypeError for what is no text, JobError for one that no id can be, BackendError.
        """
        given: object = text
        if not isinstance(given, str):
            raise TypeError(f"find takes a text, not {given!r}.")
        text = id_text(given)
        queues, skipped = self._agreeing()
        return msgspec.structs.replace(self.inspector.find(queues, text, limit), skipped=skipped)

    def errors(
        self,
        worker: "AnyWorker | None" = None,
        *,
        by: "ErrorGrouping" = "fingerprint",
        limit: int = 100,
        after: str | None = None,
    ) -> "ErrorGroups":
        """The last errors of ids that are retried or buried, in groups of those that are alike.

        `by`: "fingerprint" is the first line without the values that differ each time, such as numbers; "line" is all
        of it, "type" the type alone. `redrive(worker, filter={"fingerprint": group.fingerprint})` takes exactly the ids
        of a group. With a `worker` the errors of its queue alone. One call reads some 50,000 errors; `after` is the
        `next` of the call before. Raises QueueMismatch for a worker, BackendError, and ValueError for a bad limit or
        `after`.
        """
        from lowkiq_lambda.operate.inspect.error_groups import ErrorPart  # noqa: PLC0415 - for people

        part = ErrorPart(by, limit, after)
        if worker is not None:
            queue = self.core.current_queue_of(worker)
            return self.inspector.errors({queue.worker.queue_name: queue.shards}, part)
        queues, skipped = self._agreeing()
        return msgspec.structs.replace(self.inspector.errors(queues, part), skipped=skipped)

    def queries(self, worker: AnyWorker) -> "Queries":
        """The worker's jobs, for people to look at. Raises QueueMismatch, BackendError."""
        return self.inspector.queries(self.core.current_queue_of(worker).shards)

    def actions(self, worker: AnyWorker) -> "Actions":
        """The changes that an operator may make to the worker's jobs. Raises QueueMismatch, BackendError."""
        queue = self.core.current_queue_of(worker)
        return self.inspector.actions(queue.shards, queue.worker.merge)

    @overload
    def redrive(
        self,
        worker: AnyWorker,
        ids: "Collection[object] | None" = None,
        *,
        filter: "Wanted | None" = None,
        dry_run: Literal[False] = False,
        **options: "Unpack[RedriveOptions]",
    ) -> int: ...
    @overload
    def redrive(
        self,
        worker: AnyWorker,
        ids: "Collection[object] | None" = None,
        *,
        filter: "Wanted | None" = None,
        dry_run: Literal[True],
        **options: "Unpack[RedriveOptions]",
    ) -> "Iterator[RedrivePreview]": ...
    def redrive(
        self,
        worker: AnyWorker,
        ids: "Collection[object] | None" = None,
        *,
        filter: "Wanted | None" = None,  # noqa: A002 - it is one
        dry_run: bool = False,
        **options: "Unpack[RedriveOptions]",
    ) -> "int | Iterator[RedrivePreview]":
        """Have buried ids wait again: `ids`, or those that `filter` wants, its fields by name ({}: all).

        `order`: "score" (the default) puts each payload where its score belongs, "unless_newer" leaves it buried where
        a newer one of its id waits or is in flight, "last" puts it behind all. The first id is due at `start` (Unix
        seconds; default: now), and `rate` of them in each second from then on (default 100; None: all at once).
        Returns how many ids wait again; with `dry_run`, which changes nothing, what would become of each.
        `actions(worker).bury` takes back what is not due yet. Raises QueueMismatch, JobError for a bad id, ValueError,
        and BackendError, with a note that says how to go on.
        """
        from lowkiq_lambda.operate.inspect import redriving  # noqa: PLC0415 - for people

        actions = self.actions(worker)
        action = redriving.begin(actions, ids, filter, options)
        return redriving.previews(actions, action) if dry_run else redriving.carry_out(actions, action)

    def limits(self, worker: AnyWorker) -> "QueueLimits":
        """The limits of the worker's queue: set at run time, and explained. Raises QueueMismatch, BackendError."""
        queue = self.core.current_queue_of(worker)
        return self.inspector.limits(queue.worker, queue.shards)

    def processes(self) -> "Processes":
        """The daemons and invocations that drain on the app's server, each as of its last beat; they can be ended.

        Those of other apps are among them. Raises BackendError.
        """
        from lowkiq_lambda.operate.inspect.processes import Processes  # noqa: PLC0415 - for people

        return Processes(self.core.backend, self.core.config.redis_retry_for)

    def recovered(self, worker: AnyWorker, limit: int = 100) -> "list[Recovered]":
        """What holders that died, stopped or were evicted left in flight and others put back, the newest first.

        Raises QueueMismatch, BackendError.
        """
        from lowkiq_lambda.operate.inspect.recovered import recovered  # noqa: PLC0415 - for people

        return recovered(self.actions(worker).reader, limit)

    def audit(self, worker: AnyWorker) -> "AuditReport":
        """Judge what the journals of the worker's queue have of all that happened, as `lowkiq audit` does.

        `actions(worker).journal("all")` has them record it. Raises QueueMismatch, BackendError.
        """
        from lowkiq_lambda.operate.audit.auditor import Auditor  # noqa: PLC0415 - for people

        return Auditor(self.actions(worker).reader).report()

    def redeclare(self, worker: AnyWorker) -> None:
        """Make an empty queue anew with the `shards_count` and the `merge` that the worker has now.

        For when producers have stopped and everything is drained: whoever still goes by the old ones is refused from
        then on (QueueMismatch). Raises QueueMismatch where jobs are left, the queue was made with another codec, or
        another call came between, and BackendError; what broke off half-way is finished by another call.
        """
        self.core.declared_queue(worker).redeclare(self.core.backend, self.core.config.redis_retry_for)
        self.limits(worker).keep()

    def _agreeing(self) -> tuple[dict[str, QueueShards], dict[str, str]]:
        """The shards of the queues that were made as they are declared, by name; and of the others, why not."""
        queues, skipped = self.core.current_queues()
        return {name: queue.shards for name, queue in queues.items()}, skipped

    def reshard(self, worker: AnyWorker, *, to: int, unreplicated: bool = False) -> None:
        """Give the worker's queue so many shards, while it is pushed to and drained (docs/resharding.md).

        Returns when all ids lie in the new shards. What broke off is gone on with by another call. Where the server has
        replicas one of them has each step before the next, unless `unreplicated`. Raises QueueMismatch, BackendError,
        and LowkiqError where another move is under way, or no replica has a step.
        """
        resharding = self.resharding(worker, unreplicated=unreplicated)
        resharding.begin(to)
        resharding.go_on(lambda *_: None)
        self.core.declared_queue(worker).doubt()

    def resharding(self, worker: AnyWorker, *, unreplicated: bool = False) -> "Resharding":
        """The moves of the worker's queue, step by step."""
        from lowkiq_lambda.reshard.duty import resharding_of  # noqa: PLC0415 - imported lazily: cold start

        return resharding_of(self.core, worker, unreplicated=unreplicated)

    def duties(self) -> "list[DutyState]":
        """When each duty ran last, what came of it, and when it runs next. Raises BackendError."""
        from lowkiq_lambda.store.shard.duty_claims import duty_states  # noqa: PLC0415 - imported lazily: cold start

        core = self.core
        # Whether a queue is on its way to other shards, its declaration says.
        core.current_queues()
        periods = [(duty.name, duty.every) for duty in core.duties.values()]
        if core.follows_tasks:
            from lowkiq_lambda.tasks.duty import TaskDuty  # noqa: PLC0415 - imported lazily: cold start

            periods.append((TaskDuty.name, TaskDuty.every))
        if core.follows_moves:
            from lowkiq_lambda.reshard.duty import ReshardDuty  # noqa: PLC0415 - imported lazily: cold start

            periods.append((ReshardDuty.name, ReshardDuty.every))
        states = duty_states(core.backend, core.queues, periods, core.config.redis_retry_for)
        return [*states, *self.schedules.duty_states()] if core.fires_schedules else states


def _inspector(core: "Core") -> "Inspector":
    from lowkiq_lambda.operate.inspect.inspector import Inspector  # noqa: PLC0415 - imported lazily: cold start

    return Inspector(core.backend, core.config)
