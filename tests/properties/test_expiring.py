"""Expiries of payloads, whatever happens to them, beside a model."""

import pytest

from tests.kit.servers import Server
from tests.properties.expiring import EXPIRED, ExpiringMachine
from tests.properties.operated import EXAMPLES, run


@pytest.mark.hypothesis
@pytest.mark.timeout(900)
def test_expiries_are_as_in_the_model(server: Server) -> None:
    """Whatever is pushed, merged, retried, over, lost and recovered, each payload has the expiry of the model."""
    run(ExpiringMachine, server, EXAMPLES)
    assert {"some", EXPIRED, "retried", "dead"} <= ExpiringMachine.expired.keys()
