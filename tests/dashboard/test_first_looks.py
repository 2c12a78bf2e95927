"""The first answer of a fresh process tells the truth of a queue that is to move, moves, or has moved."""

import math
import re
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final, TypeAlias

import msgspec
import pytest

from lowkiq_lambda import Lowkiq
from lowkiq_lambda.cli import main
from lowkiq_lambda.dashboard import dashboard
from lowkiq_lambda.declare.duty import MOVES
from lowkiq_lambda.operate.presentation.queues import Queues
from lowkiq_lambda.store.shard.layout import CHUNK_RECORDS
from lowkiq_lambda.store.shard.moving import MovingShards
from lowkiq_lambda.testing import ManualClock
from tests.kit.accounts import AUTH, OPERATOR
from tests.kit.apps import MakeApp
from tests.kit.examples import crossed
from tests.kit.handlers import FailingHandler
from tests.kit.web import Answer, Browser
from tests.kit.workers import declare, jobs_of

IDS: Final = [str(number) for number in range(20)]
"""Ids of all shards. All of them have failed, and wait."""
MODULE: Final = "shop_of_first_looks"


class Fresh:
    """A process that knows nothing yet but its code, which declares 4 shards."""

    def __init__(self, app: Lowkiq, name: str, clock: ManualClock, capsys: pytest.CaptureFixture[str]) -> None:
        self.app = app
        self.name = name
        self.worker = declare(app, name, FailingHandler(), shards_count=4)
        self.clock = clock
        self._capsys = capsys
        self._browser: Browser | None = None

    def page(self, path: str) -> Answer:
        """What the dashboard answers."""
        if self._browser is None:
            self._browser = Browser(dashboard(self.app, auth=AUTH, clock=self.clock))
            self._browser.come_in(AUTH, OPERATOR, self.clock.time())
        return self._browser.get(path.format(queue=self.name))

    def run(self, *words: str) -> str:
        """What a command says."""
        main([word.format(queue=self.name) for word in words])
        return self._capsys.readouterr().out


Look: TypeAlias = Callable[[Fresh], object]


def _overview(fresh: Fresh) -> int:
    with fresh.app.operate.overview() as overview:
        (queue,) = overview.queues
    return queue.now.length


def _totals(page: str, name: str) -> str:
    (number,) = re.findall(rf"(?s)<dt[^>]*>{name}</dt>\s*<dd[^>]*>(.*?)</dd>", page)
    return re.sub(r"<[^>]*>", "", number).strip()


def _jobs_of_errors(page: str) -> int:
    cells = re.findall(r'(?s)<td data-name="Jobs"[^>]*>(.*?)</td>', page)
    return sum(int(re.sub(r"<[^>]*>", "", cell)) for cell in cells)


def _untaken(fresh: Fresh) -> bool:
    fresh.clock.advance(600.0)
    return "due for up to" in fresh.run("doctor", f"{MODULE}:app")


def _watched(fresh: Fresh) -> list[str]:
    return fresh.run("stats", "--watch").splitlines()[1].split()[:2]


LOOKS: Final[Mapping[str, tuple[Look, object]]] = {
    "app.stats": (lambda fresh: fresh.app.operate.stats()["by_worker"][fresh.name]["length"], 20),
    "app.metrics": (lambda fresh: fresh.app.operate.metrics()[fresh.name].length, 20),
    "app.overview": (_overview, 20),
    "app.errors": (lambda fresh: sum(group.waiting for group in fresh.app.operate.errors().groups), 20),
    "app.find": (lambda fresh: len(fresh.app.operate.find("1").similar), 10),
    "lowkiq stats": (lambda fresh: fresh.run("stats").splitlines()[1].split()[1], "20"),
    "lowkiq stats of a queue": (lambda fresh: fresh.run("stats", "{queue}").splitlines()[1].split()[1], "20"),
    "lowkiq stats --json": (
        lambda fresh: [one.length for one in msgspec.json.decode(fresh.run("stats", "--json"), type=Queues).queues],
        [20],
    ),
    "lowkiq stats --watch": (lambda fresh: _watched(fresh)[1], "20"),
    "lowkiq why": (lambda fresh: "It failed" in fresh.run("why", "{queue}", "17"), True),
    "lowkiq show": (lambda fresh: "waiting in shard" in fresh.run("show", "{queue}", "17"), True),
    "lowkiq doctor": (_untaken, True),
    "the first page": (lambda fresh: _totals(fresh.page("/").text, "Waiting"), "20"),
    "the queue's page": (lambda fresh: _totals(fresh.page("/queue?queue={queue}").text, "Retries"), "20"),
    "the list": (lambda fresh: len(set(re.findall(r"&amp;id=(\d+)", fresh.page("/waiting?queue={queue}").text))), 20),
    "the page of errors": (lambda fresh: _jobs_of_errors(fresh.page("/errors").text), 20),
    "a job's page": (lambda fresh: "It failed" in fresh.page("/job?queue={queue}&id=17").words, True),
    "GET stats": (lambda fresh: fresh.page("/api/v1/stats").json["total"]["length"], 20),
    "GET queues": (lambda fresh: [one["length"] for one in fresh.page("/api/v1/queues").json["queues"]], [20]),
    "GET errors": (
        lambda fresh: sum(one["waiting"] for one in fresh.page("/api/v1/errors").json["groups"]),
        20,
    ),
    "GET metrics": (
        lambda fresh: re.findall(r'lowkiq_queue_length{queue=".*?"} (\d+)', fresh.page("/metrics").text),
        ["20"],
    ),
}


@pytest.mark.parametrize(("look", "stage"), crossed(LOOKS, ["before", "in the middle", "after", "after two"]))
def test_p9_the_first_look_of_a_process_counts_all_ids(  # noqa: PLR0913, PLR0917 - all of them fixtures
    make_app: MakeApp,
    queue_name: str,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    stage: str,
    look: str,
) -> None:
    """P9: whoever asks first sees all 20 ids, wherever a move has brought them, and whatever the code declares."""
    mover = make_app()
    handler = FailingHandler()
    handler.failing = set(IDS)
    worker = declare(mover, queue_name, handler, shards_count=4)
    worker.push_many(jobs_of(IDS))
    mover.drain()
    _move(mover, worker, stage)
    fresh = Fresh(make_app(), queue_name, clock, capsys)
    module = ModuleType(MODULE)
    vars(module)["app"] = fresh.app
    monkeypatch.setitem(sys.modules, MODULE, module)
    monkeypatch.setenv("LOWKIQ_APP", f"{MODULE}:app")
    if "--watch" in look:
        monkeypatch.setattr("lowkiq_lambda.cli.stats.Event", InterruptedPause)

    see, seen = LOOKS[look]

    assert seen == see(fresh)


def test_p9_what_a_mover_has_left_twice_is_told(
    make_app: MakeApp,
    queue_name: str,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """P9: records that were received and not dropped yet count twice, and the number is no less than is told then."""
    mover, fresh = make_app(), Fresh(make_app(), queue_name, clock, capsys)
    worker = declare(mover, queue_name, FailingHandler(), shards_count=4)
    worker.push_many(jobs_of(IDS))
    received, receive = list[object](), MovingShards.receive

    def note(*given: Any) -> None:
        received.append(receive(*given))

    monkeypatch.setattr(MovingShards, "receive", note)
    resharding = mover.operate(worker).resharding()
    resharding.begin(8)
    resharding.go_on(lambda *_: None, lambda: 0.0 if received else math.inf)
    module = ModuleType(MODULE)
    vars(module)["app"] = fresh.app
    monkeypatch.setitem(sys.modules, MODULE, module)
    monkeypatch.setenv("LOWKIQ_APP", f"{MODULE}:app")

    with fresh.app.operate.overview() as overview:
        (queue,) = overview.queues

    assert 20 < queue.now.length <= 20 + queue.twice
    assert (8, 4 * CHUNK_RECORDS) == (queue.moves_to, queue.twice)
    assert "moves to 8 shards, so up to 4K may count twice" in fresh.run("stats")
    page = fresh.page("/")
    assert "moves to 8 shards" in page.words
    assert "Of what is on its way up to 4,000 records may count twice." in page.text
    mover.operate(worker).reshard(to=8)
    assert "moves to" not in fresh.run("stats") + fresh.page("/").words


def test_a_fresh_process_lists_the_duty_of_a_move_that_is_under_way(make_app: MakeApp, queue_name: str) -> None:
    """Who asks for the duties first is told of the one that goes on with the move."""
    mover, fresh = make_app(), make_app()
    worker = declare(mover, queue_name, FailingHandler(), shards_count=4)
    declare(fresh, queue_name, FailingHandler(), shards_count=4)
    worker.push_many(jobs_of(IDS))
    before = [duty.name for duty in fresh.operate.duties()]
    _move(mover, worker, "in the middle")
    later = make_app()
    declare(later, queue_name, FailingHandler(), shards_count=4)

    assert ([], [MOVES]) == (before, [duty.name for duty in later.operate.duties()])


class InterruptedPause:
    """The pause between two looks, in which somebody presses Ctrl-C. Pauses of other threads are none of its."""

    @staticmethod
    def wait(_seconds: float) -> None:
        """The command takes it for a key that was pressed."""
        raise KeyboardInterrupt


def _move(app: Lowkiq, worker: Any, stage: str) -> None:
    if stage == "in the middle":
        moved = list[object]()
        resharding = app.operate(worker).resharding()
        resharding.begin(8)
        resharding.go_on(lambda *told: moved.append(told), lambda: 0.0 if moved else math.inf)
        assert 1 == len(moved)
        assert 3 == len(resharding.layout.left)
    if stage.startswith("after"):
        app.operate(worker).reshard(to=6)
    if stage == "after two":
        app.operate(worker).reshard(to=3)
