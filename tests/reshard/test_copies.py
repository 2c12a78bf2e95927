"""What a move brings may come twice, and at any time: a second copy changes nothing."""

from collections.abc import Callable, Sequence
from random import Random

import pytest
import redis

from lowkiq_lambda.store.shard.keys import HEADERS, RECEIPTS, TRACKING, ShardRef
from lowkiq_lambda.store.shard.moving import Load, MovingShards
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.servers import Server
from tests.reshard.filled import FilledQueue
from tests.reshard.held import held


def content(client: redis.Redis, shard: ShardRef) -> dict[str, object]:
    """All that lies under the keys of the shard, but for when it was looked at last."""
    read: dict[bytes, Callable[[str], object]] = {
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
@pytest.mark.parametrize("counts", [(3, 2), (2, 3)])
def test_a_second_copy_changes_nothing_whatever_was_pushed_meanwhile(  # noqa: PLR0917 - fixtures
    make_app: MakeApp,
    queue_name: str,
    clock: ManualClock,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    counts: tuple[int, int],
    merge: str,
) -> None:
    """P2, P3: all that was brought so far comes once more after each slice, between pushes of payloads that it may meet."""
    before, after = counts
    app = make_app()
    filled = FilledQueue(app, queue_name, clock, before, merge=merge)
    brought_before: list[tuple[ShardRef, Sequence[Load]]] = []
    receive, rng, copies = MovingShards.receive, Random(queue_name), []

    def twice(shards: MovingShards, brought: Sequence[tuple[ShardRef, Sequence[Load]]]) -> None:
        filled.push()
        receive(shards, brought)
        brought_before.extend(brought)
        if rng.random() < 0.5:
            filled.push()
        targets = {shard for shard, _ in brought_before}
        once = {shard: content(server.admin, shard) for shard in targets}
        receive(shards, brought_before)
        copies.append(({shard: content(server.admin, shard) for shard in targets}, once))

    monkeypatch.setattr(MovingShards, "receive", twice)
    monkeypatch.setattr("lowkiq_lambda.store.shard.moving.SLICE_RECORDS", 7)
    app.reshard(filled.worker, to=after)

    assert copies
    for second, once in copies:
        assert once == second
    # Nothing that it shows contradicts the rest.
    held(server.admin, [ShardRef(queue_name, after, index) for index in range(after)])
