"""`lowkiq simulate`: its three inputs, the choices, the table, and the exit codes."""

import json
import os
import re
import shlex
import signal
import struct
import subprocess
import time
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from lowkiq_lambda import Auto, Debounce, Rate, Worker
from lowkiq_lambda.cli import main
from lowkiq_lambda.cli.simulate.choices import tried
from lowkiq_lambda.cli.simulate.plots import braille, svg
from lowkiq_lambda.cli.simulate.tables import ChoiceRow, Findings
from lowkiq_lambda.operate.lateness.kept import write
from lowkiq_lambda.simulate import Choice, Times, Trace, comparing, simulate
from lowkiq_lambda.simulate.comparing import ChoiceComparison
from lowkiq_lambda.stack.costs.bills import minute_bill
from lowkiq_lambda.stack.costs.month import HOURS, Month
from lowkiq_lambda.stack.costs.simulated import simulated_bill
from lowkiq_lambda.store.shard.history import ARRIVALS
from lowkiq_lambda.views.lateness import HourDigest
from tests.cli.conftest import ShopOfCommands
from tests.kit.daemons import DaemonProcess
from tests.kit.months import keep_hours
from tests.kit.waiting import eventually

FEW: Final = "--rate 0.02/s --took 40ms --ids 100 --skew 0 --computing 0"
"""A day of seventeen hundred jobs."""


def printed(capsys: pytest.CaptureFixture[str], words: str, code: int = 0) -> str:
    """What the command prints, with this exit code."""
    assert code == main(["simulate", *shlex.split(words)])
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], words: str) -> str:
    """The one line of a command that cannot work."""
    assert 2 == main(["simulate", *shlex.split(words)])
    output = capsys.readouterr()
    assert not output.out
    return " ".join(output.err.split())


def test_the_cheapest_choice_that_keeps_the_target_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    """A schedule a minute is cheaper and does not keep five seconds, and the text says why."""
    text = printed(capsys, f"{FEW} --lag-p95 5s --try compute=minute,fargate:0.25x1")
    minute, task = (next(line for line in text.splitlines() if line.startswith(name)) for name in ("minute", "a task"))

    assert task.endswith("10.86   <- cheapest that keeps 5 s")
    assert "some ms" in task
    assert "cheapest" not in minute
    assert "A task of Fargate (0.25 vCPU), 5 shards keeps a lag p95 of 5 s, for $10.86 a month without Redis." in text
    assert "which comes once a minute, whatever the shards." in text
    assert "guessed" not in text
    assert "~" not in text


def test_no_choice_that_keeps_the_target_is_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    """Then the least lag is named, and what it hangs on."""
    text = printed(capsys, f"{FEW} --lag-p95 5s --try compute=minute,shards", code=1)

    assert "No choice keeps a lag p95 of 5 s. The least is 5" in text
    assert "a due id waits for the next schedule" in text


def test_what_nobody_said_is_listed_first_as_a_guess(capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers that hang on it begin with a tilde."""
    lines = printed(capsys, "--rate 0.02/s --try compute=minute").splitlines()

    assert ["ids", "ids", "took", "computing"] == [line.split()[1].rstrip(":") for line in lines[:4]]
    assert all(line.startswith("guessed  ") for line in lines[:4])
    assert 5 == next(line for line in lines if line.startswith("minute, 5 shards")).count("~")
    assert lines[4].endswith(", ~10,000 ids, calls of ~50 ms")


@pytest.mark.parametrize(("compute", "price"), [("fargate:0.25x1", "for $10.86 a month"), ("wake", "for ~$2.")])
def test_a_price_that_hangs_on_a_guess_is_marked_and_another_is_not(
    capsys: pytest.CaptureFixture[str], compute: str, price: str
) -> None:
    """A task costs the same whatever it does; the time of a function hangs on its calls."""
    text = printed(capsys, f"--rate 0.3/s --took 1s --skew 0 --ids 99 --lag-p95 9s --try compute={compute}")
    row = next(line for line in text.splitlines() if "<- cheapest" in line)

    assert price in text
    assert "  ~6 %" in row
    assert ("~2." in row) == (compute == "wake")


def test_a_program_reads_a_line_for_each_choice(capsys: pytest.CaptureFixture[str]) -> None:
    """All choices are crossed, and the same seed gives the same bytes."""
    words = f"{FEW} --lag-p95 90s --json --seed 5 --try shards=1,5 --try batch=1,10 --try compute=minute,daemon:2x3"
    text = printed(capsys, words)
    lines = [json.loads(line) for line in text.splitlines()]

    assert text == printed(capsys, words)
    assert 8 == len(lines)
    assert {(shards, batch) for shards in (1, 5) for batch in (1, 10)} == {
        (one["shards"], one["batch"]) for one in lines
    }
    assert {True} == {one["keeps"] for one in lines}
    assert 1 == sum(one["cheapest"] for one in lines)
    assert {None} == {one["dollars"] for one in lines if one["compute"] == "daemon"}
    assert all(one["low"] <= one["p95"] <= one["high"] for one in lines)


@pytest.mark.parametrize("computes", ["daemon:1x5,fargate:1x1", "fargate:1x1,daemon:1x5"])
def test_own_machines_have_no_price_beside_a_task_of_their_size(
    capsys: pytest.CaptureFixture[str], computes: str
) -> None:
    """In both orders, though both are the same to the simulation."""
    text = printed(capsys, f"{FEW} --json --try compute={computes}")
    dollars = {line["choice"].split(",")[0]: line["dollars"] for line in map(json.loads, text.splitlines())}

    assert dollars["daemon"] is None
    assert dollars["a task of Fargate (1 vCPU)"] > 30


def processes_of(group: int) -> list[str]:
    """Those of the group, by their numbers."""
    return subprocess.run(["pgrep", "-g", str(group)], capture_output=True, text=True, check=False).stdout.split()


def has_worked(process: str) -> bool:
    """Whether it has computed for a second."""
    words = ["ps", "-o", "cputimes=", "-p", process]
    return int(subprocess.run(words, capture_output=True, text=True, check=False).stdout or 0) > 0


def test_ctrl_c_ends_all_processes_of_a_long_run_without_a_word(tmp_path: Path) -> None:
    """The terminal sends it to each of them."""
    words = "simulate --rate 3/s --took 40ms --try shards=1,2,3,4,5,6,7,8"
    command = DaemonProcess(shlex.split(words), {}, tmp_path / "log", program="lowkiq_lambda")

    def simulates() -> bool:
        return any(map(has_worked, {*processes_of(command.pid)} - {str(command.pid)}))

    eventually(simulates, timeout=60.0, what="a process that simulates")
    os.killpg(command.pid, signal.SIGINT)

    assert 130 == command.exit_code()
    eventually(lambda: not processes_of(command.pid), what="the end of all processes")
    assert not command.log


def test_a_file_is_simulated_and_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Lag and depth in braille, the lag of each choice as SVG."""
    path, picture = tmp_path / "jobs.csv", tmp_path / "lag.svg"
    path.write_text("at,id\n" + "".join(f"{1_700_000_000 + number},{number % 7}\n" for number in range(300)))
    words = f"--trace {path} --took 1s --computing 0 --try compute=minute,shards --plot --svg {picture}"
    text = printed(capsys, words)

    assert "300 jobs in" in text
    assert any("\u2801" <= letter <= "\u28ff" for letter in text)
    assert "payloads that wait, at most" in text
    assert 2 == picture.read_text().count("<polyline")


def test_a_breakdown_is_told_as_what_the_lag_hangs_on(capsys: pytest.CaptureFixture[str]) -> None:
    """Its ids are retried after it, and nothing that is tried helps."""
    words = "--rate 1/s --ids 5 --took 10ms --breakdown 10:00-12:00 --lag-p95 1s --try compute=daemon:1x5 --try batch=5"

    assert "calls fail during the breakdown, and their ids run again later" in printed(capsys, words, 1)


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ("--outage 10:00-12:00 --try compute=daemon:1x5", "nothing is performed during the outage"),
        ("--outage 10:00-10:20 --try compute=minute", "a due id waits for the next schedule"),
        ("--breakdown 10:00-10:02 --try compute=minute", "a due id waits for the next schedule"),
        ("--outage 10:00-12:00 --breakdown 20:00-20:01 --try compute=daemon:1x5", "during the outage"),
        ("--outage 10:00-10:01 --breakdown 15:00-18:00 --try compute=daemon:1x5", "calls fail during the breakdown"),
    ],
)
def test_only_an_outage_that_makes_the_queue_late_is_told(
    capsys: pytest.CaptureFixture[str], words: str, cause: str
) -> None:
    """Of a queue that is as late without it, something else is."""
    assert cause in printed(capsys, f"--rate 0.05/s --ids 5 --took 10ms --lag-p95 1s {words}", 1)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("", "Give one of QUEUE, --rate and --trace"),
        ("--rate 1/s --trace jobs.csv", "Give one of QUEUE, --rate and --trace"),
        ("--rate often", "'often' is not a rate: give such as 10/s"),
        ("--rate 1/s --peak 5/s:soon", "--peak 5/s:soon is refused"),
        ("--rate 1/s --peak 5/s:13h", "--peak 5/s:13h is refused: it begins at 12:00, and the day ends."),
        ("--rate=", "'' is not a rate: give such as 10/s"),
        ("--rate -1", "'-1' is refused: a rate is above 0, such as 10/s."),
        ("--rate -1/s", "'-1/s' is refused: a rate is above 0, such as 10/s."),
        ("--rate 0/s", "'0/s' is refused: a rate is above 0, such as 10/s."),
        ("--rate 1/s --peak 70/s:15", "--peak 70/s:15 is refused: give a rate and a length with its unit, such as"),
        ("--rate 1/s --peak 70/s", "--peak 70/s is refused: give a rate and a length with its unit, such as"),
        ("--rate 1/s --peak -5/s:15m", "'-5/s' is refused: a rate is above 0, such as 10/s."),
        ("--rate 1/s --took -5ms", "'-5ms' is not a time of a handler"),
        ("--rate 1/s --failures -1%", "give a share below 100 %"),
        ("--rate 1/s --lag-p95 -5s", "'-5s' is not a length of time"),
        ("--rate 1/s --try tenants=spread", "--try tenants= is refused, as no id has a tenant: give --tenants 20"),
        ("--rate 1/s --tenants 5 --try tenants=far", "tenants=far is refused: there are none, spread, home."),
        ("--rate 1/s --tenants 1", "give a whole number from 2 to"),
        ("--rate 1/s --tenant-skew 1", "--tenant-skew needs --tenants"),
        ("--rate 1/s --limit max_running=many", "--limit max_running=many is refused: give whole numbers."),
        ("--rate 1e300/s", "these are 9e+304 jobs"),
        ("--rate 1/s --limit max_running=0", "--limit max_running=0 is refused"),
        ("--rate 1/s --limit rate=0/s", "--limit rate=0/s is refused"),
        ("--rate 1/s --took=", "'' is not a time of a handler"),
        ("--rate 1/s --took soon", "'soon' is not a time of a handler"),
        ("--rate 1/s --try colour=red", "--try colour=red is refused"),
        ("--rate 1/s --try shards=,", "--try shards=, is refused: give NAME=A,B"),
        ("--rate 1/s --try compute=abacus", "compute=abacus is refused: there are minute"),
        ("--rate 1/s --try compute=daemon:0x3", "compute=daemon:0x3 is refused"),
        ("--rate 1/s --try shards=many", "--try shards=many is refused: give whole numbers."),
        ("--rate 1/s --try shards=0", "A choice is refused"),
        ("--rate 1/s --try batch=100 --try concurrency=50", "A choice is refused: batch times concurrency is at most"),
        ("--rate 1/s --try shards=1,2,3,4,5 --try batch=1,2,3,4,5", "These are 50 choices, of at most 24"),
        ("--rate 1/s --limit speed=3", "--limit speed=3 is refused"),
        ("--rate 1/s --outage 10:20-10:00", "it must end after its begin"),
        ("--rate 1/s --outage noon", "--outage noon is refused: give such as 10:00-10:20."),
        ("--rate 1/s --breakdown noon", "--breakdown noon is refused: give such as 10:00-10:20."),
        ("--rate 1/s --failures 100%", "give a share below 100 %"),
        ("--rate 1/s --lag-p95 0s", "give a time above 0"),
        ("--rate 1000/s", "these are 86,400,000 jobs, of at most 20,000,000"),
        ("--trace nothing.csv", "nothing.csv: No such file"),
    ],
)
def test_what_cannot_work_is_refused_in_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str, complaint: str
) -> None:
    """The exit code is 2, and nothing was simulated."""
    monkeypatch.chdir(tmp_path)

    assert complaint in refused(capsys, words)


def keep_two_hours(shop: ShopOfCommands, skew: tuple[int, ...] | None = None) -> None:
    """Two hours of the queue are kept: calls of 20 ms and 2 ms an id, with one id and with ten; half of it computes."""
    backend, now = shop.app.core.backend, time.time() // 3_600
    hours = []
    for back, fill in ((2, 1), (1, 10)):
        busy = 100 * (0.020 + 0.002 * fill)
        sums: dict[str, Any] = {
            "ids": 100 * fill,
            "payloads": 200 * fill,
            "calls": 100,
            "busy": busy,
            "computing": busy / 2,
        }
        rest: dict[str, Any] = {
            "held": 9.0,
            "failed": 0,
            "dead": 0,
            "busiest": 60,
            "p50": 0.01,
            "p95": 0.02,
            "p99": 0.03,
            "skew": skew,
        }
        hours.append(HourDigest(at=(now - back) * 3_600, seconds=3_600.0, **sums, **rest))
    keep_hours(backend, shop.queue, hours, 1.0)


def test_a_queue_without_history_says_what_to_give(shop: ShopOfCommands) -> None:
    """Nothing is guessed of a queue that did nothing."""
    code, _, error = shop.run("simulate", shop.queue, "--took", "50ms")

    assert 2 == code
    assert "has done nothing in 72 hours: give --rate, or --trace." in error


def test_a_queue_is_simulated_by_its_own_history(shop: ShopOfCommands) -> None:
    """Its rates, how long its calls took, and the shards that it has, come first."""
    shop.worker.push_many([{"id": f"job {number}"} for number in range(100)])
    shop.app.drain()
    keep_two_hours(shop)
    code, text, error = shop.run("simulate", shop.queue, "--ids", "50", "--skew", "0", "--spread", "0")

    assert 0 == code, error
    assert text.startswith(f"{shop.queue}: ")
    assert "calls of 20 ms + 2 ms an id" in text
    assert "guessed" not in text
    assert "3 shards" in text


def test_a_queue_that_is_late_has_more_pushes_than_ended(shop: ShopOfCommands) -> None:
    """That is the first thing said: the simulation is too good."""
    shop.worker.push_many([{"id": f"job {number}"} for number in range(100)])
    shop.app.drain()
    keep_two_hours(shop)
    shop.worker.push("late", due_at=time.time() - 120)
    code, text, error = shop.run("simulate", shop.queue, "--ids", "50", "--skew", "0", "--spread", "0")

    assert 0 == code, error
    assert "pushes: as many as ended, so that 1 id that waits now is left out, and the queue is later than this" in text


def keep_arrivals(shop: ShopOfCommands, minutes: int, count: int) -> None:
    """So many payloads were pushed in each of the last minutes, up to this one."""
    backend, now = shop.app.core.backend, time.time()
    for back in range(minutes + 1):
        at = now - 60 * back
        key = ARRIVALS.key(shop.queue, at, backend.prefix)
        write(backend, [(key, ("SETRANGE", key, 4 * ARRIVALS.slot(at), struct.pack(">I", count + 1)))], 1.0)


def test_pushes_of_a_late_queue_are_those_that_were_counted(shop: ShopOfCommands) -> None:
    """What ended stands for pushes only where nobody has counted them: a backlog has been pushed, too."""
    shop.worker.push_many([{"id": f"job {number}"} for number in range(100)])
    shop.app.drain()
    keep_two_hours(shop)
    words = ("simulate", shop.queue, "--ids", "50", "--skew", "0", "--spread", "0", "--try", "compute=daemon:1x5")
    _, before, _ = shop.run(*words)
    keep_arrivals(shop, 30, 200)
    shop.worker.push("late", due_at=time.time() - 120)
    code, text, error = shop.run(*words)
    jobs, jobs_before = (int(each.split()[1].replace(",", "")) for each in (text, before))

    assert 0 == code, error
    assert "guessed" not in text
    assert jobs_before < 3_000
    assert 5_000 < jobs < 10_000


def test_a_young_queue_is_simulated_by_its_minutes(shop: ShopOfCommands) -> None:
    """It is three minutes old: its pace is not that of a quarter of an hour, and no push is missing."""
    keep_arrivals(shop, 2, 600)
    shop.worker.push("late", due_at=time.time() - 100)
    code, text, error = shop.run("simulate", shop.queue, "--took", "50ms", "--ids", "50", "--try", "compute=daemon:1x5")
    pace = re.search(r", ([0-9.]+)/s in the busiest minute", text)

    assert 0 == code, error
    assert pace is not None
    assert 9 < float(pace[1]) < 12
    assert "later than this" not in text


def test_a_queue_that_has_ended_nothing_is_simulated_by_its_pushes(shop: ShopOfCommands) -> None:
    """It is late since its first push, and somebody says how long a call takes."""
    shop.worker.push("late", due_at=time.time() - 600)
    keep_arrivals(shop, 30, 200)
    code, text, error = shop.run("simulate", shop.queue, "--ids", "50", "--took", "9ms", "--try", "compute=daemon:1x5")

    assert 0 == code, error
    assert 5_000 < int(text.split(f"{shop.queue}: ")[1].split()[0].replace(",", "")) < 7_000
    assert "later than this" not in text


def test_a_queue_that_is_later_than_its_counts_says_so(shop: ShopOfCommands) -> None:
    """Of ids that wait since before pushes were counted nobody knows how many came with them."""
    shop.worker.push_many([{"id": f"job {number}"} for number in range(100)])
    shop.app.drain()
    keep_two_hours(shop)
    keep_arrivals(shop, 30, 20)
    shop.worker.push("late", due_at=time.time() - 3_600)
    _, text, _ = shop.run("simulate", shop.queue, "--ids", "50", "--skew", "0", "--try", "compute=daemon:1x5")

    assert "and the queue is later than this" in text


@pytest.fixture
def tenants_shop(shop: ShopOfCommands, capsys: pytest.CaptureFixture[str]) -> ShopOfCommands:
    """A queue whose tenants take turns, with a history."""
    name = f"{shop.queue}-tenants"
    body = {"queue_name": name, "shards_count": 1, "tenants": "spread", "perform": lambda *_: None}
    shop_with_turns = ShopOfCommands(shop.app, shop.app.worker(type("Turns", (Worker,), body)), capsys)
    keep_two_hours(shop_with_turns)
    return shop_with_turns


@pytest.mark.parametrize(
    ("tenants", "words", "lines"),
    [
        (3, "", ["guessed  tenants: 3, alike often, as many as the queue remembers", "of 3 tenants", "tenants spread"]),
        (3, "--tenants 7", ["of 7 tenants", "tenants spread"]),
        (0, "", ["guessed  tenants: they take no turns, as the queue remembers none"]),
    ],
)
def test_a_queue_with_tenants_is_simulated_with_them(
    tenants_shop: ShopOfCommands, tenants: int, words: str, lines: list[str]
) -> None:
    """With as many as it remembers, or as the command line says; without any they take no turns."""
    for number in range(tenants):
        tenants_shop.worker.push(f"tenant {number}:1")
    options = ("--ids", "50", "--skew", "0", "--try", "compute=minute", *words.split())
    code, text, error = tenants_shop.run("simulate", tenants_shop.queue, *options)

    assert 0 == code, error
    assert [True] * len(lines) == [line in text for line in lines], text
    assert bool(words) == ("guessed" not in text)


def test_a_queue_whose_ids_were_counted_is_simulated_with_their_shares(shop: ShopOfCommands) -> None:
    """No skew is guessed, and no id is named; what the command line says counts more."""
    shop.worker.push_many([{"id": f"job {number}"} for number in range(100)])
    shop.app.drain()
    keep_two_hours(shop, (4_000, 500))
    words = ("simulate", shop.queue, "--ids", "50", "--spread", "0", "--try", "compute=daemon:1x5")
    code, text, error = shop.run(*words)
    _, overruled, _ = shop.run(*words, "--skew", "0")

    assert 0 == code, error
    assert ", 40% of them under one id" in text
    assert "guessed" not in text
    assert "under one id" not in overruled


def test_a_queue_whose_holders_find_their_numbers_is_simulated(
    shop: ShopOfCommands, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the bounds that its worker has."""
    name = f"{shop.queue}-tuned"
    body = {"queue_name": name, "shards_count": 1, "concurrency": Auto(most=7), "batch_size": Auto(most=9)}
    worker: type[Worker] = shop.app.worker(type("Tuned", (Worker,), {**body, "perform": lambda *_: None}))
    worker.push("1")
    keep_two_hours(ShopOfCommands(shop.app, worker, capsys))

    code, text, error = shop.run("simulate", name, "--took", "20ms", "--try", "compute=minute")

    assert 0 == code, error
    assert "minute, 1 shard, concurrency 7, batch 9" in text


def limited_shop(shop: ShopOfCommands, capsys: pytest.CaptureFixture[str], **fields: Any) -> ShopOfCommands:
    """A queue of ten shards with calls of 50 ms, half of which wait, whose worker declares so much."""
    body = {"queue_name": f"{shop.queue}-limited", "shards_count": 10, "perform": lambda *_: None, **fields}
    limited = ShopOfCommands(shop.app, shop.app.worker(type("Limited", (Worker,), body)), capsys)
    keep_two_hours(limited)
    return limited


LIMITED_RUN: Final = "--ids 50 --skew 0 --spread 0 --took 5s --lag-p95 40s --try compute=daemon:1x10"


@pytest.mark.parametrize(
    ("fields", "most", "why"),
    [
        ({"max_running": 1}, None, "the limit max_running=1 sets the pace"),
        ({"rate": Rate(4, per=60)}, None, "the limit rate=4/60s sets the pace"),
        ({}, 1, "the limit max_running=1 sets the pace"),
    ],
)
def test_a_queue_is_simulated_with_its_own_limits(
    shop: ShopOfCommands, capsys: pytest.CaptureFixture[str], fields: dict[str, Any], most: int | None, why: str
) -> None:
    """Those of its worker, and those that an operator has set; what the command line says counts more."""
    limited = limited_shop(shop, capsys, **fields)
    if most:
        shop.app.operate(limited.worker).limits.set(max_running=most)
    code, text, error = limited.run("simulate", limited.queue, *LIMITED_RUN.split())
    overruled, *_ = limited.run(
        "simulate", limited.queue, *LIMITED_RUN.split(), "--limit", "max_running=9", "--limit", "rate=99/s"
    )

    assert (1, 0) == (code, overruled), error
    assert why in text


def test_what_a_worker_declares_and_nothing_plays_is_a_guess(
    shop: ShopOfCommands, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its delay of retries only where something fails; how many payloads a call gets is played."""
    fields = {"debounce": Debounce(quiet=1.0), "waits_for": ("others",), "retry_in": lambda *_: 60.0}
    limited = limited_shop(shop, capsys, payloads_at_once=1, **fields)
    words = ("simulate", limited.queue, "--ids", "1", "--skew", "0", "--took", "9ms", "--try", "compute=minute")
    _, plain, error = limited.run(*words)
    (failing, breaking), calls = (
        [limited.run(*words, f"--{name}")[1] for name in ("failures=1%", "breakdown=10:00-10:01")],
        json.loads(limited.run(*words, "--json")[1]),
    )

    assert "guessed  waits_for, debounce: left out, as the simulation does not play it" in plain, error
    assert "guessed  waits_for, debounce, retry_in: left out" in failing
    assert "guessed  waits_for, debounce, retry_in: left out" in breaking
    assert calls["jobs"] == calls["calls"]


def test_the_busiest_hours_stand_for_a_long_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """All choices run on parts of it, the best three on the whole, and p95 of a part is about that of the whole."""
    monkeypatch.setattr(comparing, "THIN_FROM", 4_000)
    trace = Trace.of_rates([0.05] * 1_440)
    times, choice = Times(fixed=0.01), Choice(compute="minute")
    (result, other) = ChoiceComparison(trace, times, seconds=1e-9).run([choice, choice], lambda _, one: one.p95)
    assert result is not None, "one is always run"
    assert other is None, "no other begins after the time is over"
    choices = [msgspec.structs.replace(choice, shards=shards) for shards in (5, 4, 3, 2, 1)]
    results = [*filter(None, ChoiceComparison(trace, times).run(choices, lambda one, _: one.shards))]
    whole = [simulate(trace, times, one) for one in choices]

    assert [False, False, True, True, True] == [result.is_whole for result in results]
    assert [one.p95 for one in whole][2:] == [result.outcome.p95 for result in results][2:]
    assert {trace.jobs} == {result.outcome.jobs for result in results}
    assert whole[0].p95 == pytest.approx(results[0].outcome.p95, rel=0.1)
    assert whole[0].seconds == pytest.approx(results[0].outcome.seconds, rel=0.1)


@pytest.mark.parametrize("choice", [Choice(compute="minute", threads=1), Choice(compute="linger", threads=2)])
def test_parts_of_a_trace_begin_at_work(choice: Choice) -> None:
    """What ticks leave to the next ones is there at the begin; what is open at the end is billed until then."""
    trace = Trace.of_rates([23.0] * 90)
    times = Times(fixed=0.05)
    whole = simulate(trace, times, choice)
    pieces = comparing.parts_of(trace, 15_000)
    outcomes = [(simulate(piece, times, choice), jobs) for piece, jobs in pieces]
    parts = comparing.joined(outcomes)

    assert trace.jobs > 4 * sum(piece.jobs for piece, _ in pieces)
    assert whole.p95 == pytest.approx(parts.p95, rel=0.15)
    assert whole.billed == pytest.approx(parts.billed, rel=0.15)
    assert whole.calls == pytest.approx(parts.calls, rel=0.05)
    for (piece, _), (outcome, _) in zip(pieces, outcomes, strict=True):
        pushed = sum(at >= piece.warm_up for at in piece.at)
        assert pushed == pytest.approx(outcome.jobs, rel=0.3)


def test_a_short_time_shortens_the_parts_and_leaves_out_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A choice runs some of the jobs that its share of the time allows, which follows from no clock."""
    trace = Trace.of_rates([0.05] * 1_440)
    choices = [Choice(compute="minute", shards=shards) for shards in (5, 4, 3)]
    most = 200
    monkeypatch.setattr(comparing, "JOBS_A_SECOND", 2 * most * len(choices) / 60)
    pieces = comparing.parts_of(trace, most)
    results = [*filter(None, ChoiceComparison(trace, Times()).run(choices, lambda one, _: one.shards))]

    assert sum(piece.jobs for piece, _ in pieces) == pytest.approx(most, rel=0.3)
    assert sum(jobs for _, jobs in pieces) == pytest.approx(trace.jobs, rel=0.01)
    assert [False] * 3 == [result.is_whole for result in results]


def test_an_idle_month_costs_what_the_estimate_says() -> None:
    """Requests, time and schedules of an idle trace are those of `lowkiq stack costs`, but for its cold starts."""
    trace = Trace.of_rates([0.0] * 1_440)
    choice = Choice(compute="minute")
    bill, estimate = simulated_bill(choice, simulate(trace, Times(), choice), 86_400.0), minute_bill(Month(jobs=0))

    assert estimate["EventBridge Scheduler"] == bill["EventBridge Scheduler"]
    requests = bill["Lambda, requests"]["lambda_requests"]
    assert HOURS * 60 == pytest.approx(requests, rel=0.01)
    seconds = requests * 0.020 * 256 / 1_024
    assert seconds == pytest.approx(bill["Lambda, time"]["lambda_gigabyte_seconds"], rel=0.2)


def findings(target: float) -> Findings:
    """Two choices that were simulated by hand."""
    trace, times = Trace.of_rates([20.0] * 3), Times(fixed=0.04)
    candidates = tried(["shards=1,5"], Choice(), ["fargate:0.25x1"])
    results = ChoiceComparison(trace, times).run([one.choice for one in candidates], lambda _, outcome: outcome.p95)
    rows = [ChoiceRow(one, result, 10.86) for one, result in zip(candidates, results, strict=True)]
    return Findings(rows, target, times, is_guessed=False)


def test_a_choice_that_was_not_run_has_a_line_for_programs_that_says_so() -> None:
    """Its numbers are null, and it keeps and misses no target."""
    before = findings(1.0)
    rows = [before.rows[0], before.rows[1]._replace(result=None, dollars=None)]
    left_out = before._replace(rows=rows)
    ran, was_not = (json.loads(msgspec.json.encode(line)) for line in left_out.json())

    assert ran.keys() == was_not.keys()
    assert (True, False, "it was not run", 5) == (ran["was_run"], was_not["was_run"], was_not["why"], was_not["shards"])
    numbers = {name for name, value in ran.items() if isinstance(value, float)} | {"keeps", "jobs", "calls"}
    assert {None} == {was_not[name] for name in numbers}


def test_nothing_is_drawn_where_no_choice_was_run_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A note says so, and no picture is written."""
    monkeypatch.setattr(comparing, "JOBS_A_SECOND", 20)
    picture = tmp_path / "lag.svg"

    assert 0 == main(["simulate", *shlex.split(f"{FEW} --try compute=minute --plot --svg {picture}")])
    output = capsys.readouterr()

    assert "note: nothing is drawn, as no choice was run on the whole trace" in output.err
    assert "payloads that wait" not in output.out
    assert not picture.exists()


def test_a_narrow_terminal_has_three_lines_for_each_choice() -> None:
    """No line is broken in the middle of a number."""
    lines = [*findings(1.0).lines(60)]

    assert max(map(len, lines)) < 70
    assert 6 == len(lines)
    assert "<- cheapest that keeps 1 s" in lines[0]


def test_values_of_a_name_that_is_repeated_are_all_tried() -> None:
    """None of them is dropped, and one that is repeated is tried once."""
    words = ["shards=5,7", "compute=minute", "shards=7,10", "compute=wake"]
    choices = [one.choice for one in tried(words, Choice(), ["fargate:0.25x1"])]

    assert {(shards, compute) for shards in (5, 7, 10) for compute in ("minute", "wake")} == {
        (one.shards, one.compute) for one in choices
    }
    assert 6 == len(choices)


def test_a_single_one_is_no_plural_and_equal_choices_run_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Of jobs, ids, shards and threads."""
    text = printed(
        capsys, "--rate 1/d --took 1ms --ids 1 --skew 0 --computing 0 --try compute=daemon:1x1 --try shards=1,1"
    )

    assert text.startswith("1 job in a day")
    assert "busiest minute), 1 id, calls" in text
    assert 1 == text.count("daemon, 1 x 1 thread, 1 shard ")


def test_p99_is_a_range_where_p95_is_one() -> None:
    """Else the 95th percentile with handlers that take longer is above the 99th of those that do not."""
    trace, times = Trace.of_rates([95.0] * 12, ids=9_000), Times(fixed=0.01)
    (result,) = ChoiceComparison(trace, times).run([Choice(shards=1, threads=1)], lambda _, one: one.p95)
    assert result is not None
    (candidate,) = tried(["shards=1"], Choice(), ["daemon:1x1"])
    (_, line) = Findings([ChoiceRow(candidate, result, None)], None, times, is_guessed=False).lines(None)

    assert result.outcome.p99 < result.high <= result.high_p99
    assert 2 == line.count(" to ")


def test_parts_say_that_they_show_no_outage(capsys: pytest.CaptureFixture[str]) -> None:
    """It may be in none of them, and a weighted mean of parts is no percentile of the whole."""
    words = "--rate 20/s --took 40ms --ids 90 --skew 0 --computing 0 --try compute=daemon:1x5 --seconds 1"
    assert 0 == main(["simulate", *words.split()])
    assert "an outage" not in capsys.readouterr().err

    assert 0 == main(["simulate", *words.split(), "--outage", "10:00-10:20"])
    assert "numbers of parts do not show an outage or a breakdown" in capsys.readouterr().err


def test_plots_of_nothing_are_empty() -> None:
    """A trace that is over at once has no peak, and its chart no dots."""
    outcome = simulate(Trace.of_rows([(0.0, "a", 1)]), Times(), Choice())

    assert all(line.isprintable() for line in braille(outcome, 20))
    assert svg([("<a & b>", outcome)]).count("&lt;a &amp; b&gt;") == 1
    assert msgspec.structs.asdict(outcome)["jobs"] == 1


def test_a_picture_that_cannot_be_written_is_refused_before_the_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Nothing is simulated for minutes, and then lost."""
    for place in (tmp_path / "none" / "lag.svg", tmp_path):
        text = refused(capsys, f"{FEW} --try compute=minute --svg {place}")
        assert text == f"error: --svg {place} is refused: give a file in a folder that exists."


def test_a_trace_that_takes_longer_to_draw_than_there_is_time_is_drawn_in_part(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The busiest stretch of it, at its time of day; of a file too, and what is left out is a guess."""
    path = tmp_path / "jobs.csv"
    path.write_text("minute,jobs\n" + "".join(f"{minute},{6_000 + 10 * minute}\n" for minute in range(300)))
    words = "--took 1ms --ids 10 --skew 0 --computing 0 --seconds 1 --try compute=minute"
    begun = time.process_time()
    of_rates, of_file = (printed(capsys, f"{load} {words}") for load in ("--rate 200/s", f"--trace {path}"))

    assert time.process_time() - begun < 10
    assert "guessed  pushes: the busiest 29m, as --seconds has no time for 16,932,000 jobs more" in of_rates
    assert " jobs in 29m (200/s in the mean" in of_rates
    assert "guessed  pushes: the busiest 39m, as" in of_file
    assert ", 150/s in the busiest minute" in of_file


def test_the_time_begins_before_the_load_is_drawn(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all of it was taken by that, one choice is run, and the others are not."""
    times = iter([0.0])
    monkeypatch.setattr("lowkiq_lambda.cli.simulate.command.time.monotonic", lambda: next(times, 61.0))
    rows = printed(capsys, f"{FEW} --json --try compute=minute,wake,linger").splitlines()

    assert [True, False, False] == [json.loads(row)["was_run"] for row in rows]


def test_parts_are_whole_minutes_however_short_the_time_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Else the one schedule of a shorter part comes early, and jobs would wait for half a minute at most."""
    lines = printed(
        capsys, "--rate 4/s --took 1ms --ids 10 --skew 0 --computing 0 --try compute=minute --seconds 1 --json"
    )

    assert 50 < json.loads(lines)["p95"] < 60
