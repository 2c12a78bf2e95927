"""Numbers of a shard at their bounds, which no script has written, as the next one would not fit."""

import pytest

from tests.kit.desk import Desk


@pytest.mark.parametrize(
    ("field", "bound"),
    [
        ("arrival", 2**48),
        ("max_len", 2**53),
        ("last_score", 2**53),
        ("push_minute", 2**53),
        ("push_turns", 2**53),
    ],
)
def test_a_push_sets_aside_a_number_at_its_bound(desk: Desk, field: str, bound: int) -> None:
    """Each of them by itself; then the push is made, and all that waits runs."""
    (shard,) = desk.app.core.queues.agreed(desk.worker).shards
    desk.push([{"id": "a"}])
    desk.admin.hset(shard.key("meta"), field, bound)

    desk.push([{"id": "b"}])

    assert [("meta", field)] == [(one.key, one.id) for one in desk.queue.damaged()]
    desk.drain()
    assert {"a", "b"} == {job_id for batch in desk.handler.batches for job_id in batch}
