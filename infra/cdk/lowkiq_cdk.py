"""The stack of template.yaml as a construct of AWS CDK, for apps in Python with aws-cdk-lib and PyYAML.

It reads the template, so an update of that is an update of this. Parameters, conditions and rules are settled when CDK
writes its own template: so parameters may be values of other constructs, which no condition of CloudFormation takes.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from aws_cdk import CfnOutput, CfnResource, Stack, Token
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

TEMPLATE: Final = Path(__file__).resolve().parents[2] / "template.yaml"
_FUNCTION: Final = "AWS::Serverless::Function"
_LOOP: Final = "Fn::ForEach::"
_NOTHING: Final = object()
_CHOICES: Final[Mapping[str, Callable[[list[Any]], bool]]] = {
    "Fn::Equals": lambda both: str(both[0]) == str(both[1]),
    "Fn::Not": lambda one: not one[0],
    "Fn::And": all,
    "Fn::Or": any,
    "Fn::Contains": lambda both: str(both[1]) in both[0],
    "Fn::EachMemberIn": lambda both: set(both[0]) <= set(both[1]),
}


class Lowkiq(Construct):
    """Drains, schedules, dashboard, roles and alarms, named after the CDK stack, which has room for one of it.

    `packages` is the folder with the packages DrainFunction, DashboardFunction and, with a way in, IngestFunction, as
    `sam build` and `lowkiq stack build` make them. `parameters` are those of the template by their names, as
    `sam deploy` takes them; texts but ShardIndexes and QueueSchedules may be values of other constructs. Raises
    ValueError for a parameter that the template does not have, and in its words for those that don't fit together.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, packages: str | Path, parameters: Mapping[str, object]
    ) -> None:
        super().__init__(scope, construct_id)
        with TEMPLATE.open(encoding="utf-8") as file:
            template = yaml.load(file, _Loader)  # noqa: S506 - made of the safe one
        settled = _Settled(template, parameters)
        Stack.of(self).add_transform("AWS::Serverless-2016-10-31")
        for name, resource in settled.entries("Resources"):
            self._add(name, resource, Path(packages) / name)
        for name, output in settled.entries("Outputs"):
            self._tell(name, output)
        self.drain_role = iam.Role.from_role_name(self, "Handlers", Token.as_string({"Ref": "DrainRole"}))
        """As whom handlers run: `table.grant_read_data(lowkiq.drain_role)` grants them what they need."""

    def _add(self, name: str, resource: Mapping[str, Any], package: Path) -> None:
        made = CfnResource(self, name, type=resource["Type"], properties=resource["Properties"])
        made.override_logical_id(name)
        for key in ("DeletionPolicy", "UpdateReplacePolicy"):
            if key in resource:
                made.add_override(key, resource[key])
        if resource["Type"] == _FUNCTION:
            variables = resource["Properties"]["Environment"]["Variables"]
            texts = {key: str(value) if isinstance(value, int) else value for key, value in variables.items()}
            made.add_property_override("Environment.Variables", texts)
            asset = assets.Asset(self, f"{name}Package", path=str(package))
            code = {"Bucket": asset.s3_bucket_name, "Key": asset.s3_object_key}
            made.add_property_override("CodeUri", code)

    def _tell(self, name: str, output: Mapping[str, Any]) -> None:
        told = CfnOutput(
            self, f"{name}Output", value=Token.as_string(output["Value"]), description=output["Description"]
        )
        told.override_logical_id(name)
        if "Export" in output:
            told.export_name = Token.as_string(output["Export"]["Name"])


class _Settled:
    """The template for given parameters, without loops, conditions and common properties."""

    def __init__(self, template: Mapping[str, Any], parameters: Mapping[str, object]) -> None:
        known = template["Parameters"]
        if unknown := {*parameters} - {*known}:
            raise ValueError(f"The template has no parameter {', '.join(sorted(unknown))}.")
        values = {name: _text_of(parameters.get(name, one["Default"])) for name, one in known.items()}
        for name, text in values.items():
            _check_form(name, text, known[name])
        lists = {name for name, one in known.items() if one["Type"] == "CommaDelimitedList"}
        numbers = {name for name, one in known.items() if one["Type"] == "Number"}
        self._values = {
            name: text.split(",") if name in lists else int(text) if name in numbers else text
            for name, text in values.items()
        }
        self._template = template
        self._functions: Mapping[str, Callable[[Any], Any]] = {
            "Ref": self._reference,
            "Condition": self._condition,
            "Fn::If": self._choice,
            "Fn::Select": self._selected,
            "Fn::Sub": self._text,
        }
        for rule in template["Rules"].values():
            if "RuleCondition" not in rule or self._value(rule["RuleCondition"]):
                self._check(rule["Assertions"])

    def _check(self, assertions: list[dict[str, Any]]) -> None:
        for assertion in assertions:
            if not self._value(assertion["Assert"]):
                raise ValueError(assertion["AssertDescription"])

    def entries(self, section: str) -> list[tuple[str, dict[str, Any]]]:
        """The resources or outputs that are there, by their names."""
        return [
            (name, self._value(_with_common(entry, self._template["Globals"]["Function"])))
            for name, entry in self._unrolled(section).items()
            if "Condition" not in entry or self._value({"Condition": entry["Condition"]})
        ]

    def _unrolled(self, section: str) -> dict[str, dict[str, Any]]:
        entries: dict[str, dict[str, Any]] = {}
        for name, entry in self._template[section].items():
            if name.startswith(_LOOP):
                variable, values, body = entry
                for value in self._value(values):
                    letters = re.sub("[^0-9A-Za-z]", "", value)
                    text = json.dumps(body).replace(f"${{{variable}}}", value)
                    entries |= json.loads(text.replace(f"&{{{variable}}}", letters))
            else:
                entries[name] = entry
        return entries

    def _value(self, given: Any) -> Any:
        if isinstance(given, list):
            return [value for value in map(self._value, given) if value is not _NOTHING]
        if not isinstance(given, dict):
            return given
        if len(given) == 1:
            ((function, arguments),) = given.items()
            if function in _CHOICES:
                return _CHOICES[function](self._value(arguments))
            if function in self._functions and isinstance(arguments, str | list):
                return self._functions[function](arguments)
        values = {key: self._value(value) for key, value in given.items()}
        return {key: value for key, value in values.items() if value is not _NOTHING}

    def _reference(self, name: str) -> Any:
        return _NOTHING if name == "AWS::NoValue" else self._values.get(name, {"Ref": name})

    def _condition(self, name: str) -> Any:
        return self._value(self._template["Conditions"][name])

    def _choice(self, arguments: list[Any]) -> Any:
        condition, where_met, where_not = arguments
        return self._value(where_met if self._condition(condition) else where_not)

    def _selected(self, arguments: list[Any]) -> Any:
        place, values = self._value(arguments)
        return values[place] if isinstance(values, list) else {"Fn::Select": [place, values]}

    def _text(self, text: str) -> Any:
        return {"Fn::Sub": re.sub(r"\$\{(\w+)\}", lambda match: str(self._values.get(match[1], match[0])), text)}


def _text_of(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _check_form(name: str, text: str, parameter: Mapping[str, Any]) -> None:
    """As CloudFormation would, which is not asked; what it will know later is taken."""
    if Token.is_unresolved(text):
        return
    allowed = [_text_of(value) for value in parameter.get("AllowedValues", [text])]
    if text not in allowed:
        raise ValueError(f"{name} is {text!r}, and must be one of {', '.join(allowed)}.")
    form = parameter.get("AllowedPattern", ".*")
    fits = re.fullmatch(form, text) and len(text) <= parameter.get("MaxLength", len(text))
    if parameter["Type"] == "Number":
        least, most = parameter.get("MinValue", "-inf"), parameter.get("MaxValue", "inf")
        fits = text.lstrip("-").isdecimal() and float(least) <= int(text) <= float(most)
    if not fits:
        raise ValueError(
            f"{name} is not in its form: {parameter.get('ConstraintDescription', parameter['Description'])}"
        )


def _with_common(entry: dict[str, Any], common: Mapping[str, Any]) -> dict[str, Any]:
    if entry.get("Type") != _FUNCTION:
        return {key: value for key, value in entry.items() if key != "Condition"}
    return {"Type": _FUNCTION, "Properties": _merged(common, entry["Properties"])}


def _merged(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**common, **own}
    for key, value in own.items():
        if isinstance(value, dict) and isinstance(common.get(key), dict):
            merged[key] = _merged(common[key], value)
    return merged


class _Loader(yaml.SafeLoader):
    """Knows CloudFormation's short forms."""


def _long_form(loader: yaml.SafeLoader, name: str, node: yaml.Node) -> dict[str, Any]:
    value: Any
    if isinstance(node, yaml.ScalarNode):
        value = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        value = loader.construct_mapping(node, deep=True)
    if name == "GetAtt":
        value = value.split(".", 1)
    return {name if name in {"Ref", "Condition"} else f"Fn::{name}": value}


_Loader.add_multi_constructor("!", _long_form)
