"""The page of the template's parameters and outputs, made of `template.yaml`."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from lint.reference.sources import ROOT
from lint.reference.tables import code, table

_INTRODUCTION: Final = """\
# Parameters of the template

`sam deploy --parameter-overrides Name=Value` gives these to the stack of `template.yaml`. All but `RedisUrl` (or
`RedisSecretArn`) have a default that works. [deploy](../deploy.md) leads through them.
"""
_OUTPUTS: Final = """\
## Outputs

What the stack tells other stacks and commands. Those with a condition are there only where the stack has such a part.
"""


class Parameter(NamedTuple):
    """A parameter as the template has it; empty where it says nothing."""

    name: str
    default: str
    values: str
    description: str


def page() -> str:
    """The text of the page."""
    text = (ROOT / "template.yaml").read_text()
    known = {parameter.name: parameter for parameter in parameters(text)}
    parts = [_INTRODUCTION]
    for label, names in groups(text):
        rows = [
            [code(one.name), code(one.default), one.values, one.description] for one in map(known.get, names) if one
        ]
        parts += [f"## {label}\n", table(("parameter", "default", "values", "meaning"), rows), ""]
    parts += [_OUTPUTS, table(("output", "meaning"), _outputs(text)), ""]
    return "\n".join(parts)


def groups(text: str) -> list[tuple[str, list[str]]]:
    """The groups of parameters, in the order in which the console shows them."""
    found = re.findall(r"Label: \{default: ([^}]+)\}\s+Parameters:([^\]]+?)(?=\n      - Label|\]|\n\n)", text)
    return [(label, re.findall(r"[A-Z]\w+", names)) for label, names in found]


def parameters(text: str) -> list[Parameter]:
    """The parameters, in the template's order."""
    return [_parameter(name, fields) for name, fields in _entries(text, "Parameters")]


def _parameter(name: str, fields: dict[str, str]) -> Parameter:
    values = fields.get("AllowedValues", "").strip("[]")
    if not values and "MinValue" in fields:
        most = f" to {fields['MaxValue']}" if "MaxValue" in fields else " or more"
        values = f"{fields['MinValue']}{most}"
    if not values and "ConstraintDescription" in fields:
        values = fields["ConstraintDescription"].removeprefix("must be ")
    return Parameter(name, fields.get("Default", ""), values.replace('"', ""), fields.get("Description", ""))


def _outputs(text: str) -> Iterator[list[str]]:
    for name, fields in _entries(text, "Outputs"):
        condition = f" Only with the condition `{fields['Condition']}`." if "Condition" in fields else ""
        yield [code(name), f"{fields['Description']}{condition}"]


def _entries(text: str, section: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Name and fields of each entry of a section of the template, whose fields are a line each."""
    (body,) = re.findall(rf"^{section}:\n((?:(?:  .*)?\n)+)", text, re.MULTILINE)
    for entry in re.split(r"^  (?=\w)", body, flags=re.MULTILINE)[1:]:
        name, _, lines = entry.partition(":\n")
        fields = re.findall(r"^    (\w+): (.*)$", lines, re.MULTILINE)
        yield name, {field: value.strip('"') for field, value in fields}
