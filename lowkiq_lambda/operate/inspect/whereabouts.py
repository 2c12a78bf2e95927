"""Where ids are now, in one round trip for each node."""

from collections.abc import Iterable

from lowkiq_lambda.operate.inspect.jobs import by_shard
from lowkiq_lambda.operate.inspect.journal import asked
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views.journal import Whereabouts


def whereabouts(reader: ShardReader, ids: Iterable[str]) -> dict[str, Whereabouts]:
    """Where each of these is in its shard. Raises BackendError."""
    places: dict[str, Whereabouts] = {}
    parts = by_shard([*dict.fromkeys(ids)], reader.shards)
    commands = [
        (shard, words)
        for shard, some in parts.items()
        for words in (
            ("HKEYS", shard.key("flight")),
            ("ZMSCORE", shard.key("due"), *some),
            ("ZMSCORE", shard.key("morgue"), *some),
        )
    ]
    answers = iter(asked(reader, commands))
    for some, flying, waits, dead in zip(parts.values(), answers, answers, answers, strict=True):
        in_flight = {*flying}
        for job_id, due, death in zip(some, waits, dead, strict=True):
            places[job_id] = _place(
                is_flying=job_id.encode() in in_flight, waits=due is not None, dead=death is not None
            )
    return places


def _place(*, is_flying: bool, waits: bool, dead: bool) -> Whereabouts:
    if is_flying:
        return "in flight"
    if waits:
        return "waiting"
    return "morgue" if dead else "gone"
