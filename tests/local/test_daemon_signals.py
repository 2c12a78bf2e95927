"""A daemon told by signals: to stop, to be quiet, to say what it is doing."""

import signal

import pytest

from tests.kit.examples import mostly_nightly
from tests.kit.stage import Stage
from tests.kit.waiting import eventually

NEVER = 1_000
"""Seconds that no test waits for."""
HOOKS = [
    "on_server_init",
    "on_startup",
    "second on_startup",
    "on_heartbeat",
    "on_quiet",
    "second on_shutdown",
    "on_shutdown",
    "second on_exit",
    "on_exit",
]


def test_l72_term_waits_for_running_jobs(stage: Stage) -> None:
    """L-72: after TERM a handler that runs comes to its end, its job is done, and the exit code says so."""
    daemon = stage.daemon()
    stage.push("a", "wait")
    stage.await_told("begin", id="a")
    daemon.send(signal.SIGTERM)
    stage.await_told("on_shutdown")

    stage.release("a")

    assert 0 == daemon.exit_code()
    assert 1 == len(stage.told("end"))
    assert {} == stage.app.drain(1.0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_l72_an_idle_daemon_stops_at_once(stage: Stage, number: signal.Signals) -> None:
    """L-72: where nothing runs the exit waits neither for the poll interval nor for the time to shut down."""
    daemon = stage.daemon(poll_interval=NEVER, shutdown_timeout=NEVER)
    stage.await_told("on_heartbeat")
    daemon.send(number)

    assert 0 == daemon.exit_code()


def test_nothing_new_starts_after_term(stage: Stage) -> None:
    """S-12: a job that is pushed after TERM is left to others, though the daemon still lives."""
    daemon = stage.daemon()
    stage.push("a", "wait")
    stage.await_told("begin", id="a")
    daemon.send(signal.SIGTERM)
    stage.await_told("on_shutdown")
    stage.push("b")
    stage.release("a")
    daemon.exit_code()

    assert ["a"] == [one["id"] for one in stage.told("begin")]
    stage.daemon()
    stage.await_told("end", id="b")


def test_a_handler_sees_that_it_should_stop(stage: Stage) -> None:
    """S-12: `batch.stopping` becomes true when the signal comes, so that a handler can come to an end in time."""
    daemon = stage.daemon(shutdown_timeout=NEVER)
    stage.push("a", "await stop")
    stage.await_told("begin", id="a")
    daemon.send(signal.SIGTERM)

    assert 0 == daemon.exit_code()
    assert 1 == len(stage.told("end", id="a"))


def test_s12_what_runs_at_the_deadline_runs_again_elsewhere_and_never_twice_at_once(stage: Stage) -> None:
    """S-12: at the deadline the process is gone, and another has its job long before the lease would have ended."""
    first = stage.daemon(shutdown_timeout=0.2, lease_ttl=600)
    stage.push("a", "wait")
    stage.await_told("begin", id="a")
    second = stage.daemon(lease_ttl=600, poll_interval=0.1)
    first.send(signal.SIGTERM)

    assert 1 == first.exit_code()
    begins = stage.await_told("begin", times=2, id="a")
    assert [first.pid, second.pid] == [begun["pid"] for begun in begins]
    queue = stage.worker.queue_name
    told = f'ERROR   a handler still runs: its jobs are given back queue={queue} shard=0 count=1 ids=["a"]\n'
    assert told in first.log
    assert begins[0]["token"] < begins[1]["token"]
    stage.release("a")
    stage.await_told("end", id="a")
    assert [] == stage.told("overlap")


def test_s12_a_job_that_was_given_back_has_not_failed(stage: Stage) -> None:
    """S-12: being given back at the deadline counts as no failure and makes nothing suspect."""
    daemon = stage.daemon(shutdown_timeout=0)
    stage.push("a", "wait")
    stage.await_told("begin", id="a")
    daemon.send(signal.SIGTERM)
    daemon.exit_code()
    counts = eventually(lambda: stage.app.drain(0.5), what="the lease to end")

    assert {"recovered": 1} == {outcome: number for outcome, number in counts.items() if number and outcome != "done"}


@pytest.mark.parametrize("number", mostly_nightly([signal.SIGINT, signal.SIGTERM], signal.SIGTERM))
def test_ln14_a_second_signal_ends_the_process_at_once(stage: Stage, number: signal.Signals) -> None:
    """LN-14: who asks twice need not wait for the deadline, and what ran is given back all the same."""
    daemon = stage.daemon(shutdown_timeout=NEVER, lease_ttl=600)
    stage.push("a", "wait")
    stage.await_told("begin", id="a")
    daemon.send(number)
    stage.await_told("on_shutdown")
    daemon.send(number)

    assert 1 == daemon.exit_code()
    stage.daemon(poll_interval=0.1)
    stage.await_told("begin", times=2, id="a")
    stage.release("a")
    stage.await_told("end", id="a")
    assert [] == stage.told("overlap")


def test_e97_signals_at_once_are_one(stage: Stage) -> None:
    """E-97: who sends the same to a process and to its group asks once: what runs has its time to end."""
    daemon = stage.daemon(shutdown_timeout=NEVER)
    stage.push("a", "wait")
    stage.await_told("begin", id="a")
    for _ in range(3):
        daemon.send(signal.SIGTERM)
    stage.await_told("on_shutdown")
    stage.release("a")
    stage.await_told("end", id="a")

    assert 0 == daemon.exit_code()


def test_s11_tstp_makes_it_quiet(stage: Stage) -> None:
    """S-11: after TSTP what runs is finished, nothing new is started, and the process lives until TERM."""
    daemon = stage.daemon()
    stage.push("a", "wait")
    stage.await_told("begin", id="a")
    daemon.send(signal.SIGTSTP)
    stage.await_told("on_quiet")
    stage.push("b")
    stage.release("a")
    stage.await_told("end", id="a")
    other = stage.daemon()

    (begun,) = stage.await_told("begin", id="b")
    assert other.pid == begun["pid"]
    assert daemon.process.poll() is None
    daemon.send(signal.SIGTERM)
    assert 0 == daemon.exit_code()


def test_l73_ttin_tells_what_each_thread_is_doing(stage: Stage) -> None:
    """L-73: the stacks of all threads stand in the log and in a file, and the daemon goes on."""
    daemon = stage.daemon("--data-dir", str(stage.folder))
    stage.push("a", "wait")
    stage.await_told("begin", id="a")
    daemon.send(signal.SIGTTIN)
    path = stage.folder / "lowkiq_ttin.txt"
    traces = eventually(lambda: path.exists() and "MainThread" in path.read_text() and path.read_text())

    assert "telling.py" in str(traces)
    assert "in wait" in str(traces)
    assert "Thread lowkiq-listener" in str(traces)
    eventually(lambda: "in wait" in daemon.log)
    stage.release("a")
    stage.await_told("end", id="a")


def test_c18_the_hooks_of_a_life_are_called_in_order_and_may_fail(stage: Stage) -> None:
    """C-18, SK-4: startup, heartbeat, quiet, shutdown and exit come once each in this order, and harm nothing.

    A-8, A-9: of several for an event, those of an end are called in the reverse of their order.
    """
    daemon = stage.daemon()
    stage.push("a")
    stage.await_told("end", id="a")
    daemon.send(signal.SIGTSTP)
    stage.await_told("on_quiet")
    daemon.send(signal.SIGTSTP)
    daemon.send(signal.SIGTERM)

    assert 0 == daemon.exit_code()
    hooks = [one["what"] for one in stage.told() if one["what"] in HOOKS]
    assert HOOKS == list(dict.fromkeys(hooks))
    assert 1 == hooks.count("on_quiet")
    assert HOOKS == [name for name in HOOKS if f"RuntimeError: {name} is broken" in daemon.log]


def test_l53_on_server_init_comes_before_the_first_job(stage: Stage) -> None:
    """L-53: the hook for the process's start has run when a handler begins."""
    stage.push("a")
    stage.daemon()
    stage.await_told("end", id="a")

    assert "on_server_init" == stage.told()[0]["what"]


def test_c18_a_hook_that_wants_to_end_the_process_does_not(stage: Stage) -> None:
    """C-18: SystemExit from a hook ends nothing but the hook."""
    stage.variables["STAGE_ENDED_BY"] = "on_heartbeat"
    daemon = stage.daemon()
    stage.await_told("on_heartbeat")
    stage.push("a")
    stage.await_told("end", id="a")
    daemon.send(signal.SIGTERM)

    assert 0 == daemon.exit_code()
    assert "on_heartbeat wants to end" in daemon.log


def test_a_daemon_that_breaks_off_ends_its_process(stage: Stage) -> None:
    """C-15: the thread that watches over the others is watched by the process: it does not live on idly."""
    stage.variables["STAGE_ENDED_BY"] = "on_server_init"
    daemon = stage.daemon()

    assert 1 == daemon.exit_code()
    assert "CRITICAL the daemon's own thread broke off" in daemon.log
