"""What `python -m bench.peers` does with any peer: finds it, tries settings, measures, and prints."""

import sys
from pathlib import Path

import pytest

from bench.peers.__main__ import jobs_for, main, missing
from bench.peers.backends import Backend
from bench.peers.catalog import PEERS, Peer, label, tried
from bench.peers.installed import ROOT, Installed, bullmq, folder, in_environment
from bench.peers.running import Load, PeerFailedError, PeerSample, Took, fastest, measure
from bench.peers.tables import Row, blank_table, summary, waiting_table
from tests.kit.servers import Server

PROGRAM = """
import sys
import redis
from bench.peers.programs import meter

client = redis.Redis.from_url(meter.URL)
if sys.argv[1] == "push":
    meter.push_one_by_one(lambda payload: client.lpush("blank", payload))
else:
    for _ in range(meter.JOBS - int(meter.setting("lost"))):
        client.brpop("blank")
        meter.work()
"""


@pytest.fixture
def a_list(tmp_path: Path) -> Peer:
    """A peer that is one list of the server, and forgets as many jobs as its setting says."""
    program = tmp_path / "a_list.py"
    program.write_text(PROGRAM)
    command = f"{{python}} {program}"
    installed = Installed("1.0", {"python": sys.executable}, {"PYTHONPATH": str(ROOT)})
    return Peer("list", "list", lambda: installed, "nothing", f"{command} push", f"{command} work")


@pytest.fixture
def backend(server: Server) -> Backend:
    """The server of the tests, whose processor time goes up by a second with each look."""
    seconds = iter(range(100))
    return Backend(server.url, server.admin.flushall, lambda: float(next(seconds)))


def sample(rate: float, cost: float = 5.0) -> PeerSample:
    """What one measurement found."""
    return PeerSample(Took(2 * rate, cost, cost / 2), Took(rate, cost, cost / 2))


def test_a_push_and_a_drain_are_measured_in_time_and_processor_time(a_list: Peer, backend: Backend) -> None:
    """Each program reports its own time; the server's is what it had from the start of one to its report."""
    installed = a_list.find()
    assert installed

    measured = measure(a_list, installed, {"lost": 0}, Load(10, 0.0, 20.0), backend)

    for took in (measured.pushed, measured.drained):
        assert 0 < took.rate < 1_000_000
        assert 0 < took.own < 1_000_000
        assert 100_000 == took.server


def test_a_program_that_does_not_do_all_its_jobs_is_named_with_its_log(a_list: Peer, backend: Backend) -> None:
    """A worker that ends before the last job has failed, and the end of what it printed says why."""
    installed = a_list.find()
    assert installed

    with pytest.raises(PeerFailedError, match="its program ended with 0"):
        measure(a_list, installed, {"lost": 1}, Load(3, 0.0, 20.0), backend)
    with pytest.raises(PeerFailedError, match="its program ended with 1") as failed:
        measure(a_list, installed, {"lost": "many"}, Load(3, 0.0, 20.0), backend)
    assert "invalid literal" in failed.value.__notes__[0]


def test_a_program_that_takes_too_long_is_ended(a_list: Peer, backend: Backend) -> None:
    """A handler that would wait for an hour is given up at the limit."""
    installed = a_list.find()
    assert installed

    with pytest.raises(PeerFailedError, match="not done after 1 s"):
        measure(a_list, installed, {"lost": 0}, Load(1, 3_600.0, 1.0), backend)


def test_the_fastest_settings_are_chosen() -> None:
    """By the rate of the drain; the first of equals."""
    samples = [({"concurrency": n}, sample(rate)) for n, rate in ((1, 50.0), (5, 90.0), (10, 90.0))]

    assert {"concurrency": 5} == fastest(samples)


def test_each_concurrency_is_tried_with_each_other_setting() -> None:
    """And settings are named in words."""
    settings = tried([1, 5], max_prefetch=[0, 100])

    assert 4 == len(settings)
    assert ["concurrency 1, max prefetch 0", "concurrency 5, max prefetch 100"] == [
        label(settings[0]),
        label(settings[-1]),
    ]
    assert "defaults" == label({})


@pytest.mark.parametrize(("rate", "jobs"), [(3.0, 100), (123.0, 200), (2_345.0, 5_000), (1_000_000.0, 200_000)])
def test_a_drain_gets_the_jobs_of_some_seconds(rate: float, jobs: int) -> None:
    """A round number, not too small and not too large."""
    assert jobs == jobs_for(rate, 2.0)


def test_a_table_has_medians_with_their_spread_and_ratios_within_a_repeat() -> None:
    """A repeat in which one of the two failed has no ratio."""
    ours = Row("ours", {}, 100, {0: sample(100.0), 1: sample(400.0), 2: sample(200.0)})
    peer = Row("peer 1.2", {"concurrency": 5}, 100, {0: sample(50.0, 250.0), 1: sample(20.0, 50.0)})

    *_, first, second = blank_table([ours, peer]).splitlines()
    waiting = waiting_table([ours, peer], 0.005).splitlines()

    assert "| ours | defaults | 400 (200 to 800) | 5.0 (5.0 to 5.0) | 2.5 (2.5 to 2.5) |" in first
    assert "| peer 1.2 | concurrency 5 |" in second
    assert second.endswith("| 35 (20 to 50) | 150 (50.0 to 250) | 75.0 (25.0 to 125) | 0.28 (0.0500 to 0.50) |")
    assert waiting[0].startswith("| handlers that wait 5 ms | best settings | drained/s |")
    assert waiting[-1].endswith("| 0.28 (0.0500 to 0.50) |")


def test_the_summary_has_a_line_for_each_peer_with_medians_alone() -> None:
    """A peer that has only one of the two measurements has empty cells for the other."""
    blank = [Row("ours", {}, 100, {0: sample(100.0), 1: sample(200.0)}), Row("peer", {}, 100, {0: sample(50.0, 200.0)})]
    waiting = [Row("peer", {}, 100, {0: sample(30.0, 400.0)}), Row("threads", {}, 100, {0: sample(9.0, 10.0)})]

    assert [
        "| ours | 300 | 7.5 | 150 | 7.5 |  |  |",
        "| peer | 100 | 300 | 50 | 300 | 30 | 600 |",
        "| threads |  |  |  |  | 9 | 15.0 |",
    ] == summary(blank, waiting).splitlines()[2:]


def test_peers_are_found_where_they_are_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable names the environment of most; those of arq and of Node.js stand beside it."""
    monkeypatch.setenv("LOWKIQ_BENCH_PEERS", str(tmp_path / "others"))
    packages = tmp_path / "others-older" / "lib" / "python3.11" / "site-packages"
    (packages / "arq-0.28.0.dist-info").mkdir(parents=True)

    found = in_environment("peers-older", "arq")

    assert tmp_path / "others-node" == folder("peers-node")
    assert found
    assert "0.28.0" == found.version
    assert str(tmp_path / "others-older" / "bin") == found.words["bin"]
    assert in_environment("peers", "arq") is None
    assert bullmq() is None


def test_a_name_has_its_version_before_its_variant() -> None:
    """And ours has none."""
    names = {peer.called("1.2") for peer in PEERS}

    assert {"Lowkiq 1.2, hiredis, batch_size 100", "taskiq 1.2, stream", "huey 1.2"} <= names
    assert "ours, batch_size 1" in {peer.called("") for peer in PEERS}


def test_what_is_missing_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line for each peer, however many variants it has."""
    monkeypatch.setenv("LOWKIQ_BENCH_PEERS", str(tmp_path / "nowhere"))

    main(["--only", "huey", "--only", "taskiq"])

    assert ["huey is not installed: `make peers`.", "taskiq is not installed: `make peers`."] == (
        capsys.readouterr().out.splitlines()
    )
    lines = list(missing(PEERS, {}))
    assert len({peer.key for peer in PEERS}) == len(lines)
    assert "procrastinate is not installed: `make peers`, and PostgreSQL." in lines
