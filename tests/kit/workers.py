"""Workers of one handler, and jobs for them."""

from collections.abc import Sequence
from typing import Any

from lowkiq_lambda import Lowkiq, Worker
from lowkiq_lambda.declare.worker import count_of
from lowkiq_lambda.jobs.job import shard_for
from lowkiq_lambda.store.shard.keys import ShardRef
from tests.kit.handlers import Notes, Then


def declare(app: Lowkiq, queue_name: str, handler: Then, **fields: Any) -> type[Worker]:
    """A worker of one shard, with retries after 10, 20, 30 ... seconds, unless handler or `fields` say otherwise."""
    body: dict[str, Any] = {
        "queue_name": queue_name,
        "shards_count": 1,
        "retry_in": lambda _self, retry_count: 10 * (retry_count + 1),
        "perform": lambda _self, batch: handler(batch),
        **(handler.fields if isinstance(handler, Notes) else {}),
        **fields,
    }
    if isinstance(handler, Notes):
        body.setdefault("retries_exhausted", lambda _self, jobs: handler.exhausted.append(list(jobs)))
    if "perform_job" in fields:
        del body["perform"]
    return app.worker(type("Noting", (Worker,), body))


def jobs_of(ids: str | Sequence[str], **fields: Any) -> list[dict[str, Any]]:
    """One job for each id (each letter, or each word of several)."""
    return [{"id": job_id, **fields} for job_id in ids]


def shard_of(app: Lowkiq, worker: type[Worker], job_id: str) -> ShardRef:
    """The shard that the id lives in."""
    return app.core.queues.agreed(worker).shards[shard_for(job_id, count_of(worker))]
