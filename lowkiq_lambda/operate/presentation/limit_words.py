"""Limits of a queue, and the fair order of tenants, in words: why they keep a job from running."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from lowkiq_lambda.declare.worker import Worker, queues_before
from lowkiq_lambda.jobs.rate import Rate
from lowkiq_lambda.operate.operations import Operations
from lowkiq_lambda.operate.presentation.formatting import duration, exact
from lowkiq_lambda.views.jobs import JobExplanation, TenantWait
from lowkiq_lambda.views.limits import LimitsView

_NAMED: Final = 10
"""So many shards are named, and of the others their number is said."""


class Limited(NamedTuple):
    """Why limits keep a shard from being visited: what the diagnosis is made of."""

    kind: str
    reason: str
    next_at: float | None = None
    more: tuple[str, ...] = ()


def limits_of(operations: Operations, worker: type[Worker[Any]], situation: JobExplanation) -> LimitsView | None:
    """The limits of the job's queue; None if neither code nor an operator has set any."""
    if worker.max_running is None and worker.rate is None and not queues_before(worker) and not situation.limited:
        return None
    return operations(worker).limits.explain()


def why_limited(limits: LimitsView, shard: int) -> Limited | None:
    """Why no visit to the free shard begins now; None if the limits are not a reason."""
    if shard in limits.offered:
        return Limited("limited", "a permit of its queue has only just been offered to its shard, for a second.")
    if limits.blocking:
        names = " and ".join(f"{wait.queue_name}, of which {_visited(wait.running)} now" for wait in limits.blocking)
        return Limited("waits for a queue", f"its queue waits for {names}.")
    count = len(limits.permits) + len(limits.offered)
    if limits.max_running is not None and count >= limits.max_running:
        reason = f"at most {_shards(limits.max_running)} of its queue may be visited at once, and others have a permit."
        return Limited("limited", reason, None, (_holders(limits), *_wait_list_words(limits, shard)))
    if limits.rate is not None and not limits.ids_left:
        reason = f"at most {rate_words(limits.rate)} of its queue may begin, and so many have begun."
        return Limited("limited", reason, limits.next_id_at, _wait_list_words(limits, shard))
    if shard in limits.wait_list:
        return Limited(
            "limited", "its shard found no permit when it was its turn.", None, _wait_list_words(limits, shard)
        )
    return None


def rate_words(rate: Rate) -> str:
    """The rate for people."""
    return f"{exact(rate.ids)} id{'s' if rate.ids != 1 else ''} in {duration(rate.per)}"


def _visited(count: int) -> str:
    return f"{exact(count)} shard{'s are' if count != 1 else ' is'} visited"


def _shards(count: int) -> str:
    return f"{exact(count)} shard{'s' if count != 1 else ''}"


def _holders(limits: LimitsView) -> str:
    indexes = [*(permit.shard for permit in limits.permits), *limits.offered]
    last = limits.permits[-1].until - limits.at if limits.permits else 0.0
    ends = f" A permit ends by itself {duration(max(0.0, last))} from now at the latest, unless its visit prolongs it."
    return f"The permits are those of {_numbered(indexes)}.{ends if limits.permits else ''}"


def _numbered(indexes: Sequence[int]) -> str:
    numbers = ", ".join(map(str, indexes[:_NAMED]))
    more = f" and {len(indexes) - _NAMED} more" if len(indexes) > _NAMED else ""
    return f"shard{'s' if len(indexes) > 1 else ''} {numbers}{more}"


def _wait_list_words(limits: LimitsView, shard: int) -> tuple[str, ...]:
    if shard not in limits.wait_list:
        return ("Its shard is not on the wait list: the next drain asks for a permit, and waits if it has time.",)
    ahead = list(limits.wait_list).index(shard)
    behind = f"behind {_shards(ahead)}" if ahead else "as the first"
    return (f"Its shard is on the wait list, {behind}.",)


def change_words(changes: Mapping[str, Any]) -> str:
    """What `set` is given, for the line of the activity log."""
    most, rate = changes.get("max_running"), changes.get("rate")
    words = []
    if "max_running" in changes:
        words.append("max_running none" if most is None else f"max_running {most}")
    if "rate" in changes:
        words.append("rate none" if rate is None else f"rate {rate.ids} in {rate.per:g} s")
    return ", ".join(words)


def tenant_waits(tenant: TenantWait, now: float, due_at: float) -> tuple[str, str, float | None] | None:
    """Why no job of the tenant starts, even after the job is due: a kind, a sentence, and until when."""
    paused_until, rests_until = tenant.paused_until or 0.0, tenant.rests_until or 0.0
    name = _named(tenant.tenant)
    if math.isinf(paused_until):
        return "tenant paused", f"Its tenant {name} is paused until an operator resumes it.", None
    if paused_until > max(due_at, rests_until):
        left = duration(paused_until - now)
        return "tenant paused", f"Its tenant {name} is paused for another {left}.", paused_until
    if rests_until > due_at:
        left = duration(rests_until - now)
        sentence = f"Its tenant {name} has used up its rate. The next job of the tenant may begin in {left}."
        return "tenant rests", sentence, rests_until
    return None


def wait_of_tenant(tenant: TenantWait, suspects: int) -> str:
    """The jobs and tenants that come before a job, in words."""
    waits = []
    if tenant.tenants_ahead:
        others = "tenant is" if tenant.tenants_ahead == 1 else "tenants are"
        waits.append(f"{exact(tenant.tenants_ahead)} other {others} served before its tenant {_named(tenant.tenant)}")
    if tenant.ahead:
        waits.append(f"it waits behind {exact(tenant.ahead)} other{'s' if tenant.ahead > 1 else ''} of its tenant")
    if suspects:
        waits.append(f"{exact(suspects)} suspect{'s' if suspects > 1 else ''} of its shard run first")
    return ", and ".join(waits)


def _named(tenant: str) -> str:
    return f"“{tenant}”" if tenant else "(ids without a colon)"
