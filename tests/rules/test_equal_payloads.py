"""Equal payloads: when two are equal, and which score and place stay (D-1, LB-12, LB-13)."""

import gzip
import json
from pathlib import Path
from typing import Literal

import pytest

from lowkiq_lambda import Batch, Lowkiq
from lowkiq_lambda.testing import ManualClock
from tests.kit.handlers import Broken, Notes
from tests.kit.looks import look
from tests.kit.workers import declare, jobs_of


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": [1, {"c": 2, "d": 3}]}, {"b": [1, {"d": 3, "c": 2}], "a": 1}),
        ((1, 2), [1, 2]),
        ("\u00e9", "é"),
    ],
)
def test_lb13_equal_payloads_are_equal_whatever_the_order_of_keys(
    app: Lowkiq, queue_name: str, one: object, other: object
) -> None:
    """LB-13, E-62: what is one value is one payload."""
    notes = Notes()
    worker = declare(app, queue_name, notes)

    worker.push_many([{"id": "a", "payload": one, "score": 2}, {"id": "a", "payload": other, "score": 1}])
    app.drain()

    assert [1.0] == notes.last.scores


@pytest.mark.parametrize(("one", "other"), [(1, "1"), (1, True), (0, False), ("", None), ([], {}), ("é", "e\u0301")])
def test_different_payloads_stay_different(app: Lowkiq, queue_name: str, one: object, other: object) -> None:
    """Values that only look alike are two payloads."""
    notes = Notes()
    worker = declare(app, queue_name, notes)

    worker.push_many([{"id": "a", "payload": one}, {"id": "a", "payload": other}])
    app.drain()

    assert [repr(one), repr(other)] == [repr(payload) for payload in notes.last.payloads]


@pytest.mark.parametrize("scores", [(2, 3), (3, 2), (10, 1), (-1, -2)])
def test_d1_equal_payload_keeps_the_smaller_score(app: Lowkiq, queue_name: str, scores: tuple[float, float]) -> None:
    """D-1: of equal payloads the smaller score stays, whichever came first."""
    worker = declare(app, queue_name, Notes())

    worker.push_many([{"id": "a", "payload": "v", "score": score} for score in scores])

    waiting = look(app, worker, "a")
    assert waiting is not None
    assert [("v", min(scores))] == waiting.payloads


Merge = Literal["min", "max", "never"]


@pytest.mark.parametrize("scores", [(2, 3), (3, 2)])
@pytest.mark.parametrize("merge", ["min", "max", "never"])
def test_d1_holds_when_the_first_is_in_flight_and_then_fails(
    app: Lowkiq, clock: ManualClock, queue_name: str, merge: Merge, scores: tuple[float, float]
) -> None:
    """D-1: a payload pushed while an equal one runs and fails merges with it by the same rule."""

    def push_and_raise(_batch: Batch) -> None:
        notes.then = None
        worker.push_many([{"id": "a", "payload": "v", "score": scores[1]}])
        raise Broken

    notes = Notes(push_and_raise)
    worker = declare(app, queue_name, notes, merge=merge)
    worker.push_many([{"id": "a", "payload": "v", "score": scores[0]}])
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

    worker.push_many({"id": "a", "payload": payload, "score": score} for score, payload in enumerate("ABA"))
    app.drain()

    assert expected == notes.batches[0]["a"][-1:]


DATA = Path(__file__).parents[1] / "data"


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
    worker.push_many(
        {"id": change["path"], "score": change["seq"], "payload": {name: change[name] for name in fields}}
        for change in changes
    )
    app.drain()

    files = {path: blob for path, blob in table.items() if blob}
    assert wrong == len({path for path in {*files, *final} if files.get(path) != final.get(path)})


def test_lb12_the_older_score_stays_also_when_pushed_during_a_failure(app: Lowkiq, queue_name: str) -> None:
    """LB-12, L-26: an equal payload pushed while it runs does not make it newer when it fails."""
    notes = Notes()
    worker = declare(app, queue_name, notes)

    def push_and_fail(batch: Batch) -> None:
        worker.push_many(jobs_of("a", payload="v", score=9))
        batch.fail("a", "no")

    notes.then = push_and_fail
    worker.push_many(jobs_of("a", payload="v", score=1))
    app.drain()

    waiting = look(app, worker, "a")
    assert waiting is not None
    assert [("v", 1.0)] == waiting.payloads
