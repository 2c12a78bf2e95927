"""The free connections of a pool, and those that wait for one."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue

import pytest
from redis.exceptions import MaxConnectionsError

from lowkiq_lambda.store.server.pool import FreeConnections
from tests.kit.waiting import eventually


@contextmanager
def waiting(free: FreeConnections, *names: str) -> Iterator[SimpleQueue[str]]:
    """Threads that wait, in this order, and give back what they get; their names, in the order in which they got it."""
    served: SimpleQueue[str] = SimpleQueue()

    def wait(name: str) -> None:
        connection = free.get(timeout=60)
        served.put(name)
        free.put_nowait(connection)

    threads = [threading.Thread(target=wait, args=(name,)) for name in names]
    for number, thread in enumerate(threads, 1):
        thread.start()
        eventually(waits(free, number))
    yield served
    for thread in threads:
        thread.join(60)


def waits(free: FreeConnections, number: int) -> Callable[[], bool]:
    """Asks whether so many wait."""
    return lambda: len(free._waiting) == number


def interrupt(_number: int, _frame: object) -> None:
    """As Ctrl-C does."""
    raise KeyboardInterrupt


def wait_for_an_alarm(free: FreeConnections) -> None:
    """Wait for a connection, and for the alarm that comes first."""
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    free.get(timeout=60)


def test_l51_those_that_wait_come_before_who_comes_back_at_once() -> None:
    """L-51: a thread that gives its connection back and wants it again goes behind those that waited meanwhile."""
    free = FreeConnections(1)
    with waiting(free, "first", "second", "third") as served:
        free.put_nowait("connection")
        assert "connection" == free.get(timeout=60)
        served.put("again")
        free.put_nowait("connection")
    assert ["first", "second", "third", "again"] == [served.get() for _ in range(4)]


def test_e43_who_waited_in_vain_gets_nothing_later() -> None:
    """E-43: a connection that comes after that is free for the next one."""
    free = FreeConnections(1)
    with pytest.raises(MaxConnectionsError):
        free.get(timeout=0.01)
    free.put_nowait("connection")

    assert "connection" == free.get(timeout=60)


def test_who_is_interrupted_while_it_waits_gets_nothing_later() -> None:
    """A Ctrl-C ends the wait, and a connection that comes after that is free for the next one."""
    free = FreeConnections(1)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            wait_for_an_alarm(free)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    free.put_nowait("connection")

    assert "connection" == free.get(timeout=60)
