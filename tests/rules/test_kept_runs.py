"""Kept runs: what a queue has run, with its outcome, in the same step as that outcome."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from lowkiq_lambda import Batch, Debounce, DeclarationError, KeepRuns, Later, Lowkiq, Rejected, Worker
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.runs import KeptRun
from tests.kit.apps import MakeApp
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Broken, Notes, failing, raising_with
from tests.kit.servers import Server
from tests.kit.workers import declare, jobs_of, shard_of

KEPT = 100
"""The fewest that a queue may keep."""


def outcomes(app: Lowkiq, worker: type[Worker], **only: Any) -> list[tuple[str, str]]:
    """The id and the outcome of each run, the last first."""
    return [(run.id, run.outcome) for run in app.operate(worker).runs(limit=10_000, **only)]


def the_run(app: Lowkiq, worker: type[Worker], **only: Any) -> KeptRun:
    """The only run."""
    (run,) = app.operate(worker).runs(**only)
    return run


def runs_key(app: Lowkiq, worker: type[Worker], job_id: str = "a") -> str:
    """The key of the runs of the shard that has the id."""
    return shard_of(app, worker, job_id).using(("runs",)).key("runs")


def test_a_run_has_its_time_its_process_and_its_payloads(
    make_app: MakeApp, clock: ManualClock, queue_name: str
) -> None:
    """What ran, when, for how long, where, by which release, and how it ended."""
    app = make_app(release="r418")

    def handle(batch: Batch) -> None:
        clock.advance(2.5)
        batch.fail("b", ValueError("order 345 has 12 lines"))

    worker = declare(app, queue_name, handle, batch_size=2, keep_runs=KEPT)
    worker.push_many([{"id": "a", "payload": 1}, {"id": "a", "payload": 2}, {"id": "b", "payload": 3}])
    began = clock.time()

    app.drain(10)

    failed, done = sorted(app.operate(worker).runs(), key=lambda run: run.id, reverse=True)
    assert began == pytest.approx(done.at, abs=0.01)
    assert 2.5 == done.took
    assert ("done", 2, 2, "r418", 0) == (done.outcome, done.payloads, done.batch, done.release, done.shard)
    assert ("retried", 1, 2) == (failed.outcome, failed.payloads, failed.batch)
    assert ("order 345 has 12 lines", 16) == (failed.error, len(failed.fingerprint or ""))
    assert (None, None, False) == (done.error, done.fingerprint, done.has_payloads)
    assert done.token == failed.token > 0
    assert done.holder == failed.holder != ""
    assert done.digest != failed.digest


def test_equal_payloads_have_equal_digests(app: Lowkiq, queue_name: str) -> None:
    """Of two runs people see whether they got the same."""
    worker = declare(app, queue_name, Notes(), keep_runs=KEPT)
    for payload in ("x", "x", "y"):
        worker.push("a", payload)
        app.drain()

    third, second, first = app.operate(worker).runs()

    assert (True, False) == (first.digest == second.digest, second.digest == third.digest)


def later(_batch: Batch) -> None:
    """Put it off."""
    raise Later(60)


def rejected(_batch: Batch) -> None:
    """Reject it."""
    raise Rejected("not qualified")


def exiting(_batch: Batch) -> None:
    """Exit."""
    raise SystemExit(1)


@pytest.mark.parametrize(
    ("handler", "fields", "outcome"),
    [
        (Notes(), {}, "done"),
        (failing("a"), {}, "retried"),
        (failing("a"), {"max_retry_count": 0}, "dead"),
        (failing("a"), {"max_retry_count": 0, "dead_head": "block"}, "blocked"),
        (rejected, {}, "rejected"),
        (later, {}, "later"),
        (exiting, {}, "returned"),
    ],
)
def test_each_outcome_is_kept(
    app: Lowkiq, queue_name: str, handler: Callable[[Batch], object], fields: dict[str, Any], outcome: str
) -> None:
    """A run is an id that a handler was given, whatever came of it."""
    worker = declare(app, queue_name, handler, keep_runs=KEPT, **fields)
    worker.push("a")

    with suppress(SystemExit):
        app.drain()

    assert [("a", outcome)] == outcomes(app, worker)


def test_a_failure_in_company_is_a_run_of_each_and_so_is_the_run_alone(app: Lowkiq, queue_name: str) -> None:
    """Suspects have run; those that are charged with their group, and those that were put back, have not."""
    worker = declare(app, queue_name, raising_with("b"), keep_runs=KEPT, batch_size=2)
    worker.push_many(jobs_of("ab"))

    app.drain()

    assert [("a", "suspected"), ("b", "suspected")] == sorted(outcomes(app, worker, outcome="suspected"))
    assert [("a", "done"), ("b", "retried")] == sorted(outcomes(app, worker, outcome=["done", "retried"]))
    assert 4 == len(outcomes(app, worker))


def test_a_group_that_shares_a_failure_has_runs_of_those_alone_that_ran(app: Lowkiq, queue_name: str) -> None:
    """What is charged without having run is no run."""

    def broken(_batch: Batch) -> None:
        raise Broken("the database is away")

    worker = declare(app, queue_name, broken, keep_runs=KEPT, batch_size=10)
    worker.push_many(jobs_of("abcdefghij"))

    counts = app.drain()

    assert 10 == counts["retried"]
    assert (10, 3) == (len(outcomes(app, worker, outcome="suspected")), len(outcomes(app, worker, outcome="retried")))


def test_batches_side_by_side_have_their_own_times(app: Lowkiq, queue_name: str) -> None:
    """With `concurrency` each batch has its beginning, and each settling the runs that it ends."""
    worker = declare(app, queue_name, failing("c"), keep_runs=KEPT, concurrency=3)
    worker.push_many(jobs_of("abcdef"))

    app.drain()

    assert [(one, "retried" if one == "c" else "done") for one in "abcdef"] == sorted(outcomes(app, worker))


def test_a_generator_has_a_run_for_each_turn(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """From claim to stop is a run, and so is the rest of it."""

    def perform_job(_self: Worker, job: Any) -> Any:
        for cursor in range(job.cursor or 0, 3):
            clock.advance(4)
            yield cursor + 1

    worker = declare(app, queue_name, Notes(), keep_runs=KEPT, perform_job=perform_job, turn=5.0)
    worker.push_many(jobs_of("ab"))

    app.drain()

    assert ["done", "later"] == sorted({outcome for _, outcome in outcomes(app, worker)})


def test_kept_runs_go_with_merging_limits_tenants_and_tasks(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """None of them changes what a run is; the tenant is part of the id."""
    worker = declare(app, queue_name, Notes(), keep_runs=KEPT, tenants="spread", max_running=1, debounce=Debounce(1.0))
    worker.push_many(jobs_of(["shop:1", "shop:1", "other:1"], payload="x"))
    clock.advance(2)

    app.drain()

    assert [("other:1", "done"), ("shop:1", "done")] == sorted(outcomes(app, worker))
    assert 1 == the_run(app, worker, id="shop:1").payloads


def test_many_failures_in_one_settling_have_their_runs_once(app: Lowkiq, queue_name: str) -> None:
    """Many named outcomes take several calls: each has the runs of its ids, and the last all others."""
    ids = [f"id-{number}" for number in range(350)]
    worker = declare(app, queue_name, failing(*ids[:250]), keep_runs=KEPT * 10, batch_size=500)
    worker.push_many(jobs_of(ids))

    app.drain()

    kept = app.operate(worker).runs(limit=1_000)
    assert sorted(ids) == sorted(run.id for run in kept)
    assert {True: {"retried"}, False: {"done"}} == {
        has_failed: {run.outcome for run in kept if (run.id in ids[:250]) is has_failed} for has_failed in (True, False)
    }
    assert {350} == {run.batch for run in kept}


def test_a_death_between_handler_and_settling_leaves_a_recovered_run_alone(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """A run is there exactly if its outcome is; the next holder keeps what the dead one left."""
    mortal = Mortal(app)
    worker = declare(app, queue_name, Notes(), keep_runs=KEPT, batch_size=2)
    worker.push_many(jobs_of("ab"))
    mortal.die_before("settle")

    assert mortal.drain() is None
    assert [] == outcomes(app, worker)
    outlive(app, clock, worker)
    app.drain()

    recovered = app.operate(worker).runs(outcome="recovered")
    assert (["a", "b"], {None}) == (sorted(run.id for run in recovered), {run.took for run in recovered})
    assert [("a", "done"), ("b", "done")] == sorted(outcomes(app, worker, outcome="done"))


def test_a_third_crash_is_a_run_that_ended_in_the_morgue(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """What recovery kills is in the history, too."""
    mortal = Mortal(app)
    worker = declare(app, queue_name, mortal.die, keep_runs=KEPT)
    worker.push("a")
    for _ in range(5):
        mortal.drain()
        outlive(app, clock, worker)

    newest, *before = outcomes(app, worker)

    assert (("a", "dead"), {("a", "recovered")}) == (newest, {*before})


def test_a_settling_that_is_repeated_adds_no_run(app: Lowkiq, queue_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer was lost, and the same call comes again."""
    worker = declare(app, queue_name, Notes(), keep_runs=KEPT)
    worker.push("a")
    backend = app.core.backend
    once = backend._once

    def twice(code: Any, *rest: Any) -> Any:
        return [once(code, *rest) for _ in range(2 if code.name == "settle" else 1)][-1]

    monkeypatch.setattr(backend, "_once", twice)
    app.drain()

    assert [("a", "done")] == outcomes(app, worker)


def test_ids_may_hold_anything_and_long_ones_are_cut(app: Lowkiq, queue_name: str) -> None:
    """NUL, other alphabets, and 64 KB each: a run is found by the whole id."""
    ids = ["a\0b", "\0", "é" * 100, *(f"{number:04}" + "é" * 32_000 for number in range(20))]
    worker = declare(app, queue_name, Notes(), keep_runs=KEPT)
    worker.push_many(jobs_of(ids))

    app.drain()

    kept = app.operate(worker).runs()
    assert len(ids) == len(kept) == len({run.id for run in kept})
    assert {"a\0b", "\0", "é" * 100} <= {run.id for run in kept}
    assert [1] * len(ids) == [len(app.operate(worker).runs(id=job_id)) for job_id in ids]
    assert max(len(run.id.encode()) for run in kept) <= 200


def test_payloads_above_a_bound_make_several_entries(app: Lowkiq, queue_name: str) -> None:
    """An entry has 256 KB of payloads at most; all runs of the settling are kept."""
    worker = declare(app, queue_name, Notes(), keep_runs=KeepRuns(KEPT, payloads=True), batch_size=50)
    worker.push_many([{"id": f"id-{number}", "payload": "x" * 30_000} for number in range(50)])

    app.drain()

    kept = app.operate(worker).runs(limit=1_000)
    entries = {run.entry.rsplit(".", 1)[0] for run in kept}
    assert (50, 50, True) == (len(kept), len({run.id for run in kept}), all(run.has_payloads for run in kept))
    assert 50 * 30_000 / (256 * 1024) < len(entries) < 12


@pytest.mark.parametrize("per_drain", [1, 7, 60])
def test_trimming_never_leaves_fewer_runs_than_declared(app: Lowkiq, queue_name: str, per_drain: int) -> None:
    """The oldest go, so that no fewer are left than that, and at most an entry more."""
    worker = declare(app, queue_name, Notes(), keep_runs=KEPT, batch_size=100)
    ids = [f"id-{number:04}" for number in range(KEPT + 3 * per_drain + 61)]
    for start in range(0, len(ids), per_drain):
        worker.push_many(jobs_of(ids[start : start + per_drain]))
        app.drain()

    kept = [run.id for run in app.operate(worker).runs(limit=1_000)]

    assert KEPT <= len(kept) < KEPT + per_drain
    assert sorted(ids[-len(kept) :]) == sorted(kept)
    page = app.operate(worker).runs()
    assert page.kept_since is not None


def test_the_number_is_shared_out_to_shards(app: Lowkiq, queue_name: str) -> None:
    """Each of five shards keeps a fifth."""
    worker = declare(app, queue_name, Notes(), keep_runs=KEPT, shards_count=5)
    for number in range(180):
        worker.push(f"id-{number}")
        app.drain()

    kept = app.operate(worker).runs(limit=1_000)

    assert {20} == {*Counter(run.shard for run in kept).values()}


def test_runs_that_are_too_old_go(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """With an age, entries before it are dropped by the settlings that follow."""
    worker = declare(app, queue_name, Notes(), keep_runs=KeepRuns(KEPT, age=60))
    for job_id in ("old", "older than a minute", "new"):
        worker.push(job_id)
        app.drain()
        clock.advance(40)
    worker.push("newest")
    app.drain()

    assert ["newest", "new"] == [job_id for job_id, _ in outcomes(app, worker)]
    assert 86_400 < app.core.backend.client.ttl(runs_key(app, worker)) <= 86_460


def test_runs_go_by_themselves_once_the_code_keeps_none(make_app: MakeApp, queue_name: str) -> None:
    """Each write renews the time to live of the key; what is there can be read, and forgotten at once."""
    here, there = make_app(), make_app()
    worker = declare(here, queue_name, Notes(), keep_runs=KEPT)
    worker.push("a")
    here.drain()
    without = declare(there, queue_name, Notes())
    without.push("b")
    there.drain()

    assert 89 * 86_400 < here.core.backend.client.ttl(runs_key(here, worker)) <= 90 * 86_400
    assert [("a", "done")] == outcomes(there, without)
    there.operate(without).forget_runs()
    assert [] == outcomes(there, without)


def test_after_forgetting_no_fewer_are_kept(app: Lowkiq, queue_name: str) -> None:
    """The count of what was forgotten counts no more."""
    worker = declare(app, queue_name, Notes(), keep_runs=KEPT, batch_size=100)
    worker.push_many(jobs_of([f"old-{number}" for number in range(90)]))
    app.drain()
    app.operate(worker).forget_runs()
    for number in range(KEPT + 10):
        worker.push(f"id-{number}")
        app.drain()

    assert KEPT == len(outcomes(app, worker))


def test_a_queue_that_keeps_none_has_no_key(app: Lowkiq, queue_name: str) -> None:
    """And a look at its runs is empty, not an error."""
    worker = declare(app, queue_name, Notes())
    worker.push("a")
    app.drain()

    page = app.operate(worker).runs()

    assert ([], None, None, 0, 0) == ([*page], page.next, page.kept_since, page.unreadable, page.lost)
    assert 0 == app.core.backend.client.exists(runs_key(app, worker))


def test_runs_of_earlier_shards_are_read_after_a_move(make_app: MakeApp, queue_name: str) -> None:
    """They stay with the old shard, and go with its time to live."""
    app = make_app()
    worker = declare(app, queue_name, Notes(), keep_runs=KEPT, shards_count=2)
    worker.push_many(jobs_of("abcd"))
    app.drain()

    app.operate(worker).reshard(to=3)
    worker.push_many(jobs_of("ab"))
    app.drain()

    assert ["a", "a", "b", "b", "c", "d"] == sorted(job_id for job_id, _ in outcomes(app, worker))
    assert [("a", "done")] * 2 == outcomes(app, worker, id="a")
    assert {2, 3} == {run.shards_count for run in app.operate(worker).runs()}


def test_a_full_memory_loses_the_run_and_not_the_outcome(
    make_app: MakeApp, own_server: Server, queue_name: str
) -> None:
    """Redis has no room: jobs end all the same, and what was not kept is counted."""
    app = make_app(redis_url=own_server.url)
    notes = Notes(lambda _batch: own_server.admin.config_set("maxmemory", 1))
    worker = declare(app, queue_name, notes, keep_runs=KEPT)
    worker.push("a")

    counts = app.drain()
    own_server.admin.config_set("maxmemory", 0)

    assert (1, [], 1) == (counts["done"], outcomes(app, worker), app.operate(worker).runs().lost)
    notes.then = None
    worker.push("b")
    app.drain()
    assert [("b", "done")] == outcomes(app, worker)


@pytest.mark.parametrize("packed", [b"", b"\x78\x01broken", b"\x91\x02", b"\xff" * 40])
def test_an_entry_that_cannot_be_read_is_counted_and_passed_over(app: Lowkiq, queue_name: str, packed: bytes) -> None:
    """Another version wrote it, or it was damaged: the page goes on."""
    worker = declare(app, queue_name, Notes(), keep_runs=KEPT)
    worker.push("a")
    app.drain()
    app.core.backend.client.xadd(runs_key(app, worker), {"n": 7, "r": packed}, "9999999999999-0")

    page = app.operate(worker).runs()

    assert (["a"], 7) == ([run.id for run in page], page.unreadable)


def test_a_key_of_another_type_is_mended(app: Lowkiq, queue_name: str) -> None:
    """Nobody's job hangs on it."""
    worker = declare(app, queue_name, Notes(), keep_runs=KEPT)
    worker.push_many(jobs_of("ab"))
    app.core.backend.client.set(runs_key(app, worker), "no stream")

    counts = app.drain()

    assert 2 == counts["done"]
    assert 1 == app.operate(worker).repair()
    worker.push("c")
    app.drain()
    assert [("c", "done")] == outcomes(app, worker)


def test_times_never_go_back_within_a_shard(make_app: MakeApp, own_server: Server, queue_name: str) -> None:
    """Another clock, at a failover: the entry takes the next number, and the run has its own time."""
    ahead, behind = make_app(redis_url=own_server.url), make_app(redis_url=own_server.url)
    worker = declare(ahead, queue_name, Notes(), keep_runs=KEPT)
    worker.push("a")
    ahead.drain()
    shard = shard_of(ahead, worker, "a")
    # The server that was there before was an hour ahead.
    own_server.admin.hset(shard.key("meta"), "runs_at", f"{int(ahead.core.clock.time() * 1000) + 3_600_000}-5")
    there = declare(behind, queue_name, Notes(), keep_runs=KEPT)
    there.push("b")
    behind.drain()

    b, a = behind.operate(there).runs()

    assert ("b", "a", 6) == (b.id, a.id, int(b.entry.split(".")[1]))
    assert b.at - a.at < 60


def test_filters_select_and_pages_go_on(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """By time, length, outcome, fingerprint, holder and release, on pages of any size."""
    slow = {"c"}

    def handle(batch: Batch) -> None:
        for job_id in batch:
            clock.advance(30 if job_id in slow else 1)
            if job_id == "b":
                batch.fail(job_id, ValueError("order 345 is late"))

    worker = declare(app, queue_name, handle, keep_runs=KEPT, retry_in=lambda _self, _count: 3_600)
    began = clock.time()
    for job_id in "abcd":
        worker.push(job_id)
        app.drain()
    operate = app.operate(worker)

    assert "dcba" == "".join(run.id for run in operate.runs())
    assert "c" == the_run(app, worker, took_over=10).id
    assert "c" == the_run(app, worker, since=began + 10, until=began + 20).id
    assert "ba" == "".join(run.id for run in operate.runs(until=began + 1.5))
    failed = the_run(app, worker, outcome="retried")
    assert [failed] == [*operate.runs(fingerprint=failed.fingerprint)]
    assert (4, 0) == (len(operate.runs(holder=failed.holder)), len(operate.runs(release="r1")))
    ids, after = [], None
    while True:
        page = operate.runs(limit=1, after=after)
        ids += [run.id for run in page]
        after = page.next
        if after is None:
            break
    assert [*"dcba"] == ids


@pytest.mark.parametrize("after", ["", "nonsense", "1.2.3", "-1.0.0.0.0"])
def test_bad_pages_and_bounds_are_refused(app: Lowkiq, queue_name: str, after: str) -> None:
    """What is no `next` of a page, and what is no number of seconds."""
    worker = declare(app, queue_name, Notes(), keep_runs=KEPT)

    with pytest.raises(ValueError, match="is not the `next` of a page"):
        app.operate(worker).runs(after=after)
    with pytest.raises(ValueError, match="since must be a number of seconds"):
        app.operate(worker).runs(since="yesterday")  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        (99, "keep_runs must be a whole number from 100 to 1,000,000 or a KeepRuns, not 99"),
        (True, "keep_runs must be a whole number"),
        ("100", "keep_runs must be a whole number"),
    ],
)
def test_a_wrong_declaration_is_refused(app: Lowkiq, queue_name: str, declared: Any, words: str) -> None:
    """When the worker is declared, in words that name the field."""
    with pytest.raises(DeclarationError, match=words):
        declare(app, queue_name, Notes(), keep_runs=declared)


@pytest.mark.parametrize("fields", [{"runs": 1_000_001}, {"runs": 100, "age": 8_000_000}, {"runs": 100, "payloads": 1}])
def test_a_wrong_value_is_refused(fields: dict[str, Any]) -> None:
    """A million runs, ninety days, and a plain yes or no."""
    with pytest.raises(DeclarationError, match="of a KeepRuns must be"):
        KeepRuns(**fields)
