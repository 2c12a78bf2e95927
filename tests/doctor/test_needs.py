"""The list of what needs somebody: its order, its acts, and from when on queues that fail or hang are on it."""

import re
from typing import Final

import msgspec
import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.operate.doctor.findings import Finding, Mark
from lowkiq_lambda.operate.doctor.needs import ORDER, needs_of
from lowkiq_lambda.operate.doctor.pace import FEWEST, LONGEST, UNKNOWN, pace_findings, read_pasts
from lowkiq_lambda.store.shard.history import TIMES
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.processes import Doing, Process
from lowkiq_lambda.views.queues import Quantiles, QueueHistory, Series
from tests.doctor.looks import CHECKS, running_process
from tests.kit.handlers import Notes
from tests.kit.workers import declare

NOW: Final = 1_800_000_000.0


def past(failed: int = 0, ended: int = 0, p95: float | None = None) -> QueueHistory:
    """The last hour of a queue."""
    series = Series(began_at=NOW - 3_600, step=60, ended=(ended,), failed=(failed,))
    took = None if p95 is None else Quantiles(p95 / 2, p95)
    return QueueHistory(series=series, ended_rate=0.0, failed_rate=0.0, took=took, waited=None)


def process(seconds: float, *, queue: str = "orders", is_gone: bool = False) -> Process:
    """One that has had a batch for so long."""
    doing = (Doing(queue=queue, shard=3, since=NOW - seconds, count=1, ids=("a",)),)
    return msgspec.structs.replace(running_process(), doing=doing, seen_at=NOW, is_gone=is_gone)


@pytest.mark.parametrize(
    ("failed", "ended", "is_on_it"),
    [(FEWEST, 0, True), (FEWEST - 1, 0, False), (100, 299, True), (100, 300, False), (0, 0, False)],
)
def test_a_queue_that_fails_is_told_by_its_share(failed: int, ended: int, *, is_on_it: bool) -> None:
    """A quarter of what came in the last hour, and never by a count alone."""
    assert is_on_it == bool([*pace_findings({"orders": past(failed, ended)}, [])])


@pytest.mark.parametrize(
    ("seconds", "p95", "is_on_it"),
    [
        (LONGEST + 1, 0.01, True),
        (LONGEST, 0.01, False),
        (901.0, 90.0, True),
        (900.0, 90.0, False),
        (UNKNOWN + 1, None, True),
        (UNKNOWN, None, False),
    ],
)
def test_a_batch_that_runs_for_much_longer_than_others_is_told(
    seconds: float, p95: float | None, *, is_on_it: bool
) -> None:
    """Ten times as long as most, and five minutes at least; an hour where there are no others."""
    findings = [*pace_findings({"orders": past(p95=p95)}, [process(seconds)])]

    assert is_on_it == bool(findings)
    assert [] == [*pace_findings({"orders": past(p95=p95)}, [process(seconds, is_gone=True)])]
    assert [] == [*pace_findings({"others": past(p95=p95)}, [process(seconds)])]


@pytest.mark.parametrize("minutes", [5, 31, 45, 59])
def test_what_is_usual_is_known_for_an_hour(app: Lowkiq, queue_name: str, clock: ManualClock, minutes: int) -> None:
    """A batch that hangs alone in its queue is told of without a gap, as `UNKNOWN` takes over then."""
    # At the end of a window, which is forgotten first.
    clock.advance(-clock.time() % TIMES.window + TIMES.window - 10)
    declare(app, queue_name, Notes()).push("a")
    app.drain()
    clock.advance(60.0 * minutes)
    pasts = read_pasts(app.core.backend, [queue_name])
    (finding,) = pace_findings(pasts, [process(60.0 * minutes + 1, queue=queue_name)])
    assert "95 of 100" in finding.says


def test_each_check_has_its_place() -> None:
    """And none has two."""
    assert sorted(ORDER) == sorted(set(ORDER))
    assert set() == CHECKS - {*ORDER}


def test_what_is_broken_stands_first() -> None:
    """Then what is to be looked at; each in the order of the checks, and then by name. What is well is left out."""

    def finding(check: str, mark: Mark, about: str = "") -> Finding:
        return Finding(section="work", check=check, mark=mark, says="so", about=about)

    needs = needs_of(
        [
            finding("paused", "warning", "b"),
            finding("morgue", "warning"),
            finding("paused", "warning", "a"),
            finding("due work", "ok"),
            finding("memory", "unknown"),
            finding("due work", "broken", "c"),
            finding("eviction", "broken"),
        ]
    )

    assert [
        ("eviction", ""),
        ("due work", "c"),
        ("paused", "a"),
        ("paused", "b"),
        ("morgue", ""),
    ] == [(need.check, need.about) for need in needs]


def test_each_check_has_an_act() -> None:
    """With a page, a label, and where there is one a command on its queue."""
    findings = [Finding(section="work", check=check, mark="broken", says="so", about="a/b") for check in ORDER]
    acts = {need.check: need.act for need in needs_of(findings)}

    assert all(act.label for act in acts.values())
    assert {"paused", "unused time"} == {check for check, act in acts.items() if act.changes}
    assert "lowkiq resume a/b" == acts["paused"].command
    assert ({"queue": "a", "name": "b"}, "schedule") == (acts["schedules"].query, acts["schedules"].page)
    assert not [act for act in acts.values() if re.search(r"[{}]", act.command)]
