"""How an id has failed since it was last done: its last failures, wherever it waits, runs or lies."""

import zlib
from collections.abc import Callable

import pytest

from lowkiq_lambda import Failure
from tests.kit.desk import Desk, MakeDesk
from tests.kit.handlers import LATER


def fail_again(desk: Desk, times: int = 1) -> list[float]:
    """Let "a" fail, which waits for a retry each time; when it did, the last time first."""
    moments: list[float] = []
    desk.handler.failing = {"a"}
    for _ in range(times):
        desk.clock.advance(LATER)
        moments.insert(0, desk.clock.time())
        desk.drain()
    desk.handler.failing = set()
    return moments


def waiting(desk: Desk) -> tuple[Failure, ...]:
    """What is told of "a", which waits."""
    (job,) = desk.queue.waiting.fetch(["a"])
    return job.failures


def dead(desk: Desk) -> tuple[Failure, ...]:
    """What is told of "a", which lies in the morgue."""
    (job,) = desk.queue.morgue.fetch(["a"])
    return job.failures


def test_the_last_failures_are_told_newest_first(desk: Desk) -> None:
    """When each was, how many retries were over, and what happened; the oldest go; what did not fail has none."""
    desk.push([{"id": "a"}])
    moments = fail_again(desk, 3)
    desk.handler.words = "is worse"
    moments = fail_again(desk, 4) + moments
    desk.push([{"id": "b"}])

    texts = ["a is worse"] * 4 + ["a is broken"]
    counts = [6.0, 5.0, 4.0, 3.0, 2.0]
    assert tuple(map(Failure, moments[:5], counts, texts)) == waiting(desk)
    assert [()] == [job.failures for job in desk.queue.waiting.fetch(["b"])]


def test_they_are_told_of_what_runs_and_not_in_lists(desk: Desk) -> None:
    """A list has many jobs, and each may have failed."""
    desk.push([{"id": "a"}])
    (at,) = fail_again(desk)
    seen: list[tuple[Failure, ...]] = []

    def look() -> None:
        (job,), (listed,) = desk.queue.in_flight.fetch(["a"]), desk.queue.in_flight.list()
        seen.extend((job.failures, listed.failures))

    assert [()] == [job.failures for job in desk.queue.waiting.list("id")]
    desk.clock.advance(LATER)
    desk.handler.meanwhile = look
    desk.drain()
    assert [(Failure(at, 0.0, "a is broken"),), ()] == seen


def test_they_go_into_the_morgue_and_back(make_desk: MakeDesk) -> None:
    """E-76: by the last retry, by an operator's hand, and on the way back; they end when the id is done."""
    desk = make_desk({"max_retry_count": 2})
    desk.push([{"id": "a"}])
    third, second, first = fail_again(desk, 3)
    told = [Failure(at, count, "a is broken") for at, count in ((third, 2.0), (second, 1.0), (first, 0.0))]
    assert tuple(told) == dead(desk)

    desk.queue.morgue.requeue(["a"])
    assert tuple(told) == waiting(desk)
    (fourth,) = fail_again(desk)
    told.insert(0, Failure(fourth, 0.0, "a is broken"))
    assert tuple(told) == waiting(desk)
    desk.queue.waiting.kill(everything=True)
    assert tuple(told) == dead(desk)
    desk.queue.morgue.requeue(everything=True)
    desk.drain()

    assert {} == desk.state()["failures"]


@pytest.mark.parametrize(
    "end",
    [
        lambda desk: desk.queue.waiting.delete(["a"]),
        lambda desk: desk.queue.waiting.delete(filter={"least_count": "0"}),
        lambda desk: (desk.queue.waiting.kill(everything=True), desk.queue.morgue.delete(["a"])),
        lambda desk: (desk.clock.advance(LATER), desk.drain()),
    ],
    ids=["deleted", "deleted as failed", "deleted from the morgue", "done"],
)
@pytest.mark.parametrize("others", [[], ["b"]], ids=["alone", "others have failed"])
def test_what_is_over_leaves_nothing(desk: Desk, end: Callable[[Desk], object], others: list[str]) -> None:
    """E-76: however an id ends, its failures end with it, and only those."""
    desk.push([{"id": "dead"}])
    desk.handler.failing = {"dead"}
    desk.drain()
    desk.queue.waiting.kill(everything=True)
    desk.fail([{"id": job_id} for job_id in ("a", *others)])
    desk.handler.failing = set(others)
    end(desk)

    state = desk.state()
    assert "a" not in state["errors"]
    assert state["errors"].keys() | state["morgue"].keys() == state["failures"].keys()


def test_what_is_done_leaves_those_of_what_is_dead(desk: Desk) -> None:
    """An id in the morgue keeps its failures while new payloads of it come, fail and are done; then nothing does."""
    desk.kill([{"id": "a", "payload": 1}])
    desk.push([{"id": "a", "payload": 2}])
    (second,) = fail_again(desk)
    assert 2 == len(waiting(desk)) == len(dead(desk))
    desk.clock.advance(LATER)
    desk.drain()

    assert [second] == [failure.at for failure in dead(desk)[:1]]
    desk.queue.morgue.delete(["a"])
    assert {} == desk.state()["failures"]


@pytest.mark.parametrize("load", [bytes.decode, lambda dumped: zlib.decompress(dumped).decode()], ids=["own", "packed"])
def test_of_a_long_error_the_beginning_and_the_end_are_kept(make_desk: MakeDesk, load: Callable[[bytes], str]) -> None:
    """200 characters with a mark, which the app's own codec can read; the last error stays whole beside it."""
    desk = make_desk(
        load_error=load,
        dump_error=str.encode if load is bytes.decode else lambda text: zlib.compress(text.encode()),
    )
    desk.handler.words = "é" * 500 + " at last"
    desk.fail([{"id": "a"}])

    (job,) = desk.queue.waiting.fetch(["a"])
    (brief,) = [failure.error for failure in job.failures]
    assert "a " + "é" * 500 + " at last" == job.error
    assert (200, "a é", " [of 510 characters] ", "é at last") == (len(brief), brief[:3], brief[89:110], brief[-9:])


def test_what_an_older_version_leaves_does_no_harm(desk: Desk) -> None:
    """It ends ids without ending their failures: these are shown nowhere, count for nothing, and go at last."""
    (shard,) = desk.app.core.queues.agreed(desk.worker).shards
    key = shard.key("failures")
    desk.fail([{"id": "a"}, {"id": "b"}])
    left = desk.admin.hgetall(key)
    desk.clock.advance(LATER)
    desk.drain()
    desk.admin.hset(key, items=[part for pair in left.items() for part in pair])

    desk.push([{"id": "a"}])
    assert () == waiting(desk)
    (at,) = fail_again(desk)
    assert (Failure(at, 0.0, "a is broken"),) == waiting(desk)
    desk.clock.advance(LATER)
    desk.drain()
    assert not desk.admin.exists(key)
