"""Signals read as values, and E-99."""

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lowkiq_lambda.local.daemon import Daemon
from lowkiq_lambda.local.signals import Signals
from lowkiq_lambda.local.traces import TRACE_FILE, thread_traces, write_traces
from tests.kit.apps import MakeApp
from tests.kit.waiting import eventually
from tests.local.counting import Counting

ONE, OTHER = signal.SIGUSR1, signal.SIGUSR2


def test_signals_come_one_after_the_other() -> None:
    """Each is read once, in the order of their coming, and waited for no longer than was said."""
    with Signals([ONE, OTHER]) as signals:
        for number in (ONE, OTHER, ONE):
            os.kill(os.getpid(), number)

        assert [ONE, OTHER, ONE, None] == [signals.next(5.0 if n < 3 else 0.01) for n in range(4)]


def test_another_thread_can_wake_the_reader() -> None:
    """What is waited for may be something else than a signal."""
    with Signals([ONE]) as signals:
        threading.Timer(0.01, signals.wake).start()

        assert signals.next(10.0) is None


def test_a_signal_of_somebody_else_is_passed_over() -> None:
    """A program may have handlers of its own for other signals; they are called, and mean nothing here."""
    seen: list[int] = []
    before = signal.signal(OTHER, lambda number, _frame: seen.append(number))
    try:
        with Signals([ONE]) as signals:
            os.kill(os.getpid(), OTHER)
            os.kill(os.getpid(), ONE)

            assert ONE == signals.next(5.0)
    finally:
        signal.signal(OTHER, before)
    assert [OTHER] == seen


def test_what_was_set_before_is_set_again() -> None:
    """Behind the block the process is as it was."""
    before = signal.getsignal(ONE)
    with Signals([ONE]):
        assert before != signal.getsignal(ONE)

    assert before == signal.getsignal(ONE)
    assert -1 == signal.set_wakeup_fd(-1)


def test_e99_a_daemon_runs_in_any_thread_and_touches_no_signal(make_app: MakeApp, queue_name: str) -> None:
    """E-99: only the command line catches signals; a daemon inside another program does not."""
    app = make_app()
    counting = Counting(app, queue_name)
    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGTSTP, signal.SIGTTIN]
    before = [signal.getsignal(number) for number in numbers]

    def drain() -> list[object]:
        with Daemon(app):
            counting.worker.push_many([{"id": "a"}])
            eventually(lambda: counting.done)
            return [signal.getsignal(number) for number in numbers]

    with ThreadPoolExecutor(1) as pool:
        assert before == pool.submit(drain).result()


def test_e99_catching_signals_is_refused_outside_the_main_thread() -> None:
    """E-99: there Python has no signals, and the error says so."""

    def catch() -> None:
        with Signals([ONE]):
            pass

    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="main thread"):
        pool.submit(catch).result()


def test_l73_traces_name_each_thread() -> None:
    """L-73: a thread that waits is shown with its name and the line where it waits."""
    ready, go_on = threading.Event(), threading.Event()

    def linger() -> None:
        ready.set()
        go_on.wait()

    thread = threading.Thread(target=linger, name="lingering")
    thread.start()
    assert ready.wait(30)
    traces = thread_traces()
    go_on.set()
    thread.join()

    assert "Thread lingering" in traces
    assert "in linger" in traces
    assert "Thread MainThread" in traces


def test_l73_traces_are_for_their_owner_and_follow_no_link(tmp_path: Path) -> None:
    """L-73: others may write to a folder for temporary files; a link that they laid there is refused."""
    path = tmp_path / TRACE_FILE
    write_traces(path, "stacks")

    assert 0o600 == path.stat().st_mode & 0o777
    assert path.read_text().endswith("stacks")
    path.unlink()
    (tmp_path / TRACE_FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        write_traces(tmp_path / TRACE_FILE, "stacks")
    assert not (tmp_path / "elsewhere").exists()


def test_l73_a_second_name_of_another_file_is_not_written(tmp_path: Path) -> None:
    """L-73: where a system lets them, others give a file of this user that name, and would have it emptied."""
    settings = tmp_path / "settings"
    settings.write_text("of this user")
    os.link(settings, tmp_path / TRACE_FILE)

    with pytest.raises(PermissionError, match="has other names"):
        write_traces(tmp_path / TRACE_FILE, "stacks")

    assert "of this user" == settings.read_text()


@pytest.mark.parametrize("is_read", [False, True])
def test_l73_a_pipe_in_place_of_the_file_stops_nobody(tmp_path: Path, *, is_read: bool) -> None:
    """L-73: another user may make a pipe of that name: nothing waits for its reader, and no reader is given a thing."""
    path = tmp_path / TRACE_FILE
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK) if is_read else None
    with pytest.raises(OSError, match=r"not a file of this user|No such device"):
        write_traces(path, "stacks")
    if reader is not None:
        assert b"" == os.read(reader, 100)
        os.close(reader)
