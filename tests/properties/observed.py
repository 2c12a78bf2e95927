"""A shard as it lies in Redis, and as the model has it, in one form that can be compared."""

from tests.kit.stored import COUNTERS, State
from tests.properties.model import Model, morgue_bytes, progress_bytes


def expected(model: Model) -> State:
    """What Redis ought to hold."""
    return {
        "waiting": {
            id_: (job.entries, job.due_at, model.retry_count(job), job.since, job.touched, job.handed)
            for id_, job in model.waiting.items()
        },
        "flight": {id_: (flown.entries, flown.due_at, flown.retry_count) for id_, flown in model.flight.items()},
        "progress": model.progress,
        "dead_progress": model.dead_progress,
        "counts": model.counts,
        "errors": model.errors,
        "failures": model.failures,
        "trouble": model.trouble,
        "suspects": model.suspects,
        "groups": {
            name: (group.left, group.signature, group.error, group.ids, group.systemic)
            for name, group in model.groups.items()
        },
        "morgue": {id_: (dead.at, dead.error, dead.entries) for id_, dead in model.morgue.items()},
        "counters": {name: model.counters[name] for name in COUNTERS},
        "morgue_bytes": morgue_bytes(model.morgue, model.failures) + progress_bytes(model.dead_progress),
        "arrival": model.arrival,
        "paused_until": model.paused_until,
        "lease": (model.token, model.until, model.lease_key),
        "flight_since": model.claim.since if model.flight and model.claim else None,
    }


def in_numbers(troubles: State) -> State:
    """Counted crashes in numbers: the model names holders otherwise than the store."""
    return {
        id_: {name: len(value) if name in {"crashes", "halvings"} else value for name, value in known.items()}
        for id_, known in troubles.items()
    }
