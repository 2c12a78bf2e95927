"""The fixtures of the kit, with apps whose workers do more than most."""

import asyncio
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event, get_ident
from typing import Any

import pytest

from lowkiq_lambda import Batch, BatchJob, Config, ConfigError, JobError, Lowkiq, Rate, Rejected, discard_on
from lowkiq_lambda.engine.drainer import Drainer
from lowkiq_lambda.testing import (
    AppUnderTest,
    Drained,
    FakeApp,
    FakePush,
    JobFailed,
    OwnServer,
    app_under_test,
    app_with_daemon,
)
from lowkiq_lambda.testing.crashes import CrashPoint
from tests.kit.handlers import Broken, Notes, failing, raising
from tests.kit.workers import declare, jobs_of

POINTS: tuple[CrashPoint, ...] = ("before_handler", "after_handler", "after_settle_sent")


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("coroutine", [False, True], ids=["threads", "loop"])
def test_a_crash_repeats_what_ran_side_by_side(lowkiq: AppUnderTest, point: CrashPoint, *, coroutine: bool) -> None:
    """Nothing is lost and nothing is left, wherever the process died, whether slots are threads or coroutines."""

    async def awaited(_self: object, _batch: Batch) -> None:
        await asyncio.sleep(0)

    how = {"perform": awaited} if coroutine else {}
    worker = declare(lowkiq.app, "W", Notes(), concurrency=3, **how)
    worker.push_many(jobs_of("abcde"))

    with lowkiq.crash_after(worker, point):
        died = lowkiq.drain()
    result = lowkiq.drain()

    assert [] == died.done
    assert [*"abcde"] == sorted({job_id for job_id, _ in died.calls + result.calls})
    lowkiq.assert_empty()


def test_a_crash_of_a_job_with_a_cursor_goes_on_from_what_was_saved(lowkiq: AppUnderTest) -> None:
    """A dead process saves no cursor: the job is at its beginning again."""
    began: list[Any] = []

    def perform_job(_self: object, job: BatchJob) -> Iterator[int]:
        began.append(job.cursor)
        yield 1
        yield 2

    worker = declare(lowkiq.app, "W", Notes(), perform_job=perform_job)
    worker.push("a")

    with lowkiq.crash_after(worker):
        lowkiq.drain()

    assert ["a"] == lowkiq.drain().done
    assert [None, None] == began


def test_a_task_completes_in_the_drain(lowkiq: AppUnderTest) -> None:
    """Tasks are on the test's server and follow its clock; what completes one is performed in the same drain."""
    notes = Notes()
    worker = declare(lowkiq.app, "W", Notes())
    after = declare(lowkiq.app, "After", notes)
    task = lowkiq.app.task("import", on_complete=(after, "done"))
    task.push_many(worker, jobs_of("ab"))
    task.close()

    done = lowkiq.drain().done

    assert sorted([*"ab", task.id]) == sorted(done)
    assert [{task.id: ["done"]}] == notes.batches


def test_limits_follow_the_clock(lowkiq: AppUnderTest) -> None:
    """A rate lets more begin when the test has moved the time, and not before."""
    worker = declare(lowkiq.app, "W", Notes(), rate=Rate(2, per=60))
    worker.push_many(jobs_of("abc"))

    first = lowkiq.drain().done
    again = lowkiq.drain().done
    lowkiq.advance(minutes=2)

    assert (2, 0, 1) == (len(first), len(again), len(lowkiq.drain().done))


def test_a_limited_queue_survives_a_crash(lowkiq: AppUnderTest) -> None:
    """The place of the dead process is free when its lease has ended."""
    worker = declare(lowkiq.app, "W", Notes(), max_running=1)
    worker.push("a")

    assert ["a"] == lowkiq.deliver_twice(worker).done


def test_kept_pushes_and_latest_payloads(lowkiq_test_server: OwnServer) -> None:
    """An app whose pushes may wait in the process, and a queue that keeps the newest, are as they are elsewhere."""
    app = Lowkiq(Config(when_unavailable="buffer"))
    notes = Notes()
    with app_under_test(app, lowkiq_test_server) as lowkiq:
        worker = declare(app, "W", notes, merge="latest")
        worker.push("a", "new", score=2)
        worker.push("a", "old", score=1)
        lowkiq.assert_order(worker, "a", ["new"])

        assert (0, ["a"]) == (app.flush(), lowkiq.drain().done)
    assert [{"a": ["new"]}] == notes.batches


def test_a_blocked_head_is_a_failure(lowkiq: AppUnderTest) -> None:
    """It fails the test unless it is expected, and is told of as blocked."""
    worker = declare(lowkiq.app, "W", failing("a"), dead_head="block", max_retry_count=0)
    worker.push("a", 1)

    with pytest.raises(JobFailed, match="W, id 'a', failed: a is broken"):
        lowkiq.drain()
    worker.push("b", 1)
    assert ["b"] == lowkiq.drain(raises=False).done


def test_what_an_operator_stops_is_listed(lowkiq: AppUnderTest) -> None:
    """It is no failure; what ends well all the same is done."""

    def perform(batch: Batch) -> None:
        lowkiq.app.operate(worker).cancel([*batch])
        batch.fail("b", "broken")

    worker = declare(lowkiq.app, "W", perform, batch_size=2)
    worker.push_many(jobs_of("ab"))

    result = lowkiq.drain()
    assert (["a"], ["b"]) == (result.done, result.cancelled)


def test_threads_drain_one_after_the_other(lowkiq: AppUnderTest) -> None:
    """Each id is done once, whichever drain has it."""
    worker = declare(lowkiq.app, "W", Notes(), shards_count=4)
    worker.push_many(jobs_of("abcdef"))

    with ThreadPoolExecutor(3) as threads:
        drained: list[Drained] = list(threads.map(lambda _: lowkiq.drain(), range(3)))

    assert [*"abcdef"] == sorted(job_id for one in drained for job_id in one.done)


def test_a_coroutine_handler_runs_on_the_loop_of_the_test(lowkiq: AppUnderTest) -> None:
    """So that it may use what the test has opened there; a plain drain has a loop of its own."""
    loops: list[object] = []

    async def note(_batch: Batch) -> None:
        loops.append(asyncio.get_running_loop())

    worker = lowkiq.app.worker(queue_name="W")(note)

    async def a_test() -> object:
        await worker.apush("a")
        await lowkiq.adrain()
        return asyncio.get_running_loop()

    here = asyncio.run(a_test())
    worker.push("b")
    lowkiq.drain()

    assert here is loops[0]
    assert here is not loops[1]


def test_no_thread_is_left(lowkiq_test_server: OwnServer) -> None:
    """A run of many tests has no more threads in the end than in the beginning."""

    async def awaited(_self: object, _batch: Batch) -> None:
        await asyncio.sleep(0)

    before = set(threading.enumerate())
    app = Lowkiq()
    with app_under_test(app, lowkiq_test_server) as lowkiq:
        plain = declare(app, "W", Notes(), concurrency=2)
        loop = declare(app, "L", Notes(), perform=awaited)
        asyncio.run(plain.apush("a"))
        loop.push("a")
        lowkiq.deliver_twice(plain)

    for thread in set(threading.enumerate()) - before:
        thread.join(10)
    assert set() == {thread.name for thread in set(threading.enumerate()) - before}


def test_inline_performs_behind_each_push(lowkiq_inline: AppUnderTest) -> None:
    """Also what handlers push, and the error of a handler leaves the push; what is due later waits."""
    then = declare(lowkiq_inline.app, "Then", notes := Notes())
    worker = declare(lowkiq_inline.app, "W", lambda batch: then.push_many([{"id": id} for id in batch]))
    broken = declare(lowkiq_inline.app, "Broken", raising())

    worker.push("a")
    assert [["a"]] == notes.ids
    then.push("b", delay=60)
    lowkiq_inline.assert_pushed(then, id="b")
    lowkiq_inline.advance(minutes=1)
    assert ["b"] == lowkiq_inline.drain().done
    with pytest.raises(Broken):
        broken.push("c")


def test_inline_from_threads_leaves_nothing(lowkiq_inline: AppUnderTest) -> None:
    """Whoever pushes while another thread drains may trust that one."""
    worker = declare(lowkiq_inline.app, "W", notes := Notes(), shards_count=4)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(worker.push, range(20)))

    assert {str(number) for number in range(20)} == {job_id for batch in notes.ids for job_id in batch}


def test_a_fake_app_keeps_checked_pushes(lowkiq_fake: FakeApp) -> None:
    """Without a server, and with the checks, times and payloads of production."""
    worker = declare(lowkiq_fake.app, "W", Notes())

    pushed = worker.push_many([{"id": 1, "payload": (1, 2)}, {"id": "b", "delay": 60, "score": 5, "key": "k"}])
    with pytest.raises(JobError, match="no such field"):
        worker.push_many([{"id": 2, "skore": 1}])

    now = lowkiq_fake.clock.time()
    assert [("1", now), ("b", now + 60)] == [(one.id, one.due_at) for one in pushed]
    assert [FakePush(worker, "1", [1, 2], now, now), FakePush(worker, "b", "", 5, now + 60, "k")] == lowkiq_fake.pushes
    assert ["1", "b"] == [one.id for one in lowkiq_fake.pushes if one.expires_at is None]
    worker.push("c", expires_in=30, delay=60)
    assert now + 90 == lowkiq_fake.pushes[-1].expires_at
    lowkiq_fake.assert_pushed(worker, id=1, count=1)
    with pytest.raises(AssertionError, match=r"W, id 'b': expected 2 pushes, found W '1': \[1, 2\], W 'b': '', W 'c'"):
        lowkiq_fake.assert_pushed(worker, id="b", count=2)
    with pytest.raises(ConfigError, match="take the fixture lowkiq, which has a server"):
        lowkiq_fake.app.drain()
    lowkiq_fake.clear()
    lowkiq_fake.assert_not_pushed(worker)


def test_a_daemon_performs_in_real_time(lowkiq_test_server: OwnServer) -> None:
    """The wait ends when all is done, and raises what handlers raised."""
    app = Lowkiq()

    def perform(batch: Batch) -> None:
        if "x" in batch:
            raise Broken

    worker = declare(app, "W", perform)
    with app_with_daemon(app, lowkiq_test_server) as live:
        worker.push_many(jobs_of("ab"))
        assert [*"ab"] == sorted(live.wait(30).done)
        live.assert_empty()
        worker.push("x")
        with pytest.raises(Broken):
            live.wait(30)


def test_a_push_whose_clock_is_ahead_is_waited_for(lowkiq_test_server: OwnServer) -> None:
    """Each measurement of the server's clock is off by up to half a round trip, so what is pushed may be due soon."""
    app, notes = Lowkiq(), Notes()
    worker = declare(app, "W", notes)
    with app_with_daemon(app, lowkiq_test_server) as live:
        worker.push("a", delay=0.2)
        worker.push("b", delay=60)
        assert ["a"] == live.wait(30).done


def test_a_callback_of_a_task_is_waited_for(lowkiq_test_server: OwnServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A drain completes the task after its last item was settled, and may take its time for that."""
    app, is_awaited = Lowkiq(), Event()
    worker, callback = declare(app, "W", Notes()), declare(app, "After", Notes())
    with app_with_daemon(app, lowkiq_test_server) as live:
        looking, look_at_tasks = Event(), app.core.drains.drainer.look_at_tasks
        count_running = vars(Drainer)["running"].fget
        assert look_at_tasks

        def look_late(tasks: Collection[bytes], remaining: Callable[[], float]) -> None:
            looking.set()
            is_awaited.wait(5)
            look_at_tasks(tasks, remaining)

        def running(drainer: Drainer) -> Any:
            if (count := count_running(drainer)) and looking.is_set():
                is_awaited.set()
            return count

        monkeypatch.setattr(app.core.drains.drainer, "look_at_tasks", look_late)
        monkeypatch.setattr(Drainer, "running", property(running))
        with app.task("import", on_complete=(callback, "done")) as task:
            task.push_many(worker, jobs_of("ab"))

        assert task.id in live.wait(30).done
        assert is_awaited.is_set()


def test_a_daemon_performs_while_the_test_goes_on(lowkiq_test_server: OwnServer) -> None:
    """Nobody has to wait for it: what is pushed begins in another thread."""
    app, begun, threads = Lowkiq(), Event(), list[int]()

    def perform(_batch: Batch) -> None:
        threads.append(get_ident())
        begun.set()

    worker = declare(app, "W", perform)
    with app_with_daemon(app, lowkiq_test_server):
        worker.push("a")
        assert begun.wait(30)

    assert 1 == len(threads)
    assert get_ident() not in threads


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_handler_that_drains_is_refused(lowkiq: AppUnderTest, concurrency: int) -> None:
    """It would wait for itself for ever; the test may drain again behind it."""
    worker = declare(lowkiq.app, "W", Notes(lambda _batch: lowkiq.drain()), concurrency=concurrency)
    worker.push("a")

    with pytest.raises(RuntimeError, match=r"A handler calls lowkiq\.drain\(\), which would wait for it"):
        lowkiq.drain()
    assert [] == lowkiq.drain().done


def test_a_coroutine_handler_that_drains_is_refused(lowkiq: AppUnderTest) -> None:
    """From a thread of its own, too."""

    async def perform(_self: object, _batch: Batch) -> None:
        await asyncio.to_thread(lowkiq.drain)

    declare(lowkiq.app, "W", Notes(), perform=perform).push("a")

    with pytest.raises(RuntimeError, match="let the test drain"):
        lowkiq.drain()


def test_an_entry_made_at_run_time_fires_in_a_drain(lowkiq_test_server: OwnServer) -> None:
    """Where the settings have it so, its times go by the clock as those of code do."""
    notes = Notes()
    app = Lowkiq(Config(schedules=True))
    worker = declare(app, "made", notes)
    with app_under_test(app, lowkiq_test_server) as lowkiq:
        lowkiq.app.schedules.put("poll", worker, every=60, id="7")
        lowkiq.drain()
        lowkiq.advance(minutes=1)
        lowkiq.drain()

    assert [["7"]] == notes.ids


def test_what_is_rejected_or_discarded_is_listed(lowkiq: AppUnderTest) -> None:
    """A-28, SK-5: neither is a failure, so the drain raises nothing."""

    def perform(batch: Batch) -> None:
        batch.fail("a", Rejected("sold out"))
        batch.fail("b", KeyError("gone"))

    worker = declare(lowkiq.app, "orders", perform, batch_size=2, on_error=(discard_on(KeyError),))
    worker.push_many(jobs_of("ab"))

    drained = lowkiq.drain()

    assert (["a"], ["b"], []) == (drained.rejected, drained.discarded, drained.done)
