"""Parameters of a stack in a local cloud: of samconfig.toml, of the command line, and which go together."""

from pathlib import Path

import pytest

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.stack.cloud.parameters import parameters_of
from lowkiq_lambda.stack.cloud.project_cloud import StackProject, deploy_again
from lowkiq_lambda.stack.scaffold.owned import TEMPLATE, stack_folder
from tests.kit.servers.ports import free_port

OVERRIDES = (
    "Runtime=python3.13 RedisUrl=rediss://prod Inbox=fifo MemorySize=256 Release='a b' SubnetIds=subnet-1 "
    "AlarmTopicArn=arn:aws:sns:eu-west-1:123456789012:pager "
    "RedisSecretArn=arn:aws:secretsmanager:eu-west-1:123456789012:secret:redis"
)
OF_AWS = f"""
[default.global.parameters]
parameter_overrides = "Inbox=standard"
[default.deploy.parameters]
parameter_overrides = "{OVERRIDES}"
"""


def parameters(root: Path, *words: str) -> tuple[dict[str, str], list[str]]:
    """What is deployed with, and what is said."""
    said: list[str] = []
    return parameters_of(root, stack_folder() / TEMPLATE, words, said.append), said


def test_what_sam_deploys_with_is_deployed(tmp_path: Path) -> None:
    """But for names of what is in an account, and what this machine decides; the secret gets one of this cloud."""
    (tmp_path / "samconfig.toml").write_text(OF_AWS)

    found, said = parameters(tmp_path)

    assert {"Inbox": "fifo", "MemorySize": "256", "Release": "a b"} == {
        name: value for name, value in found.items() if name != "RedisSecretArn"
    }
    assert found["RedisSecretArn"].endswith("secret:redis")
    assert ["left out     AlarmTopicArn, SubnetIds: samconfig.toml names what is in an account of AWS"] == said


def test_the_command_line_wins(tmp_path: Path) -> None:
    """For that run, by parameter."""
    (tmp_path / "samconfig.toml").write_text(OF_AWS.replace("Inbox=fifo", "Inbox=fifo Idle=start"))

    found, _ = parameters(
        tmp_path, "Inbox=none", "AlarmTopicArn=arn:aws:sns:us-east-1:000000000000:here", "Namespace=a=b"
    )

    assert ("none", "start", "a=b") == (found["Inbox"], found["Idle"], found["Namespace"])
    assert found["AlarmTopicArn"].endswith(":here")


def test_a_list_of_overrides_is_one_too(tmp_path: Path) -> None:
    """As SAM writes it; and the table for all commands is the last that is looked at."""
    (tmp_path / "samconfig.toml").write_text('[default.global.parameters]\nparameter_overrides = ["Inbox=fifo"]\n')

    assert ({"Inbox": "fifo"}, []) == parameters(tmp_path)
    assert ({}, []) == parameters(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("Inbux=fifo", r"template\.yaml has no parameter Inbux\. Did you mean Inbox"),
        ("RedisIsNamedOnce=1", "has no parameter RedisIsNamedOnce"),
        ("Inbox", "write a parameter as NAME=VALUE"),
    ],
)
def test_a_parameter_that_there_is_not_is_refused(tmp_path: Path, word: str, message: str) -> None:
    """Before anything starts, with the names that are near; a rule of the template is no parameter."""
    with pytest.raises(ConfigError, match=message):
        parameters(tmp_path, word)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """With its path."""
    (tmp_path / "samconfig.toml").write_text("[default")

    with pytest.raises(ConfigError, match=r"samconfig\.toml cannot be read"):
        parameters(tmp_path)


@pytest.mark.parametrize("kept", ["[{port}, 'key', 'secret']", "{{", ""])
def test_a_cloud_that_was_killed_is_none_to_deploy_into(tmp_path: Path, kept: str) -> None:
    """Its file may be there still, whole or not; a cloud of its own is started then."""
    (tmp_path / ".lowkiq").mkdir()
    (tmp_path / ".lowkiq" / "cloud.json").write_text(kept.format(port=free_port()).replace("'", '"'))

    assert deploy_again(StackProject(tmp_path, "jobs:app", 1), (), print) is None
