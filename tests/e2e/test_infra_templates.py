"""Templates beside the main one, deployed on the local cloud: a function for one queue, and the network."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local.replay.jobs import CountItems
from tests.e2e.stack import QUEUE, Stack
from tests.kit.servers import LocalCloud
from tests.kit.waiting import eventually

INFRA = Path(__file__).parents[2] / "infra"
OWN = CountItems.queue_name
ITEMS = 12

pytestmark = [
    pytest.mark.xdist_group("cloud"),
    pytest.mark.timeout(400),
    pytest.mark.nightly("the stack without options is deployed in each check"),
]


def created(cloud: LocalCloud, name: str, template: str, **parameters: str) -> dict[str, str]:
    """Make a stack of a template's text; its outputs."""
    api = cloud.client("cloudformation")
    api.create_stack(
        StackName=name,
        TemplateBody=template,
        Parameters=[{"ParameterKey": key, "ParameterValue": value} for key, value in parameters.items()],
        Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
    )

    def described() -> dict[str, Any]:
        found: dict[str, Any] = api.describe_stacks(StackName=name)["Stacks"][0]
        return found

    eventually(lambda: not described()["StackStatus"].endswith("_IN_PROGRESS"), 60, f"the end of the making of {name}")
    events = api.describe_stack_events(StackName=name)["StackEvents"]
    failed = [one.get("ResourceStatusReason") for one in events if "FAILED" in one["ResourceStatus"]]
    assert "CREATE_COMPLETE" == described()["StackStatus"], failed
    return {one["OutputKey"]: one["OutputValue"] for one in described()["Outputs"]}


def deleted(cloud: LocalCloud, name: str) -> None:
    """Take a stack away."""
    api = cloud.client("cloudformation")
    api.delete_stack(StackName=name)
    api.get_waiter("stack_delete_complete").wait(StackName=name, WaiterConfig={"Delay": 1})


@pytest.fixture
def own_function(stack: Stack) -> Iterator[str]:
    """A function for one of the two queues, which the stack leaves to it; no schedule starts it."""
    name = f"{stack.deployment.name}-own"
    template = (INFRA / "queue-function.yaml").read_text()
    code = f"CodeUri: {stack.deployment.code_uri('DrainFunction')}"
    outputs = created(
        stack.cloud,
        name,
        template.replace("CodeUri: !Ref CodeUri", code),
        Queues=OWN,
        AppModule="jobs:app",
        RedisUrl=stack.redis_url,
        MemorySize="1024",
        ScheduleState="DISABLED",
    )
    stack.deployment.update(OtherQueues=OWN)
    yield outputs["DrainFunctionName"]
    stack.deployment.update(OtherQueues="")
    deleted(stack.cloud, name)


def test_each_function_drains_its_own_queues(stack: Stack, own_function: str) -> None:
    """What the stack leaves out waits for the other function, which takes nothing else."""
    CountItems.push_many([{"id": item, "payload": 0} for item in range(ITEMS)])

    by_stack = stack.invoke("Drain", {})
    waiting = stack.metrics_of(CountItems).length
    answer = stack.cloud.client("lambda").invoke(FunctionName=own_function, Payload=b"{}")
    by_own = json.load(answer["Payload"])

    assert {QUEUE} == by_stack["queues"].keys()
    assert ITEMS == waiting
    assert {OWN} == by_own["queues"].keys(), by_own
    assert 0 == stack.metrics_of(CountItems).length


def test_the_network_is_what_the_other_templates_ask_for(cloud: LocalCloud) -> None:
    """Without IPv6, which this cloud does not know: two subnets in two zones, and the functions' way to Redis."""
    outputs = created(cloud, "network", (INFRA / "network.yaml").read_text())
    subnets = cloud.client("ec2").describe_subnets(SubnetIds=outputs["SubnetIds"].split(","))["Subnets"]
    deleted(cloud, "network")

    assert 2 == len({subnet["AvailabilityZone"] for subnet in subnets})
    assert {outputs["VpcId"]} == {subnet["VpcId"] for subnet in subnets}
    assert outputs["SecurityGroupIds"].startswith("sg-")


@pytest.fixture
def key(cloud: LocalCloud) -> Iterator[str]:
    """A key of the organisation, by its ARN."""
    kms = cloud.client("kms")
    created = kms.create_key(Description="of the organisation")["KeyMetadata"]
    yield created["Arn"]
    kms.schedule_key_deletion(KeyId=created["KeyId"], PendingWindowInDays=7)


def test_logs_and_queues_have_the_organisations_key(stack: Stack, key: str) -> None:
    """Those that are there already, the log of requests among them; drains go on."""
    rules = {"LogsKmsKeyArn": key, "QueuesKmsKeyArn": key}
    logs, sqs = (stack.cloud.client(service) for service in ("logs", "sqs"))
    stack.deployment.update(**rules)
    resources = stack.deployment.resources
    try:
        CountItems.push_many([{"id": "within rules", "payload": 0}])
        told = stack.invoke("Drain", {"queue": OWN})
        groups = logs.describe_log_groups(logGroupNamePrefix=f"/aws/lambda/{stack.deployment.name}-")["logGroups"]
        access = logs.describe_log_groups(logGroupNamePrefix=f"/aws/vendedlogs/{stack.deployment.name}")["logGroups"]
        queue = sqs.get_queue_attributes(QueueUrl=resources["FailureQueue"], AttributeNames=["All"])["Attributes"]
    finally:
        stack.deployment.update(**dict.fromkeys(rules, ""))

    assert {"done": 1} == told["counts"]
    assert [key] * len(groups + access) == [group.get("kmsKeyId") for group in groups + access]
    assert 1 == len(access)
    assert key == queue["KmsMasterKeyId"]


def test_the_daemons_task_is_taken(cloud: LocalCloud) -> None:
    """The task of the daemon with its roles and its log; this cloud makes no service of it."""
    template = (INFRA / "fargate.yaml").read_text()
    without_service = re.sub(r"  Service:\n(?:    .*\n)+", "", template).replace("!GetAtt Service.Name", "none")
    parameters = {"ImageUri": "example/shop:1", "AppModule": "shop.jobs:app", "RedisUrl": "redis://redis.example"}
    outputs = created(cloud, "daemon", without_service, **parameters, SubnetIds="subnet-1", SecurityGroupIds="sg-1")
    (task,) = cloud.client("ecs").list_task_definitions(familyPrefix="daemon")["taskDefinitionArns"]
    definition = cloud.client("ecs").describe_task_definition(taskDefinition=task)["taskDefinition"]
    deleted(cloud, "daemon")

    (container,) = definition["containerDefinitions"]
    assert ("FARGATE", "awsvpc") == (*definition["requiresCompatibilities"], definition["networkMode"])
    assert (["lowkiq"], "run") == (container["entryPoint"], container["command"][0])
    assert {"LOWKIQ_APP": "shop.jobs:app"}.items() <= {
        one["name"]: one["value"] for one in container["environment"]
    }.items()
    assert "/ecs/daemon" == outputs["LogGroupName"] == container["logConfiguration"]["options"]["awslogs-group"]


def test_the_durable_cache_is_taken(cloud: LocalCloud) -> None:
    """Its nodes with users, subnets and parameters; this cloud has no endpoint of a cluster."""
    template = (INFRA / "elasticache.yaml").read_text()
    without_endpoint = re.sub(r"\$\{Nodes\.ConfigurationEndPoint\.\w+\}", "none", template)
    network = created(cloud, "network", (INFRA / "network.yaml").read_text())
    parameters = {"VpcId": network["VpcId"], "SubnetIds": network["SubnetIds"], "Durability": "sync"}
    outputs = created(
        cloud, "cache", without_endpoint, **parameters, FunctionSecurityGroupId=network["SecurityGroupIds"]
    )
    (group,) = cloud.client("elasticache").describe_replication_groups(ReplicationGroupId="lowkiq")["ReplicationGroups"]
    deleted(cloud, "cache")
    deleted(cloud, "network")

    assert ("lowkiq", "false") == (outputs["RedisIamCache"], outputs["RedisIamServerless"])
    assert ("enabled", "enabled", True) == (
        group["MultiAZ"],
        group["AutomaticFailover"],
        group["TransitEncryptionEnabled"],
    )
