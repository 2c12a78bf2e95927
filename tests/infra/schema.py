"""Writes provider.json: the arguments that the resources of Terraform's AWS provider take, from @cdktf/provider-aws.

`npm pack @cdktf/provider-aws` fetches it; unpack it, then run `python -m tests.infra.schema FOLDER`. So a plan
of the module needs no provider from anywhere. A resource that the module takes anew is added here.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any, Final, TypeAlias

Block: TypeAlias = dict[str, Any]

RESOURCES: Final = (
    "apigatewayv2-api",
    "apigatewayv2-authorizer",
    "apigatewayv2-integration",
    "apigatewayv2-route",
    "apigatewayv2-stage",
    "cloudwatch-event-rule",
    "cloudwatch-event-target",
    "cloudwatch-log-group",
    "cloudwatch-metric-alarm",
    "data-aws-caller-identity",
    "data-aws-partition",
    "data-aws-region",
    "iam-policy",
    "iam-role",
    "iam-role-policy",
    "iam-role-policy-attachment",
    "lambda-alias",
    "lambda-event-source-mapping",
    "lambda-function",
    "lambda-function-event-invoke-config",
    "lambda-function-recursion-config",
    "lambda-permission",
    "scheduler-schedule",
    "scheduler-schedule-group",
    "sqs-queue",
    "sqs-queue-policy",
)
RESULT: Final = Path(__file__).with_name("provider.json")

_TYPES: Final = {"string": "string", "number": "number", "boolean": "bool", "any": "string"}
_ENTRY: Final = re.compile(
    r"(?P<name>\w+): \{\s+value: (?P<value>.*?),\s+isBlock: (?P<block>\w+),"
    r"(?:\s+type: \"(?P<nesting>\w+)\",)?(?:\s+storageClassType: \"(?P<kind>\w+)\",)?\s+\}"
)
_COMPUTED: Final = re.compile(r"// (\w+) - computed: true, optional: false, required: false")


def block(source: str, writer: str, members: str) -> Block:
    """Attributes and blocks of one level, by the function that writes them and the members of their class."""
    found: Block = {"attributes": {}, "blocks": {}}
    for match in _ENTRY.finditer(writer):
        name, nested = match["name"], re.search(r"(\w+)ToHclTerraform", match["value"].replace("cdktf.", ""))
        if match["block"] == "true" and nested:
            nesting = match["nesting"] if match["nesting"] in {"list", "set"} else "single"
            found["blocks"][name] = {"nesting": nesting, **_nested(source, nested[1])}
        else:
            # What can be taken back is optional. It may be computed, too, which nothing in the package says.
            optional = f"reset{_camel(name)}()" in members
            found["attributes"][name] = [_type(match["kind"], match["nesting"]), "optional" if optional else "required"]
    for name in _COMPUTED.findall(members):
        found["attributes"][name] = ["string", "computed"]
    return found


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _type(kind: str, nesting: str) -> Any:
    element = _TYPES[re.sub(r"(List|Map)$", "", kind)]
    return element if nesting == "simple" else [nesting, element]


def _nested(source: str, name: str) -> Block:
    (writer,) = re.findall(rf"^function {name}ToHclTerraform\(struct\) \{{(.*?)^\}}", source, re.DOTALL | re.MULTILINE)
    of_class = name[0].upper() + name[1:] + "OutputReference"
    (members,) = re.findall(rf"^class {of_class} (.*?)^\}}", source, re.DOTALL | re.MULTILINE)
    return block(source, writer, members)


def resource(source: str) -> tuple[str, Block]:
    """The type, and what it takes."""
    (kind,) = re.findall(r"\.tfResourceType = \"(\w+)\"", source)
    base = r"^class \w+ extends cdktf\.Terraform(?:Resource|DataSource) (.*?)^\}"
    (members,) = re.findall(base, source, re.DOTALL | re.MULTILINE)
    return kind, block(source, members.partition("synthesizeHclAttributes() {")[2], members)


def main(package: Path) -> None:
    """Write the file."""
    version = json.loads((package / "package.json").read_text())["version"]
    found = dict(resource((package / "lib" / name / "index.js").read_text()) for name in RESOURCES)
    RESULT.write_text(
        json.dumps({"package": f"@cdktf/provider-aws {version}", "types": found}, separators=(",", ":")).replace(
            '"aws_', '\n"aws_'
        )
        + "\n"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
