"""What looks at one queue and acts on it, made for the shards that it has."""

from typing import TYPE_CHECKING, NamedTuple

from lowkiq_lambda.operate.acts.action_runner import ActionRunner
from lowkiq_lambda.operate.in_flight import InFlightIds
from lowkiq_lambda.operate.inspect.jobs import JobReader
from lowkiq_lambda.operate.inspect.stored_errors import StoredErrors
from lowkiq_lambda.operate.inspect.stored_payloads import StoredPayloads
from lowkiq_lambda.operate.morgue import MorgueIds
from lowkiq_lambda.operate.waiting import WaitingIds
from lowkiq_lambda.store.shard.codec import load_json
from lowkiq_lambda.store.shard.layout import QueueShards
from lowkiq_lambda.store.shard.reader import ShardReader

if TYPE_CHECKING:
    from lowkiq_lambda.core import Core


class StoredQueue(NamedTuple):
    """A queue as it is on the server: its shards, and its rule for payloads that are alike."""

    shards: QueueShards
    merge: str


class QueueParts(NamedTuple):
    """The three lists of a queue, and what they read and act by."""

    stored: StoredQueue
    reader: ShardReader
    runner: ActionRunner
    jobs: JobReader
    waiting: WaitingIds
    in_flight: InFlightIds
    morgue: MorgueIds


def parts_of(core: "Core", stored: StoredQueue, retry_for: float, *, is_glimpse: bool) -> QueueParts:
    """Those of the queue; with `is_glimpse` a job shows its first payload only, and none if that is large."""
    config = core.config
    reader, errors = ShardReader(core.backend, retry_for, stored.shards), StoredErrors(config.load_error)
    payloads = StoredPayloads(stored.shards[0].queue_name, config.load_payload or load_json, config.mask)
    jobs = JobReader(reader, payloads, errors, glimpse=is_glimpse)
    runner = ActionRunner(jobs, stored.merge, config.morgue.parts, config.dump_error)
    return QueueParts(
        stored, reader, runner, jobs, WaitingIds(jobs, runner), InFlightIds(jobs), MorgueIds(jobs, runner)
    )
