"""A program that pushes while its server is frozen; it prints what it learns, a line each.

Arguments: the URL of a server, a queue's name, the way in which it ends: by itself, or by a child that it forks; and
for how many seconds it flushes then.
"""

import os
import sys
from typing import Any

from lowkiq_lambda import Buffer, Config, Lowkiq
from lowkiq_lambda.push import redelivery


def say(*words: object) -> None:
    """Print it at once: a child shares no buffer with its parent."""
    os.write(1, " ".join(map(str, words)).encode() + b"\n")


def tell_lost(_worker: object, jobs: list[dict[str, Any]]) -> None:
    """Which jobs were given up."""
    say("lost", [job["payload"] for job in jobs])


def main(url: str, queue_name: str, ending: str, seconds: str) -> None:
    """Keep three jobs, and end when told; then a process of a user flushes for five seconds."""
    vars(redelivery)["LAST_FLUSH"] = float(seconds)
    app = Lowkiq(Config(redis_url=url, redis_timeout=0.3, when_unavailable=Buffer(on_lost=tell_lost)))
    worker = app.worker(queue_name=queue_name, shards_count=1)(print)
    for number in range(3):
        worker.push_many([{"id": "a", "payload": number}])
    say("kept")
    sys.stdin.readline()
    if ending == "fork":
        child = os.fork()
        if child == 0:
            say("child", app.flush(0))
            (pushed,) = worker.push_many([{"id": "b", "payload": "child"}])
            say("child", pushed.buffered)
            # As a program ends, with all that it does at its end.
            sys.exit()
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
