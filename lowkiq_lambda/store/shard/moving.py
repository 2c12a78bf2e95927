"""The calls of a move of ids between shards."""

from collections.abc import Sequence

import msgspec

from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.scripts import StatusReply


def raise_floors(backend: Backend, shards: Sequence[ShardRef], floors: bytes, retry_for: float) -> bool:
    """Keep later pushes to these shards behind those of a shard that a move has closed, which has told `floors`.

    For who pushes. False where a later move has begun: then the layout has to be read again. Raises BackendError.
    """
    epoch, _, last_score, token = floors.split()
    settings = msgspec.msgpack.encode({})
    replies = [
        backend.run("prepare", shard, [epoch, 0, last_score, token, "", settings], retry_for=retry_for)
        for shard in shards
    ]
    return all(StatusReply.of(reply).status == b"OK" for reply in replies)
