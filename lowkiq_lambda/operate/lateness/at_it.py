"""Whether somebody is at a queue: what was changed of late, so that nothing more is to be changed now. Values alone."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from lowkiq_lambda.operate.lateness.words import lasting
from lowkiq_lambda.store.shard.layout import Layout
from lowkiq_lambda.views.activity import NOTED, ActivityEntry
from lowkiq_lambda.views.processes import Process
from lowkiq_lambda.views.queues import QueueMetrics
from lowkiq_lambda.views.runs import Release

ACTED: Final = 600.0
"""Seconds after an operator's act in which its effect is waited for."""
BEGAN: Final = 900.0
"""Seconds after the start of a release or a daemon in which caches fill and shards are dealt anew; or an outage."""


class Around(NamedTuple):
    """What happened around a queue: acts on it, releases, and the processes that drain."""

    activity: Sequence[ActivityEntry]
    releases: Sequence[Release]
    processes: Sequence[Process]


def at_it(now: float, metrics: QueueMetrics, layout: Layout, around: Around) -> str:
    """A clause that says who or what is at it, the most telling one; empty where nobody is."""
    clauses = chain(_of_queue(metrics, layout), _acts(now, around), _declared(now, layout), _starts(now, around))
    return next(clauses, "")


def _of_queue(metrics: QueueMetrics, layout: Layout) -> Iterator[str]:
    if metrics.paused:
        yield f"{metrics.paused} of its {len(metrics.shards)} shards {'is' if metrics.paused == 1 else 'are'} paused"
    if metrics.paused_lag:
        yield "one of its tenants is paused"
    if layout.is_moving:
        yield f"it moves from {layout.before} to {layout.after} shards"


def _acts(now: float, around: Around) -> Iterator[str]:
    for act in around.activity:
        if 0 <= now - act.at <= ACTED and act.action != NOTED:
            yield f"{act.who} did {act.action!r} on it {lasting(now - act.at)} ago"


def _declared(now: float, layout: Layout) -> Iterator[str]:
    # Of another declaration nobody notes the time, but for the count of shards: it needs a queue without jobs.
    if 0 <= now - layout.at <= ACTED:
        yield f"it got {layout.after} shards {lasting(now - layout.at)} ago"


def _starts(now: float, around: Around) -> Iterator[str]:
    for release in around.releases:
        if 0 <= now - release.since <= BEGAN:
            yield f"the release {release.name} began {lasting(now - release.since)} ago"
    able = [process for process in around.processes if not process.is_gone]
    for process in able:
        # An invocation begins again and again, which changes nothing.
        if process.kind == "daemon" and 0 <= now - process.since <= BEGAN:
            yield f"the daemon {process.host}:{process.pid} began {lasting(now - process.since)} ago"
    for process in able:
        if process.is_slow:
            yield f"Redis is slow to answer {process.host}:{process.pid}"
