"""What a deploy would stumble over in its middle is told by the build: long names, and too many people and programs."""

from pathlib import Path
from typing import Final

import pytest

from lowkiq_lambda.dashboard import hashed
from lowkiq_lambda.stack.packaging.build import build
from lowkiq_lambda.stack.packaging.samconfig import ENVIRONMENT, NAME, check_deploys
from lowkiq_lambda.stack.packaging.targets import BuildFailed, BuildTarget
from tests.kit.templates import ROOT

TEMPLATE: Final = (ROOT / "template.yaml").read_text()
TOKEN: Final = f"program-{{}}:reader:sha256:{'0' * 64}"
LONGEST: Final = 54
"""Letters of a stack's name, as the functions `…-dashboard` may have 64."""


def written(folder: Path, text: str, *, below: str = "") -> Path:
    """The template in a folder, or one below it, with this samconfig.toml in the folder."""
    (folder / NAME).write_text(text)
    template = folder / below / "template.yaml"
    template.parent.mkdir(exist_ok=True)
    template.write_text(TEMPLATE)
    return template


def tokens(number: int) -> str:
    """So many programs."""
    return ",".join(TOKEN.format(each) for each in range(number))


@pytest.mark.parametrize("below", ["", "lowkiq"], ids=["checkout", "project"])
@pytest.mark.parametrize("table", ["default.global", "staging.deploy"])
def test_a_stack_with_a_long_name_is_not_built(tmp_path: Path, below: str, table: str) -> None:
    """One letter more than its functions' names leave is refused, in each environment of the file."""

    def template(letters: int) -> Path:
        return written(tmp_path, f'[{table}.parameters]\nstack_name = "{"x" * letters}"\n', below=below)

    check_deploys(template(LONGEST))
    with pytest.raises(BuildFailed, match=rf"\[{table.partition('.')[0]}\]: stack_name has 55 .* at most 54\."):
        check_deploys(template(LONGEST + 1))


def test_variables_that_lambda_does_not_take_are_not_built(tmp_path: Path) -> None:
    """Thirty programs fit; those whose digests come to more than 4 KB do not, and the parameter is named."""

    def template(number: int) -> Path:
        words = f"AppModule=shop.jobs:app 'DashboardTokens={tokens(number)}'"
        return written(tmp_path, f'[default.deploy.parameters]\nparameter_overrides = "{words}"\n')

    check_deploys(template(30))
    with pytest.raises(BuildFailed, match=r"have some 4,\d\d\d bytes, .* shorten DashboardTokens, which has 3,"):
        check_deploys(template(42))


def test_people_and_programs_share_the_room(tmp_path: Path) -> None:
    """Each parameter alone is short enough for CloudFormation; together they are too much for Lambda."""
    people = ",".join(f"person{number}:operator:{hashed('a long password')}" for number in range(16))
    listed = [f"DashboardAccounts={people}", f"DashboardTokens={tokens(24)}"]
    text = f"[default.deploy.parameters]\nparameter_overrides = {listed!r}\n"

    assert max(map(len, listed)) < ENVIRONMENT
    with pytest.raises(BuildFailed, match="a function's variables have some"):
        check_deploys(written(tmp_path, text))


def test_the_files_of_this_checkout_and_of_a_new_project_pass(tmp_path: Path) -> None:
    """What nobody has changed is fine, and so is a folder without such a file."""
    check_deploys(ROOT / "template.yaml")
    template = written(tmp_path, "version = 0.1\n")
    check_deploys(template)
    (tmp_path / NAME).unlink()
    check_deploys(template)


def test_sam_build_ends_with_the_sentence(tmp_path: Path) -> None:
    """The builder that the Makefiles call looks before it installs anything."""
    template = written(tmp_path, f'[default.global.parameters]\nstack_name = "{"x" * 60}"\n')

    with pytest.raises(BuildFailed, match="choose a name of at most 54"):
        build("DrainFunction", BuildTarget.named("python3.13-arm64"), tmp_path / "into", tmp_path, template)
