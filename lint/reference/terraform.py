"""The variables of the Terraform module and what they refuse, made of the parameters and rules of `template.yaml`."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from lint.reference.sources import ROOT

_HEAD: Final = "# Made of the parameters of template.yaml by `make reference`.\n"
_OWN: Final = """\
variable "name" {
  description = "The name of the stack, with which the names of its parts begin."
  type        = string
  default     = "lowkiq"
  validation {
    condition     = can(regex("^[A-Za-z][A-Za-z0-9-]{0,50}$", var.name))
    error_message = "It needs a letter, then letters, digits and -, 51 in all."
  }
}

variable "packages" {
  description = "The folder with DrainFunction, DashboardFunction and, with a way in, IngestFunction."
  type        = string
}
"""
_RULES: Final = """\
# Made of the rules of template.yaml by `make reference`.

locals {{
  refusals = [for rule in [
{rules}
  ] : rule.text if !rule.holds]
}}
"""
_COMMAS: Final = re.compile(r",? (after|separated by) commas")
_NOT_FOR_MODULES: Final = {"CodeUri"}
"""Read by `sam build` alone."""


def variables() -> str:
    """The text of variables.tf."""
    parameters = _template()["Parameters"]
    blocks = [_variable(name, one) for name, one in parameters.items() if name not in _NOT_FOR_MODULES]
    return "\n".join([_HEAD, _OWN, *blocks])


def rules() -> str:
    """The text of rules.tf."""
    template = _template()
    expressions = _Expressions(template["Parameters"])
    lines = [
        f"    {{ holds = {holds}, text = {json.dumps(assertion['AssertDescription'])} }},"
        for rule in template["Rules"].values()
        for assertion in rule["Assertions"]
        for holds in [expressions.implied(rule.get("RuleCondition"), assertion["Assert"])]
    ]
    return _RULES.format(rules="\n".join(lines))


def variable_of(name: str) -> str:
    """The variable of a parameter."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def kind_of(name: str, parameter: Mapping[str, Any]) -> str:
    """Its type: a text with commas is a list, but for the dashboard's own forms."""
    if parameter["Type"] == "Number":
        return "number"
    if parameter.get("AllowedValues") == ["true", "false"]:
        return "bool"
    is_list = _COMMAS.search(parameter["Description"]) and not name.startswith("Dashboard")
    return "list(string)" if is_list or parameter["Type"] == "CommaDelimitedList" else "string"


def _variable(name: str, parameter: Mapping[str, Any]) -> str:
    kind, variable = kind_of(name, parameter), variable_of(name)
    description = parameter["Description"]
    if kind == "list(string)":
        description = _COMMAS.sub("", description)
    lines = [
        f'variable "{variable}" {{',
        f"  description = {json.dumps(description)}",
        f"  type        = {kind}",
        f"  default     = {_default(kind, str(parameter['Default']))}",
    ]
    if parameter.get("NoEcho"):
        lines.append("  sensitive   = true")
    for condition, message in _checks(f"var.{variable}", kind, parameter):
        lines += [
            "  validation {",
            f"    condition     = {condition}",
            f"    error_message = {json.dumps(message)}",
            "  }",
        ]
    return "\n".join([*lines, "}\n"])


def _default(kind: str, text: str) -> str:
    if kind == "list(string)":
        return json.dumps(text.split(",") if text else [])
    return json.dumps(text) if kind == "string" else text


def _checks(value: str, kind: str, parameter: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if kind == "list(string)":
        value = f'join(",", {value})'
    if "AllowedValues" in parameter and kind != "bool":
        allowed = json.dumps(parameter["AllowedValues"])
        yield f"contains({allowed}, {value})", f"It must be one of {', '.join(map(str, parameter['AllowedValues']))}."
    if "MinValue" in parameter:
        least, most = parameter["MinValue"], parameter.get("MaxValue")
        below = f" && {value} <= {most}" if most else ""
        yield f"{value} >= {least}{below}", f"It must be {least} to {most}." if most else f"It must be {least} or more."
    if "MaxLength" in parameter:
        yield f"length({value}) <= {parameter['MaxLength']}", f"It must have at most {parameter['MaxLength']} letters."
    if pattern := parameter.get("AllowedPattern"):
        refused = re.fullmatch(r"\^\(\?!(.*)\)\.\*\$", pattern)
        form = f"^{refused[1]}" if refused else pattern
        condition = f"{'!' if refused else ''}can(regex({json.dumps(form)}, {value}))"
        yield condition, f"It {parameter.get('ConstraintDescription', f'must match {pattern}')}."


class _Expressions:
    """Turns conditions of CloudFormation into those of Terraform."""

    def __init__(self, parameters: Mapping[str, Mapping[str, Any]]) -> None:
        self._kinds = {name: kind_of(name, one) for name, one in parameters.items()}

    def implied(self, condition: dict[str, Any] | None, assertion: dict[str, Any]) -> str:
        """Whether the assertion holds where the condition does."""
        holds = self._of(assertion)
        return holds if condition is None else f"!({self._of(condition)}) || {holds}"

    def _of(self, expression: dict[str, Any]) -> str:
        ((function, arguments),) = expression.items()
        if function == "Fn::Equals":
            return self._equal(arguments[0]["Ref"], str(arguments[1]))
        if function == "Fn::Contains":
            return f"contains({json.dumps(arguments[0])}, tostring(var.{variable_of(arguments[1]['Ref'])}))"
        if function == "Fn::EachMemberIn":
            return f"length(setsubtract(var.{variable_of(arguments[0]['Ref'])}, {json.dumps(arguments[1])})) == 0"
        parts = [self._of(one) for one in arguments]
        if function == "Fn::Not":
            return f"!({parts[0]})"
        return f"({ {'Fn::And': ' && ', 'Fn::Or': ' || '}[function].join(parts) })"

    def _equal(self, name: str, text: str) -> str:
        variable, kind = f"var.{variable_of(name)}", self._kinds[name]
        if kind == "list(string)":
            return f"length({variable}) == 0" if not text else f'join(",", {variable}) == {json.dumps(text)}'
        return f"{variable} == {json.dumps(text) if kind == 'string' else text}"


class _Loader(yaml.SafeLoader):
    """Knows CloudFormation's short forms."""


def _long_form(loader: yaml.SafeLoader, name: str, node: yaml.Node) -> dict[str, Any]:
    value: Any = loader.construct_scalar(node) if isinstance(node, yaml.ScalarNode) else None
    if isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    return {name if name in {"Ref", "Condition"} else f"Fn::{name}": value}


_Loader.add_multi_constructor("!", _long_form)


def _template() -> dict[str, Any]:
    with (ROOT / "template.yaml").open() as file:
        template: dict[str, Any] = yaml.load(file, _Loader)  # noqa: S506 - made of the safe one
    return template
