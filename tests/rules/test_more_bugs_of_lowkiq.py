"""Weak spots of Lowkiq that must not come back: those around merging, operators, numbers and safety."""

import pickle
from pathlib import Path

import pytest

import lowkiq_lambda
from lowkiq_lambda import Batch, Lowkiq, QueueMismatch
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.handlers import Broken, Notes, raising
from tests.kit.deaths import Mortal, outlive
from tests.kit.workers import declare, jobs_of, shard_of
from tests.kit.looks import look


@pytest.mark.parametrize(("action", "buried"), [("delete_all_failed_jobs", 0), ("kill_all_failed_jobs", 1)])
def test_lb11_an_action_spares_what_was_pushed_after_its_look(
    app: Lowkiq, queue_name: str, action: str, buried: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LB-11, E-80: a payload pushed between the action's look and its write stays queued."""
    worker = declare(app, queue_name, raising())
    worker.perform_async(jobs_of("a", payload="old", score=1))
    app.drain()
    actions = app.actions(worker)
    look_first = actions.snapshots

    def look_and_let_push() -> object:
        looks = look_first()
        worker.perform_async(jobs_of("a", payload="new", score=2))
        return looks

    monkeypatch.setattr(actions, "snapshots", look_and_let_push)
    assert 1 == getattr(actions, action)()

    waiting = look(app, worker, "a")
    assert waiting is not None
    assert [("new", 2.0)] == waiting.payloads
    assert buried == app.metrics()[queue_name].morgue_length


def test_lb12_the_older_score_stays_also_when_pushed_during_a_failure(app: Lowkiq, queue_name: str) -> None:
    """LB-12, L-26: an equal payload pushed while it runs does not make it newer when it fails."""
    notes = Notes()
    worker = declare(app, queue_name, notes)

    def push_and_fail(batch: Batch) -> None:
        worker.perform_async(jobs_of("a", payload="v", score=9))
        batch.fail("a", "no")

    notes.then = push_and_fail
    worker.perform_async(jobs_of("a", payload="v", score=1))
    app.drain()

    waiting = look(app, worker, "a")
    assert waiting is not None
    assert [("v", 1.0)] == waiting.payloads


def test_lb16_perform_now_fakes_no_lag(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """LB-16, E-82: jobs that are performed now come in the order of their times, and lag stays that of waiting."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    now = clock.time()
    worker.perform_async({"id": job_id, "perform_in": now + at} for job_id, at in (("c", 30), ("a", 10), ("b", 20)))

    assert 3 == app.actions(worker).perform_all_jobs_now()
    lag = app.stats()["by_worker"][queue_name]["lag"]
    app.drain()

    assert ([["a"], ["b"], ["c"]], True) == (notes.ids, 0 <= lag < 0.01)


def test_lb17_another_shards_count_is_refused(make_app: MakeApp, queue_name: str) -> None:
    """LB-17, E-93: neither a producer nor a drain with another shards_count strands ids."""
    made_with = declare(make_app(), queue_name, Notes(), shards_count=5)
    made_with.perform_async(jobs_of("a"))
    other = make_app()
    worker = declare(other, queue_name, Notes(), shards_count=3)

    for call in (lambda: worker.perform_async(jobs_of("a")), other.drain, other.stats):
        with pytest.raises(QueueMismatch, match=r"declared with shards_count=3, .* made with shards_count=5"):
            call()


def test_lb17_another_codec_is_refused(make_app: MakeApp, queue_name: str) -> None:
    """LB-17, E-95: what one process writes the other must be able to read."""
    declare(make_app(), queue_name, Notes()).perform_async(jobs_of("a"))
    other = make_app(dump_payload=lambda _payload: b"", load_payload=lambda _dumped: None, codec="mine")

    with pytest.raises(QueueMismatch, match="declared with codec='mine', but it was made with codec='json'"):
        declare(other, queue_name, Notes()).perform_async(jobs_of("a"))


class Exploit:
    """What would run code if it were unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return raise_it, ("exploited",)


def raise_it(text: str) -> None:
    """The code that must not run."""
    raise SystemExit(text)


def test_lb29_nothing_read_from_redis_runs_code(app: Lowkiq, queue_name: str) -> None:
    """LB-29, P10: whoever can write to Redis can spoil a payload, and no more."""
    notes = Notes()
    worker = declare(app, queue_name, notes, max_retry_count=0)
    worker.perform_async(jobs_of("a"))
    key = shard_of(app, worker, "a").key("jobs")
    record = app.backend.client.hget(key, "a")
    assert isinstance(record, bytes)
    bomb = pickle.dumps(Exploit())
    app.backend.client.hset(key, "a", record[:15] + bomb)

    assert {"failed": 1, "buried": 1} == app.drain()
    assert [bomb] == [payload for job in notes.buried for payload, _ in job.payloads]
    with pytest.raises(SystemExit, match="exploited"):
        pickle.loads(bomb)  # noqa: S301 - to show that it would


def test_lb29_the_library_knows_no_pickle() -> None:
    """LB-29: no module reads or writes objects that carry code."""
    sources = Path(lowkiq_lambda.__file__).parent.rglob("*.py")

    assert [] == [str(path) for path in sources for word in ("pickle", "marshal", "shelve") if word in path.read_text()]


def test_lb26_busy_and_counters_are_right_after_a_crash(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """LB-26: what a dead holder had is busy until it is recovered, and then it is not; nothing is counted twice."""
    mortal, notes = Mortal(app), Notes()
    notes.then = mortal.die
    worker = declare(app, queue_name, notes, batch_size=2)
    worker.perform_async(jobs_of("ab"))
    mortal.drain()
    dying = app.metrics()[queue_name]
    notes.then = lambda batch: raising(Broken())(batch) if "b" in batch else None
    outlive(app, clock, worker)
    app.drain()
    after = app.metrics()[queue_name]

    assert (2, 0, 0) == (dying.in_flight, dying.length, dying.done)
    assert (0, 1, 1, 1) == (after.in_flight, after.length, after.done, after.failed)
