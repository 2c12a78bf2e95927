"""What is made of what a node says, for servers that the tests do not have."""

from typing import Any, Final

import pytest

from lowkiq_lambda.operate.doctor.durability import durability_findings
from lowkiq_lambda.operate.doctor.server import server_findings
from lowkiq_lambda.operate.doctor.words import size, some, time
from lowkiq_lambda.store.server.health import OLDEST
from lowkiq_lambda.store.server.vitals import NodeVitals, Topology

KEPT: Final = {"aof_enabled": "1", "connected_slaves": "0", "used_memory": "1", "maxmemory": "0"}
EVERYSEC: Final = {"appendfsync": "everysec", "save": "", "min-replicas-to-write": "0"}


def node(info: dict[str, str] = KEPT, settings: dict[str, str] = EVERYSEC, **fields: Any) -> NodeVitals:
    """A node that says this."""
    given = {"address": "", "cluster": {}, "user": "default", "ahead": 0.0, "round_trip": 0.001, **fields}
    return NodeVitals(info=info, settings=settings, **given)


def durability(one: NodeVitals, topology: Topology = "server") -> tuple[str, str]:
    """Mark and words of what it can lose."""
    (finding,) = [found for found in durability_findings([one], topology) if found.check == "durability"]
    return finding.mark, finding.says


@pytest.mark.parametrize(
    ("wait_replicas", "marks", "says"),
    [
        (1, ["ok"], "a failover to a replica that had it loses no push that has returned (wait_replicas 1)"),
        (2, ["ok"], "a failover loses no push that has returned (wait_replicas 2)"),
        (3, ["broken", "ok"], "wait_replicas is 3, and 2 replicas connected: every push fails"),
    ],
)
def test_pushes_that_wait_for_more_replicas_than_there_are_are_told(
    wait_replicas: int, marks: list[str], says: str
) -> None:
    """The finding comes with what to set; with enough replicas the sentence on failovers is another one."""
    two = node({**KEPT, "connected_slaves": "2"})

    findings = [*durability_findings([two], "sentinel", wait_replicas)]

    assert marks == [found.mark for found in findings]
    assert says in findings[0].says
    assert (wait_replicas == 3) == ("wait_replicas lower" in findings[0].advice)


def told(one: NodeVitals, check: str) -> tuple[str, str]:
    """Mark and words of a finding."""
    findings = [*server_findings([one], "cluster"), *durability_findings([one], "cluster")]
    (finding,) = [found for found in findings if found.check == check]
    return finding.mark, finding.says


@pytest.mark.parametrize("version", ["6.0.16", "5.0.7"])
def test_an_old_server_is_told_the_version_that_it_needs(version: str) -> None:
    """The rule is that of the warning at the start of a daemon."""
    says = f"Redis {version}, and {OLDEST} is the oldest that serves"

    assert ("broken", says) == told(node({**KEPT, "redis_version": version}), "version")


@pytest.mark.parametrize(
    ("append_only", "settings", "replicas", "mark", "says"),
    [
        ("0", {"save": ""}, "0", "broken", "a crash or a restart loses everything: nothing"),
        ("0", {"save": ""}, "1", "warning", "loses everything, unless a replica takes its place"),
        ("0", {"save": "3600 1"}, "0", "warning", "since the last snapshot (save 3600 1)"),
        ("0", {}, "0", "warning", "since the last snapshot, or all"),
        ("1", {}, "0", "ok", "if appendfsync is everysec, which the server does not tell"),
        ("1", {"appendfsync": "always"}, "0", "ok", "a crash loses nothing"),
        ("1", {**EVERYSEC, "min-replicas-to-write": "1"}, "2", "ok", "loses what was on its way"),
        ("1", {}, "2", "ok", "a failover to one of 2 replicas loses what that has not got yet"),
    ],
)
def test_what_is_lost_follows_from_what_is_told(
    append_only: str, settings: dict[str, str], replicas: str, mark: str, says: str
) -> None:
    """Of a crash and of a failover, for each way to persist and to replicate."""
    found = durability(node({**KEPT, "aof_enabled": append_only, "connected_slaves": replicas}, settings))

    assert (mark, True) == (found[0], says in found[1])


def test_with_sentinels_the_old_primary_is_told_of() -> None:
    """It goes on taking writes that are thrown away."""
    found = durability(node({**KEPT, "connected_slaves": "1"}), "sentinel")

    assert ("warning", True) == (found[0], "what the old primary takes until Sentinel has reached it" in found[1])


def test_a_disk_that_fails_and_a_replica_behind_are_told() -> None:
    """What the server notes of its last snapshot, its append-only file and its replicas."""
    bad = {
        **KEPT,
        "rdb_last_bgsave_status": "err",
        "aof_last_write_status": "err",
        "connected_slaves": "2",
        "slave0": "ip=10.0.0.2,port=6379,state=online,offset=1,lag=0",
        "slave1": "ip=10.0.0.3,port=6379,state=online,offset=1,lag=45",
    }

    mark, says = told(node(bad), "persistence")
    assert ("broken", True) == (
        mark,
        says.startswith("its last snapshot failed, and its last write to the append-only"),
    )
    assert ("warning", "1 replica not in step (10.0.0.3:6379; heard of 45 s ago)") == told(node(bad), "replicas")


def test_a_cluster_that_is_down_a_slow_node_and_clocks_apart_are_told() -> None:
    """Each on its own line."""
    down = node(cluster={"cluster_state": "fail"}, round_trip=3.0)
    apart = [node(address="a", ahead=-2.0), node(address="b", ahead=2.0)]

    assert "broken" == told(down, "cluster")[0]
    assert ("warning", "the server took 3 s to answer") == told(down, "clock")
    clocks = [found.says for found in server_findings(apart, "server") if found.check == "clock"]
    assert ["behind", "ahead of"] == [word for says in clocks for word in ("behind", "ahead of") if word in says]
    assert "the clocks of the nodes are 4 s apart" == clocks[-1]


def test_numbers_are_said_in_units_that_people_use() -> None:
    """Two of a unit at least, else the next smaller one."""
    assert ["0.5 s", "90 s", "2 minutes", "47 hours", "2 days"] == [
        time(seconds) for seconds in (0.5, 90, 120, 47 * 3_600, 48 * 3_600)
    ]
    assert ["1023 bytes", "1.0 KiB", "1.5 GiB"] == [size(count) for count in (1_023, 1_024, 1.5 * 1024**3)]
    assert "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more" == some(range(12))
