"""An event that selects several shards: they are visited at the same time, up to `threads_per_node` of them."""

import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from itertools import count
from typing import Any

import pytest

from lowkiq_lambda import Batch, Config, Lowkiq, Worker
from lowkiq_lambda.aws.drain_function import DrainFailed
from lowkiq_lambda.base.clock import SystemClock
from lowkiq_lambda.core import SPARE_CONNECTIONS
from lowkiq_lambda.engine.budget import Budget, VisitResult
from lowkiq_lambda.engine.loop import Loop
from lowkiq_lambda.jobs.job import shard_for
from lowkiq_lambda.testing import ManualClock
from tests.aws.functions import DrainFunction, overdue
from tests.kit.apps import MakeApp, closing_app
from tests.kit.beside import TIMEOUT, Crowd, Gathering, wait_for
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Broken, Notes
from tests.kit.looks import look
from tests.kit.servers import Server
from tests.kit.waiting import eventually
from tests.kit.workers import declare, jobs_of

AT_ONCE = Config(redis_url="redis://unused").threads_per_node


def ids_in(shards_count: int, each: int = 1) -> list[str]:
    """So many ids for each of the shards, those of a shard together."""
    found: dict[int, list[str]] = {index: [] for index in range(shards_count)}
    for number in count():
        ids = found[shard_for(str(number), shards_count)]
        if len(ids) < each:
            ids.append(str(number))
        if all(len(ids) == each for ids in found.values()):
            return [job_id for ids in found.values() for job_id in ids]
    raise AssertionError


class Spread:
    """A queue with due jobs in each of its shards, and the drain function of its app."""

    def __init__(self, drain: DrainFunction, make_app: MakeApp, queue_name: str) -> None:
        self._drain, self._make_app, self._queue_name = drain, make_app, queue_name

    def __call__(
        self, handler: Callable[[Batch], object], shards: int = AT_ONCE, each: int = 1, **fields: Any
    ) -> tuple[Lowkiq, type[Worker], Sequence[str]]:
        """Declare the worker and push the ids."""
        settings = {name: fields.pop(name) for name in ("threads_per_node", "settle_interval") if name in fields}
        app, ids = self._make_app(**settings), ids_in(shards, each)
        worker = declare(app, self._queue_name, handler, shards_count=shards, **fields)
        worker.push_many(overdue(ids))
        self._drain.install(app, idle="end")
        return app, worker, ids


@pytest.fixture
def spread(drain: DrainFunction, make_app: MakeApp, queue_name: str) -> Spread:
    """Declares a worker whose shards all have work."""
    return Spread(drain, make_app, queue_name)


def test_shards_of_one_event_are_visited_side_by_side(drain: DrainFunction, spread: Spread) -> None:
    """Handlers of as many shards as `threads_per_node` says run at once, and never one more."""
    crowd = Crowd(Gathering(AT_ONCE))
    _, _, ids = spread(crowd, shards=2 * AT_ONCE)

    assert {"done": len(ids)} == drain()["counts"]
    assert (AT_ONCE, []) == (crowd.most, crowd.overlaps)


def test_it_multiplies_with_concurrency(drain: DrainFunction, spread: Spread) -> None:
    """Each visit has its own slots: `threads_per_node` times `concurrency` calls run at once."""
    crowd = Crowd(Gathering(3 * 4))
    spread(crowd, shards=3, each=4, threads_per_node=3, concurrency=4)

    assert {"done": 12} == drain()["counts"]
    assert (12, []) == (crowd.most, crowd.overlaps)


def test_one_thread_is_one_visit_at_a_time(drain: DrainFunction, spread: Spread) -> None:
    """With `threads_per_node` 1 all handlers run in the thread of the invocation."""
    threads = set[threading.Thread]()
    crowd = Crowd(lambda _batch: threads.add(threading.current_thread()))
    spread(crowd, each=3, threads_per_node=1)

    assert {"done": 3 * AT_ONCE} == drain()["counts"]
    assert (1, {threading.current_thread()}) == (crowd.most, threads)


def test_one_shard_with_work_takes_no_thread(drain: DrainFunction, spread: Spread) -> None:
    """Where one of many shards is due, it is visited as ever: by the thread of the invocation."""
    threads = list[threading.Thread]()
    _, worker, ids = spread(lambda _batch: threads.append(threading.current_thread()))
    drain()
    threads.clear()
    worker.push_many(overdue(ids[:1]))

    assert {"done": 1} == drain()["counts"]
    assert [threading.current_thread()] == threads


def test_a_drain_in_code_visits_one_shard_at_a_time(app: Lowkiq, queue_name: str) -> None:
    """`app.drain` is for tests and scripts: the order of what it does is known."""
    crowd = Crowd()
    declare(app, queue_name, crowd, shards_count=AT_ONCE).push_many(jobs_of(ids_in(AT_ONCE, 2)))

    assert {"done": 2 * AT_ONCE} == app.drain()
    assert 1 == crowd.most


def test_the_report_is_of_all_visits(drain: DrainFunction, spread: Spread) -> None:
    """Counts, reasons, what is left and the work in the log are the sum of what visits did."""
    _, worker, ids = spread(Notes(), shards=12, each=20, batch_size=3, settle_interval=0.0)

    told = drain()

    assert ("empty", {"done": len(ids)}, 0) == (told["reason"], told["counts"], told["left"])
    assert {"empty": 12} == told["queues"][worker.queue_name]["shards"]
    assert told["queues"][worker.queue_name]["lag_at_start"] >= 1
    assert 0.0 == told["queues"][worker.queue_name]["lag_at_end"]
    assert [len(ids)] == [line["work"][worker.queue_name]["done"] for line in drain.logs]


def test_an_exit_in_one_visit_ends_no_other(drain: DrainFunction, spread: Spread) -> None:
    """P6: SystemExit gives one id back and is the invocation's error; what runs beside it comes to its end."""
    gather, ended = Gathering(AT_ONCE), list[str]()

    def exit_or_end(batch: Batch) -> None:
        gather(batch)
        if ids[0] in batch:
            sys.exit(3)
        ended.extend(batch)

    app, worker, ids = spread(exit_or_end)
    with pytest.raises(DrainFailed, match="SystemExit: 3"):
        drain(seconds=5.0)

    assert sorted(ids[1:]) == sorted(ended)
    left = look(app, worker, ids[0])
    assert left is not None
    assert -1 == left.retry_count


def test_context_variables_of_the_invocation_are_seen(drain: DrainFunction, spread: Spread) -> None:
    """A handler in a thread of its own sees what was set around the invocation, such as a trace."""
    trace, seen = ContextVar("trace", default="none"), list[str]()
    spread(lambda _batch: seen.append(trace.get()))
    trace.set("of the invocation")

    drain()

    assert ["of the invocation"] * AT_ONCE == seen


def test_p5_nothing_starts_once_the_time_is_over(drain: DrainFunction, spread: Spread, clock: ManualClock) -> None:
    """P5: all visits go by one budget, and the invocation ends when the last of them has."""
    crowd = Crowd(Gathering(AT_ONCE))
    told = list[float]()

    def take_all(batch: Batch) -> None:
        crowd(batch)
        with lock:
            if not told:
                clock.advance(60)
            told.append(batch.remaining)

    lock = threading.Lock()
    _, worker, ids = spread(take_all, each=3)
    found = drain()

    assert [0.0] * AT_ONCE == told
    assert ("out of time", AT_ONCE) == (found["reason"], found["counts"]["done"])
    assert {"out of time": AT_ONCE} == found["queues"][worker.queue_name]["shards"]
    assert (AT_ONCE, len(ids) - AT_ONCE) == (found["left"], len(ids) - len(crowd.ended))


def test_p5_one_id_is_tried_and_not_one_in_each_visit(drain: DrainFunction, spread: Spread, clock: ManualClock) -> None:
    """P5: where nothing is predicted to fit an invocation tries a single id, however many visits it makes."""
    slow, lock = threading.Event(), threading.Lock()
    performed = list[str]()

    def take_long(batch: Batch) -> None:
        with lock:
            performed.extend(batch)
            if not slow.is_set():
                slow.set()
                clock.advance(20)

    _, worker, ids = spread(take_long)
    drain(seconds=300.0)
    performed.clear()
    worker.push_many(jobs_of(ids, due_at=clock.time() - 1))

    found = drain(seconds=8.0)

    assert (1, "out of time") == (len(performed), found["reason"])
    assert len(ids) - 1 == found["left"]


def test_p6_what_may_end_the_process_has_no_visit_beside_it(
    drain: DrainFunction, make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """P6: it comes when the others have ended, though a visit were free for it, and nothing begins while it runs."""
    app = make_app()
    mortal = Mortal(app)
    crowd = Crowd(mortal.die)
    risk = declare(app, f"{queue_name}-risk", crowd)
    risk.push_many(jobs_of("x"))
    assert mortal.drain() is None
    outlive(app, clock, risk)
    crowd.ended.clear()
    healthy = declare(app, queue_name, crowd, shards_count=3)
    healthy.push_many(jobs_of(ids_in(3), due_at=clock.time() - 1))
    drain.install(app, idle="end")
    alone = list[int]()

    def note(batch: Batch) -> None:
        if "x" in batch:
            alone.append(app.core.drains.drainer.running)
        else:
            gather(batch)

    gather, crowd.then = Gathering(3), note
    assert {"done": 4, "recovered": 1} == drain()["counts"]

    assert (3, 0, [1]) == (crowd.most, crowd.beside["x"], alone)
    assert "x" == crowd.ended[-1]


def test_p6_suspects_of_two_shards_run_one_after_the_other(drain: DrainFunction, spread: Spread) -> None:
    """P6: a visit whose suspect would run beside another one ends; the suspect comes later, in the same invocation."""
    gather, met = Gathering(2), threading.Event()
    failed = list[str]()

    def make_way(_batch: Batch) -> None:
        if not met.is_set():
            eventually(
                lambda: app.core.drains.drainer.running == 1, timeout=TIMEOUT, what="the other visit to make way"
            )
            met.set()

    def fail_in_company(batch: Batch) -> None:
        if len(batch) == 1:
            alone(batch)
            return
        gather(batch)
        failed.extend(batch)
        raise Broken(f"of {[*batch]}")

    alone = Crowd(make_way)
    app, worker, ids = spread(fail_in_company, shards=2, each=2, batch_size=2)
    found = drain()

    assert sorted(ids) == sorted(failed) == sorted(alone.ended)
    assert (4, "empty", 0) == (found["counts"]["done"], found["reason"], found["left"])
    assert (1, True) == (alone.most, met.is_set())
    assert {"empty": 2} == found["queues"][worker.queue_name]["shards"]


def test_ctrl_c_in_one_visit_waits_for_the_others(drain: DrainFunction, spread: Spread) -> None:
    """What runs beside it is told to stop, and has ended when the invocation does; its jobs are done."""
    gather, told = Gathering(AT_ONCE), list[bool]()

    def interrupt_or_stop(batch: Batch) -> None:
        gather(batch)
        if ids[0] in batch:
            raise KeyboardInterrupt
        told.append(eventually(lambda: batch.stopping))

    app, worker, ids = spread(interrupt_or_stop)
    with pytest.raises(KeyboardInterrupt):
        drain()

    assert (0, [True] * (AT_ONCE - 1)) == (app.core.drains.drainer.running, told)
    assert [ids[0]] == [job_id for job_id in ids if look(app, worker, job_id)]


def test_several_visits_that_raise_are_told_of(drain: DrainFunction, spread: Spread) -> None:
    """The invocation ends with one of the errors, and the log has the others; none is swallowed."""
    gather = Gathering(2)

    def interrupt(batch: Batch) -> None:
        gather(batch)
        raise KeyboardInterrupt

    spread(interrupt, shards=2)
    with pytest.raises(KeyboardInterrupt):
        drain()

    assert ["another visit of the drain raised"] == [line["message"] for line in drain.logs if line["level"] == "ERROR"]


def test_where_no_thread_can_be_made_fewer_shards_are_visited_at_once(
    drain: DrainFunction, spread: Spread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread of the invocation makes the visit itself; all is done, and the log says why it took longer."""
    start, made = threading.Thread.start, list[str]()

    def start_two(thread: threading.Thread) -> None:
        if thread.name.startswith("lowkiq-slot"):
            if len(made) == 2:
                raise RuntimeError("can't start new thread")
            made.append(thread.name)
        start(thread)

    gather, gathered = Gathering(3), list[str]()

    def gather_once(batch: Batch) -> None:
        if len(gathered) < 3:
            gathered.extend(batch)
            gather(batch)

    crowd = Crowd(gather_once)
    _, _, ids = spread(crowd, shards=8)
    monkeypatch.setattr(threading.Thread, "start", start_two)

    assert {"done": len(ids)} == drain()["counts"]
    assert (3, 2) == (crowd.most, len(made))
    warning = "no more than 3 shards are visited at once: can't start new thread"
    assert warning == next(line["message"] for line in drain.logs if line["level"] == "WARNING")


def test_new_work_is_noticed_while_others_are_visited(drain: DrainFunction, server_url: str, queue_name: str) -> None:
    """A visit that takes long keeps no shard waiting whose jobs come later: a poll finds them."""
    came = threading.Event()
    gather = Gathering(2)

    def wait_or_tell(batch: Batch) -> None:
        if "late" in batch:
            came.set()
            return
        gather(batch)
        if "long" in batch:
            late.push_many(overdue(["late"]))
            wait_for(came)

    with closing_app(Lowkiq(Config(redis_url=server_url, poll_interval=0.05))) as app:
        first, second, late = (declare(app, f"{queue_name}-{n}", wait_or_tell) for n in range(3))
        first.push_many(overdue(["long"]))
        second.push_many(overdue(["short"]))
        drain.install(app, idle="end")

        assert {"done": 3} == drain(seconds=60.0)["counts"]


def test_a_shard_that_is_visited_at_the_end_is_left(server_url: str, queue_name: str) -> None:
    """A look at the others while it was visited does not take it for another holder's: nobody does its work."""
    came, stop, gather = threading.Event(), threading.Event(), Gathering(2)

    def wait_or_tell(batch: Batch) -> None:
        if "late" in batch:
            came.set()
            return
        gather(batch)
        if "long" in batch:
            late.push_many(overdue(["late"]))
            wait_for(came)
            stop.set()

    with closing_app(Lowkiq(Config(redis_url=server_url, poll_interval=0.05))) as app:
        first, second, late = (declare(app, f"{queue_name}-{n}", wait_or_tell) for n in range(3))
        first.push_many([*overdue(["long"]), *jobs_of(["behind"], due_at=time.time() - 0.5)])
        second.push_many(overdue(["short"]))
        drain = Loop(app.core.drains.drainer, app.core.drains.drainer.shards, at_once=3)
        drain.run(Budget(SystemClock(), 60.0, stopping=stop.is_set))

        assert (app.core.queues.agreed(first).shards, "stopping") == (drain.left, drain.reason)


def test_a_shard_is_left_for_want_of_time_where_another_of_its_queue_was(app: Lowkiq, queue_name: str) -> None:
    """Its turn was over, and no further came as no batch of the queue fits: that is why it is left."""
    declare(app, queue_name, Notes(), shards_count=2)
    first, second = app.core.drains.drainer.shards()
    drain = Loop(app.core.drains.drainer, lambda: [first, second], at_once=2)
    for shard in (first, second):
        drain.board.notify([shard])
        drain.board.next()
    fits_no_more, may_not_go_on = VisitResult("out of time", token=1), VisitResult("turn over", token=1)
    drain._note_end(first, fits_no_more, -0.1, beside=True)
    drain._note_end(second, may_not_go_on, -0.1, beside=True)

    assert {first: "out of time", second: "out of time"} == drain.reasons


def test_visits_at_once_keep_to_the_connections_of_their_threads(
    drain: DrainFunction, own_server: Server, queue_name: str
) -> None:
    """However many visits a warm environment makes, they share the connections, and none waits for one."""
    with closing_app(Lowkiq(Config(redis_url=own_server.url))) as app:
        worker = declare(app, queue_name, Notes(), shards_count=20)
        drain.install(app, idle="end")
        before = connections_to(own_server)
        for _ in range(3):
            worker.push_many(overdue(ids_in(20, 3)))
            drain()

        # One more is for pushing.
        assert connections_to(own_server) - before <= app.config.threads_per_node + SPARE_CONNECTIONS + 1


def connections_to(server: Server) -> int:
    """How many were made so far."""
    return int(server.admin.info("stats")["total_connections_received"])


def test_a_drain_may_go_on(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """A drain that visits several shards at once may run again, as any other."""
    crowd = Crowd(Gathering(3))
    worker = declare(app, queue_name, crowd, shards_count=3)
    worker.push_many(jobs_of(ids_in(3)))
    drain = Loop(app.core.drains.drainer, app.core.drains.drainer.shards, at_once=3).run(Budget(clock, 60.0))
    clock.advance(1)
    worker.push_many(jobs_of(ids_in(3)))
    drain.run(Budget(clock, 60.0))

    assert (6, 3, "empty") == (drain.counts["done"], crowd.most, drain.reason)
