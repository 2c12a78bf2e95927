"""Long texts of errors are kept once for all ids that have them, and no longer than any has."""

from collections.abc import Callable

import pytest

from lowkiq_lambda.settings.protocols import MorgueLimits
from tests.kit.desk import Desk
from tests.kit.handlers import LATER
from tests.kit.looks import ids_of

LONG = "the shop does not answer" + "\n  at a line of the traceback" * 100


@pytest.fixture
def desk(make_desk: Callable[..., Desk]) -> Desk:
    """One whose jobs fail with a long text."""
    made = make_desk()
    made.handler.words = LONG
    return made


def texts(desk: Desk) -> int:
    """How many texts lie in the shard that ids refer to."""
    (shard,) = desk.app.core.queues.agreed(desk.worker).shards
    return int(desk.admin.hlen(shard.key("texts"))) // 2


def memory(desk: Desk) -> int:
    """Bytes that the shard takes up."""
    (shard,) = desk.app.core.queues.agreed(desk.worker).shards
    return sum(desk.admin.memory_usage(key, samples=0) or 0 for key in shard.keys)


def drain_again(desk: Desk) -> None:
    """Perform what waits for its retry."""
    desk.clock.advance(LATER)
    desk.drain()


def kill_one_and_delete_both(desk: Desk) -> None:
    """One of them is in the morgue, with what has failed, while the other waits."""
    desk.queue.waiting.kill(everything=True)
    desk.fail([{"id": "a", "payload": 2}])
    desk.state()
    desk.queue.morgue.delete(everything=True)
    desk.state()
    desk.queue.waiting.delete(["a"])


def test_an_outage_costs_little_more_than_what_waits(desk: Desk) -> None:
    """2,000 ids that fail with one text of 3,000 characters take up to four times what they took before."""
    jobs = [{"id": f"order {n}", "payload": {"version": n}} for n in range(2_000)]
    desk.push(jobs)
    before = memory(desk)
    desk.handler.failing = {str(job["id"]) for job in jobs}
    desk.drain()
    once = memory(desk)
    drain_again(desk)
    drain_again(desk)

    assert once < 4 * before
    assert memory(desk) < 5 * before
    assert 1 == texts(desk)


def test_a_text_is_shown_as_it_was_kept(desk: Desk) -> None:
    """Wherever a job is looked at, and to its handler, its error is whole, with the first line that is its own."""
    seen: list[object] = []
    desk.fail([{"id": "a"}, {"id": "b"}])
    desk.handler.meanwhile = lambda: seen.extend(job.error for job in desk.queue.in_flight.list())
    desk.handler.failing = {"a", "b"}
    drain_again(desk)

    assert [f"a {LONG}"] == seen[:1]
    assert [f"a {LONG}", f"b {LONG}"] == [job.error for job in desk.queue.waiting.fetch(["a", "b"])]
    assert 2 == len(desk.queue.waiting.search(text="LINE OF THE TRACEBACK"))
    desk.queue.waiting.kill(everything=True)
    assert [f"a {LONG}", f"b {LONG}"] == [job.error for job in desk.queue.morgue.fetch(["a", "b"])]
    assert ["b"] == ids_of(desk.queue.morgue.search(text=f"B {LONG}".upper()))
    desk.queue.morgue.requeue(["a"])
    assert [f"a {LONG}"] == [job.error for job in desk.queue.waiting.fetch(["a"])]
    assert 2 == texts(desk)


@pytest.mark.parametrize(
    "end",
    [
        drain_again,
        lambda desk: desk.queue.waiting.delete(["a", "b"]),
        lambda desk: desk.queue.waiting.delete(filter={"least_count": "0"}),
        kill_one_and_delete_both,
        lambda desk: desk.queue.waiting.kill(everything=True) and desk.queue.morgue.delete(["a", "b"]),
    ],
    ids=["done", "deleted", "all deleted", "deleted from the morgue in parts", "deleted from the morgue"],
)
def test_a_text_goes_with_the_last_id_that_has_it(desk: Desk, end: Callable[[Desk], object]) -> None:
    """However ids end, no text is left without one, and none is counted for one that is not there."""
    desk.fail([{"id": "a"}, {"id": "b"}])
    assert 1 == texts(desk)

    end(desk)

    desk.state()
    assert 0 == texts(desk)


def test_a_text_goes_when_another_takes_its_place(desk: Desk) -> None:
    """An id has one last error."""
    desk.fail([{"id": "a"}])
    desk.handler.words = LONG + " again"
    desk.handler.failing = {"a"}
    drain_again(desk)
    assert 1 == texts(desk)

    desk.handler.words = "shortly"
    drain_again(desk)
    assert 0 == texts(desk)
    assert ["a shortly"] == [job.error for job in desk.queue.waiting.fetch(["a"])]


def test_a_text_goes_with_what_is_trimmed(make_desk: Callable[..., Desk]) -> None:
    """The morgue keeps no more texts than payloads."""
    desk = make_desk(morgue=MorgueLimits(entries=3))
    for n in range(9):
        desk.handler.words = f"{LONG} {n}"
        desk.kill([{"id": n}])

    assert 3 == texts(desk) == len(desk.state()["morgue"])


def test_failures_in_a_row_with_one_error_are_all_told(desk: Desk) -> None:
    """What is the same is kept once, and told for each of them."""
    desk.handler.words = "down"
    desk.fail([{"id": "a"}])
    for words in ("down", "up", "up", "up"):
        desk.handler.words = words
        desk.handler.failing = {"a"}
        drain_again(desk)

    (job,) = desk.queue.waiting.fetch(["a"])
    assert ["a up", "a up", "a up", "a down", "a down"] == [failure.error for failure in job.failures]
