"""Calls of `push_many`: arguments, answers, and large pushes (E-70 to E-72, L-3, L-40 to L-43)."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from random import Random
from types import MappingProxyType
from typing import Any

import pytest

from lowkiq_lambda import BackendFull, BackendUnavailable, Config, Job, JobError, Lowkiq, PushInterrupted, Worker
from lowkiq_lambda.base.errors import LowkiqError, ShardClosed, ShardDamaged
from lowkiq_lambda.jobs.job import shard_for
from lowkiq_lambda.store.shard.backend import Call
from lowkiq_lambda.store.shard.chunks import Chunk, NewJob, packed
from lowkiq_lambda.store.shard.pushing import Pusher
from lowkiq_lambda.store.shard.scripts import Reply
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Notes, raising
from tests.kit.looks import left_behind, look
from tests.kit.servers import MakeServer
from tests.kit.workers import declare, jobs_of, shard_of


def test_l40_an_id_is_required_and_a_bad_job_writes_nothing(app: Lowkiq, queue_name: str) -> None:
    """L-40: one job without id fails the call, and nothing of it is written."""
    notes = Notes()
    worker = declare(app, queue_name, notes, shards_count=3)

    with pytest.raises(JobError, match="job 2: id: is required") as caught:
        worker.push_many([{"id": 1}, {"id": 2}, {"payload": 3}, {"id": 4}])
    app.drain()

    assert (2, "id", []) == (caught.value.position, caught.value.field, notes.batches)


def test_l41_defaults_of_a_job(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """L-41: the payload is "", score and due_at are now."""
    notes = Notes()
    worker = declare(app, queue_name, notes)

    worker.push_many([{"id": "a"}])

    assert ([("", clock.time())], clock.time(), -1.0, None) == look(app, worker, "a")


def test_d3_one_job_is_pushed_by_its_fields(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """`push` is `push_many` with one job: the same fields, the same answer, the same errors."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    at = clock.time() + 60.0

    pushed = worker.push(1, {"status": "paid"}, score=2, due_at=at, key="k", headers=None)

    assert ("1", at, False) == (pushed.id, pushed.due_at, pushed.merged)
    assert worker.push(1, {"status": "paid"}, key="k").repeated
    assert ([({"status": "paid"}, 2.0)], at, -1.0, None) == look(app, worker, "1")
    assert clock.time() + 5 == worker.push("b", None, delay=5).due_at
    with pytest.raises(JobError, match="job 0: skore: "):
        worker.push(1, "paid", skore=2)  # type: ignore[call-overload]  # wrong on purpose


def test_d3_one_job_is_pushed_from_a_loop(app: Lowkiq, queue_name: str) -> None:
    """`apush` is `push` for code on an event loop."""
    worker = declare(app, queue_name, Notes())

    pushed = asyncio.run(worker.apush(1, "paid", score=2, due_at=2_000_000_000))

    assert "1" == pushed.id
    assert ([("paid", 2.0)], 2_000_000_000.0, -1.0, None) == look(app, worker, "1")


def test_what_a_push_returns_reads_as_a_mapping(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """`dict` has the fields of what became of a job, as a web framework wants them; no other field can be read."""
    pushed = declare(app, queue_name, Notes()).push(1)

    there = {"id": "1", "shard": 0, "merged": False, "due_at": clock.time()}
    passed_over = {"repeated": False, "superseded": False, "dropped": ""}
    assert {**there, **passed_over, "buffered": False, "paused": False} == dict(pushed)
    with pytest.raises(KeyError):
        pushed["count"]


def test_a_job_that_people_look_at_reads_as_a_mapping(app: Lowkiq, queue_name: str) -> None:
    """The fields of a job that waits, and of what lies within, are had by their names."""
    worker = declare(app, queue_name, Notes(raising(ValueError("17"))))
    worker.push("a", 17, score=2)
    app.drain()

    (shown,) = app.operate(worker).waiting.fetch(["a"])

    assert ("a", [(17, 2.0)], "17") == (shown["id"], shown["payloads"], shown["error"])
    assert dict(shown) == {**shown}
    assert ["17"] == [failure["error"] for failure in shown.failures]


def test_a_job_may_be_an_object(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """`Job` says what a mapping says: a field that is None counts as not given, though a payload may be None."""
    worker = declare(app, queue_name, Notes())
    at = clock.time() + 60.0

    first, _, repeated = worker.push_many(
        [Job("a", [1], score=2, due_at=at, key="k"), Job("b", None), Job("a", [1], key="k", key_ttl=60)]
    )

    assert ("a", at, True) == (first.id, first.due_at, repeated.repeated)
    assert ([([1], 2.0)], at, -1.0, None) == look(app, worker, "a")
    assert ([(None, clock.time())], clock.time(), -1.0, None) == look(app, worker, "b")
    assert {"id": 1, "delay": 5} == dict(Job(1, delay=5))
    with pytest.raises(KeyError):
        Job(1)["score"]


def test_client_middlewares_see_jobs_as_dicts(app: Lowkiq, queue_name: str) -> None:
    """However a job was given, a middleware may change it."""
    worker = declare(app, queue_name, Notes())

    def note_payload(_worker: type[Worker], jobs: list[dict[str, Any]], call_next: Callable[..., Any]) -> Any:
        for job in jobs:
            job["payload"] += 1
        return call_next()

    app.client_middlewares.append(note_payload)

    worker.push_many([Job("a", 1), {"id": "a", "payload": 2}])

    (job,) = app.operate(worker).waiting.fetch(["a"])
    assert [2, 3] == [payload for payload, _ in job.payloads]


@pytest.mark.parametrize("jobs", [1, "a", Job(1), {"id": 1}])
def test_one_job_in_place_of_several_is_told_what_to_write(app: Lowkiq, queue_name: str, jobs: Any) -> None:
    """What has the form of one job, or of an id, is not taken for several jobs, and the error names `push`."""
    worker = declare(app, queue_name, Notes())

    with pytest.raises(JobError, match=r"takes a list of jobs, not .*: write push_many\(\[.*\]\), or push\(id, "):
        worker.push_many(jobs)


@pytest.mark.parametrize("job", [None, "a", 5, ["id", "a"], ("id", "a")])
def test_a_job_is_a_mapping(app: Lowkiq, queue_name: str, job: Any) -> None:
    """What is no mapping is refused by its place."""
    worker = declare(app, queue_name, Notes())

    with pytest.raises(JobError, match="job 1: a job is a mapping with an id, not "):
        worker.push_many([{"id": "a"}, job])


def test_one_job_in_place_of_a_list_is_refused_with_what_to_write(app: Lowkiq, queue_name: str) -> None:
    """A mapping is a job, and its names would be taken for jobs."""
    worker = declare(app, queue_name, Notes())

    with pytest.raises(JobError, match=r"takes a list of jobs, not one job: write push_many\(\[\{\.\.\.\}\]\)"):
        worker.push_many({"id": 1})  # type: ignore[dict-item]  # wrong on purpose


def test_any_mapping_and_any_iterable_will_do(app: Lowkiq, queue_name: str) -> None:
    """Jobs may come as a generator, and be mappings of other types than dict."""
    notes = Notes()
    worker = declare(app, queue_name, notes, batch_size=9)

    def jobs() -> Iterator[MappingProxyType[str, Any]]:
        for n in range(3):
            yield MappingProxyType({"id": n})

    pushed = worker.push_many(jobs())
    app.drain()

    assert (["0", "1", "2"], [["0", "1", "2"]]) == ([one.id for one in pushed], notes.ids)


def test_fields_that_are_no_fields_are_refused(app: Lowkiq, queue_name: str) -> None:
    """A misspelled field would silently do nothing, so it is an error that names the fields there are."""
    worker = declare(app, queue_name, Notes())

    with pytest.raises(JobError, match=r"job 0: due_on: no such field: did you mean due_at\? A job has delay"):
        worker.push_many([{"id": "a", "due_on": time.time()}])


def test_e72_an_empty_push_does_nothing(app: Lowkiq, queue_name: str) -> None:
    """E-72: no jobs are no error."""
    worker = declare(app, queue_name, Notes())

    assert ([], [], {}) == (worker.push_many([]), worker.push_many(iter(())), app.drain())


def test_a_push_tells_what_became_of_each_job(app: Lowkiq, queue_name: str) -> None:
    """LB-30: id, shard, whether it met a waiting one, and the time that holds, by position."""
    worker = declare(app, queue_name, Notes(), shards_count=4)
    worker.push_many(jobs_of("b"))

    pushed = worker.push_many(jobs_of("abca"))

    assert [("a", False), ("b", True), ("c", False), ("a", True)] == [(one.id, one.merged) for one in pushed]


def test_lb30_pushed_tells_what_was_merged_in_chunks_too(app: Lowkiq, queue_name: str) -> None:
    """LB-30: over many calls to the server the answers stand by the jobs' positions."""
    worker = declare(app, queue_name, Notes(), shards_count=2)
    worker.push_many(jobs_of([str(n) for n in range(0, 6_000, 2)]))

    pushed = worker.push_many(jobs_of([str(n) for n in range(6_000)]))

    assert [(str(n), n % 2 == 0) for n in range(6_000)] == [(one.id, one.merged) for one in pushed]


def test_l3_an_id_always_lands_in_the_same_shard(app: Lowkiq, queue_name: str) -> None:
    """L-3, LN-15: the shard is computed from the id alone, by the same function as Lowkiq's."""
    worker = declare(app, queue_name, Notes(), shards_count=7)
    ids = ["", "1", "order:17", "день", "😀"]

    for _ in range(2):
        assert [shard_for(job_id, 7) for job_id in ids] == [pushed.shard for pushed in worker.push_many(jobs_of(ids))]


def test_l42_push_many_may_be_overridden(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """L-42: a worker derives id, score and due_at from what it is given, and calls super()."""

    class Derived(Worker):
        @classmethod
        def push_many(cls, jobs: Any) -> Any:
            at = clock.time() + 5
            return super().push_many(
                {"id": order["no"], "payload": order, "score": order["version"], "due_at": at} for order in jobs
            )

        def perform(self, batch: object) -> None:
            """Nothing."""

    Derived.queue_name = queue_name
    app.worker(Derived)
    (pushed,) = Derived.push_many([{"no": 17, "version": 3}])

    assert ("17", clock.time() + 5) == (pushed.id, pushed.due_at)
    assert ([({"no": 17, "version": 3}, 3.0)], clock.time() + 5, -1.0, None) == look(app, Derived, "17")


def test_ln2_client_middlewares_wrap_the_push(app: Lowkiq, queue_name: str) -> None:
    """LN-2: the first is outermost; each sees worker and jobs, may change the result, and may veto."""
    notes: list[object] = []

    def outer(worker: Any, jobs: list[Any], call_next: Callable[[], Any]) -> Any:
        notes.append(("outer", worker.queue_name, [job["id"] for job in jobs]))
        return call_next()

    def inner(_worker: Any, _jobs: list[Any], call_next: Callable[[], Any]) -> Any:
        notes.append("inner")
        return call_next()

    worker = declare(app, queue_name, Notes())
    worker.push_many(jobs_of("a"))
    app.client_middlewares += [outer, inner]
    (pushed,) = worker.push_many(jobs_of("b"))
    app.client_middlewares.insert(0, lambda _worker, _jobs, _call_next: [])

    assert ([], "b") == (worker.push_many(jobs_of("c")), pushed.id)
    assert [("outer", queue_name, ["b"]), "inner"] == notes
    assert {"done": 2} == app.drain()


def test_l43_a_thousand_jobs_in_one_call(app: Lowkiq, queue_name: str) -> None:
    """L-43: a large call is cut into parts, and the order within each id stays."""
    notes = Notes()
    worker = declare(app, queue_name, notes, shards_count=2, batch_size=10)
    jobs = [{"id": n % 7, "payload": n} for n in range(5_000)]

    pushed = worker.push_many(jobs)
    app.drain()

    assert [str(n % 7) for n in range(5_000)] == [one.id for one in pushed]
    seen: dict[str, list[int]] = {}
    for batch in notes.batches:
        for job_id, payloads in batch.items():
            seen.setdefault(job_id, []).extend(payloads)
    assert {str(n): list(range(n, 5_000, 7)) for n in range(7)} == seen


def test_e70_a_hundred_thousand_jobs_in_one_call(app: Lowkiq, queue_name: str) -> None:
    """E-70, LB-28: a push is cut into calls that Redis takes easily, and loses nothing."""
    worker = declare(app, queue_name, Notes(), shards_count=5, batch_size=1_000)

    pushed = worker.push_many([{"id": n} for n in range(100_000)])

    assert 100_000 == len({one.id for one in pushed})
    assert {"jobs": 100_000, "due": 100_000} == left_behind(app, worker)
    assert {"done": 100_000} == app.drain()
    assert {} == left_behind(app, worker)


def test_e70_a_bad_job_at_the_end_writes_nothing(app: Lowkiq, queue_name: str) -> None:
    """E-70: all jobs are checked before any is written, however many there are."""
    worker = declare(app, queue_name, Notes(), shards_count=2)

    with pytest.raises(JobError, match="job 20000: score") as caught:
        worker.push_many([*({"id": n} for n in range(20_000)), {"id": "bad", "score": "high"}])

    assert (20_000, {}) == (caught.value.position, left_behind(app, worker))


def test_e70_a_push_that_breaks_off_tells_what_was_written(
    make_server: MakeServer, clock: ManualClock, queue_name: str
) -> None:
    """E-70, E-41: each position is in exactly one of written, not_written and unknown, and the lists are true."""
    server = make_server(maxmemory="12mb")
    app = Lowkiq(Config(redis_url=server.url), clock=clock)
    notes = Notes()
    worker = declare(app, queue_name, notes, shards_count=3, batch_size=100)

    with pytest.raises(PushInterrupted, match=r"The push broke off .*: \d+ jobs are written") as caught:
        worker.push_many([{"id": n, "payload": "x" * 1_000} for n in range(20_000)])
    with pytest.raises(BackendFull, match="maxmemory"):
        worker.push_many([{"id": "one more", "payload": "x" * 1_000_000}])
    app.drain()

    broken = caught.value
    positions = Counter([*broken.written, *broken.not_written, *broken.unknown])
    assert dict.fromkeys(range(20_000), 1) == positions
    assert isinstance(broken.__cause__, BackendFull)
    assert sorted(map(str, broken.written)) == sorted(job_id for batch in notes.ids for job_id in batch)
    assert broken.not_written


@pytest.mark.parametrize("merge", ["min", "never"])
def test_e13_a_call_that_comes_twice_is_applied_once_and_answered_alike(
    app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch, merge: str
) -> None:
    """E-13: whoever got no answer sends the same call again, under its token, also behind another push."""
    worker = declare(app, queue_name, Notes(), merge=merge)
    run_each, sent = app.core.backend.run_each, list[Sequence[Call]]()

    def run_and_note(calls: Sequence[Call]) -> list[Reply | LowkiqError]:
        sent.append(calls)
        return run_each(calls)

    with monkeypatch.context() as patch:
        patch.setattr(app.core.backend, "run_each", run_and_note)
        worker.push_many([{"id": "a", "payload": 1}, {"id": "b", "payload": 1}])
    (push,) = (calls for calls in sent if calls[0][0] == "enqueue")
    worker.push_many([{"id": "a", "payload": 2}])

    def payloads() -> list[Any]:
        return [(job.id, job.payloads) for job in app.operate(worker).waiting.fetch(["a", "b"])]

    was = payloads()

    first, second = run_each(push), run_each(push)

    assert first == second
    assert was == payloads()


def test_e13_a_call_that_is_repeated_for_minutes_is_applied_once(app: Lowkiq, queue_name: str) -> None:
    """E-13: a buffer does so while no replica has what it wrote; others push on, and each minute forgets old tokens."""
    worker = declare(app, queue_name, Notes(), merge="never", shards_count=1)
    backend, shard = app.core.backend, shard_of(app, worker, "a")
    chunk = Chunk(shard, b"repeated", [NewJob(0, "a", packed(None, None, b"1"), None)])
    worker.push("b")
    for _ in range(4):
        backend.run_each([chunk.call(worker.merge, "", b"")])
        backend.client.hset(shard.key("meta"), "push_minute", 1)
        worker.push("b")

    assert [1, 5] == [len(job.payloads) for job in app.operate(worker).waiting.fetch(["a", "b"])]


def test_e71_producers_side_by_side_lose_nothing(app: Lowkiq, queue_name: str) -> None:
    """E-71: several threads push to the same ids; each payload is there once, in order of score."""
    notes = Notes()
    worker = declare(app, queue_name, notes, batch_size=10)
    versions = list(range(400))
    Random(71).shuffle(versions)

    def push(part: list[int]) -> None:
        for version in part:
            worker.push_many([{"id": version % 3, "payload": version, "score": version}])

    threads = [threading.Thread(target=push, args=[versions[n::4]]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    app.drain()

    assert {str(n): list(range(n, 400, 3)) for n in range(3)} == notes.batches[0]


@pytest.mark.parametrize(
    ("answers", "is_unknown"),
    [
        ([BackendUnavailable("cut"), ShardClosed("closed")], True),
        ([BackendUnavailable("cut"), ShardDamaged("damaged")], True),
        ([BackendUnavailable("cut"), BackendFull("full")], False),
        ([ShardClosed("closed"), ShardDamaged("damaged")], False),
    ],
)
def test_a_refusal_behind_a_lost_answer_says_nothing_of_that(
    app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch, answers: list[LowkiqError], *, is_unknown: bool
) -> None:
    """The attempt whose answer was lost may have written the job; but a full server is asked for the token first."""
    worker, left = declare(app, queue_name, Notes()), [*answers]

    def answered(_pusher: Pusher, chunks: Sequence[Chunk], *_given: object) -> list[tuple[Chunk, LowkiqError]]:
        return [(chunk, left.pop(0) if len(left) > 1 else left[0]) for chunk in chunks]

    app.core.queues.agreed(worker)
    monkeypatch.setattr(Pusher, "_sent", answered)
    with pytest.raises(LowkiqError) as raised:
        worker.push_many(jobs_of("a"))

    told = raised.value
    assert is_unknown == isinstance(told, PushInterrupted)
    assert [0] * is_unknown == [*getattr(told, "unknown", [])]
