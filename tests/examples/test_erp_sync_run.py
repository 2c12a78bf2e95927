"""The example as one command: what a person sees who runs it."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from examples.erp_sync.erp import Erp
from examples.erp_sync.knobs import Knobs
from examples.erp_sync.report import Report
from examples.erp_sync.shop import Shop, order_id, plan
from tests.kit.daemons import ROOT, clean_environment
from tests.kit.examples import mostly_nightly
from tests.kit.process_states import lives
from tests.kit.waiting import eventually

SHORT = ("--port=0", "--seconds=2", "--rate=30", "--orders=30", "--products=11")


def started(folder: Path, *knobs: str) -> "subprocess.Popen[str]":
    """A run with an embedded server of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "examples.erp_sync", *SHORT, f"--log={folder / 'log'}", *knobs],
        cwd=ROOT,
        env={**clean_environment(), "LOWKIQ_LEASE_TTL": "1", "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize("kills", mostly_nightly([0, 2], 2))
def test_the_erp_ends_with_what_the_shop_has(tmp_path: Path, kills: int) -> None:
    """Although it throttles and fails, webhooks are late, repeated and lost, and the daemon is killed."""
    process = started(tmp_path, f"--kills={kills}", "--failures=0.1", "--erp-rate=20", "--poison=2")
    out, errors = process.communicate(timeout=200)

    assert (0, "") == (process.returncode, errors), out
    assert f"web app    killed {kills} times" in out
    assert "morgue     SyncOrder 1000: ErpError: PUT /orders/1000: 500, cannot compute the tax" in out
    assert "apart from 2 poison orders in the morgue" in out
    assert "throttled" in out
    assert [tmp_path / "log"] == list(tmp_path.iterdir())


def test_a_signal_ends_it_with_all_that_it_started(tmp_path: Path) -> None:
    """Also if the whole group gets it: neither the web app nor the embedded server goes on, and no file is left."""
    process = started(tmp_path, "--serve")
    try:
        eventually(lambda: list(tmp_path.glob("erp-sync-*/server.pid")), 60, "the embedded server")
        (pid_file,) = tmp_path.glob("erp-sync-*/server.pid")
        server = int(pid_file.read_text())
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)
    finally:
        process.kill()

    assert 130 == process.returncode
    assert not lives(server)
    assert [tmp_path / "log"] == list(tmp_path.iterdir())


def test_a_seed_plans_the_same_changes_again() -> None:
    """A run can be repeated: only versions differ, as they are times."""
    knobs = Knobs(seed=7, poison=3, failures=0.2)
    first, again, other = plan(knobs, 100.0), plan(knobs, 100.0), plan(Knobs(seed=8), 100.0)

    assert first == again != other
    assert ["1000", "1001", "1002"] == [change.body["id"] for change in first[:3]]
    assert any(not change.sent_at for change in first)
    assert any(len(change.sent_at) > 1 for change in first)


def test_a_day_has_as_many_changes_and_most_of_them_at_noon() -> None:
    """They come in order, within the day, and the hours around noon have eight times those around midnight."""
    knobs = Knobs(seconds=24, rate=100, day=True)
    hours = Counter(int(change.at) for change in plan(knobs, 100.0))

    assert 2_400 == sum(hours.values())
    assert [*range(24)] == [*hours]
    assert 7 < (hours[11] + hours[12]) / (hours[0] + hours[23]) < 9


@pytest.mark.parametrize(
    "knob",
    mostly_nightly(
        ["--failures=0.6", "--failures=-0.1", "--failures=nan", "--erp-rate=0", "--rate=0", "--poison=-1"],
        "--failures=nan",
        "--rate=0",
    ),
)
def test_a_run_that_could_never_end_is_refused(tmp_path: Path, knob: str) -> None:
    """With the knob's name, before anything starts."""
    process = started(tmp_path, knob)
    out, errors = process.communicate(timeout=60)

    assert (2, "") == (process.returncode, out)
    assert f"error: {knob.partition('=')[0]} " in errors


def report(shop: Shop, erp: Erp, *morgue: dict[str, str]) -> Report:
    """What it says of them."""
    return Report(shop, erp, [order_id(0)], morgue, kills=0, moves=())


def test_each_difference_is_a_fault_and_named() -> None:
    """Orders, stock, webhooks, the morgue and the catalogue; equal is what has none."""
    shop, erp = Shop(Knobs(products=2)), Erp(rate=1, failures=0.0, poison=[], seed=1)
    poison = {"queue": "SyncOrder", "id": order_id(0), "error": "no tax"}
    shop.orders["1000"] = {"id": "1000", "version": 1}
    shop.orders["1001"] = {"id": "1001", "version": 2}
    shop.stock["sku-1"] = 5
    erp.orders["1001"], erp.products["sku-1"] = {"version": 2}, {}
    erp.stock["sku-1"] = 5
    erp.catalogues["t"] = {"listed": 1, "rejected": 1}
    good = report(shop, erp, poison)
    assert good.is_good
    assert "EQUAL      1 orders and 1 products, apart from 1 poison order in the morgue" == list(good.lines())[-1]

    erp.orders["1001"], erp.stock["sku-1"] = {"version": 1}, 4
    erp.catalogues["t"]["listed"] = 0
    erp.products["sku-0"] = {}
    shop.counts["given up"] = 1
    bad = report(shop, erp, {**poison, "id": "1001"})

    assert not bad.is_good
    assert [
        "order 1001: the shop has {'version': 2}, the ERP {'version': 1}",
        "stock of sku-1: the shop has 5, the ERP 4",
        "never accepted: 1 webhook",
        "order 1000 is poison, and not in the morgue",
        "SyncOrder 1001 is in the morgue: no tax",
        "the catalogue of the ERP has 2 products in place of 1",
        "the export ended as [{'listed': 0, 'rejected': 1}] in place of [{'listed': 1, 'rejected': 1}]",
    ] == bad.faults()
    assert "DIFFERENT  7 faults" in list(bad.lines())
