"""Payloads that come to an end before their id: marked as done, or with a business failure of their own."""

import math
from collections.abc import Callable, Collection, Container, Mapping
from itertools import count
from typing import TYPE_CHECKING

import msgspec

from lowkiq_lambda.jobs.job import PLACE, Delivery

if TYPE_CHECKING:
    from lowkiq_lambda.base.errors import Rejected

_ARRIVAL = slice(8, PLACE)


def refuse_of_cursor(job_id: str, payload: int) -> None:
    """Raises ValueError for a mark within a job that yields a cursor."""
    raise ValueError(
        f"payload {payload} of {job_id!r} cannot be marked as done: its job yields a cursor, which says what is done"
    )


def check_order(job_id: str, payload: int, done: Collection[int], rejected: Container[int]) -> None:
    """Raises ValueError for a payload that is to end before an older one; `done` ended in order, up to now."""
    # So many have ended at least.
    first = next(position for position in count(len(done)) if position not in done and position not in rejected)
    if payload > first:
        raise ValueError(
            f"payload {first} of {job_id!r} is not done: payloads end in order; declare `ordered = False` if they do "
            "not depend on each other"
        )


def ended_payloads(
    done: Mapping[str, Collection[int]],
    rejected: "Mapping[str, Mapping[int, Rejected]]",
    delivered: Callable[[str], int],
    goes_on: Container[str],
) -> "tuple[dict[str, dict[int, Rejected | None]], set[str]]":
    """The payloads that ended of ids that go on, by their positions; and the ids of which all have ended."""
    ended: dict[str, dict[int, Rejected | None]] = {}
    over: set[str] = set()
    for job_id in done.keys() | rejected.keys():
        if job_id not in goes_on:
            continue
        own = {**dict.fromkeys(done.get(job_id, ())), **rejected.get(job_id, {})}
        if len(own) == delivered(job_id):
            over.add(job_id)
        else:
            ended[job_id] = own
    return ended, over


def arrival_of(entry: bytes) -> int:
    """The arrival number of a stored entry."""
    return int.from_bytes(entry[_ARRIVAL])


def without(delivery: Delivery, ended: Container[int]) -> Delivery:
    """The delivery without these payloads: with the retry_count of its oldest one (P7), and with no progress."""
    left = [entry for position, entry in enumerate(delivery.entries) if position not in ended]
    counts = dict(zip(delivery.retry_counts[::2], delivery.retry_counts[1::2], strict=True))
    oldest = delivery.retry_count if 0 not in ended else counts.get(arrival_of(left[0]), -1.0)
    times = [time for position, time in enumerate(delivery.expiries) if position not in ended]
    expiries = tuple(times) if min(times, default=math.inf) < math.inf else ()
    headers = tuple([one for position, one in enumerate(delivery.headers) if position not in ended])
    return msgspec.structs.replace(
        delivery, entries=left, retry_count=oldest, progress=b"", headers=headers, expiries=expiries
    )
