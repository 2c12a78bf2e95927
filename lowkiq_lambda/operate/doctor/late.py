"""Queues that are late, each with the cause: one that no other finding tells of."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from lowkiq_lambda.core import Core
from lowkiq_lambda.operate.doctor.findings import Finding
from lowkiq_lambda.operate.doctor.queue_state import QueueState
from lowkiq_lambda.operate.inspect.looking import LookingBackend
from lowkiq_lambda.operate.lateness.kept import read_samples
from lowkiq_lambda.operate.lateness.look import QueueLook
from lowkiq_lambda.store.server.together import side_by_side
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views.processes import Process
from lowkiq_lambda.views.queues import QueueMetrics

_TELL: Final = frozenset(
    {"paused", "paused tenants", "limits", "failing", "due work", "moves", "blocked ids", "damage", "unused time"}
)
"""Checks whose findings say already why a queue is late."""


def explained_by(findings: Iterable[Finding]) -> frozenset[str]:
    """The queues of which these findings tell why they are late."""
    return frozenset(finding.about for finding in findings if finding.mark != "ok" and finding.check in _TELL)


def late_findings(
    core: Core,
    backend: LookingBackend,
    states: Sequence[QueueState],
    processes: Sequence[Process],
    explained: Collection[str],
) -> Iterator[Finding]:
    """A finding on each late queue that is watched and has a cause, but for those that are `explained` already.

    It asks Redis only where a queue is late. Raises BackendError.
    """
    looks = [*_late(core, backend, states, processes, explained)]
    names = [look.queue for look in looks]
    kept = read_samples(backend, names, core.config.redis_retry_for) if names else []
    watched = [(look, samples) for look, samples in zip(looks, kept, strict=True) if samples]
    for each in side_by_side(partial(look.lateness, samples) for look, samples in watched):
        late = each.result
        if late.looked and late.cause not in {None, "somebody is at it"}:
            yield Finding(
                section="work",
                check="late",
                mark="warning",
                says=f"{late.says[0].lower()}{late.says[1:].rstrip('.')} ({late.cause})",
                advice=late.advice,
                about=late.queue,
            )


def _late(
    core: Core,
    backend: LookingBackend,
    states: Sequence[QueueState],
    processes: Sequence[Process],
    explained: Collection[str],
) -> Iterator[QueueLook]:
    for state in states:
        if isinstance(state.metrics, QueueMetrics) and state.name not in explained:
            reader = ShardReader(backend, core.config.redis_retry_for, state.shards)
            look = QueueLook(core, reader, core.queues.worker_named(state.name), state.metrics, processes)
            if look.is_late:
                yield look
