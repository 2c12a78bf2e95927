"""dramatiq: a message for each job, as it has no call for many; its worker has threads."""

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from bench.peers.programs import meter

broker = RedisBroker(url=meter.URL)
dramatiq.set_broker(broker)
blank = dramatiq.actor(meter.blank, broker=broker)


def push() -> None:
    """Send messages."""
    meter.push_one_by_one(blank.send)
