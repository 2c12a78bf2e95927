"""Shards as their holders have them, and what decides when an id runs: one round trip for each node."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from lowkiq_lambda.jobs.job import NEVER_FAILED, Failure, tenant_of
from lowkiq_lambda.operate.inspect.progress import progress_view
from lowkiq_lambda.operate.inspect.requests import read_requests
from lowkiq_lambda.operate.inspect.tenants import read_note
from lowkiq_lambda.store.shard.keys import EXPIRY, REQUESTS, ShardRef
from lowkiq_lambda.store.shard.layout import QueueShards
from lowkiq_lambda.store.shard.nodes import FAR, FOREVER
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Reply, ReplyShape
from lowkiq_lambda.store.shard.state import ShardTimes, ShardTimesReply, age
from lowkiq_lambda.views.jobs import JobExplanation, TenantWait
from lowkiq_lambda.views.shards import ShardDetails, ShardRole

_PLAIN: Final = partial(str, encoding="utf-8", errors="replace")
_UNKNOWN: Final = b"?"
"""In place of the expiry, of a shard that uses expiries, and was asked without their key."""
_RUN_ALONE: Final = frozenset({"crashes", "halvings", "run_alone"})
"""As in suspects.lua: the troubles with which an id runs alone."""
_ROLES: Final[Mapping[bytes, ShardRole]] = {b"": "open", b"closed": "closed", b"receiving": "receiving"}


class ShardDetailsReply(ReplyShape, frozen=True):
    """The reply of shard_details.lua. Times are Unix seconds as texts."""

    scripts = ("shard_details",)
    times: ShardTimesReply
    length: int
    retries: int
    in_flight: int
    morgue_length: int
    suspects: int
    token: bytes
    owner: bytes
    acquired_at: bytes
    gave_up: bytes
    woken_until: bytes
    started: int
    """Started jobs that wait."""
    role: bytes


class ExplainJobReply(ReplyShape, frozen=True):
    """The reply of explain_job.lua."""

    scripts = ("explain_job",)
    shard: ShardDetailsReply
    due_at: bytes
    since: bytes
    ahead: int
    retry_count: bytes
    suspects_ahead: int | bytes
    trouble: bytes
    in_flight: bytes
    dead_since: bytes
    closed: bytes
    least_version: bytes
    progress: bytes
    debounced_until: bytes
    limited: bytes
    tenant: list[Any]
    failures: list[tuple[bytes, bytes, bytes, bytes]]
    requests: list[list[bytes]]
    expires_at: bytes


class TenantReply(ReplyShape, frozen=True):
    """What it answers of a tenant."""

    served_from: bytes
    tenants_ahead: int
    ahead: int
    noted: bytes


def shard_details(reader: ShardReader) -> list[ShardDetails]:
    """The shards in their order. Raises BackendError."""
    backend = reader.backend
    return reader.read(
        "shard_details",
        dict.fromkeys(reader.shards, ()),
        lambda shard, reply: _shard(shard.number, ShardDetailsReply.of(reply), backend.now(shard)),
    )


def explain_job(reader: ShardReader, job_id: str, load_error: Callable[[bytes], str] = _PLAIN) -> JobExplanation:
    """Why the id runs, or does not run yet. Raises BackendError."""
    (explanation,) = explain_in_each(reader, [reader.shards], job_id, load_error)
    return explanation


def explain_in_each(
    reader: ShardReader,
    queues: Sequence[QueueShards],
    job_id: str,
    load_error: Callable[[bytes], str] = _PLAIN,
) -> list[JobExplanation]:
    """The same in each queue, given by its shards, in one round trip for each node. Raises BackendError."""
    homes = [reader.backend.as_used(shards.home_of(job_id)) for shards in queues]

    def read(shard: ShardRef, reply: Reply) -> JobExplanation:
        if reply[-1] == _UNKNOWN:
            (explanation,) = reader.read("explain_job", {shard.using((EXPIRY, REQUESTS)): (job_id,)}, read)
            return explanation
        return _explanation(reader, shard, job_id, reply, load_error)

    explained = reader.read("explain_job", dict.fromkeys(homes, (job_id,)), read)
    for number, shards in enumerate(queues):
        if shards.layout.is_moving and not _is_there(explained[number]):
            # It may be on its way, or have arrived since the layout was read.
            (other,) = reader.read("explain_job", {shards.other_home_of(job_id): (job_id,)}, read)
            explained[number] = other if _is_there(other) else explained[number]
    return explained


def _is_there(job: JobExplanation) -> bool:
    return job.in_flight or job.due_at is not None or job.dead_since is not None


def _explanation(
    reader: ShardReader, shard: ShardRef, job_id: str, reply: Reply, load_error: Callable[[bytes], str]
) -> JobExplanation:
    job = ExplainJobReply.of(reply)
    trouble = msgspec.msgpack.decode(job.trouble, type=dict[str, Any]) if job.trouble else {}
    now, due_at = reader.backend.now(shard), _time(job.since or job.due_at)
    return JobExplanation(
        shard=_shard(shard.number, job.shard, now),
        due_at=due_at,
        retry_count=float(job.retry_count or NEVER_FAILED),
        ahead=job.ahead,
        suspects_ahead=job.suspects_ahead if isinstance(job.suspects_ahead, int) else None,
        crash_count=len(trouble.get("crashes", ())),
        runs_together=_runs_together(job, trouble),
        in_flight=bool(job.in_flight),
        dead_since=_time(job.dead_since),
        closed=bool(job.closed) and not job.shard.role,
        least_version=int(job.least_version) if job.least_version else None,
        progress=progress_view(job.progress),
        debounced_until=_time(job.debounced_until) if due_at is not None and due_at > now else None,
        blocked_since=_blocked_since(due_at, trouble, now),
        limited=bool(job.limited),
        tenant=_tenant_wait(tenant_of(job_id), job.tenant) if job.tenant else None,
        failures=tuple(
            Failure(float(at), float(count), load_error(error), rule.decode(errors="replace"))
            for at, count, error, rule in job.failures
        ),
        expires_at=_time(job.expires_at),
        requests=read_requests(shard, job.requests) if job.requests else (),
        put_off=load_error(trouble["put_off"].encode("latin-1")) if "put_off" in trouble else "",
    )


def _blocked_since(due_at: float | None, trouble: Mapping[str, Any], now: float) -> float | None:
    if due_at is None or due_at < FAR:
        return None
    # The time is unknown if the note was set aside as damaged.
    return float(trouble.get("blocked_since", now))


def _tenant_wait(tenant: str, reply: list[Any]) -> TenantWait:
    reply_of_tenant = TenantReply.of(reply)
    noted = read_note(reply_of_tenant.noted)
    return TenantWait(
        tenant=tenant,
        served_from=_time(reply_of_tenant.served_from),
        tenants_ahead=reply_of_tenant.tenants_ahead,
        ahead=reply_of_tenant.ahead,
        paused_until=noted.paused,
        rests_until=noted.rests,
    )


def _runs_together(job: ExplainJobReply, trouble: Mapping[str, Any]) -> bool:
    is_at_stake = bool(job.in_flight) or isinstance(job.suspects_ahead, int)
    return is_at_stake and not trouble.get("group") and not trouble.keys() & _RUN_ALONE


def _shard(index: int, reply: ShardDetailsReply, now: float) -> ShardDetails:
    times = ShardTimes.of(reply.times, now)
    return ShardDetails(
        index=index,
        at=now,
        length=reply.length,
        retries=reply.retries,
        in_flight=reply.in_flight,
        morgue_length=reply.morgue_length,
        suspects=reply.suspects,
        started=reply.started,
        lag=age(now, times.waiting_since),
        due_at=times.due_at,
        token=int(reply.token),
        owner=reply.owner.decode(errors="replace"),
        acquired_at=_time(reply.acquired_at),
        held_until=times.held_until,
        gave_up=bool(reply.gave_up),
        paused_until=math.inf if times.paused_until and times.paused_until >= FOREVER else times.paused_until,
        woken_until=_time(reply.woken_until),
        role=_ROLES[reply.role],
    )


def _time(text: bytes) -> float | None:
    """Raises ValueError if it is not a time."""
    if not text:
        return None
    at = float(text)
    if not math.isfinite(at):
        raise ValueError(text)
    return at
