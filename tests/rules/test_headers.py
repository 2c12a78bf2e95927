"""Headers of jobs: what a push tells about itself to who performs it."""

import re
from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from lowkiq_lambda import Batch, JobError, Lowkiq, Worker
from lowkiq_lambda.store.shard.keys import HEADERS, ShardRef
from lowkiq_lambda.store.shard.scripts import script
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Notes, failing
from tests.kit.workers import declare

if TYPE_CHECKING:
    from lowkiq_lambda.jobs.headers import Headers

DAY = 86_400


class Told:
    """A handler that notes the headers of its batches, and then does as the test says."""

    def __init__(self) -> None:
        self.headers: list[dict[str, list[Headers]]] = []
        self.left_out: list[int] = []
        self.notes = Notes()

    def __call__(self, batch: Batch) -> object:
        """Note them."""
        self.headers.append(batch.headers)
        self.left_out.append(batch.headers_left_out)
        return self.notes(batch)

    def traces(self) -> list[list[str]]:
        """The traces of each batch, in the order in which they were told."""
        return [[each["trace"] for headers in batch.values() for each in headers] for batch in self.headers]


@pytest.fixture
def told() -> Told:
    """What the test's handler is told."""
    return Told()


def push(worker: type[Worker], *traces: str, **fields: Any) -> None:
    """A push of the same job for each trace."""
    for trace in traces:
        worker.push_many([{"id": "a", "payload": 1, **fields, "headers": {"trace": trace}}])


def keys_of(app: Lowkiq, worker: type[Worker]) -> Sequence[tuple[str, int]]:
    """The keys of headers there are, with how many entries each has."""
    (shard,) = app.core.queues.agreed(worker).shards
    shard = ShardRef(shard.queue_name, shard.shards_count, 0, features=("headers",))
    sizes = [(name, app.core.backend.client.hlen(shard.key(name))) for name in ("headers_even", "headers_odd")]
    return [(name, size) for name, size in sizes if size]


def in_use(app: Lowkiq, worker: type[Worker]) -> object:
    """What the shard says of features that it uses."""
    (shard,) = app.core.queues.agreed(worker).shards
    return app.core.backend.client.hget(shard.key("meta"), "in_use")


def test_who_performs_a_job_is_told_its_headers(app: Lowkiq, queue_name: str, told: Told) -> None:
    """In the batch by id, and with the job; they are no part of the payload. What is done leaves nothing."""
    worker = declare(app, queue_name, told, batch_size=3)
    headers = {"trace": "1", "wer": "Ä"}
    worker.push_many([{"id": "a", "payload": 1, "headers": headers}, {"id": "b"}, {"id": "c", "headers": {}}])
    assert b"headers" == in_use(app, worker)
    app.drain()

    assert ([{"a": [headers]}], [0]) == (told.headers, told.left_out)
    assert [{"a": [1], "b": [""], "c": [""]}] == told.notes.batches
    assert [[headers], [], []] == [list(job.headers) for job in told.notes.jobs[0]]
    assert [] == keys_of(app, worker)


@pytest.mark.parametrize("position", [0, 1, 2])
def test_headers_of_a_payload_that_is_over_are_not_told(
    app: Lowkiq, clock: ManualClock, queue_name: str, told: Told, position: int
) -> None:
    """The handler gets those of the payloads that it gets; a payload without headers moves none."""
    worker = declare(app, queue_name, told)
    for score in range(3):
        fields = {"payload": score, "score": score} | ({"expires_in": 60} if score == position else {})
        push(worker, str(score), **fields)
    worker.push_many([{"id": "a", "payload": 9, "score": -1}])
    clock.advance(61)
    app.drain()

    left = [score for score in range(3) if score != position]
    assert [{"a": [9, *left]}] == told.notes.batches
    assert ([[*map(str, left)]], [0]) == (told.traces(), told.left_out)


def test_equal_payloads_that_merge_have_the_headers_of_all_their_pushes(
    app: Lowkiq, queue_name: str, told: Told
) -> None:
    """Nobody else knows all producers of a payload."""
    worker = declare(app, queue_name, told)
    push(worker, "1", "2", "3")
    app.drain()
    assert ([["1", "2", "3"]], [0]) == (told.traces(), told.left_out)


@pytest.mark.parametrize("merge", ["min", "max"])
def test_they_follow_the_entry_that_is_kept(app: Lowkiq, queue_name: str, told: Told, merge: str) -> None:
    """Whichever of the two that is, and among other payloads of the id too."""
    worker = declare(app, queue_name, told, merge=merge)
    push(worker, "other", payload=2, score=5)
    push(worker, "1", score=9)
    push(worker, "2", score=3)
    push(worker, "3", score=7)
    app.drain()
    assert [["1", "2", "3", "other"]] == [sorted(told.traces()[0])]
    assert [2] == [len(payloads) for batch in told.notes.batches for payloads in batch.values()]


def test_eight_are_kept_of_a_payload_and_the_others_counted(app: Lowkiq, queue_name: str, told: Told) -> None:
    """A payload that merges all day needs no room for it."""
    worker = declare(app, queue_name, told)
    push(worker, *map(str, range(12)))
    app.drain()
    assert ([[*map(str, range(8))]], [4]) == (told.traces(), told.left_out)


def test_a_push_without_headers_joins_without_a_trace(app: Lowkiq, queue_name: str, told: Told) -> None:
    """Before or after one with headers."""
    worker = declare(app, queue_name, told)
    worker.push_many([{"id": "a", "payload": 1}])
    push(worker, "1")
    worker.push_many([{"id": "a", "payload": 1}])
    app.drain()
    assert ([["1"]], [0]) == (told.traces(), told.left_out)


def test_a_retry_is_told_them_again_with_those_that_came_meanwhile(
    app: Lowkiq, clock: ManualClock, queue_name: str, told: Told
) -> None:
    """Until it is done, whatever becomes of the others in its batch."""
    worker = declare(app, queue_name, told, batch_size=2)
    told.notes.then = failing("a")
    push(worker, "1")
    worker.push_many([{"id": "b", "headers": {"trace": "b"}}])
    app.drain()
    push(worker, "2")
    clock.advance(100)
    told.notes.then = None
    app.drain()
    assert [["1", "b"], ["1", "2"]] == [sorted(traces) for traces in told.traces()]
    assert [] == keys_of(app, worker)


def test_what_a_dead_holder_had_keeps_them(app: Lowkiq, clock: ManualClock, queue_name: str, told: Told) -> None:
    """Recovery puts back what was claimed under the numbers that it had."""
    mortal = Mortal(app)
    told.notes.then = mortal.die
    worker = declare(app, queue_name, told, batch_size=2)
    push(worker, "1", "2")
    mortal.drain()
    outlive(app, clock, worker)
    told.notes.then = None
    app.drain()
    assert [["1", "2"]] * 2 == told.traces()


def test_a_claim_whose_answer_was_lost_tells_them_again(
    app: Lowkiq, queue_name: str, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim that is told once more is the same claim."""
    worker = declare(app, queue_name, told)
    push(worker, "1")
    backend = app.core.drains.drainer._backend
    once, lost = backend._once, list[str]()

    def losing(code: Any, *args: Any, **options: Any) -> Any:
        reply = once(code, *args, **options)
        if code.name == "acquire" and reply[0] == b"OK" and not lost:
            lost.append(code.name)
            raise ConnectionError("the answer was lost")
        return reply

    monkeypatch.setattr(backend, "_once", losing)
    app.drain()
    assert (["acquire"], [["1"]]) == (lost, told.traces())


def test_headers_outlive_a_death(app: Lowkiq, clock: ManualClock, queue_name: str, told: Told) -> None:
    """What an operator requeues within a day still knows where it came from."""
    worker = declare(app, queue_name, told, max_retry_count=0)
    told.notes.then = failing("a")
    push(worker, "1")
    app.drain()
    told.notes.then = None
    clock.advance(3_600)
    app.operate(worker).morgue.requeue(["a"])
    app.drain()
    assert [["1"], ["1"]] == told.traces()


def test_they_are_dropped_after_a_day_or_two(app: Lowkiq, clock: ManualClock, queue_name: str, told: Told) -> None:
    """Two hashes take turns by the day, each with a time to live: what nobody removes goes as a whole."""
    clock.advance(DAY - clock.time() % DAY + 100)
    worker = declare(app, queue_name, told)
    push(worker, "1")
    clock.advance(DAY)
    push(worker, "2", payload=2)
    shard = ShardRef(queue_name, 1, 0, features=("headers",))
    lives = {app.core.backend.client.ttl(shard.key(name)) for name in ("headers_even", "headers_odd")}
    assert {2 * DAY - 100} == {DAY * 2 - 100 if 2 * DAY - 160 <= left <= 2 * DAY - 100 else left for left in lives}
    app.core.backend.client.delete(shard.key("headers_even"), shard.key("headers_odd"))
    app.drain()
    assert ([{}], [[1, 2]]) == (told.headers, [batch["a"] for batch in told.notes.batches])


def test_a_shard_without_headers_any_more_uses_none(app: Lowkiq, queue_name: str, told: Told) -> None:
    """The next claim that finds none says so, and a queue costs what it cost before."""
    worker = declare(app, queue_name, told)
    push(worker, "1")
    app.drain()
    worker.push_many([{"id": "b"}])
    app.drain()
    assert (None, [{"a": [{"trace": "1"}]}, {}]) == (in_use(app, worker), told.headers)


def test_a_process_that_knows_of_no_headers_keeps_them(
    app: Lowkiq, make_app: MakeApp, queue_name: str, told: Told
) -> None:
    """Its calls are refused once, and made again with the keys: whatever it pushes, merges or drains."""
    worker = declare(app, queue_name, Notes())
    push(worker, "1")
    other = make_app()
    drained_by_other = declare(other, queue_name, told)
    drained_by_other.push_many([{"id": "a", "payload": 1}])
    other.drain()
    assert [["1"]] == told.traces()


def test_an_operator_moves_jobs_with_their_headers(
    app: Lowkiq, clock: ManualClock, queue_name: str, told: Told
) -> None:
    """A payload that waits and one that comes back from the morgue are one, with the headers of both."""
    worker = declare(app, queue_name, told, max_retry_count=0)
    told.notes.then = failing("a")
    push(worker, "1")
    app.drain()
    told.notes.then = None
    push(worker, "2")
    clock.advance(1)
    app.operate(worker).morgue.requeue(["a"])
    app.drain()
    assert ["1", "2"] == sorted(told.traces()[-1])


@pytest.mark.parametrize("concurrency", [1, 3])
def test_each_of_many_has_its_own(app: Lowkiq, queue_name: str, concurrency: int) -> None:
    """In claims of thousands, and where batches run side by side."""
    found: dict[str, str] = {}

    def perform(batch: Batch) -> None:
        found.update({job_id: headers[0]["trace"] for job_id, headers in batch.headers.items()})

    worker = declare(app, queue_name, perform, batch_size=100, concurrency=concurrency)
    worker.push_many([{"id": f"id {n}", "headers": {"trace": str(n)}} for n in range(2_500)])
    app.drain()
    assert {f"id {n}": str(n) for n in range(2_500)} == found
    assert [] == keys_of(app, worker)


@pytest.mark.parametrize(
    ("headers", "told_so"),
    [
        ("trace", "headers: must be a mapping of str to str"),
        ({"trace": 1}, "headers: must be a mapping of str to str"),
        ({1: "trace"}, "headers: must be a mapping of str to str"),
        ({"trace": "\ud800"}, "headers: hold a lone surrogate, which cannot be stored"),
        ({"trace": "x" * 1_024}, "headers: have 1,034 bytes: give 1,024 at most"),
    ],
    ids=repr,
)
def test_headers_that_cannot_be_are_refused(app: Lowkiq, queue_name: str, headers: object, told_so: str) -> None:
    """Before anything is written, in a sentence that names the field."""
    worker = declare(app, queue_name, Notes())
    with pytest.raises(JobError, match=told_so):
        worker.push_many([{"id": "a", "headers": headers}])


@pytest.mark.parametrize("junk", [b"", b"\x00", b"\x00\x01\xff\xff", b"\x00\x01\x00\x03abc", b"\x00\x02\x00\x01\xa0"])
def test_headers_that_cannot_be_read_are_none(app: Lowkiq, queue_name: str, told: Told, junk: bytes) -> None:
    """A damaged hash costs headers, and never a job; what joins it has its own."""
    worker = declare(app, queue_name, told)
    push(worker, "1")
    shard = ShardRef(queue_name, 1, 0, features=("headers",))
    for name in ("headers_even", "headers_odd"):
        for field in app.core.backend.client.hkeys(shard.key(name)):
            app.core.backend.client.hset(shard.key(name), field, junk)
    worker.push_many([{"id": "b"}])
    push(worker, "2", payload=2)
    app.drain()
    assert [["2"], []] == told.traces()


def test_a_key_of_another_type_costs_headers_alone(app: Lowkiq, queue_name: str, told: Told) -> None:
    """It is set aside, as any key is, and the jobs go on."""
    worker = declare(app, queue_name, told)
    push(worker, "1")
    shard = ShardRef(queue_name, 1, 0, features=("headers",))
    for name in ("headers_even", "headers_odd"):
        app.core.backend.client.set(shard.key(name), "no hash")
    app.drain()
    assert ([{}], ["a"]) == (told.headers, told.notes.ids[0])


@pytest.mark.parametrize("name", ["enqueue", "acquire", "settle", "requeue"])
def test_a_queue_without_headers_has_nothing_of_them(name: str) -> None:
    """No key, and no function in its scripts."""
    plain, code = script(name), script(name, (HEADERS,))
    assert [False, True] == ["headers_even" in each.keys for each in (plain, code)]
    assert [False, True] == [bool(re.search(r"function \w+_headers\(", each.source)) for each in (plain, code)]


def test_headers_may_be_any_mapping(app: Lowkiq, told: Told, queue_name: str) -> None:
    """Such as a read-only view of the headers of a request."""
    worker = declare(app, queue_name, told)

    worker.push_many([{"id": "a", "headers": MappingProxyType({"trace": "t1"})}])
    app.drain()

    assert [["t1"]] == told.traces()
