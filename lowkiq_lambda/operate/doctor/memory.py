"""The use of memory on the server, queue by queue."""

from collections.abc import Iterator, Sequence
from typing import Final

from lowkiq_lambda.operate.doctor.findings import Finding, MemoryView
from lowkiq_lambda.operate.doctor.queue_state import QueueState
from lowkiq_lambda.operate.doctor.words import size
from lowkiq_lambda.operate.inspect.memory import KINDS, queue_memory
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.views.queues import QueueMetrics

BYTES_PER_ID: Final = 106
"""Beside the id and its payload: what docs/benchmarks.md measures."""


def memory_views(states: Sequence[QueueState], backend: Backend) -> Iterator[MemoryView]:
    """The views of queues that can be read. Raises BackendError."""
    for state in states:
        if not state.shards:
            continue
        sizes = queue_memory(backend, state.name, state.live, state.now)
        if sizes.sampled:
            by_kind: dict[str, int] = {kind: sizes.bytes[kind] for kind in KINDS if sizes.bytes.get(kind)}
            yield MemoryView(queue=state.name, how="sampled", bytes=by_kind, sampled=sizes.sampled, shards=sizes.shards)
        elif isinstance(state.metrics, QueueMetrics):
            counts = {"waiting": state.metrics.length, "morgue": state.metrics.morgue_length}
            estimated = {kind: count * BYTES_PER_ID for kind, count in counts.items() if count}
            yield MemoryView(queue=state.name, how="estimated", bytes=estimated, sampled=0, shards=sizes.shards)


def memory_findings(views: Sequence[MemoryView]) -> Iterator[Finding]:
    """A line for each queue that takes any."""
    for view in views:
        if not view.bytes:
            continue
        total = sum(view.bytes.values())
        parts = ", ".join(f"{kind} {size(count)}" for kind, count in view.bytes.items())
        yield Finding(
            section="memory", check="keys", mark="ok", says=f"{size(total)}: {parts} ({_how(view)})", about=view.queue
        )


def _how(view: MemoryView) -> str:
    if view.how == "estimated":
        return f"estimated, at least: {BYTES_PER_ID} bytes an id, without ids and payloads"
    if view.sampled < view.shards:
        return f"sampled with MEMORY USAGE in {view.sampled} of {view.shards} shards"
    return "sampled with MEMORY USAGE"
