"""What an event selects, and what is said of one that selects nothing."""

from types import MappingProxyType
from typing import Any, Final

import pytest

from lowkiq_lambda.aws.events import BadEvent, selected
from lowkiq_lambda.store.shard.keys import ShardRef

SHARDS = [*(ShardRef("orders", 4, index) for index in range(4)), *(ShardRef("stock", 2, index) for index in range(2))]


def chosen(event: object) -> list[str]:
    """The shards by a short name."""
    return [f"{shard.queue_name}/{shard.index}" for shard in selected(event, SHARDS)]


LEFT_OVER: Final = (
    "If a schedule sends it, leave the queue out of QueueSchedules, or run `lowkiq stack schedules` again."
)


@pytest.mark.parametrize(
    ("event", "shards"),
    [
        ({"shard": 1}, ["orders/1", "stock/1"]),
        ({"shard": 3}, ["orders/3"]),
        ({"queue": "stock"}, ["stock/0", "stock/1"]),
        ({"queue": "orders", "shard": 0}, ["orders/0"]),
        ({"queue": "orders", "shard": 0, "generation": 2}, ["orders/0"]),
        (MappingProxyType({"shard": 2}), ["orders/2"]),
    ],
)
def test_an_event_names_a_shard_a_queue_or_both(event: object, shards: list[str]) -> None:
    """DESIGN 6: a shard of every queue that has one, a queue, or a shard of a queue."""
    assert shards == chosen(event)


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"anything": "else"},
        {
            "version": "0",
            "id": "9c26",
            "detail-type": "Scheduled Event",
            "source": "aws.scheduler",
            "account": "123456789012",
            "time": "2026-11-01T10:00:00Z",
            "region": "eu-west-1",
            "resources": ["arn:aws:scheduler:eu-west-1:123456789012:schedule/shop/tick"],
            "detail": "{}",
        },
    ],
)
def test_any_other_object_means_all_shards(event: object) -> None:
    """DESIGN 6: an empty object, EventBridge's own event, or one that speaks of something else."""
    assert [f"orders/{n}" for n in range(4)] + ["stock/0", "stock/1"] == chosen(event)


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (None, "The event must be an object, such as {} or {'shard': 3}, not null."),
        ([1], "The event must be an object, such as {} or {'shard': 3}, not [1] (list)."),
        ("orders", "The event must be an object, such as {} or {'shard': 3}, not 'orders' (str)."),
        ({"queue": "order"}, "The event's queue 'order' is unknown: this app has 'orders', 'stock'. " + LEFT_OVER),
        ({"queue": None}, "The event's queue must be the name of a queue, not null."),
        ({"queue": ["orders"]}, "The event's queue must be the name of a queue, not ['orders'] (list)."),
        ({"shard": 4}, "The event's shard 4 is not a shard of any queue here: they count from 0 to 3."),
        ({"shard": -1}, "The event's shard -1 is not a shard of any queue here: they count from 0 to 3."),
        ({"queue": "stock", "shard": 2}, "The event's shard 2 is not a shard of 'stock': they count from 0 to 1."),
        ({"shard": "3"}, "The event's shard must be a whole number, not '3' (str)."),
        ({"shard": 1.0}, "The event's shard must be a whole number, not 1.0 (float)."),
        ({"shard": True}, "The event's shard must be a whole number, not True (bool)."),
        ({"shard": None}, "The event's shard must be a whole number, not null."),
        ({"Shard": 3}, "The event has 'Shard': did you mean 'shard'?"),
        ({"queueName": "stock"}, "The event has 'queueName': did you mean 'queue'?"),
        ({"shard_index": 1}, "The event has 'shard_index': did you mean 'shard'?"),
    ],
)
def test_a_bad_event_is_told_what_is_wrong(event: Any, why: str) -> None:
    """DESIGN 6: what cannot be drained is an error that says so, and says what could be."""
    with pytest.raises(BadEvent) as raised:
        chosen(event)

    assert why == str(raised.value)


def test_a_long_list_of_queues_is_cut() -> None:
    """An app with very many queues still has errors that can be read."""
    shards = [ShardRef(f"q{n}", 1, 0) for n in range(12)]

    with pytest.raises(BadEvent, match=r"has 'q0', 'q1', 'q2', 'q3', 'q4' and 7 more\. If a schedule"):
        selected({"queue": "none"}, shards)
