"""What an organisation asks of templates: rights, keys, IPv6, logs, and containers that may do little."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from lowkiq_lambda import Config
from lowkiq_lambda.aws.logs import METRICS
from lowkiq_lambda.aws.ticking import WANTED
from lowkiq_lambda.settings.aws import RedisIam, Settings
from lowkiq_lambda.settings.config import variable_of
from tests.kit.templates import NOT_OURS, ROOT, TOOLS, of_kind, run

BOUNDARY: Final = {"Fn::If": ["HasBoundary", {"Ref": "PermissionsBoundaryArn"}, {"Ref": "AWS::NoValue"}]}
LOGS_KEY: Final = {"Fn::If": ["HasLogsKey", {"Ref": "LogsKmsKeyArn"}, {"Ref": "AWS::NoValue"}]}
QUEUES_KEY: Final = {"Fn::If": ["HasQueuesKey", {"Ref": "QueuesKmsKeyArn"}, {"Ref": "AWS::NoValue"}]}
WITH_ROLES: Final = ("template", "queue-function", "managed-instances", "fargate")
FOR_SOME_QUEUES: Final = ("queue-function", "managed-instances")

pytestmark = [pytest.mark.xdist_group("templates"), pytest.mark.timeout(300)]

Templates = dict[str, dict[str, Any]]


def statements(value: object) -> Iterator[dict[str, Any]]:
    """Every statement of every policy in it."""
    if isinstance(value, dict) and "Effect" in value:
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from statements(one)


@pytest.mark.parametrize("name", WITH_ROLES)
def test_every_role_has_the_boundary(templates: Templates, name: str) -> None:
    """An organisation that allows roles within a boundary alone can deploy all of them."""
    roles = of_kind(templates[name], "AWS::IAM::Role")

    assert [BOUNDARY] * len(roles) == [role["PermissionsBoundary"] for role in roles.values()]
    assert roles


@pytest.mark.parametrize("name", WITH_ROLES)
def test_every_log_has_the_key(templates: Templates, name: str) -> None:
    """Logs of functions, of the API and of the daemon are encrypted with the key that is named, and end some day."""
    groups = of_kind(templates[name], "AWS::Logs::LogGroup")

    assert [(LOGS_KEY, {"Ref": "LogRetentionDays"})] * len(groups) == [
        (group["KmsKeyId"], group["RetentionInDays"]) for group in groups.values()
    ]
    assert groups


@pytest.mark.parametrize("name", ["template", *FOR_SOME_QUEUES])
def test_every_queue_of_sqs_is_encrypted_once(templates: Templates, name: str) -> None:
    """With the key that is named, else by SQS itself: it takes only one of the two."""
    queues = of_kind(templates[name], "AWS::SQS::Queue")

    assert [(QUEUES_KEY, {"Fn::If": ["HasQueuesKey", {"Ref": "AWS::NoValue"}, True]})] * len(queues) == [
        (queue["KmsMasterKeyId"], queue["SqsManagedSseEnabled"]) for queue in queues.values()
    ]
    assert queues


@pytest.mark.parametrize("name", ["template", *FOR_SOME_QUEUES])
def test_whoever_sends_to_an_encrypted_queue_may_use_its_key(templates: Templates, name: str) -> None:
    """The functions, and the scheduler for events that it could not deliver."""
    found = [one for one in statements(templates[name]["Resources"]) if one.get("Sid") == "UseTheKeyOfQueues"]

    assert [(["kms:Decrypt", "kms:GenerateDataKey"], {"Ref": "QueuesKmsKeyArn"})] * 2 == [
        (one["Action"], one["Resource"]) for one in found
    ]


def test_rights_are_the_least_here_too(templates: Templates) -> None:
    """No action by pattern; on everything only what AWS cannot limit."""
    unlimited = {
        action
        for name in (*FOR_SOME_QUEUES, "fargate")
        for one in statements(templates[name]["Resources"])
        if "Principal" not in one
        for action in ([one["Action"]] if isinstance(one["Action"], str) else one["Action"])
        if "*" in action or one["Resource"] == "*"
    }

    assert {"ecr:GetAuthorizationToken"} == {action for action in unlimited if not action.startswith("ec2:")}


@pytest.mark.parametrize("name", WITH_ROLES)
def test_the_parameters_of_iam_are_the_parts_of_a_setting(templates: Templates, name: str) -> None:
    """Four parameters, of which each has its rules and its description, make one variable."""
    ((text,),) = [re.findall(r'"(user=\$[^"]*)"', json.dumps(templates[name]))]
    chosen = {"User": "jobs", "Cache": "shop", "Service": "elasticache", "Serverless": "true"}

    given = re.sub(r"\$\{RedisIam(\w+)\}", lambda match: chosen[match[1]], text)

    wanted = RedisIam(user="jobs", cache="shop", serverless=True)
    assert wanted == Settings.from_env({"LOWKIQ_REDIS_IAM": given}).redis_iam


@pytest.mark.parametrize("name", FOR_SOME_QUEUES)
def test_a_function_for_some_queues_is_told_which(templates: Templates, name: str) -> None:
    """Each variable is a setting, its own queues among them; the app's tick is left to the other stack."""
    template = templates[name]
    (function,) = of_kind(template, "AWS::Serverless::Function").values()
    (schedule,) = of_kind(template, "AWS::Scheduler::Schedule").values()
    variables = function["Environment"]["Variables"]
    known = {variable_of(field.name) for kind in (Settings, Config) for field in msgspec.structs.fields(kind)}

    assert {"Ref": "Queues"} == variables["LOWKIQ_QUEUES"]
    assert NOT_OURS == variables.keys() - known
    assert "{}" == schedule["Target"]["Input"]
    (invoked,) = of_kind(template, "AWS::Lambda::EventInvokeConfig").values()
    assert (0, 600) == (invoked["MaximumRetryAttempts"], invoked["MaximumEventAgeInSeconds"])


def test_the_two_functions_are_made_alike(templates: Templates) -> None:
    """Parameters of both templates take the same values, and have the same defaults."""
    main, own = (templates[name]["Parameters"] for name in ("template", "queue-function"))

    def taken(parameters: dict[str, Any], name: str) -> dict[str, Any]:
        return {key: value for key, value in parameters[name].items() if key != "Description"}

    shared = set(own.keys() & main.keys())
    assert {"Queues", "Threads"} == own.keys() - main.keys()
    # Only the function of the ticks may start others.
    assert {*taken(main, "Idle").pop("AllowedValues")} - {*taken(own, "Idle").pop("AllowedValues")} == {
        "start",
        "punctual",
    }
    shared.discard("Idle")
    assert {name: taken(main, name) for name in shared} == {name: taken(own, name) for name in shared}


def test_functions_on_instances_are_made_alike_too(templates: Templates) -> None:
    """What they share with other functions for some queues means the same, but for what AWS takes there."""
    other, own = (templates[name]["Parameters"] for name in FOR_SOME_QUEUES)
    differ = {name for name in own.keys() & other.keys() if own[name] != other[name]}

    assert {"DrainTimeout", "Idle", "MemorySize", "Release", "Runtime"} == differ
    assert {"CapacityProvider", "LeastEnvironments", "MostEnvironments", "Processes"} == own.keys() - other.keys()
    assert ["python3.13", "python3.14"] == own["Runtime"]["AllowedValues"]
    assert (2_048, "linger") == (own["MemorySize"]["MinValue"], own["Idle"]["Default"])


def test_there_is_a_process_for_each_minute_that_an_invocation_lingers(templates: Templates) -> None:
    """Also if a single environment is left of three; else invocations would be refused, and their events lost."""
    parameters = templates["managed-instances"]["Parameters"]

    assert parameters["Processes"]["Default"] > parameters["DrainTimeout"]["Default"] / 60 + 1
    assert parameters["LeastEnvironments"]["Default"] == parameters["MostEnvironments"]["Default"]


TRANSFORM: Final = """
import json, sys
from samcli.yamlhelper import yaml_parse
from samtranslator.model.exceptions import InvalidDocumentException
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
template = yaml_parse(sys.argv[1])
for one in template["Resources"].values():
    if one["Type"] == "AWS::Serverless::Function":
        one["Properties"]["CodeUri"] = "s3://bucket/key"
values = {name: str(one.get("Default", "-")) for name, one in template["Parameters"].items()}
try:
    print(json.dumps(Translator({}, Parser()).translate(template, values)["Resources"]["DrainFunction"]["Properties"]))
except InvalidDocumentException as error:
    print(json.dumps([cause.message for cause in error.causes]))
"""


def transformed(template: str) -> Any:
    """The drain function as CloudFormation gets it."""
    done = run(
        "env", "AWS_DEFAULT_REGION=us-east-1", str(TOOLS / "python"), "-c", TRANSFORM, template, tools=Path("/usr/bin")
    )
    return json.loads(done.stdout)


def test_sam_gives_cloudformation_the_capacity_provider() -> None:
    """A function on instances has the provider, processes, a published version, and no network of its own."""
    function = transformed((ROOT / "infra/managed-instances.yaml").read_text())

    assert {
        "LambdaManagedInstancesCapacityProviderConfig": {
            "CapacityProviderArn": {"Ref": "CapacityProvider"},
            "PerExecutionEnvironmentMaxConcurrency": {"Ref": "Processes"},
        }
    } == function["CapacityProviderConfig"]
    assert {"MinExecutionEnvironments", "MaxExecutionEnvironments"} == function["FunctionScalingConfig"].keys()
    assert function["PublishToLatestPublished"] is True
    assert not {"VpcConfig", "SnapStart"} & function.keys()


@pytest.mark.parametrize(
    ("config", "objection"),
    [
        ("{Arn: !Ref Queues}", "Cannot specify 'CapacityProviderConfig' and 'VpcConfig' together"),
        ("!If [InVpc, !Ref AWS::NoValue, {Arn: !Ref Queues}]", "'CapacityProviderConfig' and 'VpcConfig' together"),
    ],
)
def test_sam_takes_no_choice_between_a_vpc_and_instances(config: str, objection: str) -> None:
    """The day that it does, `CapacityProvider` may be a parameter of the other templates: see the page."""
    template = (ROOT / "infra/queue-function.yaml").read_text()
    asked = template.replace(
        "      VpcConfig: !If\n", f"      CapacityProviderConfig: {config}\n      VpcConfig: !If\n"
    )

    (told,) = transformed(asked)

    assert objection in told


def test_a_container_is_not_killed_before_the_daemon_has_ended(templates: Templates) -> None:
    """The stop timeout is above the longest that the daemon may take."""
    template = templates["fargate"]
    (task,) = of_kind(template, "AWS::ECS::TaskDefinition").values()
    (container,) = task["ContainerDefinitions"]
    longest = template["Parameters"]["ShutdownTimeout"]["MaxValue"]

    assert longest + 10 <= container["StopTimeout"] <= 120
    assert Config().shutdown_timeout == template["Parameters"]["ShutdownTimeout"]["Default"]
    assert {"Name": "LOWKIQ_SHUTDOWN_TIMEOUT", "Value": {"Ref": "ShutdownTimeout"}} in container["Environment"]


def test_a_container_may_do_little(templates: Templates) -> None:
    """Not root, no capabilities, and nothing written but to /tmp."""
    (task,) = of_kind(templates["fargate"], "AWS::ECS::TaskDefinition").values()
    (container,) = task["ContainerDefinitions"]

    assert ("10001:10001", True) == (container["User"], container["ReadonlyRootFilesystem"])
    assert {"Drop": ["ALL"]} == container["LinuxParameters"]["Capabilities"]
    assert ["/tmp"] == [mount["ContainerPath"] for mount in container["MountPoints"]]  # noqa: S108 - the container's


def test_ipv6_goes_out_and_lets_nobody_in(templates: Templates) -> None:
    """Each subnet has addresses, the way out is one for answers alone, and only ports of AWS's APIs are open to it."""
    template = templates["network"]
    (route,) = of_kind(template, "AWS::EC2::Route").values()
    egress = template["Resources"]["FunctionSecurityGroup"]["Properties"]["SecurityGroupEgress"]
    (by_ipv6,) = [rule["Fn::If"][1] for rule in egress if "Fn::If" in rule]

    assert {"Ref": "Ipv6Gateway"} == route["EgressOnlyInternetGatewayId"]
    assert ("::/0", 443, 443) == (by_ipv6["CidrIpv6"], by_ipv6["FromPort"], by_ipv6["ToPort"])
    assert {"SubnetA", "SubnetB"} == {
        one["SubnetId"]["Ref"] for one in of_kind(template, "AWS::EC2::SubnetCidrBlock").values()
    }
    assert {"HasIpv6"} == {
        one.get("Condition") for name, one in template["Resources"].items() if name.startswith("Ipv6")
    }


def test_functions_use_ipv6_where_they_are_told_to(templates: Templates) -> None:
    """Lambda gives them addresses, and their clients call the endpoints that have some."""
    everywhere = templates["template"]["Globals"]["Function"]
    (own,) = of_kind(templates["queue-function"], "AWS::Serverless::Function").values()

    for function in (everywhere, own):
        assert {"Fn::If": ["HasIpv6", True, {"Ref": "AWS::NoValue"}]} == (
            function["VpcConfig"]["Fn::If"][1]["Ipv6AllowedForDualStack"]
        )
        assert {"Ref": "DualStack"} == function["Environment"]["Variables"]["AWS_USE_DUALSTACK_ENDPOINT"]


def test_the_log_of_requests_names_no_secret(templates: Templates) -> None:
    """Paths, statuses and addresses; never a header, a query or a body, in which passwords and tokens come."""
    stage = templates["template"]["Resources"]["DashboardStage"]["Properties"]
    wanted, log, nothing = stage["AccessLogSettings"]["Fn::If"]

    assert ("LogsAccess", {"Ref": "AWS::NoValue"}) == (wanted, nothing)
    assert "true" == templates["template"]["Parameters"]["AccessLog"]["Default"]
    assert {"time", "request", "address", "method", "path", "status", "bytes", "milliseconds", "error"} == json.loads(
        log["Format"]
    ).keys()
    assert set() == set(re.findall(r"\$context\.([\w.]+)", log["Format"])) - {
        "requestTime",
        "requestId",
        "identity.sourceIp",
        "httpMethod",
        "path",
        "status",
        "responseLength",
        "responseLatency",
        "integrationErrorMessage",
    }


def test_a_container_is_asked_how_it_is_where_a_command_is_named(templates: Templates) -> None:
    """By default whether it does what is due. Three failures in a row replace it; an empty command asks nothing."""
    (task,) = of_kind(templates["fargate"], "AWS::ECS::TaskDefinition").values()
    (container,) = task["ContainerDefinitions"]
    asked, check, nothing = container["HealthCheck"]["Fn::If"]

    assert ("HasHealthCommand", {"Ref": "AWS::NoValue"}) == (asked, nothing)
    assert ["CMD-SHELL", {"Ref": "HealthCommand"}] == check["Command"]
    assert "lowkiq doctor --health" == templates["fargate"]["Parameters"]["HealthCommand"]["Default"]
    assert (3, True) == (check["Retries"], check["Timeout"] < check["Interval"])


def test_containers_are_scaled_by_what_the_tick_publishes(templates: Templates) -> None:
    """Both metrics are the tick's, of the function that is named; one thread is wanted for each shard with work."""
    template = templates["fargate"]
    policies = of_kind(template, "AWS::ApplicationAutoScaling::ScalingPolicy")
    tracking = policies["ScaleByWanted"]["TargetTrackingScalingPolicyConfiguration"]
    wanted, running, each = tracking["CustomizedMetricSpecification"]["Metrics"]
    (alarm,) = of_kind(template, "AWS::CloudWatch::Alarm").values()
    step = policies["ScaleByAge"]["StepScalingPolicyConfiguration"]

    by_function = [{"Name": "function", "Value": {"Ref": "ScalingFunction"}}]
    assert (WANTED, by_function) == (
        wanted["MetricStat"]["Metric"]["MetricName"],
        wanted["MetricStat"]["Metric"]["Dimensions"],
    )
    assert ("oldest_due_age", by_function, 60, 2, 60) == (
        *(alarm["MetricName"], alarm["Dimensions"], alarm["Threshold"]),
        *(alarm["EvaluationPeriods"], alarm["Period"]),
    )
    assert {"summary"} == {METRICS[name].level for name in (WANTED, alarm["MetricName"])}
    assert "RunningTaskCount" == running["MetricStat"]["Metric"]["MetricName"]
    assert {"Fn::Sub": "wanted / (running * ${Processes})"} == each["Expression"]
    assert ({"Ref": "Threads"}, 600) == (tracking["TargetValue"], tracking["ScaleInCooldown"])
    assert [2] == [one["ScalingAdjustment"] for one in step["StepAdjustments"]]


def test_containers_are_not_scaled_unless_somebody_asks(templates: Templates) -> None:
    """Each part has the condition, and an update sets no number of containers where others set it."""
    template = templates["fargate"]
    scaling = [one for one in template["Resources"].values() if "AutoScaling" in one["Type"] or "Alarm" in one["Type"]]
    (service,) = of_kind(template, "AWS::ECS::Service").values()

    assert ["Scales"] * 4 == [one.get("Condition") for one in scaling]
    assert {"Fn::If": ["Scales", {"Ref": "AWS::NoValue"}, {"Ref": "Daemons"}]} == service["DesiredCount"]
    assert (
        "false"
        == template["Parameters"]["Scaling"]["Default"]
        == templates["template"]["Parameters"]["Scaling"]["Default"]
    )
