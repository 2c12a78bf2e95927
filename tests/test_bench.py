"""The benchmark runs: on a few jobs, for what it prints and not for how fast it was."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*arguments: object) -> str:
    """What `python -m` prints with these arguments."""
    command = [sys.executable, "-m", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=100).stdout


def test_the_benchmark_prints_a_line_for_each_case_and_target(tmp_path: Path) -> None:
    """Two cases, measured twice, become two lines of markdown, the targets beside them, and four raw samples."""
    raw = tmp_path / "raw.json"

    printed = run("bench", "--jobs=200", "--repeats=2", "--trials=3", "--only=batch 1", "--only=1 shard", "--json", raw)

    lines = [line.split(" | ")[0].removeprefix("| ") for line in printed.splitlines()]
    assert ["case", "---", "batch 1", "1 shard", "", "target", "---"] == lines[:7]
    samples = json.loads(raw.read_bytes())
    assert [("batch 1", 0), ("1 shard", 3)] * 2 == [(one["case"], len(one["latencies"])) for one in samples]
    numbers = ("drain", "drain_client", "drain_server", "push_client", "push_server", "floor", "claim_size")
    assert all(one[name] > 0 for one in samples for name in numbers)


@pytest.mark.nightly("the first benchmark runs in each check")
def test_peers_are_measured_beside_us() -> None:
    """Our own lines: blank jobs, compared with the first of them, and handlers that wait."""
    arguments = ("--only=ours", "--jobs=50", "--repeats=1", "--seconds=0.02")
    summary, blank, waiting = run("bench.peers", *arguments).split("\n\n")

    assert 5 == len(summary.splitlines()[2:])
    assert ["ours, batch_size 1", "ours, batch_size 10", "ours, batch_size 100"] == [
        line.split(" | ")[0].removeprefix("| ") for line in blank.splitlines()[2:]
    ]
    assert blank.splitlines()[2].endswith("| 1.00 |")
    assert 2 == len(waiting.splitlines()[2:])


def test_the_overview_is_measured_in_time_and_round_trips() -> None:
    """A line for each kind of request; one round trip a request, and bytes that came."""
    printed = run("bench.overview", "--jobs=200", "--queues=4", "--repeats=2")

    lines = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in printed.splitlines()[2:]]
    assert ["overview", "overview, its refresh", "`/api/v1/stats`", "`/metrics`"] == [line[0] for line in lines]
    assert all(float(line[1]) > 0 and float(line[3]) > 0 for line in lines)
    # Metrics have processes, duties and schedules, too.
    assert [*["1.00"] * 3, "2.00"] == [line[5] for line in lines]


@pytest.mark.nightly("the first benchmark runs in each check")
def test_the_use_of_cores_is_measured_beside_the_bare_loop() -> None:
    """A line for the daemon and one for the loop, in one process and in two, and the share that the daemon has."""
    printed = run("bench.cores", "--jobs=100", "--repeats=1").splitlines()

    lines = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in printed[2:4]]
    assert ["daemon", "bare loop"] == [line[0] for line in lines]
    assert all(float(cell.replace(",", "")) > 0 for line in lines for cell in line[1:])
    assert printed[-1].startswith("The daemon's ratio of the loop's: ")


@pytest.mark.nightly("the first benchmark runs in each check")
def test_what_concurrency_brings_is_measured() -> None:
    """A handler that waits, in threads and as a coroutine, one call at once and several; in one shard, and in many."""
    arguments = ("--jobs=40", "--repeats=1", "--shards=3", "--concurrency", "1", "20")
    measured, visits, targets = run("bench.waiting", *arguments).split("\n\n")

    assert 6 == len(measured.splitlines())
    assert "coroutines, concurrency 20" in measured.splitlines()[-1]
    assert "5 at once, concurrency 5" in visits.splitlines()[-1]
    assert 4 + 1 == len(targets.splitlines()[2:])


@pytest.mark.nightly("the first benchmark runs in each check")
def test_the_cost_of_a_wait_for_replicas_is_measured() -> None:
    """A line for each kind of push and drain, with a ratio."""
    lines = [line.strip("| ").split(" | ") for line in run("bench.replicated", "--repeats=2").splitlines()[2:]]

    assert ["push", "push_many of 1,000", "drain of these, in two calls", "drain of 20, one by one"] == [
        line[0] for line in lines
    ]
    assert all(float(line[-1]) > 0 for line in lines)


@pytest.mark.nightly("the first benchmark runs in each check")
def test_jobs_with_a_cursor_are_measured() -> None:
    """Items, saves, and what is repeated after a kill: five lines with numbers, and three targets."""
    measured, targets = run("bench.iteration", "--repeats=1", "--items=200", "--kills=2").split("\n\n")

    lines = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in measured.splitlines()[2:]]
    assert 5 == len(lines)
    assert all(float(found.replace(",", "").split()[0]) >= 0 for _, found in lines)
    assert 3 == len(targets.splitlines()[2:])


@pytest.mark.nightly("the first benchmark runs in each check")
def test_several_payloads_and_the_parts_of_a_push_are_measured() -> None:
    """A line for each load and each part, with numbers, and four targets."""
    loads, parts, targets = run("bench.payloads", "--repeats=1", "--ids=200").split("\n\n")

    lines = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in loads.splitlines()[2:]]
    assert ["1 payload", "2 payloads", "3 payloads", "8 payloads", "20 payloads"] == [name for name, *_ in lines[:5]]
    assert all(float(found.replace(",", "").split()[0]) >= 0 for _, *numbers in lines for found in numbers[:2])
    assert 7 == len(parts.splitlines()[2:])
    assert 4 == len(targets.splitlines()[2:])


def test_each_kind_of_failure_is_measured() -> None:
    """A line for each kind at each batch size, with the calls of scripts and of the handler."""
    printed = run("bench.failures", "--repeats=1", "--jobs=300")

    lines = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in printed.splitlines()[2:]]
    assert ["1", "10", "100"] * 5 == [line[1] for line in lines]
    assert all(float(line[3]) > 0 and float(line[5]) > 0 for line in lines)
    assert [1.0, True, True] == [float(lines[0][6]), float(lines[1][6]) < 0.2, float(lines[2][6]) < 0.1]


@pytest.mark.nightly("the first benchmark runs in each check")
def test_many_shards_are_measured_beside_their_own_floor() -> None:
    """Shards that got no job are passed over, by the floor too; the target stands below the table."""
    printed = run("bench", "--jobs=200", "--repeats=1", "--trials=3", "--only=1,000 shards")

    assert "| 1,000 shards beside their own floor | 0.80 | " in printed
