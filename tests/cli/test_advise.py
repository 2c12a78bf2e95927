"""`lowkiq advise`: lines, JSON, exit codes, a bill beside it; and how much room 35 days of hours take."""

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from lowkiq_lambda import Config, Lowkiq, Worker
from lowkiq_lambda.operate.lateness.samples import Sample
from lowkiq_lambda.stack.advice import loads
from lowkiq_lambda.stack.advice.loads import HOUR, MonthLoad, QueueLoad
from lowkiq_lambda.testing import ManualClock
from tests.cli.conftest import MODULE, ShopOfCommands
from tests.kit.apps import closing_app
from tests.kit.handlers import Notes
from tests.kit.months import hours_before, keep_hours
from tests.kit.workers import declare

SAMPLE = Sample(3_600.0, "1 1 0 0", 10, 0, 0, 10, 10, 5.0, 1.0, 9.0, 0, 0, 0.0, 0.5, 1.0, 5, ())
Lived: TypeAlias = Callable[[int, int], str]


@pytest.fixture
def lived(shop: ShopOfCommands) -> Lived:
    """Gives the queue so many hours behind it, with so many ids each; the key that they are in."""
    backend, retry_for = shop.app.core.backend, shop.app.config.redis_retry_for

    def live(count: int, ids: int) -> str:
        hours = hours_before(backend.clock.time() // HOUR * HOUR, count, ids)
        return keep_hours(backend, shop.queue, hours, retry_for)

    return live


def test_a_small_app_is_told_that_a_change_is_not_worth_it(shop: ShopOfCommands, lived: Lived) -> None:
    """What is not known stands first, and the exit code is 0."""
    lived(200, 720)
    shop.worker.push("1")
    code, out, _ = shop.run("advise", "--now", "shards")

    assert 0 == code
    lines = out.splitlines()
    assert lines[0].startswith("not known: ")
    assert any(line.startswith("the smallest Fargate task") and "$10.86" in line for line in lines)
    assert "not worth your time" in out
    assert "this month so far $" in out
    assert "less than functions from 1.2 open ones on" in out


def test_a_large_saving_is_an_exit_code(shop: ShopOfCommands, lived: Lived) -> None:
    """Of a fifth and five dollars; a program has the numbers."""
    lived(200, 720_000)
    shop.worker.push("1")
    code, out, _ = shop.run("advise", "--now", "minute", "--json")
    answer = json.loads(out)

    assert 1 == code
    assert answer["is_due"]
    assert answer["changes"][0]["saves"] > max(5.0, answer["month"] / 5)
    assert ["minute", "shards", "task", "daemon"] == [way["kind"] for way in answer["ways"]]


def test_a_queue_that_was_made_otherwise_is_left_out(shop: ShopOfCommands, lived: Lived) -> None:
    """It stands with what is not known, and the advice is about the others."""
    lived(200, 720)
    config, name = Config(redis_url=shop.app.config.redis_url), f"{shop.queue}-other"
    with closing_app(Lowkiq(config)) as app:
        declare(app, name, Notes(), merge="latest").push("1", score=1)
    declare(shop.app, name, Notes())
    code, out, _ = shop.run("advise", "--now", "shards")

    assert 0 == code
    assert out.startswith(f"not known: {name} is left out: Queue {name!r} is declared with merge='min'")
    assert "this month so far $" in out


@pytest.fixture
def alone(shop: ShopOfCommands, monkeypatch: pytest.MonkeyPatch) -> Iterator[ShopOfCommands]:
    """The shop in a namespace of its own: daemons of other tests are none of its processes."""
    with closing_app(Lowkiq(Config(redis_url=shop.app.config.redis_url, namespace=shop.queue))) as app:
        worker: type[Worker] = app.worker(type("SyncOrder", (Worker,), {**vars(shop.worker), "app": None}))
        monkeypatch.setattr(sys.modules[MODULE], "app", app)
        yield ShopOfCommands(app, worker, shop.capsys)


def test_history_stands_in_for_hours_that_nobody_kept(alone: ShopOfCommands) -> None:
    """Marked as that."""
    alone.worker.push("1")
    alone.app.drain()
    code, out, _ = alone.run("advise")

    assert 0 == code
    assert "not known: the present way is taken from the processes" in out
    assert "~ times of handlers" in out
    assert re.search(
        r"^this month so far ~\$0\.\d\d in the hours that are known, at the same pace ~\$\d", out, re.MULTILINE
    )
    assert re.search(r"^the smallest Fargate task +~\$10\.86 ", out, re.MULTILINE)
    assert re.search(r"^~\d+\.\d\d invocations are open", out, re.MULTILINE)


Played: TypeAlias = Callable[[Sequence[float]], QueueLoad]


@pytest.fixture
def played(shop: ShopOfCommands, monkeypatch: pytest.MonkeyPatch) -> Played:
    """Asks for advice on a new queue with ids at these seconds, 20 ms each; its load."""
    loads_of, load_of = list[QueueLoad](), loads.load_of

    def reading(queues: Sequence[QueueLoad], at: float) -> MonthLoad:
        loads_of.extend(queues)
        return load_of(queues, at)

    def play(pauses: Sequence[float]) -> QueueLoad:
        clock = ManualClock()
        body = {"queue_name": shop.queue, "shards_count": 1, "batch_size": 100}
        body["perform"] = lambda *_: clock.advance(0.02)
        with closing_app(Lowkiq(Config(redis_url=shop.app.config.redis_url, namespace=shop.queue), clock=clock)) as app:
            worker: type[Worker] = app.worker(type("InBatches", (Worker,), body))
            for place, pause in enumerate(pauses):
                worker.push(str(place))
                app.drain()
                clock.advance(pause)
            monkeypatch.setattr(sys.modules[MODULE], "app", app)
            code, _, error = shop.run("advise")
        if code:
            raise ValueError(error)
        (load,) = loads_of
        return load

    monkeypatch.setattr(loads, "load_of", reading)
    return play


def test_history_has_the_time_that_ids_took(played: Played) -> None:
    """However few of them a call had, of as many as it may have. History has the minutes that are over."""
    load = played([0.0, 7_200.0])

    assert 2 == load.ids
    assert 0.04 == pytest.approx(load.busy)


def test_the_hours_before_a_queue_that_is_at_work_were_not_idle(played: Played) -> None:
    """Though the minute that goes on is not in its history yet, which has two of three ids."""
    load = played([0.0, 600.0, 0.0])

    assert 2 == load.ids
    assert 900.0 == sum(hour.seconds for hour in load.hours)


def test_a_bill_stands_beside_the_estimate(shop: ShopOfCommands, lived: Lived, tmp_path: Path) -> None:
    """By service, with the error."""
    lived(200, 720)
    shop.worker.push("1")
    bill = tmp_path / "costs.csv"
    bill.write_text("Service,Lambda($),EC2($)\n2026-10-01,0.01,3\n")
    _, out, _ = shop.run("advise", "--now", "minute", "--bill", str(bill))

    (line,) = (line for line in out.splitlines() if line.startswith("bill: Lambda"))
    assert "$0.01, estimated $" in line
    assert line.endswith("%)")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--bill", "none.csv"], "cannot be read"),
        (["--prices", "none.toml"], "cannot be read"),
        (["--now", "cloud"], "Invalid value"),
        (["--memory", "1"], "whole number from 128"),
    ],
)
def test_what_cannot_work_is_refused(shop: ShopOfCommands, words: list[str], complaint: str) -> None:
    """In a line, with exit code 2."""
    code, out, error = shop.run("advise", *words)

    assert (2, "") == (code, out)
    assert complaint in " ".join(error.split())


def test_a_bad_bill_is_refused_with_its_line(shop: ShopOfCommands, tmp_path: Path) -> None:
    """Before Redis is asked for anything."""
    bill = tmp_path / "costs.csv"
    bill.write_text("Service,Lambda($)\n2026-10-01,much\n")
    answer: tuple[Any, ...] = shop.run("advise", "--bill", str(bill))

    assert 2 == answer[0]
    assert "line 2: 'much' is not a number" in answer[2].replace("\n", " ")


def test_a_target_that_no_change_keeps_is_named(shop: ShopOfCommands, lived: Lived) -> None:
    """Cheaper ways are there, and later."""
    lived(30, 100)

    assert "No change saves anything and keeps 1.0 s." in shop.run("advise", "--now", "task", "--lag-p95", "1")[1]
