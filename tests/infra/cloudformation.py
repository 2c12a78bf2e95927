"""What CloudFormation makes of a template and its parameters: the resources that are there, with all values filled in.

SAM's own translator expands functions; what AWS would choose stands as <NAME> or <NAME.ATTRIBUTE>.
"""

import json
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from tests.kit.templates import ROOT

Resources: TypeAlias = dict[str, dict[str, Any]]
"""Type and properties by the resource's name."""

STACK: Final = "shop"
PSEUDO: Final = {
    "AWS::StackName": STACK,
    "AWS::Partition": "aws",
    "AWS::Region": "eu-west-1",
    "AWS::AccountId": "123456789012",
    "AWS::URLSuffix": "amazonaws.com",
}
_PYTHON: Final = ROOT / ".tools" / "cloud" / "bin" / "python"
_EXPAND: Final = """
import json, sys
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
import boto3
session = boto3.Session(region_name="eu-west-1")
done = []
for template, values in json.load(sys.stdin):
    done.append(Translator({}, Parser(), boto_session=session).translate(template, values))
print(json.dumps(done))
"""
_NOTHING: Final = object()
_FUNCTIONS: Final[Mapping[str, Callable[[list[Any]], Any]]] = {
    "Fn::Equals": lambda both: str(both[0]) == str(both[1]),
    "Fn::Not": lambda one: not one[0],
    "Fn::And": all,
    "Fn::Or": any,
    "Fn::Join": lambda both: both[0].join(map(str, both[1])),
    "Fn::Split": lambda both: both[1].split(both[0]),
    "Fn::Select": lambda both: both[1][int(both[0])],
}
_NAMED: Final = {
    "AWS::Lambda::Function": "FunctionName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::Scheduler::ScheduleGroup": "Name",
}
"""Whose Ref is a name that the template gives."""
_OF_SAM: Final = {"Tags", "Code"}
_DEFAULTS: Final = [("ReturnData", "true"), ("SnapStart", {"ApplyOn": "None"})]
# Of a log group API Gateway takes both ARNs, and Lambda its own functions by name and ARN.
_FORMS: Final = {
    "DestinationArn": re.compile(r":\*$"),
    "FunctionName": re.compile(r"^arn:aws:lambda:[^:]+:\d+:function:(?=[^:]+$)"),
}


def made(stacks: Sequence[tuple[dict[str, Any], Mapping[str, str]]]) -> list[Resources]:
    """The resources of each template with its parameters."""
    inputs = []
    for template, given in stacks:
        parameters = template.get("Parameters", {})
        values = {name: str(one.get("Default", "")) for name, one in parameters.items()} | dict(given)
        inputs.append((_unrolled(template, values), values))
    done = subprocess.run(
        [_PYTHON, "-c", _EXPAND], input=json.dumps(inputs), capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stderr
    return [
        FilledTemplate(one, values).resources()
        for one, (_, values) in zip(json.loads(done.stdout), inputs, strict=True)
    ]


def _unrolled(template: dict[str, Any], values: Mapping[str, str]) -> dict[str, Any]:
    resources: Resources = {}
    for name, resource in template["Resources"].items():
        if name.startswith("Fn::ForEach::"):
            variable, over, body = resource
            for value in values[over["Ref"]].split(","):
                letters = re.sub("[^0-9A-Za-z]", "", value)
                text = json.dumps(body).replace(f"${{{variable}}}", value).replace(f"&{{{variable}}}", letters)
                resources |= json.loads(text)
        else:
            resources[name] = resource
    packaged = "s3://packages/package.zip"
    for resource in resources.values():
        if resource["Type"] == "AWS::Serverless::Function":
            resource["Properties"] = resource["Properties"] | {"CodeUri": packaged}
    return {**template, "Transform": "AWS::Serverless-2016-10-31", "Resources": resources}


def comparable(resources: Resources) -> Resources:
    """With one form for what has two: scalars are texts, and what is left out is as what AWS then takes."""
    return {name: _comparable(resource) for name, resource in resources.items()}


def _comparable(value: Any) -> Any:
    if isinstance(value, list):
        return sorted(map(_comparable, value), key=_sorted)
    if isinstance(value, dict):
        found = {key: _comparable(one) for key, one in value.items()}
        for key, form in _FORMS.items():
            if key in found:
                found[key] = form.sub("", found[key])
        return {key: one for key, one in found.items() if (key, one) not in _DEFAULTS}
    return str(value).lower() if isinstance(value, bool) else str(value)


def _sorted(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


class FilledTemplate:
    """A template without loops and functions of SAM, with its parameters."""

    def __init__(self, template: dict[str, Any], values: Mapping[str, str]) -> None:
        self._template, self._resources = template, template["Resources"]
        lists = {name for name, one in template.get("Parameters", {}).items() if one["Type"] == "CommaDelimitedList"}
        self._values: dict[str, str | list[str]] = {**PSEUDO}
        for name, text in values.items():
            self._values[name] = text.split(",") if name in lists else text

    def resources(self) -> Resources:
        """Those whose conditions are met."""
        found = {}
        for name, resource in self._resources.items():
            if "Condition" not in resource or self._value({"Condition": resource["Condition"]}):
                properties = self._value(resource.get("Properties", {}))
                kept = {key: value for key, value in properties.items() if key not in _OF_SAM}
                found[name] = {"Type": resource["Type"], "Properties": kept}
        return found

    def _value(self, given: Any) -> Any:
        if isinstance(given, list):
            return [value for value in map(self._value, given) if value is not _NOTHING]
        if not isinstance(given, dict):
            return given
        if len(given) == 1:
            ((function, arguments),) = given.items()
            if function in _FUNCTIONS:
                return _FUNCTIONS[function](self._value(arguments))
            if function in {"Ref", "Condition", "Fn::If", "Fn::GetAtt", "Fn::Sub"} and not (
                function == "Condition" and isinstance(arguments, dict)
            ):
                return self._chosen(function, arguments)
        values = {key: self._value(value) for key, value in given.items()}
        return {key: value for key, value in values.items() if value is not _NOTHING}

    def _chosen(self, function: str, arguments: Any) -> Any:
        if function == "Condition":
            return self._value(self._template["Conditions"][arguments])
        if function == "Fn::If":
            condition, *both = arguments
            return self._value(both[not self._value({"Condition": condition})])
        if function == "Fn::Sub":
            return re.sub(r"\$\{([\w:.]+)\}", lambda match: str(self._named(match[1])), arguments)
        return self._named(arguments if function == "Ref" else ".".join(arguments))

    def _named(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return _NOTHING
        if name in self._values:
            return self._values[name]
        logical, _, attribute = name.partition(".")
        resource = self._resources[logical]
        kind = resource["Type"]
        if kind == "AWS::Lambda::Alias":
            function = self._value(resource["Properties"]["FunctionName"])
            return f"{_function_arn(function)}:{resource['Properties']['Name']}"
        if kind == "AWS::Lambda::Function" and attribute == "Arn":
            return _function_arn(self._value(resource["Properties"]["FunctionName"]))
        if not attribute and kind in _NAMED:
            return self._value(resource["Properties"][_NAMED[kind]])
        token = f"<{logical}{'.' * bool(attribute)}{attribute}>"
        return f"{token}:*" if kind == "AWS::Logs::LogGroup" else token


def _function_arn(name: str) -> str:
    return f"arn:aws:lambda:eu-west-1:123456789012:function:{name}"
