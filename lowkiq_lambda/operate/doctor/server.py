"""Findings on each node of the server: eviction, memory, version, rights, role, clock, and what each queue takes."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from lowkiq_lambda.operate.doctor.findings import Finding, Mark, MemoryView
from lowkiq_lambda.operate.doctor.promises import BUDGET, DATA, HONEST_NUMBERS, NOTHING_LOST
from lowkiq_lambda.operate.doctor.queue_state import QueueState
from lowkiq_lambda.operate.doctor.words import several, size, time
from lowkiq_lambda.operate.inspect.memory import KINDS, queue_memory
from lowkiq_lambda.store.server.health import OLDEST, is_too_old
from lowkiq_lambda.store.server.vitals import NodeVitals, Topology
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.views.queues import QueueMetrics

FULL: Final = 0.8
"""The share of its memory limit above which a node gets a warning."""
MOST_SKEW: Final = 1.0
"""Seconds between two clocks that are said to agree."""
_MANAGED: Final = "A managed cache has it in its parameter group"


def server_findings(nodes: Sequence[NodeVitals], topology: Topology) -> Iterator[Finding]:
    """The findings on all nodes; equal findings on several nodes are merged."""
    yield from united([finding for node in nodes for finding in _of_node(node)])
    if topology == "cluster":
        yield from united([_cluster_state(node, len(nodes)) for node in nodes])
    yield from _clocks(nodes)


def united(findings: Sequence[Finding]) -> Iterator[Finding]:
    """The findings, those that differ in nothing but what they are about as one, which is about all that have it."""
    alike: dict[tuple[str, Mark, str], list[Finding]] = {}
    for finding in findings:
        alike.setdefault((finding.check, finding.mark, finding.says), []).append(finding)
    checks = list(dict.fromkeys(finding.check for finding in findings))
    for same in sorted(alike.values(), key=lambda same: checks.index(same[0].check)):
        about = ", ".join(finding.about for finding in same if finding.about)
        yield msgspec.structs.replace(same[0], about=about)


def _of_node(node: NodeVitals) -> Iterator[Finding]:
    yield _version(node)
    yield _user(node)
    yield from _role(node)
    yield _eviction(node)
    yield _memory(node)


def _found(node: NodeVitals, check: str, mark: Mark, sentence: str, advice: str = "", *promises: int) -> Finding:
    return Finding(
        section="server", check=check, mark=mark, says=sentence, advice=advice, about=node.address, promises=promises
    )


def _version(node: NodeVitals) -> Finding:
    version, is_valkey = node.info.get("redis_version", ""), "valkey_version" in node.info
    name = f"Valkey {node.info['valkey_version']}" if is_valkey else f"Redis {version}"
    if not version:
        advice = f"Make sure that it is {OLDEST} or newer."
        return _found(node, "version", "unknown", "the server does not tell its version", advice)
    if is_too_old(version):
        sentence = f"{name}, and {OLDEST} is the oldest that serves"
        return _found(node, "version", "broken", sentence, "Upgrade it.", *DATA)
    return _found(node, "version", "ok", name)


def _user(node: NodeVitals) -> Finding:
    refused = [name for name, answer in (("INFO", node.info), ("CONFIG GET", node.settings)) if not answer]
    name = f"signed in as {node.user!r}" if node.user else "the server does not tell as whom this is signed in"
    if "INFO" in refused:
        sentence = f"{name}; it refuses {' and '.join(refused)}"
        advice = f"What is not known below, look up at the server, or let the user call {' and '.join(refused)}."
        return _found(node, "user", "unknown", sentence, advice)
    refusal = ", and CONFIG GET is refused" if refused else ""
    return _found(node, "user", "ok", f"{name}{refusal}")


def _role(node: NodeVitals) -> Iterator[Finding]:
    if node.info.get("role") == "slave":
        yield _found(
            node,
            "role",
            "broken",
            "the node is a replica: it refuses every write",
            "Give the URL of the primary, or of its Sentinels or cluster.",
            NOTHING_LOST,
        )


def _eviction(node: NodeVitals) -> Finding:
    policy = node.told("maxmemory_policy", "maxmemory-policy")
    evicted = node.number("evicted_keys") or 0
    if policy is None:
        return _found(
            node,
            "eviction",
            "unknown",
            "the server does not tell its maxmemory-policy",
            f"{_MANAGED}: make sure that it is noeviction, as any other evicts jobs when memory is full.",
            *DATA,
        )
    if policy == "noeviction":
        return _found(node, "eviction", "ok", "maxmemory-policy is noeviction")
    limit = node.number("maxmemory")
    so_far = f"; {evicted:,} keys are evicted already" if evicted else ""
    when = "as soon as a maxmemory is set and reached" if limit == 0 else "when memory is full"
    return _found(
        node,
        "eviction",
        "warning" if limit == 0 and not evicted else "broken",
        f"maxmemory-policy is {policy}: it evicts keys, and jobs with them, {when}{so_far}",
        "Set maxmemory-policy to noeviction, or use a server of its own for the queues.",
        *DATA,
    )


def _memory(node: NodeVitals) -> Finding:
    bytes_used, limit = node.number("used_memory"), node.number("maxmemory")
    if bytes_used is None or limit is None:
        return _found(
            node,
            "memory",
            "unknown",
            "the server does not tell how full its memory is",
            "Look at its own metrics (DatabaseMemoryUsagePercentage, BytesUsedForCache): a full one refuses pushes.",
            NOTHING_LOST,
        )
    most = limit or node.number("total_system_memory") or 0
    whose = "its maxmemory" if limit else "the machine's memory, as it has no maxmemory"
    sentence = (
        f"{size(bytes_used)} used of {size(most)}, {whose}" if most else f"{size(bytes_used)} used, without a maxmemory"
    )
    advice = "Drain, delete what is in the morgue, or give it more memory."
    if limit and bytes_used >= limit:
        return _found(node, "memory", "broken", f"{sentence}: pushes are refused, drains go on", advice, NOTHING_LOST)
    if most and bytes_used >= FULL * most:
        return _found(node, "memory", "warning", f"{sentence}: {bytes_used / most:.0%}", advice, NOTHING_LOST)
    return _found(node, "memory", "ok", sentence)


def _cluster_state(node: NodeVitals, count: int) -> Finding:
    state = node.cluster.get("cluster_state")
    if state is None:
        return _found(node, "cluster", "unknown", "the node does not tell the state of its cluster")
    if state != "ok":
        return _found(
            node,
            "cluster",
            "broken",
            f"the node takes its cluster for {state}: not all slots are served",
            "Look at CLUSTER NODES there.",
            NOTHING_LOST,
        )
    return _found(node, "cluster", "ok", f"all slots are served, by {several(count, 'node')}")


def _clocks(nodes: Sequence[NodeVitals]) -> Iterator[Finding]:
    for node in nodes:
        ahead, doubt = node.ahead, node.round_trip / 2
        which = "ahead of" if ahead > 0 else "behind"
        if abs(ahead) - doubt > MOST_SKEW:
            yield _found(
                node,
                "clock",
                "warning",
                f"the server's clock is {time(abs(ahead))} {which} this machine's: a due_at that is computed here "
                "comes so much too early or too late",
                "Let both follow NTP, or push with delay in place of due_at.",
                HONEST_NUMBERS,
            )
        elif doubt > MOST_SKEW:
            yield _found(
                node,
                "clock",
                "warning",
                f"the server took {time(node.round_trip)} to answer",
                "Look at SLOWLOG GET there, and at the network.",
                BUDGET,
            )
        else:
            yield _found(node, "clock", "ok", f"within {MOST_SKEW:g} s of this machine's")
    spread = max(node.ahead for node in nodes) - min(node.ahead for node in nodes)
    if spread - max(node.round_trip for node in nodes) > MOST_SKEW:
        yield Finding(
            section="server",
            check="clock",
            mark="warning",
            says=f"the clocks of the nodes are {time(spread)} apart",
            advice="Let all of them follow NTP.",
            promises=(HONEST_NUMBERS,),
        )


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
