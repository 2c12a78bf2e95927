"""Tenants of a queue: their fair order, and their records."""

import math
from collections.abc import Callable, Sequence
from typing import Any, get_args

import msgspec

from lowkiq_lambda.store.shard.keys import TENANTS, ShardRef
from lowkiq_lambda.store.shard.nodes import FOREVER
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Argument, Reply, ReplyShape
from lowkiq_lambda.views.shards import MOST_TENANTS, TenantOrder, Tenants, TenantView


class Note(msgspec.Struct, frozen=True):
    """What lanes.lua notes of a tenant: what people may want to know of it."""

    at: float | None = None
    paused: float | None = None
    rests: float | None = None


class LanesReply(ReplyShape, frozen=True):
    """The reply of tenant_lanes.lua of a shard."""

    scripts = ("tenant_lanes",)
    count: int
    lanes: list[tuple[bytes, bytes, int, bytes, bytes]]
    """Tenant, when it is served, ids, first due_at or empty, note."""


def read_note(packed: bytes) -> Note:
    """The note; one that is empty is packed as a list. Raises ValueError for what is none."""
    noted = msgspec.msgpack.decode(packed)
    note = msgspec.convert(noted, Note) if noted else Note()
    paused = note.paused
    return msgspec.structs.replace(note, paused=math.inf) if paused is not None and paused >= FOREVER else note


def tenants_of(reader: ShardReader, limit: int, order: TenantOrder, tenant: str | None) -> Tenants:
    """The first tenants by that order, or one alone. Raises ValueError for a bad limit or order, BackendError."""
    if not 1 <= limit <= MOST_TENANTS:
        raise ValueError(f"limit must be from 1 to {MOST_TENANTS:,}, not {limit!r}.")
    if order not in get_args(TenantOrder):
        raise ValueError(f"order must be 'fair' or 'waiting', not {order!r}.")
    shards = shards_with_tenants(reader, tenant)
    args: Sequence[Argument] = [limit, order] if tenant is None else [limit, "one", tenant]
    replies = reader.read("tenant_lanes", dict.fromkeys(shards, args), _of_shard(reader))
    by_name: dict[str, TenantView] = {}
    for _, views in replies:
        for view in views:
            by_name[view.tenant] = _together(by_name[view.tenant], view) if view.tenant in by_name else view
    first = sorted(by_name.values(), key=_by_fair_order if order == "fair" else _by_waiting)
    is_cut = tenant is None and (len(first) > limit or any(count > len(views) for count, views in replies))
    return Tenants(first[:limit], is_cut)


def _by_fair_order(view: TenantView) -> tuple[float, str]:
    return view.served_from, view.tenant


def _by_waiting(view: TenantView) -> tuple[float, str]:
    return -view.waiting, view.tenant


def shards_with_tenants(reader: ShardReader, tenant: str | None) -> list[ShardRef]:
    """The shards in which the tenant may have ids, or any tenant."""
    shards = [shard for shard in reader.shards if TENANTS in shard.features]
    if tenant is None or not shards or not shards[0].by_tenant:
        return shards
    return [reader.shards.home_of(f"{tenant}:")]


def _of_shard(reader: ShardReader) -> Callable[[ShardRef, Reply], tuple[int, list[TenantView]]]:
    def read(shard: ShardRef, reply: Reply) -> tuple[int, list[TenantView]]:
        answer, now = LanesReply.of(reply), reader.backend.now(shard)
        return answer.count, [_view(now, lane) for lane in answer.lanes]

    return read


def _view(now: float, lane: tuple[bytes, bytes, int, bytes, bytes]) -> TenantView:
    tenant, served_from, waiting, due_at, noted = lane
    note = read_note(noted)
    return TenantView(
        tenant=tenant.decode(),
        at=now,
        waiting=waiting,
        due_at=float(due_at) if due_at else None,
        served_from=float(served_from),
        served_at=note.at,
        paused_until=note.paused,
        rests_until=note.rests,
    )


def _together(one: TenantView, other: TenantView) -> TenantView:
    """A tenant of several shards."""

    def chosen(choose: Callable[[Any], float], name: str) -> float | None:
        return choose([at for view in (one, other) if (at := getattr(view, name)) is not None] or [None])

    return TenantView(
        tenant=one.tenant,
        at=one.at,
        waiting=one.waiting + other.waiting,
        due_at=chosen(min, "due_at"),
        served_from=min(one.served_from, other.served_from),
        served_at=chosen(max, "served_at"),
        paused_until=chosen(max, "paused_until"),
        rests_until=chosen(max, "rests_until"),
    )
