"""The end of the stack. It comes last: the tests before it share what it takes away."""

from tests.e2e.inventory import inventory
from tests.e2e.stage import Stage
from tests.servers import LocalCloud


def test_a_deleted_stack_leaves_nothing(stage: Stage, cloud: LocalCloud) -> None:
    """After the deletion there is what there was before, and not a schedule, role or log more."""
    during = inventory(cloud)
    assert during != stage.before

    stage.deployment.delete()

    assert stage.before == inventory(cloud)
