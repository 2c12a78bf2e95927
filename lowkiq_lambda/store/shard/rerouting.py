"""Pushes to a shard whose ids have moved to others: the same jobs, in their order, under tokens of their own.

A chunk that a closed shard did not take is split by the shards that its ids have now. The token of a part comes from
that of the chunk and the name of the new shard. So a producer that sends the chunk again, and is turned away again,
makes the same parts under the same tokens, and each is applied once. A closed shard looks at the token first: chunks
that it took before it was closed get their earlier answer, and are not sent elsewhere.

The reply of the closed shard has its *floors*: the new ones take these over before the jobs come, so that no difference
between the clocks of two nodes gives a later push of an id the smaller score. docs/resharding.md has the proof.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha1

from lowkiq_lambda.base.errors import LowkiqError, ShardClosed
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.chunks import Chunk
from lowkiq_lambda.store.shard.keys import ShardRef
from lowkiq_lambda.store.shard.layout import QueueShards
from lowkiq_lambda.store.shard.moving import raise_floors


def rerouted(
    backend: Backend, shards: QueueShards, closed: Sequence[tuple[Chunk, ShardClosed]]
) -> tuple[list[Chunk], list[tuple[Chunk, ShardClosed]]]:
    """The chunks to send in place of these; and those whose new shards are not ready, each with the error."""
    parts = [(chunk, error, parted(chunk, shards, has_left=error.floors is not None)) for chunk, error in closed]
    refusals = _raise_floors(backend, parts)
    sendable: list[Chunk] = []
    stuck: list[tuple[Chunk, ShardClosed]] = []
    for chunk, _, own in parts:
        refusal = next((refusals[part.shard] for part in own if part.shard in refusals), None)
        if refusal is None:
            sendable += own
        else:
            stuck.append((chunk, refusal))
    return sendable, stuck


def parted(chunk: Chunk, shards: QueueShards, *, has_left: bool) -> list[Chunk]:
    """The jobs of the chunk by the shards that have their ids now; the chunk itself if that is its own shard.

    `has_left`: by the reply of its shard, its ids are in others, or on their way there.
    """
    by_shard: dict[ShardRef, list[int]] = {}
    for place, job in enumerate(chunk.jobs):
        home = shards.home_of(job.id)
        if has_left and home == chunk.shard:
            # The layout is a step behind: the group is being moved.
            home = shards.other_home_of(job.id)
        by_shard.setdefault(home, []).append(place)
    if by_shard.keys() <= {chunk.shard}:
        return [chunk]
    return [
        Chunk(
            shard.using(chunk.shard.features),
            sha1(chunk.token + shard.keys[0].encode(), usedforsecurity=False).digest()[:12],
            [chunk.jobs[place] for place in places],
            origin=chunk.origin or chunk.token,
        )
        for shard, places in by_shard.items()
    ]


def _raise_floors(
    backend: Backend, parts: Sequence[tuple[Chunk, ShardClosed, Sequence[Chunk]]]
) -> Mapping[ShardRef, ShardClosed]:
    """Why which shards may not be pushed to yet."""
    by_floors: dict[bytes, dict[ShardRef, None]] = {}
    for _, error, own in parts:
        if error.floors is not None:
            by_floors.setdefault(error.floors, {}).update(dict.fromkeys(part.shard for part in own))
    refusals: dict[ShardRef, ShardClosed] = {}
    for floors, targets in by_floors.items():
        try:
            if not raise_floors(backend, [*targets], floors, 0.0):
                refusals |= dict.fromkeys(targets, ShardClosed("The queue is being resharded by another move."))
        except LowkiqError as error:
            # The job was not sent, so it is certain that it was not written.
            refusals |= dict.fromkeys(targets, ShardClosed(str(error)))
    return refusals
