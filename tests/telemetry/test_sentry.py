"""What Sentry is told of failures."""

import pytest
import sentry_sdk

from lowkiq_lambda import Batch, Lowkiq, discard_on, kill_on
from lowkiq_lambda.contrib.sentry import Capture, LowkiqIntegration
from lowkiq_lambda.testing import ManualClock
from tests.kit.collecting import SentToSentry
from tests.kit.coroutines import declare_async
from tests.kit.deaths import Mortal, outlive
from tests.kit.handlers import Broken, Notes, failing, raising, raising_with
from tests.kit.workers import declare, jobs_of


def fail_for_good(app: Lowkiq, clock: ManualClock, runs: int) -> None:
    """Drain so often, with time enough between for a retry."""
    for _ in range(runs):
        app.drain()
        clock.advance(100)


@pytest.mark.parametrize(("capture", "outcomes"), [("death", ["dead"]), ("failure", ["retried", "retried", "dead"])])
def test_a_failure_is_told_at_death_or_each_time(  # noqa: PLR0913, PLR0917 - two cases, and fixtures
    sentry: SentToSentry,
    app: Lowkiq,
    clock: ManualClock,
    queue_name: str,
    capture: Capture,
    outcomes: list[str],
) -> None:
    """With the exception, the queue and the shard as tags, and the ids as context."""
    sentry.use(capture)
    declare(app, queue_name, raising(), max_retry_count=2).push_many(jobs_of("a"))
    fail_for_good(app, clock, 4)

    assert outcomes == [event["tags"]["lowkiq.outcome"] for event in sentry.events]
    last = sentry.events[-1]
    assert ("Broken", "broken") == tuple(last["exception"]["values"][-1][name] for name in ("type", "value"))
    assert (queue_name, "0", queue_name) == (last["tags"]["queue"], last["tags"]["shard"], last["transaction"])
    assert (["a"], 1) == (last["contexts"]["lowkiq"]["ids"], last["contexts"]["lowkiq"]["count"])
    assert "then" in [frame["function"] for frame in last["exception"]["values"][-1]["stacktrace"]["frames"]]


def test_what_a_handler_tells_is_in_the_scope_of_its_batch(sentry: SentToSentry, app: Lowkiq, queue_name: str) -> None:
    """Its tags are on its error, though that is captured when the batch is over, and on no other one."""

    def perform(batch: Batch) -> None:
        (job_id,) = batch
        sentry_sdk.set_tag(f"tenant-{job_id}", "acme")
        raise Broken(job_id)

    declare(app, queue_name, perform, max_retry_count=0).push_many(jobs_of("ab"))
    app.drain()

    tenants = [[name for name in event["tags"] if name.startswith("tenant")] for event in sentry.events]
    assert [["tenant-a"], ["tenant-b"]] == tenants


def test_an_error_of_several_ids_is_one_event(sentry: SentToSentry, app: Lowkiq, queue_name: str) -> None:
    """Its context names the ids that it killed."""
    declare(app, queue_name, raising(), batch_size=3, max_retry_count=0, isolate=False).push_many(jobs_of("abc"))
    app.drain()
    (event,) = sentry.events
    assert (["a", "b", "c"], 3) == (event["contexts"]["lowkiq"]["ids"], event["contexts"]["lowkiq"]["count"])


def test_an_id_that_failed_in_company_is_told_when_it_fails_alone(
    sentry: SentToSentry, app: Lowkiq, queue_name: str
) -> None:
    """Those that only were in its company are not told."""
    sentry.use("failure")
    declare(app, queue_name, raising_with("b"), batch_size=3).push_many(jobs_of("abc"))
    app.drain()
    assert [["b"]] == [event["contexts"]["lowkiq"]["ids"] for event in sentry.events]


def test_ids_that_share_the_failure_of_their_group_are_told_with_it(
    sentry: SentToSentry, app: Lowkiq, queue_name: str
) -> None:
    """They did not run once more: what they failed with in company is what they are told with."""
    sentry.use("failure")
    notes = Notes(raising())
    declare(app, queue_name, notes, batch_size=6).push_many(jobs_of("abcdef"))
    app.drain()
    told = [event["contexts"]["lowkiq"]["ids"] for event in sentry.events]
    charged = {*"abcdef"} - {job_id for ids in notes.ids[1:] for job_id in ids}
    assert charged
    assert [*"abcdef"] == sorted(job_id for ids in told for job_id in ids)
    assert {"Broken"} == {event["exception"]["values"][-1]["type"] for event in sentry.events}


def test_a_failure_in_words_is_a_message(sentry: SentToSentry, app: Lowkiq, queue_name: str) -> None:
    """`batch.fail` takes either."""
    declare(app, queue_name, failing("b"), batch_size=2, max_retry_count=0).push_many(jobs_of("ab"))
    app.drain()
    (event,) = sentry.events
    assert ("b is broken", "error", ["b"]) == (event["message"], event["level"], event["contexts"]["lowkiq"]["ids"])


def test_a_job_that_crashes_its_processes_is_told(
    sentry: SentToSentry, app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """Nobody saw an exception, and it lies in the morgue."""
    mortal, notes = Mortal(app), Notes()
    notes.then = mortal.die
    worker = declare(app, queue_name, notes)
    worker.push_many(jobs_of("a"))
    # One death in company of nobody, and three alone.
    for _ in range(5):
        mortal.drain()
        outlive(app, clock, worker)
    (event,) = sentry.events
    assert (f"{queue_name}: a job went to the morgue", queue_name) == (event["message"], event["tags"]["queue"])


def test_e79_a_job_that_is_blocked_is_told(sentry: SentToSentry, app: Lowkiq, queue_name: str) -> None:
    """E-79: it has failed for the last time, as one that goes to the morgue."""
    declare(app, queue_name, raising(), max_retry_count=0, dead_head="block").push_many(jobs_of("a"))
    app.drain()
    (event,) = sentry.events
    assert ["a"] == event["contexts"]["lowkiq"]["ids"]


def test_a_coroutine_handler_has_its_scope(sentry: SentToSentry, app: Lowkiq, queue_name: str) -> None:
    """On the loop, as around a plain one."""

    async def perform(_batch: Batch) -> None:
        sentry_sdk.set_tag("tenant", "acme")
        raise Broken("broken")

    declare_async(app, queue_name, perform, max_retry_count=0).push_many(jobs_of("a"))
    app.drain()
    (event,) = sentry.events
    assert ("acme", queue_name) == (event["tags"]["tenant"], event["tags"]["queue"])


def test_nothing_is_told_where_the_client_has_not_the_integration(
    sentry: SentToSentry, app: Lowkiq, queue_name: str
) -> None:
    """What is around batches stays there, and does nothing."""
    sentry_sdk.init(dsn="http://key@127.0.0.1:9/1", transport=sentry, default_integrations=False)
    notes = Notes(raising())
    declare(app, queue_name, notes, max_retry_count=0).push_many(jobs_of("a"))
    app.drain()
    assert ([["a"]], []) == (notes.ids, sentry.events)


def test_what_a_lost_lease_owed_is_told_by_nobody(
    sentry: SentToSentry, app: Lowkiq, clock: ManualClock, queue_name: str
) -> None:
    """A failure that Redis has not acknowledged has not happened: the next holder's counts."""
    mortal, notes = Mortal(app), Notes(raising(Broken("first")))
    worker = declare(app, queue_name, notes, max_retry_count=0)
    worker.push_many(jobs_of("a"))
    mortal.die_before("settle")
    mortal.drain()
    outlive(app, clock, worker)
    assert [] == sentry.events
    notes.then = raising(Broken("second"))
    app.drain()
    assert ["second"] == [event["exception"]["values"][-1]["value"] for event in sentry.events]


def test_an_unknown_moment_of_capture_is_refused() -> None:
    """In a sentence that names both."""
    with pytest.raises(ValueError, match="'death' or 'failure', not 'always'"):
        LowkiqIntegration("always")  # type: ignore[arg-type]  # that is the point


def test_what_a_rule_decides_is_told_as_it_ends(sentry: SentToSentry, app: Lowkiq, queue_name: str) -> None:
    """SK-5: a job that is killed is an event at its first failure, one that is discarded is none."""
    errors = {"a": KeyError("no schema"), "b": Broken("gone")}

    def perform(batch: Batch) -> None:
        for job_id in batch:
            batch.fail(job_id, errors[job_id])

    worker = declare(app, queue_name, perform, on_error=(kill_on(KeyError), discard_on(Broken)))
    worker.push_many(jobs_of("ab"))
    app.drain()

    assert [(["a"], "dead")] == [
        (event["contexts"]["lowkiq"]["ids"], event["tags"]["lowkiq.outcome"]) for event in sentry.events
    ]
