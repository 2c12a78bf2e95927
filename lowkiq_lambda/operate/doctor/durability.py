"""Acknowledged writes that a crash of a node, or a failover, can lose."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from lowkiq_lambda.operate.doctor.findings import Finding, Mark, worst
from lowkiq_lambda.operate.doctor.promises import DATA, NOTHING_LOST
from lowkiq_lambda.operate.doctor.server import united
from lowkiq_lambda.operate.doctor.words import several, time
from lowkiq_lambda.store.server.vitals import NodeVitals, Topology

MOST_LAG: Final = 10
"""Seconds: a replica that has not been heard of for longer is warned of."""
_FAILURES: Final = {
    "rdb_last_bgsave_status": "its last snapshot failed",
    "aof_last_write_status": "its last write to the append-only file failed",
    "aof_last_bgrewrite_status": "its last rewrite of the append-only file failed",
}


def durability_findings(nodes: Sequence[NodeVitals], topology: Topology, wait_replicas: int = 0) -> Iterator[Finding]:
    """The findings on all nodes; equal findings on several nodes are merged. `wait_replicas`: that of the app."""
    yield from united([finding for node in nodes for finding in _of_node(node, topology, wait_replicas)])


def _of_node(node: NodeVitals, topology: Topology, wait_replicas: int) -> Iterator[Finding]:
    yield from _failures(node)
    yield from _lagging(node)
    yield from _too_few(node, wait_replicas)
    crash_mark, crash, crash_advice = _crash(node)
    failover_mark, failover, failover_advice = _failover(node, topology, wait_replicas)
    yield Finding(
        section="server",
        check="durability",
        mark=worst([crash_mark, failover_mark]),
        says=f"{crash}; {failover}",
        advice=" ".join(filter(None, (crash_advice, failover_advice))),
        about=node.address,
        promises=DATA,
    )


def _failures(node: NodeVitals) -> Iterator[Finding]:
    failed = [sentence for name, sentence in _FAILURES.items() if node.info.get(name) == "err"]
    if failed:
        yield Finding(
            section="server",
            check="persistence",
            mark="broken",
            says=f"{', and '.join(failed)}: it may refuse writes, and a restart loses jobs",
            advice="Look at the server's log, and at its disk.",
            about=node.address,
            promises=DATA,
        )


def _lagging(node: NodeVitals) -> Iterator[Finding]:
    behind = [replica for replica in _replicas(node) if _lag(replica) > MOST_LAG or replica.get("state") != "online"]
    if behind:
        names = ", ".join(f"{replica.get('ip', '?')}:{replica.get('port', '?')}" for replica in behind)
        longest = max(map(_lag, behind))
        yield Finding(
            section="server",
            check="replicas",
            mark="warning",
            says=f"{several(len(behind), 'replica')} not in step ({names}; heard of {time(longest)} ago)",
            advice="Look at the replicas and the network between: a failover to one of them loses what it lacks.",
            about=node.address,
            promises=(NOTHING_LOST,),
        )


def _too_few(node: NodeVitals, wait_replicas: int) -> Iterator[Finding]:
    count = _replicas_count(node)
    if count is not None and count < wait_replicas:
        yield Finding(
            section="server",
            check="replicas",
            mark="broken",
            says=f"wait_replicas is {wait_replicas}, and {several(count, 'replica')} connected: every push fails",
            advice="Connect more replicas, or set wait_replicas lower.",
            about=node.address,
            promises=(NOTHING_LOST,),
        )


def _crash(node: NodeVitals) -> tuple[Mark, str, str]:
    """Whether a crash loses anything, what, and what to do."""
    is_append_only = node.told("aof_enabled", "appendonly")
    fsync, save = node.settings.get("appendfsync"), node.settings.get("save")
    if is_append_only is None:
        advice = "Look up appendonly and appendfsync at the server, or in its parameter group."
        return "unknown", "what a crash loses is not known, as the server does not tell appendonly", advice
    if is_append_only in {"1", "yes"}:
        return _crash_of_append_only(fsync)
    replicas = _replicas_count(node)
    rescue = ", unless a replica takes its place" if replicas else ""
    mark: Mark = "warning" if replicas or save else "broken"
    advice = "Set appendonly yes."
    if save is None:
        managed = "Where that cannot be set, as in ElastiCache, have replicas, or take MemoryDB."
        return "warning", f"a crash loses what came since the last snapshot, or all{rescue}", f"{advice} {managed}"
    if save:
        return mark, f"a crash loses what came since the last snapshot (save {save}){rescue}", advice
    return mark, f"a crash or a restart loses everything{rescue}: nothing is written to disk", advice


def _crash_of_append_only(fsync: str | None) -> tuple[Mark, str, str]:
    if fsync == "always":
        return "ok", "a crash loses nothing (appendfsync always)", ""
    if fsync == "no":
        sentence = "a crash of the machine loses what the system has not written, some 30 s (appendfsync no)"
        return "warning", sentence, "Set appendfsync to everysec."
    condition = "appendfsync everysec" if fsync else "if appendfsync is everysec, which the server does not tell"
    return "ok", f"a crash loses the last second at most ({condition})", ""


def _failover(node: NodeVitals, topology: Topology, wait_replicas: int) -> tuple[Mark, str, str]:
    count = _replicas_count(node)
    if count is None:
        return "unknown", "what a failover loses is not known, as the server does not tell its replicas", ""
    if not count:
        return "ok", "there is no replica to fail over to", ""
    replicas = several(count, "replica")
    if wait_replicas:
        condition = " to a replica that had it" if wait_replicas < count else ""
        return "ok", f"a failover{condition} loses no push that has returned (wait_replicas {wait_replicas})", ""
    # INFO has the number of good replicas only if the server requires some.
    least = node.number("min-replicas-to-write") or int("min_slaves_good_slaves" in node.info)
    if least:
        return "ok", f"a failover to one of {replicas} loses what was on its way (min-replicas-to-write {least})", ""
    sentence = f"a failover to one of {replicas} loses what that has not got yet"
    if topology == "sentinel":
        sentence += ", and what the old primary takes until Sentinel has reached it, some seconds"
    if not node.settings:
        return "ok", sentence, ""
    return "warning", sentence, "Set min-replicas-to-write 1 on every server."


def _replicas_count(node: NodeVitals) -> int | None:
    return node.number("connected_slaves")


def _replicas(node: NodeVitals) -> list[Mapping[str, str]]:
    lines = (node.info.get(f"slave{number}", "") for number in range(_replicas_count(node) or 0))
    return [dict(part.split("=", 1) for part in line.split(",") if "=" in part) for line in lines if line]


def _lag(replica: Mapping[str, str]) -> int:
    text = replica.get("lag", "0")
    return int(text) if text.isdecimal() else 0
