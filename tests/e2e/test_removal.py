"""The end of the stack. It comes last: the tests before it share what it takes away."""

from local.inventory import inventory
from tests.e2e.stack import Stack
from tests.kit.servers import LocalCloud


def test_a_deleted_stack_leaves_nothing(stack: Stack, cloud: LocalCloud) -> None:
    """After the deletion there is what there was before, and not a schedule, role or log more."""
    during = inventory(cloud)
    assert during != stack.before

    stack.deployment.delete()

    assert stack.before == inventory(cloud)
