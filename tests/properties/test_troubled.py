"""Ids that fail together, and processes that die of what they run alone, beside a model."""

import pytest

from tests.kit.servers import Server
from tests.properties.operated import EXAMPLES, run
from tests.properties.troubled import TroubledMachine


@pytest.mark.hypothesis
@pytest.mark.timeout(900)
def test_trouble_is_as_in_the_model(server: Server) -> None:
    """P7: what a group shares is charged to it, and no payload ends more than three processes that run it alone."""
    situations = {"CHARGE", "TOGETHER", "died with progress", "died with nothing"}
    for _ in range(5):  # a few examples may be without a situation that is rare
        run(TroubledMachine, server, EXAMPLES // 2)
        if situations <= TroubledMachine.happened:
            break
    assert situations <= TroubledMachine.happened
