"""Free ports outside of the range that the system gives to clients.

A client that calls a port of that range while nobody listens there can by chance be given the same port for
its own end, and is then connected to itself: the server that comes back finds its port taken.
"""

import os
import random
import socket

HOST = "127.0.0.1"

_LOWEST = 11_000
_HIGHEST = 31_999
# Each process of tests has ports of its own: a Sentinel takes a server for the killed one whose port it was given.
_PROCESSES = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_PROCESS = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))


def free_port() -> int:
    """A port of loopback that nobody has now; somebody may take it before its user does."""
    while True:
        port = random.randrange(_LOWEST + _PROCESS, _HIGHEST + 1, _PROCESSES)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port
