"""`app.operate`: what operators see of all queues of an app; called with a worker, its queue."""

from typing import TYPE_CHECKING, Final

import msgspec

from lowkiq_lambda.declare.pushable import AnyWorker
from lowkiq_lambda.declare.worker import worker_of
from lowkiq_lambda.jobs.job import id_text
from lowkiq_lambda.store.shard.layout import QueueShards

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from lowkiq_lambda.core import Core
    from lowkiq_lambda.limiters.limiter import Limiter
    from lowkiq_lambda.operate.inspect.inspector import Inspector
    from lowkiq_lambda.operate.inspect.processes import Processes
    from lowkiq_lambda.operate.lowkiq_names import Actions, Queries
    from lowkiq_lambda.operate.queue_operations import QueueOperations
    from lowkiq_lambda.schedules.schedules import Schedules
    from lowkiq_lambda.store.shard.duty_claims import DutyLook, DutyState
    from lowkiq_lambda.views.errors import ErrorGrouping, ErrorGroups
    from lowkiq_lambda.views.jobs import FoundIds
    from lowkiq_lambda.views.queues import Between, MetricsByQueue, Overview, Scale, Span, Stats
    from lowkiq_lambda.views.runs import Release


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
        return self.inspector.stats(*self.core.queues.all_current())

    def metrics(self) -> "MetricsByQueue":
        """All that is counted, by queue name.

        A queue that was made with another declaration is among the `skipped` of it. Raises BackendError.
        """
        return self.inspector.metrics(*self.core.queues.all_current())

    def scale(self) -> "Scale":
        """How many holders the queues could use now, in sum and by queue: what threads, tasks or pods are scaled by.

        It grows with the shards that have work, not with the time that ids wait, and never beyond the number of shards.
        Raises BackendError.
        """
        from lowkiq_lambda.views.queues import QueueScale, Scale  # noqa: PLC0415 - few programs scale

        metrics = self.metrics()
        queues = {
            name: QueueScale(wanted=one.wanted_holders, oldest_due_age=one.oldest_due_age, most=len(one.shards))
            for name, one in metrics.items()
        }
        return Scale(
            wanted=sum(queue.wanted for queue in queues.values()),
            oldest_due_age=max((queue.oldest_due_age for queue in queues.values()), default=0.0),
            most=sum(queue.most for queue in queues.values()),
            queues=queues,
            skipped=metrics.skipped,
        )

    def overview(
        self, span: "Span | Between" = "10m", worker: "AnyWorker | None" = None
    ) -> "AbstractContextManager[Overview]":
        """All queues, their history of a span or a range, and the servers, in a `with` block: one round trip a node.

        With a `worker` only its queue. Three days are kept, or as many as `Config(history_days=)` says; a range that
        begins before raises ValueError, as one that is empty or in the future.

        The queues come one by one, once, and end with the block; until then one of the app's connections is in use.
        Raises BackendError, there and from the queues.
        """
        only = None if worker is None else worker_of(worker).queue_name
        queues = {name: queue for name, queue in self.core.queues.items() if only in {None, name}}
        return self.inspector.overview(queues, span, self.core.config.history_days)

    def find(self, text: str, limit: int = 100) -> "FoundIds":
        """An id in all queues of the app, and up to `limit` ids that begin with the text.

        It takes a few calls, however much the queues hold, so ids that begin with it may be missing: `cut` says so.
        Raises TypeError if it is not a text, JobError for a text that cannot be an id, BackendError.
        """
        value: object = text
        if not isinstance(value, str):
            raise TypeError(f"find takes a text, not {value!r}.")
        text = id_text(value)
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
        """The last errors of ids that are retried or dead, in groups of those that are alike.

        `by`: "fingerprint" is the first line without the values that differ each time, such as numbers; "line" is all
        of it, "type" the type alone. `app.operate(worker).morgue.requeue(filter={"fingerprint": group.fingerprint})`
        takes exactly the ids of a group. With a `worker` the errors of its queue alone. One call reads some 50,000
        errors; `after` is the `next` of the call before. Raises QueueMismatch for a worker, BackendError, and
        ValueError for a bad limit or `after`.
        """
        from lowkiq_lambda.operate.inspect.error_groups import ErrorPart  # noqa: PLC0415 - for people

        part = ErrorPart(by, limit, after)
        if worker is not None:
            queue = self.core.queues.current(worker)
            return self.inspector.errors({queue.worker.queue_name: queue.shards}, part)
        queues, skipped = self._agreeing()
        return msgspec.structs.replace(self.inspector.errors(queues, part), skipped=skipped)

    def __call__(self, worker: AnyWorker) -> "QueueOperations":
        """The worker's queue: its three lists, and what concerns it as a whole. Raises DeclarationError."""
        from lowkiq_lambda.operate.queue_operations import QueueOperations  # noqa: PLC0415 - for people
        from lowkiq_lambda.operate.queue_parts import StoredQueue  # noqa: PLC0415 - for people

        declared = self.core.queues.of(worker).worker

        def found() -> StoredQueue:
            queue = self.core.queues.current(declared)
            return StoredQueue(queue.shards, queue.worker.merge)

        return QueueOperations(self.core, declared, found)

    def queries(self, worker: AnyWorker) -> "Queries":
        """The reads of the worker's queue by Lowkiq's names (docs/lowkiq-names.md)."""
        from lowkiq_lambda.operate.lowkiq_names import Queries  # noqa: PLC0415 - for those that come from Lowkiq

        return Queries(self(worker))

    def actions(self, worker: AnyWorker) -> "Actions":
        """The acts on the worker's queue by Lowkiq's names (docs/lowkiq-names.md)."""
        from lowkiq_lambda.operate.lowkiq_names import Actions  # noqa: PLC0415 - for those that come from Lowkiq

        return Actions(self(worker))

    def limiters(self) -> "list[Limiter]":
        """The limiters that the code of the app declares, in order of declaration."""
        from lowkiq_lambda.limiters.limiter import Limiters  # noqa: PLC0415 - few apps have any

        return [*self.core.registry(Limiters).declared.values()]

    def processes(self) -> "Processes":
        """The daemons and invocations that drain on the app's server, each as of its last heartbeat; they can be ended.

        Those of other apps are among them. Raises BackendError.
        """
        from lowkiq_lambda.operate.inspect.processes import Processes  # noqa: PLC0415 - for people

        return Processes(self.core.backend, self.core.config.redis_retry_for)

    def releases(self) -> "list[Release]":
        """The releases that processes of the app's server have had (`Config.release`), the newest first.

        The last 50 are remembered. Raises BackendError.
        """
        from lowkiq_lambda.operate.inspect.releases import read_releases  # noqa: PLC0415 - for people

        return read_releases(self.core.backend, self.core.config.redis_retry_for)

    def _agreeing(self) -> tuple[dict[str, QueueShards], dict[str, str]]:
        """The shards of the queues that were made as they are declared, by name; and of the others, why not."""
        queues, skipped = self.core.queues.all_current()
        return {name: queue.shards for name, queue in queues.items()}, skipped

    def duties(self) -> "list[DutyState]":
        """When each duty ran last, what came of it, and when it runs next. Raises BackendError."""
        from lowkiq_lambda.store.server.together import Together  # noqa: PLC0415 - imported lazily: cold start
        from lowkiq_lambda.store.shard.duty_claims import duty_states  # noqa: PLC0415 - as above

        core = self.core
        # Whether a queue is on its way to other shards, its declaration says.
        core.queues.all_current()
        with Together() as side:
            looks = [
                side.look(duty_states, core.backend, look, core.config.redis_retry_for) for look in self.duty_looks()
            ]
        return [state for look in looks for state in look.result]

    def duty_looks(self) -> "list[DutyLook]":
        """The looks that `duties` is made of, by what is known of the queues; private."""
        from lowkiq_lambda.store.shard.duty_claims import DutyKey, DutyLook  # noqa: PLC0415 - imported lazily: cold start

        core = self.core
        periods = [(duty.name, duty.every) for duty in core.housekeeping.duties.values()]
        if core.housekeeping.follows_tasks:
            from lowkiq_lambda.tasks.duty import TaskDuty  # noqa: PLC0415 - imported lazily: cold start

            periods.append((TaskDuty.name, TaskDuty.every))
        if core.housekeeping.follows_moves:
            from lowkiq_lambda.reshard.duty import ReshardDuty  # noqa: PLC0415 - imported lazily: cold start

            periods.append((ReshardDuty.name, ReshardDuty.every))
        if core.housekeeping.verifies:
            from lowkiq_lambda.operate.verify.duty import VerifyDuty  # noqa: PLC0415 - imported lazily: cold start

            periods.append((VerifyDuty.name, VerifyDuty.every))
        if core.housekeeping.watches:
            from lowkiq_lambda.operate.lateness.duty import WatchDuty  # noqa: PLC0415 - imported lazily: cold start

            periods.append((WatchDuty.name, WatchDuty.every))
        if core.housekeeping.alerts:
            from lowkiq_lambda.declare.duty import ALERTS, ALERTS_EVERY  # noqa: PLC0415 - imported lazily: cold start

            periods.append((ALERTS, ALERTS_EVERY))
        own = DutyLook(DutyKey.of(core.queues, prefix=core.backend.prefix), periods)
        return [own, self.schedules.duty_look()] if core.housekeeping.fires_schedules else [own]


def _inspector(core: "Core") -> "Inspector":
    from lowkiq_lambda.operate.inspect.inspector import Inspector  # noqa: PLC0415 - imported lazily: cold start

    return Inspector(core.backend, core.config)
