"""What a move brings may come twice, and at any time: a second copy changes nothing."""

from collections.abc import Callable, Sequence
from random import Random

import pytest
import redis

from lowkiq_lambda.store.shard.keys import HEADERS, RECEIPTS, TRACKING, ShardRef
from lowkiq_lambda.store.shard.moving import Load, MovingShards, Overtaken
from tests.reshard.filled import Fill

PUSHED_BETWEEN = 0.5


def content(client: redis.Redis, shard: ShardRef) -> dict[str, object]:
    """All that lies under the keys of the shard, but for when it was looked at last."""
    read: dict[object, Callable[[str], object]] = {
        b"zset": lambda key: client.zrange(key, 0, -1, withscores=True),
        b"hash": client.hgetall,
        b"stream": client.xrange,
        b"none": lambda _key: None,
    }
    found = {key: read[client.type(key)](key) for key in shard.using((RECEIPTS, TRACKING, HEADERS)).keys}
    meta = found[shard.key("meta")]
    assert isinstance(meta, dict)
    del meta[b"now"]
    return found


@pytest.mark.parametrize("merge", ["min", "max", "never"])
@pytest.mark.parametrize(("before", "after"), [(3, 2), (2, 3)])
def test_a_second_copy_changes_nothing_whatever_was_pushed_meanwhile(
    fill: Fill, monkeypatch: pytest.MonkeyPatch, before: int, after: int, merge: str
) -> None:
    """P2, P3: all that was brought comes once more after each chunk, between pushes of payloads that it may meet."""
    filled = fill(before, merge=merge)
    brought_before: list[tuple[ShardRef, Sequence[Load]]] = []
    receive, rng, copies = MovingShards.receive, Random(merge), []

    def twice(shards: MovingShards, brought: Sequence[tuple[ShardRef, Sequence[Load]]]) -> None:
        filled.push(plain=True)
        receive(shards, brought)
        brought_before.extend(brought)
        if rng.random() < PUSHED_BETWEEN:
            filled.push(plain=True)
        targets = {shard for shard, _ in brought_before}
        once = {shard: content(filled.admin, shard) for shard in targets}
        receive(shards, brought_before)
        copies.append(({shard: content(filled.admin, shard) for shard in targets}, once))

    monkeypatch.setattr(MovingShards, "receive", twice)
    monkeypatch.setattr("lowkiq_lambda.store.shard.moving.CHUNK_RECORDS", 13)
    filled.app.operate(filled.worker).reshard(to=after)

    assert copies
    for second, once in copies:
        assert once == second
    assert filled.held(after)["waiting"]


def test_a_copy_that_comes_behind_the_opening_brings_nothing_back(fill: Fill, monkeypatch: pytest.MonkeyPatch) -> None:
    """P2: by then what it brings may have been performed; after a flush it is of no move that is known."""
    filled = fill(2)
    received: list[tuple[MovingShards, Sequence[tuple[ShardRef, Sequence[Load]]]]] = []
    receive = MovingShards.receive

    def note(shards: MovingShards, brought: Sequence[tuple[ShardRef, Sequence[Load]]]) -> None:
        received.append((shards, brought))
        receive(shards, brought)

    monkeypatch.setattr(MovingShards, "receive", note)
    filled.app.operate(filled.worker).reshard(to=3)
    targets = {shard for _, brought in received for shard, _ in brought}
    for shard in targets:
        filled.admin.delete(shard.key("due"), shard.key("jobs"), shard.key("box"))
    opened = {shard: content(filled.admin, shard) for shard in targets}
    for shards, brought in received:
        receive(shards, brought)

    assert opened == {shard: content(filled.admin, shard) for shard in targets}
    for shard in targets:
        filled.admin.delete(*shard.using((RECEIPTS, TRACKING, HEADERS)).keys)
    for shards, brought in received:
        with pytest.raises(Overtaken):
            receive(shards, brought)
    assert not filled.admin.exists(*[key for shard in targets for key in shard.keys])
