"""The moves of an app's queues."""

from typing import TYPE_CHECKING, Any

from lowkiq_lambda.engine.failure import ErrorText
from lowkiq_lambda.engine.survivors import CRASHED
from lowkiq_lambda.reshard.queue_facts import QueueFacts
from lowkiq_lambda.reshard.resharding import Resharding
from lowkiq_lambda.store.shard.moving import Burials

if TYPE_CHECKING:
    from lowkiq_lambda.core import Core
    from lowkiq_lambda.declare.worker import FunctionWorker, Worker


def resharding_of(
    core: "Core", worker: "type[Worker[Any]] | FunctionWorker[Any]", *, unreplicated: bool = False
) -> Resharding:
    """Those of the worker's queue; with `unreplicated` no step waits for replicas.

    Raises DeclarationError where it is no worker of the app.
    """
    queue, config = core.declared_queue(worker), core.config
    texts = ErrorText(config.format_error, config.dump_error, config.load_error, config.error_max_length)
    morgue = config.morgue_max_entries, config.morgue_max_bytes, config.morgue_max_age
    first = queue.shards[0]
    facts = QueueFacts(
        queue.worker.queue_name,
        queue.worker.merge,
        first.by_tenant,
        first.features,
        Burials(morgue, texts.dump(CRASHED), queue.worker.dead_head),
    )
    return Resharding(core.backend, facts, config.retry_for, core.backend.clock, unreplicated=unreplicated)
