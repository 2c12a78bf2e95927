"""The template of the cache: what durability takes, what outlives the stack, and when its alarms ring."""

import json
import re
from typing import Any, Final

import pytest

from tests.aws.alarms import computed, states, told
from tests.kit.templates import of_kind

MINUTES: Final = 5
"""Of a period of the alarms on counts."""

LONGEST_NAME: Final = 40
"""Letters of a cache's name."""

pytestmark = [pytest.mark.xdist_group("templates"), pytest.mark.timeout(300)]

Templates = dict[str, dict[str, Any]]


def test_a_durable_cache_has_what_durability_takes(templates: Templates) -> None:
    """Nodes, cluster mode, TLS, a replica in another zone, Valkey 9; and nothing of it is evicted."""
    template = templates["elasticache"]
    (nodes,) = of_kind(template, "AWS::ElastiCache::ReplicationGroup").values()
    (group,) = of_kind(template, "AWS::ElastiCache::ParameterGroup").values()

    assert {"Ref": "Durability"} == nodes["Durability"]
    assert ["none", "async", "sync"] == template["Parameters"]["Durability"]["AllowedValues"]
    assert [True] * 4 == [
        nodes[name]
        for name in (
            "AutomaticFailoverEnabled",
            "MultiAZEnabled",
            "TransitEncryptionEnabled",
            "AtRestEncryptionEnabled",
        )
    ]
    assert 1 == template["Parameters"]["Replicas"]["MinValue"]
    assert {"cluster-enabled": "yes", "maxmemory-policy": "noeviction"} == group["Properties"]
    assert "valkey9" == group["CacheParameterGroupFamily"]
    version = template["Parameters"]["NodeEngineVersion"]
    assert re.fullmatch(version["AllowedPattern"], version["Default"])
    assert not re.fullmatch(version["AllowedPattern"], "8.1")


@pytest.mark.parametrize(
    ("kind", "durable"),
    [
        ("cache.m7g.large", True),
        ("cache.r7g.16xlarge", True),
        ("cache.c7gn.xlarge", True),
        ("cache.t4g.micro", False),
        ("cache.r6gd.xlarge", False),
    ],
)
def test_only_nodes_that_can_be_durable_are_taken(templates: Templates, kind: str, durable: bool) -> None:  # noqa: FBT001 - a parameter
    """Families without durability are refused before anything is made."""
    pattern = templates["elasticache"]["Parameters"]["NodeType"]["AllowedPattern"]

    assert durable == bool(re.fullmatch(pattern, kind))


def test_another_key_gives_the_cache_another_name(templates: Templates) -> None:
    """CloudFormation cannot make a second one of the same name beside the first; who names no key keeps the name."""
    template = templates["elasticache"]
    (serverless,) = of_kind(template, "AWS::ElastiCache::ServerlessCache").values()
    (nodes,) = of_kind(template, "AWS::ElastiCache::ReplicationGroup").values()
    name = serverless["ServerlessCacheName"]
    has_key, of_key, plain = name["Fn::If"]
    (named, parts) = of_key["Fn::Sub"]
    last = {"Fn::Select": [1, {"Fn::Split": ["key/", {"Ref": "KmsKeyArn"}]}]}
    key = "arn:aws:kms:eu-west-1:123456789012:key/0a1b2c3d-1111-2222-3333-444455556666"
    part = key.partition("key/")[2].partition("-")[0]

    assert ("HasKey", {"Ref": "CacheName"}, "${CacheName}-${Key}") == (has_key, plain, named)
    assert {"Fn::Select": [0, {"Fn::Split": ["-", last]}]} == parts["Key"]
    assert name == nodes["ReplicationGroupId"]
    assert template["Parameters"]["CacheName"]["MaxLength"] + len(f"-{part}") <= LONGEST_NAME
    assert "CacheName" not in json.dumps(template["Outputs"])


def test_jobs_outlive_the_stack_in_a_snapshot(templates: Templates) -> None:
    """By default the deletion of the stack keeps a snapshot, under a name that no other stack has used."""
    template = templates["elasticache"]
    (serverless,) = of_kind(template, "AWS::ElastiCache::ServerlessCache").values()
    kept, name, nothing = serverless["FinalSnapshotName"]["Fn::If"]

    assert ("KeepsFinalSnapshot", {"Ref": "AWS::NoValue"}) == (kept, nothing)
    assert "true" == template["Parameters"]["FinalSnapshot"]["Default"]
    assert "AWS::StackId" in json.dumps(name)
    assert "Snapshot" == template["Resources"]["Nodes"]["DeletionPolicy"]


def test_alarms_on_the_cache_are_made_for_a_topic_alone(templates: Templates) -> None:
    """Whoever names no topic pays for no alarm; each names its page, and tells of the end, too."""
    template = templates["elasticache"]
    alarms = {name: one for name, one in template["Resources"].items() if one["Type"] == "AWS::CloudWatch::Alarm"}

    assert {"WatchesServerless", "WatchesNodes", "WatchesAsync"} == {one["Condition"] for one in alarms.values()}
    for alarm in (one["Properties"] for one in alarms.values()):
        assert [[{"Ref": "AlarmTopicArn"}]] * 2 == [alarm["AlarmActions"], alarm["OKActions"]]
        assert re.search(r"see docs/runbooks/cache-(memory|throttled)\.md of", alarm["AlarmDescription"])


@pytest.mark.parametrize("name", ["ThrottledAlarm", "EvictionAlarm"])
def test_a_cache_that_refuses_or_evicts_rings(templates: Templates, name: str) -> None:
    """Each period in which it happens rings, and the topic hears of the end."""
    alarm = templates["elasticache"]["Resources"][name]["Properties"]
    minutes = [0.0] * MINUTES * 2 + [3.0] + [0.0] * MINUTES * 2

    assert ["OK", "ALARM", "OK"] == told(alarm, states(alarm, minutes))


@pytest.mark.parametrize(("used", "rings"), [(0.0, False), (3.9e9, False), (4.1e9, True), (5e9, True)])
def test_a_cache_rings_before_it_is_full(templates: Templates, used: float, rings: bool) -> None:  # noqa: FBT001 - a parameter
    """The alarm compares the bytes with MaxGigabytes: above four fifths of five GB it rings."""
    alarm = templates["elasticache"]["Resources"]["MemoryAlarm"]["Properties"]
    expression = alarm["Metrics"][0]["Expression"]["Fn::Sub"].replace("${MaxGigabytes}", "5")

    assert rings == (computed(expression, used=used) > alarm["Threshold"])


@pytest.mark.parametrize(
    ("name", "points", "rings"),
    [
        ("NodeMemoryAlarm", {"first": 79.0, "second": 79.0}, False),
        ("NodeMemoryAlarm", {"first": 20.0, "second": 81.0}, True),
        ("NodeMemoryAlarm", {"second": 81.0}, True),
        ("NodeThrottledAlarm", {"first": 0.0}, False),
        ("NodeThrottledAlarm", {"first": 0.0, "second": 1.0}, True),
        ("NodeRefusalAlarm", {}, False),
        ("NodeRefusalAlarm", {"first": 7.0}, True),
    ],
)
def test_either_node_rings(templates: Templates, name: str, points: dict[str, float], rings: bool) -> None:  # noqa: FBT001 - a parameter
    """After a failover the other node is the primary, and while one is replaced it publishes nothing."""
    alarm = templates["elasticache"]["Resources"][name]["Properties"]

    assert rings == (computed(alarm["Metrics"][0]["Expression"], **points) > alarm["Threshold"])
