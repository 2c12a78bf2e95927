"""The construct of CDK makes the stack that the template makes."""

import json
import os
import re
import subprocess
from typing import Any, Final

import pytest

from tests.infra.cloudformation import Resources, comparable, made
from tests.infra.stacks import STACKS
from tests.infra.terraform import PYTHON
from tests.kit.templates import ROOT

CONSTRUCT: Final = ROOT / "infra" / "cdk"
PAGE: Final = ROOT / "infra" / "cdk.md"
SYNTHESIZE: Final = """
import json, sys
from aws_cdk import App, Stack
from lowkiq_cdk import Lowkiq

page, stacks, wrongs = json.load(sys.stdin)
app = App(outdir="out")
for name, parameters in stacks.items():
    Lowkiq(Stack(app, name.replace("_", "-")), "Jobs", packages="build", parameters=parameters)
app.synth()
for wrong in wrongs:
    try:
        Lowkiq(Stack(App(), "wrong"), "Jobs", packages="build", parameters={"RedisUrl": "redis://a"} | wrong)
    except ValueError as error:
        print(error)
exec(page)
"""

pytestmark = [
    pytest.mark.xdist_group("templates"),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="session")
def synthesized(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """What CDK makes of each set of parameters, and what the construct says of wrong ones."""
    folder = tmp_path_factory.mktemp("cdk")
    for function in ("DrainFunction", "DashboardFunction", "IngestFunction"):
        (folder / "build" / function).mkdir(parents=True)
        (folder / "build" / function / "code.py").touch()
    (page,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    # Without CDK's own look at the template, which takes longer than all the rest.
    settings = {"PYTHONPATH": str(CONSTRUCT), "CDK_VALIDATION": "false", "CDK_OUTDIR": "page"}
    settings["PATH"] = f"{PYTHON.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [PYTHON, "-c", SYNTHESIZE],
        cwd=folder,
        input=json.dumps([page, STACKS, [wrong for wrong, _ in REFUSED]]),
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    paths = [*folder.glob("out/*.template.json"), *folder.glob("page/*.template.json")]
    return {path.name.partition(".")[0]: json.loads(path.read_text()) for path in paths}, done.stdout.splitlines()


@pytest.fixture(scope="session")
def constructed(synthesized: tuple[dict[str, dict[str, Any]], list[str]]) -> dict[str, Resources]:
    """The resources of each set."""
    templates, _ = synthesized
    names = {name: templates[name.replace("_", "-")] for name in STACKS}
    return dict(zip(names, map(comparable, made([(one, {}) for one in names.values()])), strict=True))


@pytest.mark.parametrize("name", STACKS)
def test_the_construct_makes_the_same_stack(
    name: str, stacks: dict[str, Resources], constructed: dict[str, Resources]
) -> None:
    """The same resources with the same properties."""
    assert stacks[name] == constructed[name]


def test_the_pages_example_is_synthesized(synthesized: tuple[dict[str, dict[str, Any]], list[str]]) -> None:
    """Parameters may be what CloudFormation knows later than its conditions, and the role can be granted more."""
    resources = synthesized[0]["shop"]["Resources"]
    (table,) = (name for name, one in resources.items() if one["Type"] == "AWS::DynamoDB::GlobalTable")
    (grant,) = (one for one in resources.values() if one["Type"] == "AWS::IAM::Policy")

    assert {"Fn::GetAtt": [table, "StreamArn"]} == resources["StreamMapping"]["Properties"]["EventSourceArn"]
    assert [{"Ref": "DrainRole"}] == grant["Properties"]["Roles"]


def test_what_stays_and_what_is_told_is_the_templates(
    template: dict[str, Any], synthesized: tuple[dict[str, dict[str, Any]], list[str]]
) -> None:
    """Queues and versions that a replacement leaves, and the outputs that other stacks and commands read."""
    made = synthesized[0]["ways-in"]
    policies = ("DeletionPolicy", "UpdateReplacePolicy")

    for name, resource in made["Resources"].items():
        # What a loop makes neither stays nor is replaced.
        assert [template["Resources"].get(name, {}).get(policy) for policy in policies] == [
            resource.get(policy) for policy in policies
        ]
    assert {name: one.get("Export") for name, one in template["Outputs"].items()} == {
        name: one.get("Export") for name, one in made["Outputs"].items()
    }


REFUSED: Final = [
    ({"RedisUrl": ""}, "Name the Redis server, give RedisUrl or RedisSecretArn."),
    ({"Redis": "b"}, "The template has no parameter Redis."),
    ({"Idle": "sleep"}, "Idle is 'sleep', and must be one of end, stay, linger, start, punctual."),
    ({"MemorySize": 64}, "MemorySize is not in its form: Megabytes for each function"),
    ({"RedisUrl": "embedded:"}, "RedisUrl is not in its form: redis://"),
    ({"DualStack": True}, "DualStack is for functions in a VPC, give SubnetIds and SecurityGroupIds."),
]


def test_wrong_parameters_are_refused(synthesized: tuple[dict[str, dict[str, Any]], list[str]]) -> None:
    """By the template's rules and the forms of its parameters, and where it has none of that name."""
    _, said = synthesized

    assert len(REFUSED) == len(said)
    assert [True] * len(said) == [line.startswith(why) for line, (_, why) in zip(said, REFUSED, strict=True)]
