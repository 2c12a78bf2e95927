"""The numbers of queues by the shards that they have now: their declarations are read in the same round trip."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple, Protocol

from lowkiq_lambda.base.errors import QueueMismatch
from lowkiq_lambda.declare.worker import Worker
from lowkiq_lambda.operate.inspect.limited_lag import apart
from lowkiq_lambda.operate.inspect.metrics import stream_totals
from lowkiq_lambda.store.server.faults import translated
from lowkiq_lambda.store.shard.backend import ExtraCommand
from lowkiq_lambda.store.shard.declarations import Registered, registered_in
from lowkiq_lambda.store.shard.keys import declaration_key
from lowkiq_lambda.store.shard.layout import QueueShards
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views.queues import Metrics


class SeenQueue(Protocol):
    """A queue as an app knows it."""

    worker: type[Worker[Any]]

    @property
    def shards(self) -> QueueShards:
        """Those that it has, as far as the app knows."""
        ...

    def refusal_of(self, there: Registered | None) -> QueueMismatch | None:
        """Why the queue with this declaration cannot be shown; else it has learned of its shards."""
        ...


class CurrentTotals(NamedTuple):
    """The answers to extra commands; of each queue its shards, and why it cannot be shown, or ""; and the totals.

    The totals come one by one, in the order of the queues. Those of a queue that cannot be shown mean nothing.
    """

    answers: Sequence[Any]
    shards: Sequence[QueueShards]
    mismatches: Sequence[str]
    totals: Iterator[Metrics]


@contextmanager
def current_totals(
    reader: ShardReader, queues: Mapping[str, SeenQueue], extra_commands: Sequence[ExtraCommand] = ()
) -> Iterator[CurrentTotals]:
    """One round trip for each node, and one more if a queue turns out to have other shards, or waits for its limits.

    So the first look of a process is right also for a queue that was resharded before. Raises BackendError.
    """
    keys = [declaration_key(name, reader.backend.prefix) for name in queues]
    declared: list[ExtraCommand] = [(key, ("GET", key)) for key in keys]
    with ExitStack() as stack:
        while True:
            shards = [queue.shards for queue in queues.values()]
            answers, totals = stack.enter_context(stream_totals(reader, shards, [*declared, *extra_commands]))
            with translated():
                refusals = [
                    queue.refusal_of(registered_in(answer))
                    for queue, answer in zip(queues.values(), answers, strict=False)
                ]
            if shards == [queue.shards for queue in queues.values()]:
                break
            stack.close()
        workers = [None if refusal else queue.worker for queue, refusal in zip(queues.values(), refusals, strict=True)]
        mismatches = [str(refusal or "") for refusal in refusals]
        yield CurrentTotals(answers[len(declared) :], shards, mismatches, apart(reader, workers, totals))
