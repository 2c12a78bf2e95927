"""A queue that moves again and again while it is pushed to and drained, and movers and daemons are killed."""

import random
import tempfile
from pathlib import Path
from time import monotonic
from typing import Final

from tests.chaos.moving.course import COUNTS as COURSE
from tests.chaos.moving.course import Course, Size
from tests.kit.servers import Server
from tests.proof.results import Run

MOVES: Final = 10
"""Of one run; a mover is killed in each."""
COUNTS: Final = (2, 3, 5, 8, 12)
"""Numbers of shards."""
SIZE: Final = Size(rate=300.0, ids=60, sleepers=200, kills=1)


def move_again_and_again(seed: int, size: float) -> Run:
    """From one number of shards to another one, ten times if the size is 1."""
    began, rng, moves = monotonic(), random.Random(seed), round(MOVES * size)
    with (
        tempfile.TemporaryDirectory() as folder,
        Server() as server,
        Course(server, "proof", Path(folder), SIZE, seed) as course,
    ):
        count = COURSE[0]
        for _ in range(moves):
            count = rng.choice([other for other in COUNTS if other != count])
            course.move(count)
        course.finish()
        verdict = course.judge()
        harm = {
            "moves": moves,
            "movers killed": course.movers.killed,
            "daemons killed": course.daemons.killed,
            "producers frozen": moves,
        }
    done = {"payloads": verdict.payloads, "handler runs": verdict.runs}
    return Run(seed, monotonic() - began, done, harm, verdict.words)
