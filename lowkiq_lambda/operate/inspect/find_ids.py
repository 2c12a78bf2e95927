"""Ids that somebody looks for in all queues at once: four round trips for each node, whatever the queues hold."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from lowkiq_lambda.operate.inspect.id_ranges import IdsReply, SearchableList
from lowkiq_lambda.operate.inspect.id_search import IdSearchReply
from lowkiq_lambda.operate.inspect.shard_details import explain_in_each
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.layout import QueueShards
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.store.shard.scripts import Reply
from lowkiq_lambda.views.jobs import FoundId, FoundIds, Place

READ_AT_MOST: Final = 50_000
"""About how many ids of a kind are read for those that begin with the text, over all shards."""
READ_AT_LEAST: Final = 50
"""In one shard."""


def find_ids(reader: ShardReader, queues: Sequence[QueueShards], text: str, limit: int) -> FoundIds:
    """The id itself in each queue, given by its shards, and `limit` of the ids that begin with it.

    Raises BackendError.
    """
    if not (text and queues):
        return FoundIds()
    exact = [*_exact(reader, queues, text)]
    places, cut = _beginning(reader, [shard for shards in queues for shard in shards], text)
    alike = [FoundId(queue_name, job_id, tuple(at)) for (queue_name, job_id), at in sorted(places.items())]
    others = [match for match in alike if match.id != text]
    return FoundIds(exact, others[:limit], cut=cut or len(others) > limit)


def _exact(reader: ShardReader, queues: Sequence[QueueShards], job_id: str) -> Iterator[FoundId]:
    for shards, explained in zip(queues, explain_in_each(reader, queues, job_id), strict=True):
        is_at: dict[Place, bool] = {
            "waiting": explained.due_at is not None,
            "flight": explained.in_flight,
            "morgue": explained.dead_since is not None,
        }
        if any(is_at.values()):
            yield FoundId(shards[0].queue_name, job_id, tuple(place for place, is_there in is_at.items() if is_there))


class _IdsFound(NamedTuple):
    """Ids of a shard, and whether some were not read."""

    ids: list[bytes]
    cut: bool = False


def _beginning(
    reader: ShardReader, shards: Sequence[ShardRef], prefix: str
) -> tuple[dict[tuple[str, str], list[Place]], bool]:
    """The places of ids by queue and id, and whether some ids were not read."""
    count = max(READ_AT_LEAST, READ_AT_MOST // len(shards))

    def listed(where: SearchableList) -> list[_IdsFound]:
        args = (where, "0", count, prefix, "")
        return reader.read("search_ids", dict.fromkeys(shards, args), _of_list)

    matches: list[tuple[Place, list[_IdsFound]]] = [
        ("waiting", listed("waiting")),
        ("flight", reader.read("in_flight_ids", dict.fromkeys(shards, ()), _of_flight)),
        ("morgue", listed("morgue")),
    ]
    places: defaultdict[tuple[str, str], list[Place]] = defaultdict(list)
    for place, of_shards in matches:
        for shard, (ids, _) in zip(shards, of_shards, strict=True):
            for job_id in map(bytes.decode, ids):
                places_of_id = places[shard.queue_name, job_id] if job_id.startswith(prefix) else [place]
                # A scan may return an id twice, and two shards may have it while a queue moves.
                if place not in places_of_id:
                    places_of_id.append(place)
    return places, any(one.cut for _, of_shards in matches for one in of_shards)


def _of_list(_shard: ShardRef, reply: Reply) -> _IdsFound:
    step = IdSearchReply.of(reply)
    return _IdsFound(step.ids, cut=step.cursor != b"0")


def _of_flight(_shard: ShardRef, reply: Reply) -> _IdsFound:
    return _IdsFound(IdsReply.of(reply).ids)
