"""Batches of an app of the test."""

from collections.abc import Iterator

import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.store.shard.keys import TasksRef
from tests.peers.batches import Batches


@pytest.fixture
def batches(app: Lowkiq, queue_name: str) -> Iterator[Batches]:
    """Its workers. All tasks of a server have one list, which another test must not keep busy."""
    app.core.backend.client.delete(*TasksRef().keys)
    yield Batches(app, queue_name)
    app.core.backend.client.delete(*TasksRef().keys)
