"""The stacks that the template makes."""

from typing import Any

import pytest

from tests.infra.cloudformation import Resources, comparable, made
from tests.infra.stacks import STACKS
from tests.kit.templates import parsed_templates


@pytest.fixture(scope="session")
def template() -> dict[str, Any]:
    """The main template."""
    return parsed_templates()["template"]


@pytest.fixture(scope="session")
def stacks(template: dict[str, Any]) -> dict[str, Resources]:
    """What CloudFormation makes of it by each set of parameters."""
    return dict(zip(STACKS, map(comparable, made([(template, given) for given in STACKS.values()])), strict=True))
