"""Minutes of queues, by what matters of them."""

from typing import Any, Final

import msgspec

from lowkiq_lambda.operate.lateness.minutes import Minute, Present, ShardMinute

FULL: Final = ShardMinute(lag=300.0, waited=300.0, busy=0.97, held=0.99, has_work=True)
"""A late shard whose slots are busy all the time."""
UNHELD: Final = ShardMinute(lag=300.0, waited=300.0, busy=0.1, held=0.1, has_work=True)
"""A late shard that mostly nobody holds."""
ON_TIME: Final = ShardMinute(lag=1.0, waited=1.0, busy=0.97, held=0.99, has_work=True)
"""A busy shard that is not late."""
PRESENT: Final = Present(limit=120.0, concurrency=10, shards=2)


def minute(**fields: Any) -> Minute:
    """A minute of two full shards, in which nothing else is short, but for these fields."""
    base = Minute(
        seconds=60.0,
        ended=100,
        failed=0,
        length=500,
        retries=0,
        held_back=0.0,
        took=1.0,
        fill=1.0,
        computing=0.8,
        processors=0.5,
        threads=5,
        shards=(FULL, FULL),
    )
    return msgspec.structs.replace(base, **fields)


def present(**fields: Any) -> Present:
    """What else is known of it, but for these fields."""
    return msgspec.structs.replace(PRESENT, **fields)
