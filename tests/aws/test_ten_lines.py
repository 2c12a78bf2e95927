"""The ten lines of docs/deploy.md that make a stack out of nothing: they run, and name what the templates have."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STACKS = {"lowkiq-network": "infra/network.yaml", "lowkiq-cache": "infra/elasticache.yaml"}

STAND_IN = """#!{python}
import json, sys
with open({log!r}, "a") as log:
    print(json.dumps(sys.argv), file=log)
if "describe-stacks" in sys.argv:
    stack = sys.argv[sys.argv.index("--stack-name") + 1]
    query = sys.argv[sys.argv.index("--query") + 1]
    print(stack + "." + query.split("'")[1])
"""


def blocks() -> tuple[list[str], list[str]]:
    """The lines of the jobs and those of the shell, without blank ones."""
    section = (ROOT / "docs" / "deploy.md").read_text().partition("### From zero, in ten lines\n")[2]
    found = re.findall(r"```(?:python|text)\n(.*?)```", section, re.DOTALL)[:2]
    assert 2 == len(found), "docs/deploy.md has no ten lines, in a block for the jobs and one for the shell"
    jobs, shell = ([line for line in block.splitlines() if line] for block in found)
    return jobs, shell


def names(template: str, part: str) -> dict[str, str]:
    """Parameters or outputs of a template, each with the text that describes it."""
    text = (ROOT / template).read_text().partition(f"\n{part}:\n")[2]
    text = re.split(r"^\S", text, maxsplit=1, flags=re.MULTILINE)[0]
    return dict(re.findall(r"^  (\w+):\n((?:    .*\n)+)", text, re.MULTILINE))


@pytest.fixture
def calls(tmp_path: Path) -> list[list[str]]:
    """What the shell's lines call, where `aws` and `sam` note it and answer queries for outputs with their names."""
    log = tmp_path / "calls"
    for program in ("aws", "sam"):
        path = tmp_path / program
        path.write_text(STAND_IN.format(python=sys.executable, log=str(log)))
        path.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run(["bash", "-euo", "pipefail", "-c", "\n".join(blocks()[1])], check=True, env=environment, cwd=ROOT)
    return [[Path(program).name, *rest] for program, *rest in map(json.loads, log.read_text().splitlines())]


def given(call: list[str]) -> dict[str, str]:
    """The parameters of a deployment."""
    if "--parameter-overrides" not in call:
        return {}
    return dict(one.split("=", 1) for one in call[call.index("--parameter-overrides") + 1 :])


def test_it_is_ten_lines() -> None:
    """Of jobs and of shell, so that the heading is true."""
    jobs, shell = blocks()

    assert 10 == len(jobs) + len(shell)


def test_every_output_that_is_asked_for_is_there(calls: list[list[str]]) -> None:
    """Of the stack that is asked, which was deployed before."""
    asked = [shlex.join(call) for call in calls if "describe-stacks" in call]

    found = [re.search(r"--stack-name (\S+) .*OutputKey==\W+(\w+)", call) for call in asked]

    assert asked
    assert [] == [one for one in found if one is None or one[2] not in names(STACKS[one[1]], "Outputs")]


def test_every_stack_gets_its_parameters(calls: list[list[str]]) -> None:
    """Those that have no default, no unknown one, and each what its description says: an output of an earlier stack."""
    deployed = {
        call[call.index("--template-file") + 1] if call[0] == "aws" else "template.yaml": given(call)
        for call in calls
        if "deploy" in call
    }

    assert ["infra/network.yaml", "infra/elasticache.yaml", "template.yaml"] == list(deployed)
    for template, values in deployed.items():
        parameters = names(template, "Parameters")
        assert set() == set(values) - set(parameters), template
        assert {name for name, text in parameters.items() if "Default:" not in text} <= set(values), template
    network = {"SubnetIds": "lowkiq-network.SubnetIds", "SecurityGroupIds": "lowkiq-network.SecurityGroupIds"}
    cache = {name: f"lowkiq-cache.{name}" for name in ("RedisUrl", "RedisIamUser", "RedisIamCache")}
    assert network | cache | {"RedisIamServerless": "true"} == deployed["template.yaml"]
    assert {
        "VpcId": "lowkiq-network.VpcId",
        "SubnetIds": network["SubnetIds"],
        "FunctionSecurityGroupId": network["SecurityGroupIds"],
    } == deployed["infra/elasticache.yaml"]


def test_the_package_is_built_before_it_is_deployed(calls: list[list[str]]) -> None:
    """By sam, in this order, and its settings come from samconfig.toml."""
    assert [["sam", "build"], ["sam", "deploy"]] == [call[:2] for call in calls if call[0] == "sam"]
