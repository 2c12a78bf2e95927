"""What was decided where the sources disagree.

D-8 (each thread its own scheduler) is the daemon's, D-9 (what resharding carries) comes with resharding itself.
"""

import gzip
import json
from pathlib import Path
from typing import Any, Literal

import pytest

from lowkiq_lambda import Batch, JobError, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Broken, Notes, failing, raising
from tests.kit.workers import declare, jobs_of
from tests.kit.looks import look

DATA = Path(__file__).parents[1] / "data"
Merge = Literal["min", "max", "never"]


@pytest.mark.parametrize("scores", [(2, 3), (3, 2), (10, 1), (-1, -2)])
def test_d1_equal_payload_keeps_the_smaller_score(app: Lowkiq, queue_name: str, scores: tuple[float, float]) -> None:
    """D-1: of equal payloads the smaller score stays, whichever came first."""
    worker = declare(app, queue_name, Notes())

    worker.perform_async([{"id": "a", "payload": "v", "score": score} for score in scores])

    waiting = look(app, worker, "a")
    assert waiting is not None
    assert [("v", min(scores))] == waiting.payloads


@pytest.mark.parametrize("scores", [(2, 3), (3, 2)])
@pytest.mark.parametrize("merge", ["min", "max", "never"])
def test_d1_holds_when_the_first_is_in_flight_and_then_fails(
    app: Lowkiq, clock: ManualClock, queue_name: str, merge: Merge, scores: tuple[float, float]
) -> None:
    """D-1: a payload pushed while an equal one runs and fails merges with it by the same rule."""

    def push_and_raise(_batch: Batch) -> None:
        notes.then = None
        worker.perform_async([{"id": "a", "payload": "v", "score": scores[1]}])
        raise Broken

    notes = Notes(push_and_raise)
    worker = declare(app, queue_name, notes, merge=merge)
    worker.perform_async([{"id": "a", "payload": "v", "score": scores[0]}])
    app.drain()
    clock.advance(10)
    app.drain()

    expected = {"min": [min(scores)], "max": [max(scores)], "never": sorted(scores)}
    assert expected[merge] == notes.last.scores


@pytest.mark.parametrize(("merge", "expected"), [("min", ["B"]), ("max", ["A"]), ("never", ["A"])])
def test_d1_merge_decides_what_a_returning_snapshot_ends_as(
    app: Lowkiq, queue_name: str, merge: Merge, expected: list[str]
) -> None:
    """D-1: of the snapshots A, B, A only `max` and `never` end with A: hence the version in the payload."""
    notes = Notes()
    worker = declare(app, queue_name, notes, merge=merge)

    worker.perform_async({"id": "a", "payload": payload, "score": score} for score, payload in enumerate("ABA"))
    app.drain()

    assert expected == notes.batches[0]["a"][-1:]


@pytest.mark.parametrize(
    ("merge", "fields", "wrong"), [("min", ["blob"], 7), ("min", ["blob", "commit"], 0), ("max", ["blob"], 0)]
)
def test_d1_on_a_real_history(app: Lowkiq, queue_name: str, merge: Merge, fields: list[str], wrong: int) -> None:
    """D-1: 151 real changes bring an earlier content back; by content alone, seven files end wrong under `min`."""
    with gzip.open(DATA / "file-history.jsonl.gz", "rt") as lines:
        changes = [json.loads(line) for line in lines]
    final = json.loads((DATA / "file-history-final.json").read_text())
    table: dict[str, str | None] = {}

    def apply_newest(batch: Batch) -> None:
        for path, payloads in batch.items():
            table[path] = payloads[-1]["blob"]

    worker = declare(app, queue_name, apply_newest, shards_count=3, batch_size=100, merge=merge)
    worker.perform_async(
        {"id": change["path"], "score": change["seq"], "payload": {name: change[name] for name in fields}}
        for change in changes
    )
    app.drain()

    files = {path: blob for path, blob in table.items() if blob}
    assert wrong == len({path for path in {*files, *final} if files.get(path) != final.get(path)})


def test_d2_after_a_burial_the_rest_starts_anew(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """D-2: when the oldest payload goes to the morgue the others wait with retry_count -1, due now."""

    def fail_slowly(_batch: Batch) -> None:
        clock.advance(2)
        raise Broken("broken")

    notes = Notes(fail_slowly)
    worker = declare(app, queue_name, notes, max_retry_count=1)
    worker.perform_async([{"id": "a", "payload": n, "score": n} for n in range(3)])
    app.drain(seconds=1)
    clock.advance(10)

    app.drain(seconds=1)

    assert [(0, 0.0)] == [tuple(pair) for job in notes.buried for pair in job.payloads]
    assert ([(1, 1.0), (2, 2.0)], clock.time(), -1.0, "broken") == look(app, worker, "a")


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_d4_n_retries_are_n_plus_one_executions(app: Lowkiq, clock: ManualClock, queue_name: str, retries: int) -> None:
    """D-4: `max_retry_count = n` means n retries, n + 1 executions; 0 means none."""
    notes = Notes(raising())
    worker = declare(app, queue_name, notes, max_retry_count=retries)
    worker.perform_async(jobs_of("a"))

    for _ in range(10):
        app.drain()
        clock.advance(1_000)

    assert (retries + 1, 1) == (len(notes.batches), len(notes.buried))


def test_d5_times_and_scores_are_floats(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """D-5: fractions of seconds and of scores are kept as they were given."""
    notes = Notes()
    worker = declare(app, queue_name, notes)
    at = clock.time() + 0.123456

    worker.perform_async([{"id": "a", "score": 0.1, "perform_in": at}])
    clock.advance(0.123)
    assert {} == app.drain()
    clock.advance(0.001)
    app.drain()

    assert (at, [0.1]) == (notes.last.perform_in, notes.last.scores)


@pytest.mark.parametrize("score", [2**53 + 1, -(2**53) - 1, 1e300])
def test_d5_numbers_beyond_what_a_float_has_exactly_are_refused(app: Lowkiq, queue_name: str, score: float) -> None:
    """D-5, L-19, E-64: a score beyond 2^53 is refused, naming the rule; up to there each integer is exact."""
    notes = Notes()
    worker = declare(app, queue_name, notes)

    with pytest.raises(JobError, match=r"job 0: score: .* beyond ±2\^53"):
        worker.perform_async([{"id": "a", "score": score}])
    worker.perform_async([{"id": "a", "score": 2**53, "payload": 1}, {"id": "a", "score": 2**53 - 1}])
    app.drain()

    assert [2**53 - 1, 2**53] == notes.last.scores


def test_d6_ids_come_by_perform_in_and_payloads_by_score(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """D-6: it is no first-in-first-out queue: ids come by their time, payloads within an id by score."""
    notes = Notes()
    worker = declare(app, queue_name, notes, batch_size=10)
    now = clock.time()
    pushed: list[dict[str, Any]] = [
        {"id": "c", "perform_in": now - 1, "payload": "newest", "score": 9},
        {"id": "a", "perform_in": now - 3},
        {"id": "b", "perform_in": now - 2},
        {"id": "c", "payload": "oldest", "score": 1},
    ]

    worker.perform_async(pushed)
    app.drain()

    assert [["a", "b", "c"]] == notes.ids
    assert ["oldest", "newest"] == notes.batches[0]["c"]


def test_d7_a_drain_without_seconds_has_a_limit(app: Lowkiq, queue_name: str) -> None:
    """D-7: nobody has to set a limit for there to be one: five minutes (the daemon's and Lambda's are theirs)."""
    seen: list[float] = []
    worker = declare(app, queue_name, lambda batch: seen.append(batch.remaining))
    worker.perform_async(jobs_of("a"))

    app.drain()

    assert [300.0] == seen


def test_d10_outcomes_are_of_ids_not_of_batches(app: Lowkiq, clock: ManualClock, queue_name: str) -> None:
    """D-10: a failing id in a batch of ten costs the other nine nothing, as often as it fails."""
    notes = Notes(failing("e"))
    worker = declare(app, queue_name, notes, batch_size=10, max_retry_count=2)
    worker.perform_async(jobs_of("abcdefghij"))

    assert {"done": 9, "failed": 1, "retried": 1} == app.drain()
    for _ in range(5):
        clock.advance(100)
        app.drain()

    assert ["e"] == [job.id for job in notes.buried]
    assert [list("abcdefghij"), ["e"], ["e"]] == notes.ids
