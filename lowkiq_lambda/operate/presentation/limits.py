"""Limits of a queue as JSON, for the API and for the command line."""

import msgspec

from lowkiq_lambda.jobs.limiting import Kind, kind_of, numbers_of
from lowkiq_lambda.views.limits import LimiterView, LimitsView


class RateResponse(msgspec.Struct, frozen=True, kw_only=True):
    """At most `ids` begin in any `per` seconds."""

    ids: int
    per: float


class PermitResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A visit that has a permit. `until`: the end of the permit unless it is prolonged, in Unix seconds."""

    shard: int
    until: float


class WaitResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A queue that this one waits for, and the number of its shards that are visited now."""

    queue: str
    running: int


class LimitsResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a queue at the time `at`. Times are Unix seconds by the server's clock.

    `max_running`, `rate`: the limits that count; null: no such limit. `is_set`: an operator set one of them.
    `permits`: visits that have one of the permits. `offered`: shards that a free permit is kept for. `wait_list`:
    shards that wait, the next one first. `ids_left`: the number of ids that may begin now; null without a rate.
    `next_id_at`: the time when another id may begin, if none may now. `waits_for`: the queues that this one waits for.
    `undone`: shards that the last change has not reached; make it again.
    """

    queue: str
    at: float
    max_running: int | None
    rate: RateResponse | None
    is_set: bool
    permits: list[PermitResponse]
    offered: list[int]
    wait_list: list[int]
    ids_left: int | None
    next_id_at: float | None
    waits_for: list[WaitResponse]
    undone: list[int]


def limits_response(view: LimitsView) -> LimitsResponse:
    """The limits as JSON."""
    return LimitsResponse(
        queue=view.queue_name,
        at=view.at,
        max_running=view.max_running,
        rate=None if view.rate is None else RateResponse(ids=view.rate.ids, per=view.rate.per),
        is_set=view.is_set,
        permits=[PermitResponse(shard=permit.shard, until=permit.until) for permit in view.permits],
        offered=[*view.offered],
        wait_list=[*view.wait_list],
        ids_left=view.ids_left,
        next_id_at=view.next_id_at,
        waits_for=[WaitResponse(queue=wait.queue_name, running=wait.running) for wait in view.waits_for],
        undone=[*view.undone],
    )


class LimiterResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A limiter that handlers ask, and one of its keys.

    `most`: the points, or places, of the limit that counts; `seconds`: their period, or how long a place is held.
    `is_set`: an operator set them. `left`: how many are free for the key now. `waiting`: jobs in line for the key.
    `put_off`: refusals of the limiter so far, of all keys.
    """

    name: str
    key: str
    kind: Kind
    most: int
    seconds: float
    is_set: bool
    left: int
    waiting: int
    put_off: int


def limiter_response(view: LimiterView) -> LimiterResponse:
    """The limiter as JSON."""
    most, seconds = numbers_of(view.limit)
    return LimiterResponse(
        name=view.name,
        key=view.key,
        kind=kind_of(view.limit),
        most=most,
        seconds=seconds,
        is_set=view.is_set,
        left=view.left,
        waiting=view.waiting,
        put_off=view.put_off,
    )
