"""What people's methods are given by mistake is refused in a sentence, and nothing is done."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import pytest

from lowkiq_lambda import JobError, Lowkiq, Worker
from lowkiq_lambda.store.shard.keys import ShardRef
from tests.kit.handlers import Notes
from tests.kit.looks import left_behind
from tests.kit.workers import declare, jobs_of


class Misused(NamedTuple):
    """What mistakes are made with; of no type, as a checker would tell of them."""

    app: Any
    worker: Any
    queue: Any


Call: TypeAlias = Callable[[Misused], object]

CALLS: dict[str, tuple[Call, type[Exception], str]] = {
    "queue.journal('all', shards=[9])": (
        lambda at: at.queue.journal("all", shards=[9]),
        ValueError,
        "A shard is one of the queue, or its number from 0 to 2, not 9",
    ),
    "queue.journal('all', shards='x')": (
        lambda at: at.queue.journal("all", shards="x"),
        ValueError,
        "A shard is one of the queue, or its number from 0 to 2, not 'x'",
    ),
    "queue.journal('all', shards=5)": (
        lambda at: at.queue.journal("all", shards=5),
        TypeError,
        "shards are given as a list, not as one int",
    ),
    "queue.journal('all', shards=[of another queue])": (
        lambda at: at.queue.journal("all", shards=[ShardRef("another", 3, 0)]),
        ValueError,
        "A shard is one of the queue, or its number from 0 to 2, not ShardRef(queue_name='another'",
    ),
    "queue.journal('all', seconds='x')": (
        lambda at: at.queue.journal("all", seconds="x"),
        ValueError,
        "seconds must be more than 0 and at most 86400, not 'x'",
    ),
    "queue.pause('x')": (
        lambda at: at.queue.pause("x"),
        ValueError,
        "seconds must be more than 0, or None",
    ),
    "queue.waiting.kill(['a'], error=5)": (
        lambda at: at.queue.waiting.kill(["a"], error=5),
        TypeError,
        "error must be a text, not int",
    ),
    "queue.waiting.kill('a', error='e')": (
        lambda at: at.queue.waiting.kill("a", error="e"),
        TypeError,
        "ids are given as a list, not as one str",
    ),
    "queue.waiting.delete(5)": (
        lambda at: at.queue.waiting.delete(5),
        TypeError,
        "ids are given as a list, not as one int",
    ),
    "queue.unblock(5, 'retry')": (
        lambda at: at.queue.unblock(5, "retry"),
        TypeError,
        "ids are given as a list, not as one int",
    ),
    "queue.forget_keys(5)": (
        lambda at: at.queue.forget_keys(5),
        TypeError,
        "forget_keys takes pairs of an id and a key, not 5",
    ),
    "queue.forget_keys(['a'])": (
        lambda at: at.queue.forget_keys(["a"]),
        TypeError,
        "forget_keys takes pairs of an id and a key, not 'a'",
    ),
    "queue.waiting.fetch(5)": (
        lambda at: at.queue.waiting.fetch(5),
        TypeError,
        "ids are given as a list, not as one int",
    ),
    "queue.waiting.blocked(after=5)": (
        lambda at: at.queue.waiting.blocked(after=5),
        ValueError,
        "after=5 is not the `next` of a page",
    ),
    "queue.recovered(limit='x')": (
        lambda at: at.queue.recovered(limit="x"),
        ValueError,
        "limit must be from 1 to 10,000, not 'x'",
    ),
    "queue.morgue.requeue(5)": (
        lambda at: at.queue.morgue.requeue(5),
        TypeError,
        "ids are given as a list, not as one int",
    ),
    "app.drain('Orders')": (
        lambda at: at.app.drain("Orders"),
        TypeError,
        "seconds must be a number, not 'Orders': a drain visits all queues of the app",
    ),
    "app.operate.find(5)": (lambda at: at.app.operate.find(5), TypeError, "find takes a text, not 5"),
    "app.operate.processes().quiet(5)": (
        lambda at: at.app.operate.processes().quiet(5),
        TypeError,
        "A process is one of those listed, or its id, not 5",
    ),
    "app.operate.processes().stop(None)": (
        lambda at: at.app.operate.processes().stop(None),
        TypeError,
        "A process is one of those listed, or its id, not None",
    ),
    "queue.reshard(to='x')": (
        lambda at: at.queue.reshard(to="x"),
        ValueError,
        "The number of shards is a whole number from 1 to 100,000",
    ),
    "queue.reshard(to=0)": (
        lambda at: at.queue.reshard(to=0),
        ValueError,
        "The number of shards is a whole number from 1 to 100,000",
    ),
    "queue.resharding().accept(5.5)": (
        lambda at: at.queue.resharding().accept(5.5),
        ValueError,
        "The number of shards is a whole number from 1 to",
    ),
    "app.push_many(worker, 5)": (
        lambda at: at.app.push_many(at.worker, 5),
        JobError,
        "jobs are given as a list, not as one int: write [{...}]",
    ),
    "app.push_many(worker, 'abc')": (
        lambda at: at.app.push_many(at.worker, "abc"),
        JobError,
        "jobs are given as a list, not as one str: write [{...}]",
    ),
}


@pytest.mark.parametrize(("call", "kind", "sentence"), CALLS.values(), ids=CALLS)
def test_a_mistake_is_refused_in_a_sentence(
    app: Lowkiq, queue_name: str, call: Call, kind: type[Exception], sentence: str
) -> None:
    """The error says what is wanted, and what was given; the queue is as it was, and can be drained."""
    worker: type[Worker] = declare(app, queue_name, Notes(), shards_count=3)
    worker.push_many(jobs_of("ab"))
    before = left_behind(app, worker)

    with pytest.raises(kind, match=re.escape(sentence)):
        call(Misused(app, worker, app.operate(worker)))

    assert before == left_behind(app, worker)
    assert 2 == app.drain()["done"]
