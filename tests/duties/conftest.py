"""An app with a queue of its own, so that its duties are its own."""

import pytest

from lowkiq_lambda import Lowkiq
from tests.kit.apps import MakeApp
from tests.kit.duties import with_queue


@pytest.fixture
def app(make_app: MakeApp, queue_name: str) -> Lowkiq:
    """Its duties are those of no other test."""
    return with_queue(make_app(), queue_name)
