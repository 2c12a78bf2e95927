"""Rules by error: what retry_on, kill_on and discard_on make of an id in each of its states (SK-5, L-23, P2, P7)."""

import logging

import pytest

from lowkiq_lambda import Batch, BatchJob, Lowkiq, discard_on, kill_on, retry_on
from lowkiq_lambda.testing import ManualClock
from tests.kit.error_rules import ERRORS, Gone, Throttled, dead_of, due_in, failing_with, with_rules
from tests.kit.handlers import Broken, Notes, raising
from tests.kit.looks import counters, left_behind
from tests.kit.recording import EventRecorder
from tests.kit.workers import jobs_of


def test_sk5_a_permanent_error_is_tried_once(app: Lowkiq, queue_name: str) -> None:
    """SK-5: the payload goes to the morgue at its first failure, with its error; the hook is told why."""
    notes = Notes(raising(ERRORS["permanent"]))
    worker = with_rules(app, queue_name, notes)
    worker.push_many(jobs_of("a", payload="v"))

    assert {"dead": 1, "failed": 1} == app.drain()
    assert {"a": ["v"]} == dead_of(app, worker)
    assert [("a", "rule")] == [(job.id, job.why) for job in notes.dead]
    assert (1, {}) == (len(notes.batches), left_behind(app, worker))
    (job,) = app.operate(worker).morgue.fetch(["a"])
    assert ["kill_on(Permanent)"] == [failure.rule for failure in job.failures]


def test_sk5_a_throttled_error_is_tried_when_the_other_side_allows(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """SK-5: the delay is what the error says; `most` retries, and then the payload is dead."""
    notes = Notes(raising(ERRORS["throttled"]))
    worker = with_rules(app, queue_name, notes)
    worker.push_many(jobs_of("a"))

    waits = []
    for _ in range(2):
        assert {"failed": 1, "retried": 1} == app.drain()
        waits.append(due_in(app, worker, clock))
        clock.advance(77)

    assert [77, 77] == waits
    assert {"dead": 1, "failed": 1} == app.drain()
    assert [("a", "rule")] == [(job.id, job.why) for job in notes.dead]


def test_sk5_an_obsolete_job_is_dropped_and_leaves_a_trace(
    app: Lowkiq, queue_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """SK-5, P2: no retry, no morgue, no hook, no warning; the journal, the counters and the log have it."""
    caplog.set_level(logging.INFO)
    recorder = EventRecorder()
    app.observers.append(recorder)
    notes = Notes(raising(ERRORS["gone"]))
    worker = with_rules(app, queue_name, notes)
    worker.push_many(jobs_of("a"))

    assert {"discarded": 1, "rejected": 1} == app.drain()
    assert {"a": "discarded"} == recorder.events[-1].outcomes
    assert (1, {}, {}, []) == (len(notes.batches), left_behind(app, worker), dead_of(app, worker), notes.dead)
    metrics = app.operate.metrics()[queue_name]
    assert (1, 1, 0, 0) == (metrics.discarded, metrics.rejected, metrics.failed, metrics.dead)
    (event,) = app.operate(worker).biography("a").events
    assert ("discarded", [1], "discard_on(Gone, when=...)") == (event.kind, event.arrivals, event.rule)
    assert 16 == len(event.fingerprint)
    lines = [record for record in caplog.records if "discarded" in record.message]
    assert ["a job was discarded by discard_on(Gone, when=...): Gone: order 7"] == [line.message for line in lines]
    assert [] == [record for record in caplog.records if record.levelno > logging.INFO]


def test_no_rule_fits(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """Then `retry_in` decides, as it does for a text, which has no class."""
    errors = {"other": Broken("bug"), "code": type("NotYet", (Gone,), {"code": 404})("no")}
    worker = with_rules(app, queue_name, Notes(failing_with(**errors)), batch_size=5)
    worker.push_many([{"id": word, "payload": word} for word in errors])
    app.drain()

    assert [10, 10] == [due_in(app, worker, clock, word) for word in errors]


def test_each_id_that_is_named_is_decided_by_its_own_error(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """P3: in one batch, beside ids that are done."""
    notes = Notes(failing_with(**ERRORS))
    worker = with_rules(app, queue_name, notes, batch_size=10)
    worker.push_many([{"id": word, "payload": word} for word in (*ERRORS, "fine")])

    counts = app.drain()

    assert {"done": 1, "dead": 1, "retried": 1, "failed": 2, "discarded": 1, "rejected": 1} == counts
    assert ({"permanent": ["permanent"]}, 77) == (
        dead_of(app, worker),
        due_in(app, worker, clock, "throttled"),
    )


@pytest.mark.parametrize(
    ("word", "dead_head", "ends"),
    [
        ("permanent", "skip", ({"a": ["permanent"]}, [["permanent", 1, 2], [1, 2]])),
        ("permanent", "drop", ({"a": ["permanent", 1, 2]}, [["permanent", 1, 2]])),
        ("permanent", "latest", ({"a": ["permanent"]}, [["permanent", 1, 2], [2]])),
        ("gone", "skip", ({}, [["gone", 1, 2], [1, 2]])),
        ("gone", "drop", ({}, [["gone", 1, 2], [1, 2]])),
    ],
)
def test_of_several_payloads_the_oldest_ends(
    app: Lowkiq, queue_name: str, word: str, dead_head: str, ends: tuple[dict[str, list[object]], list[list[object]]]
) -> None:
    """L-23: kill_on leaves the others to `dead_head`; what is discarded is not dead, so the others just start anew."""
    notes = Notes(failing_with(**ERRORS))
    worker = with_rules(app, queue_name, notes, dead_head=dead_head)
    worker.push_many([{"id": "a", "payload": payload, "score": n} for n, payload in enumerate([word, 1, 2])])

    app.drain()

    assert ends == (dead_of(app, worker), [batch["a"] for batch in notes.batches])
    assert {-1.0} == {job.retry_count for (job,) in notes.jobs}
    assert {} == left_behind(app, worker)


def test_discard_all_ends_all_that_was_delivered(app: Lowkiq, queue_name: str) -> None:
    """P2: with all=True; what was pushed while the id ran stays, and runs."""

    def then(batch: Batch) -> None:
        if batch["a"][0] == "gone":
            worker.push_many([{"id": "a", "payload": "new", "score": 9}])
            batch.fail("a", ERRORS["gone"])

    notes = Notes(then)
    worker = with_rules(app, queue_name, notes, on_error=(discard_on(Gone, all=True),))
    worker.push_many([{"id": "a", "payload": payload, "score": n} for n, payload in enumerate(["gone", 1, 2])])

    assert {"done": 1, "discarded": 1, "rejected": 1} == app.drain()
    assert [["gone", 1, 2], ["new"]] == [batch["a"] for batch in notes.batches]
    events = app.operate(worker).biography("a").events
    assert [("discarded", [n]) for n in (1, 2, 3)] == [(event.kind, event.arrivals) for event in events]


def test_p7_a_younger_payload_keeps_its_count_when_the_oldest_is_discarded(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """P7: it has failed once as the oldest; then an older one comes, and is dropped."""
    errors: list[BaseException] = [Broken("bug"), Gone("older")]
    notes = Notes(lambda batch: batch.fail("a", errors.pop(0)) if errors else None)
    worker = with_rules(app, queue_name, notes)
    worker.push_many([{"id": "a", "payload": "younger", "score": 5}])
    app.drain()
    worker.push_many([{"id": "a", "payload": "older", "score": 1}])
    clock.advance(10)

    app.drain()

    told = [(job.payloads, job.retry_count, job.error) for (job,) in notes.jobs]
    assert (["older", "younger"], -1.0, "bug") == told[1]
    assert (["younger"], 0.0, "bug") == told[2]
    assert {} == left_behind(app, worker)


def test_p3_in_company_each_is_decided_when_it_ran_alone(app: Lowkiq, queue_name: str) -> None:
    """P3: an error that names nobody; the one that it is about is dropped, the others are done."""

    def then(batch: Batch) -> None:
        if "b" in batch:
            raise ERRORS["gone"]

    worker = with_rules(app, queue_name, Notes(then), batch_size=3)
    worker.push_many(jobs_of("abc"))

    assert {"suspected": 3, "done": 2, "discarded": 1, "rejected": 1} == app.drain()


@pytest.mark.parametrize(("word", "counts"), [("permanent", {"dead": 6, "failed": 6}), ("gone", {"rejected": 6})])
def test_permanent_errors_of_many_are_each_their_own(
    app: Lowkiq, queue_name: str, word: str, counts: dict[str, int]
) -> None:
    """P7: they are no sign of a cause outside, so each id runs alone, once, and none is retried uselessly."""
    notes = Notes(raising(ERRORS[word]))
    worker = with_rules(app, queue_name, notes, batch_size=6)
    worker.push_many(jobs_of("abcdef"))

    drained = app.drain()

    assert counts == {name: drained[name] for name in counts}
    assert [6, 1, 1, 1, 1, 1, 1] == [len(batch) for batch in notes.batches]
    assert {} == left_behind(app, worker)


def test_p7_what_did_not_run_is_retried_whatever_the_rules_say(
    app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """P7: three fail alike and are retried; by then nobody may be killed for them who has not run."""
    rules = (retry_on(Throttled, delay=5), kill_on(Exception))
    notes = Notes(raising(Throttled(1)))
    worker = with_rules(app, queue_name, notes, batch_size=6, on_error=rules)
    worker.push_many(jobs_of("abcdef"))

    assert {"suspected": 6, "failed": 6, "retried": 6} == app.drain()
    assert [6, 1, 1, 1] == [len(batch) for batch in notes.batches]
    assert [5, 5, 5, 10, 10, 10] == [due_in(app, worker, clock, job_id) for job_id in "abcdef"]


@pytest.mark.parametrize(
    ("word", "counts"),
    [
        ("permanent", {"dead": 3, "failed": 3}),
        ("gone", {"discarded": 3, "rejected": 3}),
        ("throttled", {"retried": 3, "failed": 3}),
    ],
)
def test_without_isolation_each_id_is_decided_by_the_error(
    app: Lowkiq, queue_name: str, word: str, counts: dict[str, int]
) -> None:
    """E-40: whoever says that the ids of a batch fail together is taken at that word."""
    worker = with_rules(app, queue_name, Notes(raising(ERRORS[word])), batch_size=3, isolate=False)
    worker.push_many(jobs_of("abc"))

    assert counts == app.drain()


def test_counters_of_discards_are_part_of_the_rejected(app: Lowkiq, queue_name: str) -> None:
    """P2: as the shard keeps them."""
    worker = with_rules(app, queue_name, Notes(failing_with(**ERRORS)), batch_size=5)
    worker.push_many([{"id": n, "payload": "gone"} for n in range(5)])
    app.drain()

    kept = counters(app, worker)
    assert (5, 5) == (kept["discarded"], kept["rejected"])


def test_a_rule_may_stand_behind_one_with_a_condition(app: Lowkiq, queue_name: str) -> None:
    """The first that fits decides; `when` sees the error."""
    rules = (discard_on(Gone, when=lambda error: error.args == ("order 7",)), kill_on(Gone))
    errors = {"one": Gone("order 7"), "two": Gone("order 8")}
    worker = with_rules(app, queue_name, Notes(failing_with(**errors)), batch_size=5, on_error=rules)
    worker.push_many([{"id": word, "payload": word} for word in errors])

    app.drain()

    assert {"two": ["two"]} == dead_of(app, worker)


def test_the_payload_in_the_morgue_may_be_requeued(app: Lowkiq, queue_name: str) -> None:
    """P2: it has all of its chances then."""
    notes = Notes(raising(ERRORS["permanent"]))
    worker = with_rules(app, queue_name, notes)
    worker.push_many([{"id": "a", "payload": "v", "score": 3}])
    app.drain()
    notes.then = None

    app.operate(worker).morgue.requeue(["a"])
    app.drain()

    assert [[("v", 3.0)]] * 2 == [pairs_of(job) for (job,) in notes.jobs]
    assert ({}, {}) == (dead_of(app, worker), left_behind(app, worker))


def pairs_of(job: BatchJob) -> list[tuple[object, float]]:
    """Payloads with their scores, as plain tuples."""
    return [(payload, score) for payload, score in job.scored_payloads]
