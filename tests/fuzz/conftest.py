"""The app whose handlers have planted faults."""

import pytest

from lowkiq_lambda import Lowkiq
from tests.fuzz import planted


@pytest.fixture
def lowkiq_app() -> Lowkiq:
    """The app under test."""
    return planted.app
