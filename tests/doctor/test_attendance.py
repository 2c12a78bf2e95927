"""What is told of processes, schedule entries, duties and moves."""

from collections.abc import Callable

import msgspec
import pytest

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.duties.runner import DutyRunner
from lowkiq_lambda.operate.doctor.health import RECENTLY, process_findings
from lowkiq_lambda.reshard.duty import STANDS_STILL
from lowkiq_lambda.schedules.entry import new_entry
from lowkiq_lambda.schedules.times import parse_cron
from lowkiq_lambda.store.shard.history import LATE
from lowkiq_lambda.testing import ManualClock
from tests.doctor.looks import found, running_process
from tests.kit.apps import closing_app
from tests.kit.handlers import Notes
from tests.kit.servers import Server
from tests.kit.workers import declare


class Sweep:
    """A duty."""

    name = "sweep"
    every = 60.0

    def __init__(self, do: Callable[[], object]) -> None:
        self._do = do

    def run(self, remaining: Callable[[], float]) -> None:
        """Do it."""
        del remaining
        self._do()


def test_processes_that_are_quiet_gone_slow_or_of_another_version_are_told() -> None:
    """Each with its name, and what to do."""
    well = running_process()
    one = msgspec.structs.replace
    odd = [
        one(well, id="web-2:1", state="quiet"),
        one(well, id="web-3:1", is_gone=True),
        one(well, id="web-4:1", is_slow=True),
        one(well, id="web-5:1", version="0"),
    ]
    findings = {finding.check: finding for finding in process_findings([well, *odd], "1")}

    assert "4 processes heard of within a minute: web-1:1, web-2:1, web-4:1, web-5:1" == findings.pop("processes").says
    assert ["quiet", "gone", "slow", "versions"] == list(findings)
    for name, finding in zip(("web-2:1", "web-3:1", "web-4:1", "web-5:1"), findings.values(), strict=True):
        assert name in finding.says
        assert finding.advice


@pytest.mark.parametrize(
    ("of_daemon", "of_function", "sentences"),
    [
        ("r2", "r1", ["daemons run release r2 of the code, and functions run r1"]),
        ("r2", "r2", []),
        (msgspec.UNSET, "r1", []),
    ],
)
def test_two_releases_on_two_computes_are_told(
    of_daemon: str | msgspec.UnsetType, of_function: str, sentences: list[str]
) -> None:
    """A daemon and functions share the queues; where one has no release nothing can be told."""
    daemon = msgspec.structs.replace(running_process(), release=of_daemon)
    function = msgspec.structs.replace(daemon, id="shop-drain:1", kind="lambda", release=of_function)
    dead = msgspec.structs.replace(function, id="shop-drain:2", release="r0", is_gone=True)
    findings = [*process_findings([daemon, function, dead], daemon.version)]

    assert sentences == [finding.says for finding in findings if finding.check == "releases"]


def test_a_process_that_is_gone_is_told_for_an_hour() -> None:
    """Its work is with others by then; where no other lives it is told until it is forgotten."""
    gone = msgspec.structs.replace(running_process(), is_gone=True)
    checks = [
        [finding.check for finding in process_findings(processes, "1")]
        for processes in (
            [gone, msgspec.structs.replace(gone, is_gone=False, seen_at=RECENTLY)],
            [gone, msgspec.structs.replace(gone, is_gone=False, seen_at=RECENTLY + 1)],
            [gone],
        )
    ]

    assert [["processes", "gone"], ["processes"], ["processes", "gone"]] == checks


def test_an_entry_that_stands_still_is_told(app: Lowkiq, clock: ManualClock) -> None:
    """One that nobody fires, one that is switched off, and one whose process has gone; while it fires all is well."""
    worker = declare(app, "orders", Notes())
    app.core.queues.agreed(worker)
    app.every(600, worker, id="x")
    app.every(600, worker, id="off")
    told = [found(app, "schedules")]
    app.schedules.tick()
    app.schedules.disable(worker, "off")
    told.append(found(app, "schedules"))
    clock.advance(600.0 + LATE + 1)
    told.append(found(app, "schedules"))
    app.schedules.tick()
    told.append(found(app, "schedules"))

    nobody = "no process that fires entries has declared it yet"
    off = ("warning", "orders/off: it is switched off")
    assert [("warning", f"orders/{name}: {nobody}") for name in ("off", "x")] == told[0]
    assert [off] == told[1] == told[3]
    assert [off, "broken"] == [told[2][0], told[2][1][0]]
    assert "orders/x: it stands still: the time of" in told[2][1][1]


def test_an_entry_that_cannot_fire_is_told_why(app: Lowkiq) -> None:
    """A declaration that another machine took may not work here."""
    worker = declare(app, "orders", Notes())
    app.core.queues.agreed(worker)
    app.schedules._timetable.add(new_entry("orders", parse_cron("0 0 31 2 *"), id="never"), None)
    app.schedules.tick()

    ((mark, says),) = found(app, "schedules")
    assert ("broken", True) == (mark, says.startswith("orders/never: it cannot fire: "))


def test_a_duty_that_nobody_does_is_told(own: Server, clock: ManualClock) -> None:
    """It never ran, it is late, or it fails."""
    works = [True]
    with closing_app(Lowkiq(Config(redis_url=own.url), clock=clock)) as app:
        app.core.queues.agreed(declare(app, "orders", Notes()))
        app.add_duty(Sweep(lambda: 1 / works[0]))
        runner = DutyRunner(app.core, [*app.core.housekeeping.duties.values()], clock)
        told = [found(app, "duties")]
        runner.run_due(lambda: 60.0)
        told.append(found(app, "duties"))
        clock.advance(60.0 + LATE + 1)
        told.append(found(app, "duties"))
        works[0] = False
        runner.run_due(lambda: 60.0)
        told.append(found(app, "duties"))

    assert [("warning", "sweep: it has never run: no daemon and no housekeeping run of this app has come")] == told[0]
    assert [] == told[1]
    assert [("broken", "sweep: it is late by 2 minutes: no daemon and no housekeeping run of this app comes")] == told[
        2
    ]
    ((mark, says),) = told[3]
    assert ("warning", True) == (mark, says.startswith("sweep: its last 1 run failed: "))


def test_a_move_that_stands_still_is_told(app: Lowkiq, clock: ManualClock) -> None:
    """While it goes on it is only told how far it is."""
    app.core.queues.agreed(declare(app, "orders", Notes(), shards_count=2))
    app.operate(app.workers[0]).resharding().begin(4)
    told = found(app, "moves")
    clock.advance(STANDS_STILL + 1)
    told += found(app, "moves")

    way = "orders: on its way from 2 to 4 shards: 0 of 2 groups have moved"
    assert [("ok", way), ("warning", f"{way}, and nothing has moved for 61 s")] == told
