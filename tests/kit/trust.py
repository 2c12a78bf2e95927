"""Whether a handler's lease is trusted still: the one thing that a history needs and no handler may ask for."""

from typing import Any

from lowkiq_lambda import Batch, BatchJob


def has_lost_its_lease(given: "Batch[Any] | BatchJob[Any]") -> bool:
    """Whether its lease has run out or has another holder. That it is to stop for other reasons does not count."""
    context: Any = given._context if isinstance(given, Batch) else given.context
    # A batch that runs side by side with others knows its visit; otherwise the visit itself is the context.
    visit = getattr(context, "_visit", context)
    return bool(visit._shard.lease.trust_left() <= 0)
