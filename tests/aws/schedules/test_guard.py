"""What a deploy would strand, from values alone."""

import pytest

from lowkiq_lambda.aws.drain_schedules.guard import Held, QueueFound, find_stranded
from lowkiq_lambda.store.shard.declarations import Declaration

TEN = {"shards_count": 10, "codec": "json", "merge": "min", "hash": "crc32", "layout": 1}
WAITING, IN_FLIGHT, DEAD = Held(waiting=3), Held(in_flight=1), Held(morgue=2)


def queue(name: str, *shards: Held, **made_with: object) -> QueueFound:
    """A queue with these first shards, and empty ones behind them."""
    empty = [Held()] * (10 - len(shards))
    return QueueFound(name, {**TEN, **made_with}, (*shards, *empty))


def test_queues_that_agree_are_not_stranded() -> None:
    """A queue whose declaration is that of the code may hold what it likes."""
    assert [] == find_stranded({"Orders": Declaration(10, "json")}, [queue("Orders", WAITING)])


def test_a_queue_that_redis_does_not_know_is_new() -> None:
    """A worker whose queue nobody has used yet strands nothing."""
    assert [] == find_stranded({"Orders": Declaration(10, "json")}, [])


@pytest.mark.parametrize("count", [1, 9, 11, 100])
def test_l_68_another_shards_count_strands_what_the_shards_hold(count: int) -> None:
    """L-68, LB-17: a changed shards_count is refused, fewer and more, with what the shards hold and what to do."""
    (stranded,) = find_stranded({"Orders": Declaration(count, "json")}, [queue("Orders", WAITING, Held(), DEAD)])

    assert ("Orders", (0, 2)) == (stranded.queue_name, stranded.shards)
    assert stranded.sentence == (
        f"Queue 'Orders' was made with shards_count=10, and the code declares shards_count={count}: every push and "
        "drain of this code would be refused, and what it holds (3 waiting, 2 in the morgue; shards 0, 2) would be "
        "stranded. Restore shards_count=10; or move the queue while it is in use: run "
        f"`lowkiq reshard Orders --to {count} --announce` and go on as docs/resharding.md says; or give the worker "
        "another queue_name, and let a worker with the old declaration push what is left over to it."
    )


@pytest.mark.parametrize("held", [WAITING, IN_FLIGHT, DEAD])
def test_waiting_in_flight_and_dead_jobs_all_count(held: Held) -> None:
    """What waits, runs or lies in the morgue is stranded alike."""
    (stranded,) = find_stranded({"Orders": Declaration(5, "json")}, [queue("Orders", held)])

    assert "what it holds (" in stranded.sentence


def test_an_empty_queue_with_another_shards_count_is_refused_too() -> None:
    """Nothing would be lost, but nothing would work either, and the sentence says so."""
    (stranded,) = find_stranded({"Orders": Declaration(5, "json")}, [queue("Orders")])

    assert "it is empty, but every push and drain of this code would be refused" in stranded.sentence


def test_another_codec_is_refused() -> None:
    """All that producers and drains must agree on is compared, not the count of shards alone."""
    (stranded,) = find_stranded({"Orders": Declaration(10, "msgpack")}, [queue("Orders", WAITING)])

    assert "was made with codec='json', and the code declares codec='msgpack'" in stranded.sentence


def test_another_merge_is_refused() -> None:
    """E-95: equal payloads are looked for where the queue's own merge keeps them, so it is compared too."""
    (stranded,) = find_stranded({"Orders": Declaration(10, "json", "never")}, [queue("Orders", WAITING)])

    assert "was made with merge='min', and the code declares merge='never'" in stranded.sentence
    assert "reshard" not in stranded.sentence


def test_a_queue_without_a_worker_is_stranded_while_it_holds_jobs() -> None:
    """A worker that was removed or renamed leaves its jobs behind; when they are gone nobody minds."""
    (stranded,) = find_stranded({}, [queue("Old", Held(), WAITING), queue("Older")])

    assert stranded.sentence == (
        "Queue 'Old' has no worker in the code: what it holds (3 waiting; shard 1) would be stranded. Keep a worker "
        "with queue_name='Old' and shards_count=10 until it is empty; or, if another app serves it, say "
        "--ignore-queue 'Old'."
    )


def test_queues_of_other_apps_are_ignored_by_name() -> None:
    """Apps that share a Redis name one another's queues, by pattern too."""
    found = [queue("Billing.Invoices", WAITING), queue("Billing.Fees", WAITING), queue("Old", WAITING)]

    assert ["Old"] == [one.queue_name for one in find_stranded({}, found, ["Billing.*"])]


def test_a_queue_of_the_code_cannot_be_ignored() -> None:
    """What the code declares is compared, whatever is said: its pushes would be refused."""
    assert find_stranded({"Orders": Declaration(5, "json")}, [queue("Orders", WAITING)], ["*"])


def test_a_queue_that_cannot_be_read_is_not_taken_for_empty() -> None:
    """Of a queue with a layout that this library does not know, what it holds is unknown, and it is refused."""
    unknown = QueueFound("Orders", {**TEN, "layout": 2}, None)

    with_worker = find_stranded({"Orders": Declaration(10, "json")}, [unknown])
    without = find_stranded({}, [unknown])

    assert "whatever it holds would be stranded" in with_worker[0].sentence
    assert "whatever it holds would be stranded" in without[0].sentence


def test_many_shards_are_counted_and_not_listed() -> None:
    """A sentence about a hundred shards stays a sentence."""
    found = QueueFound("Old", {**TEN, "shards_count": 100}, (WAITING,) * 100)

    (stranded,) = find_stranded({}, [found])

    assert "(300 waiting; shards 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 90 more)" in stranded.sentence
