"""What a peer is: a library that pushes and works off the same jobs as ours."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

THREADS: Final = 5


@dataclass(frozen=True, slots=True)
class Peer:
    """`push` and `work` are called with the server's URL and the number of jobs, and return seconds.

    `jobs`: as many times the usual number, for a peer that is done with it too soon to be measured.
    """

    name: str
    push: Callable[[str, int], float]
    work: Callable[[str, int], float]
    jobs: int = 1
