"""Tenants that take turns, in the model and in the engine."""

from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec
import pytest

from lowkiq_lambda import Batch
from lowkiq_lambda.cli import main
from lowkiq_lambda.cli.simulate.inputs import IDS
from lowkiq_lambda.simulate import Choice, Times, Trace, simulate
from lowkiq_lambda.simulate.state import Lanes
from lowkiq_lambda.testing import ManualClock
from tests.kit.apps import MakeApp
from tests.kit.workers import declare

FLOOD: Final = [(0.0, f"big:{number}", 1) for number in range(1_000)]
SMALL: Final = [(1.0 + number, f"small {number % 7}:{number}", 1) for number in range(20)]
"""They come while the flood is worked off."""
TIMES: Final = Times(fixed=0.1)
ONE: Final = Choice(shards=1, threads=1)


def other(**changes: Any) -> Choice:
    """One shard, with some fields changed."""
    return msgspec.structs.replace(ONE, **changes)


def test_a_flood_delays_others_only_without_lanes() -> None:
    """A thousand ids of one tenant take 100 seconds, and an id of another a call or two of them."""
    trace = Trace.of_rows(sorted(FLOOD + SMALL))
    plain, spread = (simulate(trace, TIMES, other(tenants=tenants)) for tenants in ("none", "spread"))

    assert plain.others_p95 is not None
    assert spread.others_p95 is not None
    assert plain.others_p95 > 80.0
    assert spread.others_p95 < 0.5
    assert (plain.jobs, plain.calls) == (spread.jobs, spread.calls)
    assert plain.mean == pytest.approx(spread.mean, rel=0.01)


def test_a_tenant_at_home_is_in_one_shard() -> None:
    """However many there are: the flood has one slot, and with its ids spread over shards it has each."""
    trace = Trace.of_rows(sorted(FLOOD + SMALL))
    home, spread = (simulate(trace, TIMES, Choice(shards=8, threads=8, tenants=kind)) for kind in ("home", "spread"))

    assert max(shard.payloads for shard in home.shards) >= 1_000
    assert home.end > 4 * spread.end


def test_ids_of_one_tenant_run_as_without() -> None:
    """Nobody's turn comes in between, and nobody is another."""
    trace = Trace.of_rows(FLOOD)
    plain, spread = (simulate(trace, TIMES, other(tenants=tenants)) for tenants in ("none", "spread"))

    assert trace.tenants is None
    assert plain == msgspec.structs.replace(spread)
    assert plain.others_p95 is None


def test_lanes_are_served_in_the_order_of_the_engine(make_app: MakeApp, queue_name: str, clock: ManualClock) -> None:
    """Ids of three tenants that wait, one in a claim: the tenants follow one another as in a drain."""
    ids = [f"{tenant}:{number}" for tenant, count in (("a", 30), ("b", 10), ("c", 5)) for number in range(count)]
    Random(1).shuffle(ids)
    ran: list[str] = []

    def handle(batch: Batch) -> None:
        ran.extend(batch)
        clock.advance(0.01)

    app = make_app(settle_interval=0.0)
    worker = declare(app, queue_name, handle, shards_count=1, batch_size=1, tenants="spread")
    for job_id in ids:
        clock.advance(0.01)
        worker.push(job_id)
    app.drain()
    trace = Trace.of_rows((0.0, job_id, 1) for job_id in ids)
    lanes = Lanes(trace, trace.at.__getitem__)
    for number in range(len(ids)):
        lanes.append(number)
    order = [ids[lanes.popleft()] for _ in ids]

    assert order == ran


def test_each_job_is_done_though_invocations_end_early() -> None:
    """What they give back keeps its turn."""
    trace = Trace.of_rows(sorted(FLOOD + SMALL))
    outcome = simulate(trace, TIMES, other(tenants="spread", compute="minute", timeout=20.0, batch=3))

    assert trace.jobs == outcome.jobs


def test_a_file_tells_the_lag_of_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a column, and as JSON; where ids have no tenants there is none, and no turns to take."""
    path = tmp_path / "jobs.csv"
    path.write_text("at,id\n" + "".join(f"{at},{job_id}\n" for at, job_id, _ in sorted(FLOOD + SMALL)))
    words = ["simulate", "--trace", str(path), "--took", "100ms", "--try", "tenants=none,spread", "--try"]
    code = main([*words, "compute=daemon:1x1", "--try", "shards=1"])
    text = capsys.readouterr().out

    assert 0 == code
    assert "p95 of others" in text
    assert "tenants spread" in text
    path.write_text("at,id\n1,2\n2,3\n")
    assert 2 == main(words[:-1])
    refused = " ".join(capsys.readouterr().err.split())
    assert "as no id of the file has one: the text before a colon, as acme in acme:7." in refused
    assert 2 == main(["simulate", "--rate", "1/s", "--took", "1ms", "--try", "tenants=none,spread"])
    refused = " ".join(capsys.readouterr().err.split())
    assert "as no id has a tenant: give --tenants 20, or a --trace with ids such as acme:7." in refused
    main([*words[:-3], "--json"])
    lines = [msgspec.json.decode(line) for line in capsys.readouterr().out.splitlines()]
    assert {None} == {line["others_p95"] for line in lines}


def test_tenants_at_home_have_one_call_at_a_time() -> None:
    """As a worker is refused that says otherwise."""
    with pytest.raises(ValueError, match="tenants at home have concurrency 1"):
        Choice(tenants="home", concurrency=2)


def test_tenants_of_rates_are_drawn_beside_the_pushes() -> None:
    """The pushes are the same with and without; with a skew one tenant has most ids, and turns help the others."""
    plain, skewed = (
        Trace.of_rates([20.0, 60.0, 5.0], ids=2_000, tenants=tenants, tenant_skew=3.0) for tenants in (1, 20)
    )
    none, spread = (simulate(skewed, TIMES, Choice(shards=4, threads=4, tenants=kind)) for kind in ("none", "spread"))

    assert (plain.at, plain.ids, plain.hashes, None) == (skewed.at, skewed.ids, skewed.hashes, plain.tenants)
    assert skewed.tenants is not None
    counts = sorted(map([*skewed.tenants].count, {*skewed.tenants}))
    assert counts[-1] > 0.7 * sum(counts)
    assert none.others_p95 is not None
    assert spread.others_p95 is not None
    assert 5 * spread.others_p95 < none.others_p95


def test_the_command_draws_as_many_tenants_as_it_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """They are named in its first line, and those but the largest have a column."""
    words = (
        "--rate 60/m --took 1s --ids 90 --skew 0 --computing 0 --tenants 20 --tenant-skew 1.1 --try tenants=none,spread"
    )
    code = main(["simulate", *words.split(), "--try", "compute=daemon:1x2", "--seconds", "9"])
    text = capsys.readouterr().out

    assert 0 == code
    assert "90 ids of 20 tenants" in text
    assert "p95 of others" in text
    assert "tenants spread" in text


@pytest.mark.parametrize("needless", ["tenants", "ids", "skew"])
def test_a_file_that_has_ids_is_given_no_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], needless: str
) -> None:
    """In a file of minutes they are drawn."""
    path = tmp_path / "jobs.csv"
    path.write_text("at,id\n1,a:2\n2,b:3\n")
    words = ["simulate", "--trace", str(path), "--took", "1ms", f"--{needless}", "3", "--try", "compute=daemon:1x1"]

    assert 2 == main(words)
    assert f"it has its own ids, which name their tenants, such as acme:7: leave out {needless}." in " ".join(
        capsys.readouterr().err.split()
    )
    path.write_text("minute,jobs\n1,20\n2,30\n")
    assert 0 == main(words)
    text = capsys.readouterr().out
    assert {"tenants": "of 3 tenants", "ids": "3 ids", "skew": "10,000 ids"}[needless] in text


def test_ids_of_a_file_are_no_guess(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """However many it has: as many as are drawn where nothing tells, for example."""
    path = tmp_path / "jobs.csv"
    path.write_text("".join(["at,id\n", *(f"{number / 1_000},{number}\n" for number in range(IDS))]))

    assert 0 == main(["simulate", "--trace", str(path), "--took", "1ms", "--try", "compute=daemon:1x1"])
    text = capsys.readouterr().out
    assert "10,000 ids" in text
    assert "as nothing tells how many there are" not in text
