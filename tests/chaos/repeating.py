"""Something that happens again and again beside a test."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeating(act: Callable[[], object], pause: Callable[[], float]) -> Iterator[None]:
    """While the block lasts a thread does this, after each pause of so many seconds."""
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(pause()):
            act()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
