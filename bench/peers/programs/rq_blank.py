"""RQ: calls of `enqueue_many`; its SimpleWorker, which forks for no job, runs one at a time."""

from redis import Redis
from rq import Queue

from bench.peers.programs import meter


def push() -> None:
    """Enqueue many at once."""
    queue = Queue("blank", connection=Redis.from_url(meter.URL))
    kept = int(meter.setting("result_ttl"))
    with meter.pushing():
        for payloads in meter.calls():
            queue.enqueue_many(
                [Queue.prepare_data(meter.blank, args=(payload,), result_ttl=kept) for payload in payloads]
            )
