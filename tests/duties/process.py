"""A process of an app with one duty: runs what is due each time that it is told to, by a line; says what it did."""

import os
import signal
import sys
from collections.abc import Callable

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.duties.runner import DutyRunner

URL, QUEUE, WHAT = sys.argv[1:]


class Report:
    """Says that it has begun; what it does then is its process's choice."""

    name = "report"
    every = 3_600.0

    def run(self, _remaining: Callable[[], float]) -> None:
        """Tell it, and hang where that is asked for."""
        sys.stdout.write(f"ran {os.getpid()}\n")
        sys.stdout.flush()
        while WHAT == "hang":
            signal.pause()


app = Lowkiq(Config(redis_url=URL))
app.worker(queue_name=QUEUE, shards_count=1)(print)
app.add_duty(Report())
runner = DutyRunner(app.core, [*app.core.housekeeping.duties.values()], app.core.backend.clock)
app.operate.duties()
sys.stdout.write("ready\n")
sys.stdout.flush()
for _ in sys.stdin:
    runner.run_due(lambda: 60.0)
    sys.stdout.write("looked\n")
    sys.stdout.flush()
