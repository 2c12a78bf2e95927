"""A daemon of several processes: its children share the shards, and whichever of them dies, no job is lost."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from lowkiq_lambda.providers.embedded.folder import ServerFolder
from tests.kit.daemons import DaemonProcess
from tests.kit.process_states import lives
from tests.kit.servers import Server
from tests.kit.stage import Stage
from tests.kit.waiting import eventually
from tests.local.children import SHARDS, TIMEOUT, TWO, await_start, children, freeze, id_of, performed_in_order
from tests.local.conftest import APP

SHOP: Final = """
from lowkiq_lambda import Config, Lowkiq

app = Lowkiq(Config())
app.worker(queue_name="Greet", shards_count=3)(print)
"""
NEVER: Final = 1_000
"""Seconds that no test waits for."""


@pytest.fixture
def stage(server: Server, queue_name: str, tmp_path: Path) -> Iterator[Stage]:
    """A queue of several shards on the shared server."""
    with closing(Stage(server, queue_name, tmp_path, APP, shards_count=SHARDS)) as made:
        yield made


def has_started(daemon: DaemonProcess) -> bool:
    """Whether both children of a shop drain."""
    return daemon.log.count("a child drains ") == 2


def test_each_process_performs_the_jobs_of_its_shards_and_helps_one_that_is_busy(stage: Stage) -> None:
    """Idle children leave the shards of others to them; a job that waits for a busy one is taken by an idle one."""
    daemon = stage.daemon(*TWO, "--threads", "1")
    pids = await_start(stage, daemon)
    for shard in range(SHARDS):
        stage.push([id_of(shard)])
        stage.await_told("end", id=id_of(shard))

    assert pids * 2 == [one["pid"] for one in stage.told("begin")]
    assert daemon.pid not in pids
    waiting, late = id_of(0, but=id_of(0)), id_of(2, but=id_of(2))
    stage.push([waiting], "wait")
    stage.await_told("begin", id=waiting)
    stage.push([late])
    assert pids[1] == stage.await_told("end", id=late)[0]["pid"]
    stage.release(waiting)
    stage.await_told("end", id=waiting)
    daemon.send(signal.SIGTERM)
    assert 0 == daemon.exit_code()
    assert not any(map(lives, pids))


def test_a_child_that_is_killed_is_replaced_and_its_job_runs_again(stage: Stage) -> None:
    """A SIGKILL costs its process what a crash costs any daemon; the others go on, and no job runs twice at once."""
    daemon = stage.daemon(*TWO, lease_ttl=1)
    pids = await_start(stage, daemon)
    stage.push([id_of(0)], "wait")
    stage.await_told("begin", id=id_of(0))
    os.kill(pids[0], signal.SIGKILL)
    again = stage.await_told("begin", times=2, id=id_of(0))[-1]
    stage.release(id_of(0))
    stage.await_told("end", id=id_of(0))

    assert again["pid"] != pids[0]
    eventually(lambda: len(children(daemon, 0)) == 2)
    assert "a child died and is replaced child=0" in daemon.log
    assert "signal=SIGKILL" in daemon.log
    assert lives(pids[1])
    assert [] == stage.told("overlap")


def test_children_stop_in_good_order_when_the_parent_is_killed(stage: Stage) -> None:
    """What runs comes to its end, nothing new begins, and no process is left behind."""
    daemon = stage.daemon(*TWO, shutdown_timeout=NEVER)
    pids = await_start(stage, daemon)
    stage.push([id_of(0)], "wait")
    stage.await_told("begin", id=id_of(0))
    daemon.send(signal.SIGKILL)
    stage.await_told("on_shutdown", times=2)
    stage.push([id_of(1)])
    stage.release(id_of(0))
    eventually(lambda: not any(map(lives, pids)), TIMEOUT)

    assert [id_of(0)] == [one["id"] for one in stage.told("end")]
    assert "the parent is gone: this process stops" in daemon.log


def test_two_daemons_of_two_processes_lose_nothing_when_one_is_killed_as_a_whole(stage: Stage) -> None:
    """Payloads of an id come in order, no two at once, whichever of the four processes has its shard."""
    nodes = [stage.daemon(*TWO, number_of_nodes=2, node_number=node, lease_ttl=1) for node in range(2)]
    for node in nodes:
        await_start(stage, node)
    ids = [id_of(shard) for shard in range(SHARDS)]
    for number in range(1, 6):
        stage.push(ids, number=number)
    lone = id_of(0, but=ids[0])
    stage.push([lone], "wait")
    stage.await_told("begin", id=lone)
    os.killpg(nodes[0].pid, signal.SIGKILL)
    stage.daemon(*TWO, number_of_nodes=2, node_number=0, lease_ttl=1)
    stage.await_told("begin", times=2, id=lone)
    stage.release(lone)
    for number in range(6, 9):
        stage.push(ids, number=number)
    eventually(lambda: sum(8 in one["numbers"] for one in stage.told("end")) >= SHARDS, TIMEOUT)

    assert [] == stage.told("overlap")
    assert performed_in_order(stage, ids)


def test_ctrl_c_reaches_the_whole_group_and_counts_once(stage: Stage) -> None:
    """Parent and children get the same signal: what runs has its time to end. A second one gives it back at once."""
    daemon = stage.daemon(*TWO, shutdown_timeout=NEVER, lease_ttl=600)
    await_start(stage, daemon)
    stage.push([id_of(0)], "wait")
    stage.push([id_of(1)], "wait")
    stage.await_told("begin", times=2)
    os.killpg(daemon.pid, signal.SIGINT)
    stage.await_told("on_shutdown", times=2)
    stage.release(id_of(0))
    stage.await_told("end", id=id_of(0))
    os.killpg(daemon.pid, signal.SIGINT)

    assert 1 == daemon.exit_code()
    stage.daemon(poll_interval=0.1)
    stage.await_told("begin", times=2, id=id_of(1))
    stage.release(id_of(1))
    stage.await_told("end", id=id_of(1))
    assert [] == stage.told("overlap")


def test_ctrl_c_while_children_start_ends_them_without_a_traceback(stage: Stage) -> None:
    """They have no job yet, so none is lost: the exit code says so, and nothing is left behind."""
    daemon = stage.daemon(*TWO)
    eventually(lambda: len(children(daemon)) == 2, TIMEOUT)
    os.killpg(daemon.pid, signal.SIGINT)

    assert 0 == daemon.exit_code()
    assert "KeyboardInterrupt" not in daemon.log
    assert not any(map(lives, children(daemon)))


def test_a_child_that_does_not_end_in_time_is_killed(stage: Stage) -> None:
    """Even a process that stands still keeps the daemon no longer than its time and a second; the exit code tells."""
    daemon = stage.daemon(*TWO, shutdown_timeout=0)
    pids = await_start(stage, daemon)
    freeze(pids[0])
    daemon.send(signal.SIGTERM)

    assert 1 == daemon.exit_code()
    assert "a child does not end and is killed child=0" in daemon.log
    assert not any(map(lives, pids))


def test_tstp_makes_all_children_quiet_and_ttin_tells_of_each(stage: Stage) -> None:
    """Nothing new is started by any of them, also by none that would replace one that dies; TERM ends them."""
    daemon = stage.daemon(*TWO, "--data-dir", str(stage.folder))
    pids = await_start(stage, daemon)
    daemon.send(signal.SIGTSTP)
    stage.await_told("on_quiet", times=2)
    # The parent has heard from both: until then it cannot tell of their state.
    eventually(lambda: 2 == daemon.log.count("a child drains"))
    daemon.send(signal.SIGTTIN)
    paths = [stage.folder / f"lowkiq_ttin.{number}.txt" for number in range(2)]
    eventually(lambda: all(path.exists() and "MainThread" in path.read_text() for path in paths))
    assert all(f"child={number} pid={pid} state=" in daemon.log for number, pid in enumerate(pids))
    stage.push([id_of(0), id_of(1)])
    os.kill(pids[0], signal.SIGKILL)
    eventually(lambda: "a child died" in daemon.log)
    stage.daemon(poll_interval=0.1)
    stage.await_told("end", times=2)

    assert set() == {*children(daemon)} & {one["pid"] for one in stage.told("begin")}
    daemon.send(signal.SIGTERM)
    assert 0 == daemon.exit_code()
    assert 2 == len(children(daemon))


def test_settings_that_cannot_work_end_all_with_2(stage: Stage) -> None:
    """What no further start would mend is no reason to start again and again."""
    stage.variables["STAGE_NO_HANDS"] = "1"
    daemon = stage.daemon(*TWO)

    assert 2 == daemon.exit_code()
    assert "The splitter must return one list for each thread" in daemon.log
    assert 2 == len(children(daemon))


def test_a_project_without_a_server_has_one_dashboard_and_one_embedded_server(tmp_path: Path) -> None:
    """The parent serves the dashboard; all share the server, and the last of them to leave stops it.

    An edit of shards_count is declared anew by itself, as for a daemon of one process: before the children come.
    """
    (tmp_path / "pyproject.toml").touch()
    folder = ServerFolder(tmp_path / ".lowkiq")
    for run, shop in enumerate((SHOP, SHOP.replace("=3", "=4"))):
        (tmp_path / "shop.py").write_text(shop)
        log = tmp_path / f"log-{run}"
        daemon = DaemonProcess(["shop:app", *TWO, "--dashboard", "0"], {"LOWKIQ_ENV": "development"}, log, tmp_path)
        with closing(daemon):
            eventually(partial(has_started, daemon), TIMEOUT)
            users = folder.users()
            daemon.send(signal.SIGTERM)

            assert 0 == daemon.exit_code()
        assert sorted([daemon.pid, *children(daemon)]) == sorted(users)
        assert 1 == daemon.log.count("dashboard at http:")
        assert 1 == daemon.log.count("Embedded server, for development: Valkey ")
        assert not folder.server_lives()
