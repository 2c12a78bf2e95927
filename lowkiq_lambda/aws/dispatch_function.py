"""The function that ticks in stacks of the version before: their templates name this handler."""

from typing import Any

from lowkiq_lambda.aws import drain_function
from lowkiq_lambda.aws.events import ALONE
from lowkiq_lambda.aws.logs import Context


def handler(event: object, context: Context) -> dict[str, Any]:
    """One tick, whatever the event; see `drain_function.handler`."""
    del event
    return drain_function.handler({"tick": ALONE}, context)
