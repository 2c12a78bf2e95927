"""FoundQueues on their way to another number of shards."""

from collections.abc import Iterator, Sequence

from lowkiq_lambda.operate.doctor.findings import Finding
from lowkiq_lambda.operate.doctor.promises import NOTHING_LOST
from lowkiq_lambda.operate.doctor.queue_state import QueueState
from lowkiq_lambda.operate.doctor.words import time
from lowkiq_lambda.reshard.duty import STANDS_STILL


def move_findings(states: Sequence[QueueState]) -> Iterator[Finding]:
    """A finding for each that moves."""
    for state in states:
        if state.shards.layout.is_moving:
            yield _of_move(state)


def _of_move(state: QueueState) -> Finding:
    layout = state.shards.layout
    groups, still_for = layout.groups - len(layout.left), state.now - layout.at
    way = f"from {layout.before} to {layout.after} shards: {groups} of {layout.groups} groups have moved"
    if still_for <= STANDS_STILL:
        return Finding(section="moves", check="moves", mark="ok", says=f"on its way {way}", about=state.name)
    return Finding(
        section="moves",
        check="moves",
        mark="warning",
        says=f"on its way {way}, and nothing has moved for {time(still_for)}",
        advice=f"Go on with it: lowkiq reshard {state.name} --to {layout.after}.",
        about=state.name,
        promises=(NOTHING_LOST,),
    )
