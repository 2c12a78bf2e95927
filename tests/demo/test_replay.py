"""The demo's handler applies what it is given in order, suffers its faults as they are drawn, and counts."""

import io
from collections.abc import Mapping
from typing import Any

import pytest
from rich.console import Console

from local.demo import progress
from local.demo.faults import Fault, FaultKind, Faults, InjectedFailure
from local.demo.history import Change
from local.demo.progress import showing
from local.demo.replay import Replay
from local.demo.table import Table
from lowkiq_lambda.engine.batch import Batch
from lowkiq_lambda.jobs.job import NEVER_FAILED, Delivery
from lowkiq_lambda.store.shard.lease_replies import NO_REQUESTS, Requests


class Given(Faults):
    """Faults that are given, not drawn."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__(0, 0, seed=1)
        self._given = list(faults)

    def draw(self, _ids: int) -> Fault | None:
        """The next one that was given, then none."""
        return self._given.pop(0) if self._given else None


class HandlerContext:
    """A drain that has all the time."""

    token = 1
    requests: Requests = NO_REQUESTS

    def remaining(self) -> float:
        """Plenty."""
        return 60.0

    def stopping(self) -> bool:
        """Never."""
        return False


def batch_of(payloads: Mapping[str, list[Any]], *, retry_count: float = NEVER_FAILED) -> Batch:
    """A batch as a drain would hand it over."""
    deliveries = {path: Delivery(path, [], 0.0, retry_count) for path in payloads}
    return Batch(dict(payloads), deliveries, HandlerContext(), bytes.decode)


def changes_of(replay: Replay, path: str, *seqs: int) -> list[Any]:
    """Payloads of a file, each with its number as content."""
    return [replay.job(Change(seq, path, str(seq)))["payload"] for seq in seqs]


def test_a_batch_is_applied_file_by_file(table: Table) -> None:
    """D-1: the commit is the score, and part of the payload; what an earlier, killed run left is passed over."""
    earlier, replay = Replay(table, Given()), Replay(table, Given())
    jobs = [replay.job(Change(seq, "a", "same")) for seq in (1, 2)]
    assert [("a", 1), ("a", 2)] == [(job["id"], job["score"]) for job in jobs]
    assert jobs[0]["payload"] != jobs[1]["payload"]
    left = changes_of(earlier, "a", 4)
    replay.perform(batch_of({"a": changes_of(replay, "a", 1, 3) + left, "b": changes_of(replay, "b", 2)}))
    assert {"a": "3", "b": "2"} == table.files()
    assert (1, 0, 0) == (replay.counts.batches, replay.counts.retries, replay.counts.overlaps)


def test_a_named_failure_leaves_the_others_done(table: Table) -> None:
    """P6: the victim stops half-way and is named; its neighbours are applied whole."""
    replay = Replay(table, Given(Fault(FaultKind.FAIL_ONE, victim=0)))
    batch = batch_of({"a": changes_of(replay, "a", 1, 2), "b": changes_of(replay, "b", 1, 2)})
    replay.perform(batch)
    assert table.files() == {"a": "1", "b": "2"}
    marks, _ = batch.close()
    assert list(marks) == ["a"]
    replay.perform(batch_of({"a": changes_of(replay, "a", 1, 2)}, retry_count=0))
    assert table.files() == {"a": "2", "b": "2"}
    assert replay.counts.retries == 1
    assert (table.repeated, table.out_of_order) == (1, 0)


@pytest.mark.parametrize(
    ("kind", "raised", "interruptions"), [(FaultKind.RAISE, InjectedFailure, 0), (FaultKind.INTERRUPT, SystemExit, 1)]
)
def test_a_batch_that_breaks_off_stops_half_way(
    table: Table, kind: FaultKind, raised: type[BaseException], interruptions: int
) -> None:
    """E-54: an interruption is raised as what ends a thread, not as a failure; nobody is named."""
    replay = Replay(table, Given(Fault(kind, victim=1)))
    batch = batch_of({path: changes_of(replay, path, 1, 2) for path in "abc"})
    with pytest.raises(raised):
        replay.perform(batch)
    assert table.files() == {"a": "2", "b": "1"}
    assert batch.close() == ({}, ())
    assert replay.counts.interruptions == interruptions
    replay.perform(batch_of({"b": changes_of(replay, "b", 1, 2)}))
    assert replay.counts.overlaps == 0


def test_a_file_begun_while_it_runs_is_an_overlap(table: Table) -> None:
    """P1: what must never happen is seen if it does."""
    replay = Replay(table, Given())
    outer = batch_of({path: changes_of(replay, path, 1) for path in "ab"})
    with replay.execution(outer):
        replay.perform(batch_of({path: changes_of(replay, path, 2) for path in "bc"}))
    assert replay.counts.overlaps == 1


def test_faults_come_as_often_as_asked_for() -> None:
    """The shares are those of batches; the victim is one of the batch."""
    draws = [fault for _ in range(10_000) if (fault := Faults(0, 0, 1).draw(3))]
    assert draws == []
    faults = Faults(failures=0.2, interruptions=0.1, seed=1)
    drawn = [fault.kind for _ in range(10_000) if (fault := faults.draw(3)) and fault.victim < 3]
    assert 900 < drawn.count(FaultKind.INTERRUPT) < 1100
    assert 900 < drawn.count(FaultKind.FAIL_ONE) < 1100
    assert 900 < drawn.count(FaultKind.RAISE) < 1100


def test_progress_is_a_bar_on_a_terminal_and_lines_elsewhere(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log gets whole lines without control characters; a wait for what a killed run left is explained."""
    monkeypatch.setattr(progress, "LINE_INTERVAL", 0.0)
    monkeypatch.setattr(progress, "LATE", 0.0)
    replay = Replay(table, Given())
    assert "waiting for the leases of a run that was killed" in shown(replay, on_terminal=False)
    replay.perform(batch_of({"a": changes_of(replay, "a", 1)}))
    assert "1/2" in shown(replay, on_terminal=True)
    assert "applied 1 of 2 changes, retries 0, interruptions 0\n" == shown(replay, on_terminal=False)


def shown(replay: Replay, *, on_terminal: bool) -> str:
    """The progress of a replay, printed once."""
    printed = io.StringIO()
    with showing(Console(file=printed, force_terminal=on_terminal, width=100), 2) as show:
        show(replay)
    return printed.getvalue()
