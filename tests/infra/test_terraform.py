"""The Terraform module makes the stack that the template makes."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from lint.reference.terraform import variable_of
from tests.infra.cloudformation import Resources, comparable
from tests.infra.stacks import STACKS, variables
from tests.infra.terraform import HAS_LIBRARY, MODULE, TERRAFORM, planned, refused, terraform

SENDS: Final = '"sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"'

pytestmark = [
    pytest.mark.xdist_group("templates"),
    pytest.mark.timeout(300),
    pytest.mark.skipif(TERRAFORM != ["terraform"] and not HAS_LIBRARY, reason="no wheel of Terraform for this system"),
]


@pytest.fixture(scope="session")
def plans(template: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Resources]:
    """What Terraform plans for each set of parameters."""
    given = {name: variables(template, one) for name, one in STACKS.items()}
    found = planned(tmp_path_factory.mktemp("terraform"), given)
    return {name: comparable(resources) for name, resources in found.items()}


@pytest.mark.parametrize("name", STACKS)
def test_the_module_makes_the_same_stack(name: str, stacks: dict[str, Resources], plans: dict[str, Resources]) -> None:
    """The same resources with the same properties: policies, environment, schedules, alarms, event sources."""
    assert set(stacks[name]) == set(plans[name])
    assert [] == [one for one in stacks[name] if stacks[name][one] != plans[name][one]]
    assert stacks[name] == plans[name]


def test_every_parameter_is_compared(template: dict[str, Any]) -> None:
    """One that is added must be other than its default in a set here, so that a module without it fails."""
    parameters = template["Parameters"]
    other = {
        name for given in STACKS.values() for name, text in given.items() if text != str(parameters[name]["Default"])
    }

    assert {"CodeUri"} == set(parameters) - other


def test_the_module_has_an_output_for_each_of_the_template(template: dict[str, Any]) -> None:
    """With the same meaning."""
    text = (MODULE / "outputs.tf").read_text()
    outputs = dict(re.findall(r'output "(\w+)" \{\n  description = "(.*)"', text))

    assert {
        variable_of(name): one["Description"] for name, one in template["Outputs"].items()
    }.items() <= outputs.items()


CHANGES: Final = {
    "IngestRole": ("access.tf", SENDS, '"sqs:DeleteMessage", "sqs:ReceiveMessage"'),
    "SchedulerRole": ("access.tf", '"aws:SourceAccount"', '"aws:SourceArn"'),
    "DrainFunction": ("main.tf", "LOWKIQ_RESERVE ", "LOWKIQ_RESERVES "),
    "StreamLateAlarm": ("alarms.tf", "threshold   = 300000", "threshold   = 30000"),
}


def test_what_differs_is_found(stacks: dict[str, Resources], template: dict[str, Any], tmp_path: Path) -> None:
    """A right that is dropped, a condition, a variable's name, a threshold: each in the one resource that has it."""
    module = shutil.copytree(MODULE, tmp_path / "module")
    for file, before, after in CHANGES.values():
        text = (module / file).read_text()
        assert before in text
        (module / file).write_text(text.replace(before, after))

    changed = variables(template, STACKS["ways_in"]) | {"source": str(module)}
    found = comparable(planned(tmp_path, {"ways_in": changed})["ways_in"])

    assert set(CHANGES) == {name for name, one in found.items() if one != stacks["ways_in"][name]}


REFUSED: Final[Mapping[str, tuple[Mapping[str, Any], str]]] = {
    "no_server": ({}, "Name the Redis server, give RedisUrl or RedisSecretArn."),
    "half_a_network": ({"redis_url": "redis://a", "subnet_ids": ["subnet-1"]}, "Give SubnetIds and SecurityGroupIds"),
    "no_metrics": ({"redis_url": "redis://a", "metrics": "none", "blocked_alarm": True}, "which Metrics=none does not"),
    "snapshot": ({"redis_url": "redis://a", "alias": "live"}, "With Alias=live each deploy"),
}
WRONG: Final[Mapping[str, tuple[Mapping[str, Any], str]]] = {
    "embedded": ({"redis_url": " embedded:"}, "It must match"),
    "memory": ({"memory_size": 64}, "It must be 128 to 10240."),
    "idle": ({"idle": "sleep"}, "It must be one of end, stay, linger, start, punctual."),
    "index": ({"subnet_ids": ["vpc-1"]}, "It must match"),
}


@pytest.mark.parametrize("cases", [REFUSED, WRONG], ids=["together", "alone"])
def test_what_the_template_refuses_the_module_refuses(
    cases: Mapping[str, tuple[Mapping[str, Any], str]], tmp_path: Path
) -> None:
    """By the same rules, before anything is planned."""
    said = refused(tmp_path, {name: given for name, (given, _) in cases.items()})

    assert dict.fromkeys(cases, True) == {name: why in said for name, (_, why) in cases.items()}
    assert len(cases) == said.count("Error: ")


LATER: Final = """
resource "terraform_data" "made" {}
module "later" {
  source             = "./lowkiq/infra/terraform"
  packages           = "build"
  redis_secret_arn   = terraform_data.made.id
  subnet_ids         = [terraform_data.made.id]
  security_group_ids = [terraform_data.made.id]
}
"""


def test_the_pages_example_is_planned(tmp_path: Path) -> None:
    """With a policy of one's own for the handlers; beside it a stack whose network and secret are still to be made."""
    page = MODULE.with_suffix(".md").read_text()
    (example,) = re.findall(r"^```hcl\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (tmp_path / "main.tf").write_text(example)
    (tmp_path / "later.tf").write_text(LATER)
    shutil.copytree(MODULE, tmp_path / "lowkiq" / "infra" / "terraform")

    with terraform(tmp_path, {}) as run:
        done = run("plan")

    assert 0 == done.returncode, done.stderr
    assert "aws_iam_role_policy.orders" in done.stdout
    assert 'module.lowkiq.aws_lambda_function.function["drain"]' in done.stdout
    assert "module.later.aws_iam_policy.access[0] will be created" in done.stdout


def test_the_module_is_in_terraforms_own_form() -> None:
    """`terraform fmt` has nothing to change."""
    done = subprocess.run(
        [*TERRAFORM, "fmt", "-check", str(MODULE)],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "") == (done.returncode, done.stdout)
