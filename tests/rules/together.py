"""Drains of several apps at once."""

import threading

from lowkiq_lambda import Lowkiq


def in_threads(*apps: Lowkiq) -> None:
    """Drain the apps side by side until none finds anything."""
    threads = [threading.Thread(target=app.drain) for app in apps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
