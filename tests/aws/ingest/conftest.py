"""An ingest function whose jobs are noted."""

import pytest

from tests.aws.functions import Install
from tests.aws.ingest.function import IngestFunction
from tests.kit.apps import MakeApp


@pytest.fixture
def ingest(install: Install, make_app: MakeApp, queue_name: str) -> IngestFunction:
    """One whose app has no mapping function yet."""
    return IngestFunction(install, make_app(), queue_name)
