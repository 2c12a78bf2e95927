"""Celery: a message for each job by one producer, as it has no call for many; its worker has threads or none."""

from functools import partial

from celery import Celery

from bench.peers.programs import meter

app = Celery("blank", broker=meter.URL)
app.conf.update(
    task_ignore_result=True,
    worker_prefetch_multiplier=int(meter.setting("prefetch")),
    worker_enable_remote_control=False,
    broker_connection_retry_on_startup=True,
)
blank = app.task(name="blank")(meter.blank)


def _send(producer: object, payload: str) -> None:
    blank.apply_async((payload,), producer=producer)


def push() -> None:
    """Send messages."""
    with app.producer_pool.acquire(block=True) as producer:
        meter.push_one_by_one(partial(_send, producer))
