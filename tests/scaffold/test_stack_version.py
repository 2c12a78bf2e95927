"""The version of the stack: in the template, in the functions, and in what the wheel carries."""

from pathlib import Path

import pytest

from lowkiq_lambda.settings.aws import STACK_VERSION
from lowkiq_lambda.stack.scaffold.owned import outdated, stack_folder, stack_version


@pytest.mark.parametrize("template", ["template.yaml", "infra/queue-function.yaml", "infra/managed-instances.yaml"])
def test_template_and_functions_are_of_one_version(template: str) -> None:
    """Else each function of a stack that was just deployed would refuse to start."""
    assert STACK_VERSION == stack_version(stack_folder() / template)


@pytest.mark.parametrize(
    ("line", "is_refused"),
    [
        (f"      LOWKIQ_STACK_VERSION: {STACK_VERSION - 1}\n", True),
        (f'      LOWKIQ_STACK_VERSION: "{STACK_VERSION}"\n', False),
        (f'      LOWKIQ_STACK_VERSION: "{STACK_VERSION + 1}"\n', False),
        ("", False),
    ],
)
def test_only_an_older_template_is_refused(tmp_path: Path, line: str, *, is_refused: bool) -> None:
    """One that says nothing is somebody's own: its fit is theirs to know."""
    template = tmp_path / "template.yaml"
    template.write_text(f"Globals:\n{line}")

    assert is_refused == bool(outdated(template))
