"""How long the dashboard's first page takes: 50 queues of 24 shards, with a million jobs.

`python -m bench.overview`. The queues have what queues have: jobs that wait, in some of them retries, ids in the
morgue and in flight, and twenty minutes of history. One process asks the dashboard's ASGI app, one request after the
other, as a browser does that has signed in; nothing is kept from one request to the next but connections, scripts and
compiled templates. Times are the clock's, from the request to the last byte of the packed answer, with Redis on the
same machine; beside them what both processes had of the processor, a request. Progress goes to stderr.

With `--away 0.1` it asks for each page once, behind a proxy that holds back what is sent to Redis for so many seconds,
as if it were far away: a page takes as many of these as it takes round trips.
"""

import argparse
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import mean, median, quantiles
from typing import Any, Final
from unittest.mock import patch

import redis

from bench.floor import leave_in_flight
from bench.table import MILLISECONDS, ratio
from bench.usage import processor_time
from lowkiq_lambda import Batch, Config, Lowkiq
from lowkiq_lambda.cli.output import markdown, whole
from lowkiq_lambda.dashboard import Account, Auth, dashboard
from lowkiq_lambda.declare.pushable import FunctionWorker
from lowkiq_lambda.store.server.pipelines import send_each
from lowkiq_lambda.store.shard.history import BUCKETS, SECONDS, Slot, commands
from tests.kit.servers import FarProxy, Server
from tests.kit.web import Answer, Browser

TARGET: Final = 50.0
"""Milliseconds in which an answer is to be there, by the median."""
SHARDS: Final = 24
PUSHED_AT_ONCE: Final = 2_000
PAST: Final = 1_200
"""Seconds of history."""
WARM_UP: Final = 3

_SHORTEST_LAG: Final = 0.001
_LONGEST: Final = 1.0
"""Seconds that each page may take with a server that is 0.1 s away."""
_KEPT: Final = 16.0
"""Seconds after which no page has anything of an earlier look."""
_QUEUE: Final = "queue=SyncOrders0"
_PAGES: Final[Mapping[str, str]] = {
    "overview": "/",
    "errors": "/errors",
    "tasks": "/tasks",
    "schedules": "/schedules",
    "processes": "/processes",
    "activity": "/activity",
    "search": "/search?q=1",
    "a late queue": f"/queue?{_QUEUE}",
    **{f"a queue's {page}": f"/{page}?{_QUEUE}" for page in ("waiting", "processing", "morgue", "shards", "limits")},
    "a job": f"/job?{_QUEUE}&id=1",
    "`/metrics`": "/metrics",
}

_PASSWORD: Final = "of the benchmark"  # noqa: S105 - of a server that lives for minutes


@dataclass(frozen=True, slots=True)
class Sample:
    """What one request took: seconds by the clock, and of the processor here; and the bytes of its answer."""

    seconds: float
    processor: float
    size: int


@dataclass(frozen=True, slots=True)
class Looks:
    """The requests of one kind; means of what a request took of the server's processor, and of round trips."""

    name: str
    samples: Sequence[Sample]
    server: float
    round_trips: float


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(
        "python -m bench.overview", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=1_000_000, metavar="N", help="jobs that wait (1,000,000)")
    parser.add_argument("--queues", type=int, default=50, metavar="N", help=f"queues of {SHARDS} shards (50)")
    parser.add_argument("--repeats", type=int, default=100, metavar="N", help="requests of each kind (100)")
    parser.add_argument("--away", type=float, default=0.0, metavar="S", help="seconds to the server: of each page (0)")
    options = parser.parse_args(arguments)
    if options.away:
        print(far(options.jobs, options.queues, options.away))
    else:
        print(table(options.jobs, options.queues, options.repeats))


def table(jobs: int, queues: int, repeats: int) -> str:
    """One line for each kind of request, and whether it is quick enough."""
    head = ("dashboard", "median ms", "p95 ms", "processor ms", "server's ms", "round trips", "KB", "to reach", "")
    with Server() as server:
        app = fill(server, jobs, queues)
        lines = [_line(looks) for looks in measure(server.admin, app, repeats)]
        app.core.backend.client.close()
    return markdown(head, lines)


def far(jobs: int, queues: int, away: float) -> str:
    """One line for each page: how long it takes with a server that is so many seconds away, and its round trips."""
    lines = []
    with Server() as server, FarProxy(server) as proxy:
        app = fill(server, jobs, queues, proxy.url)
        auth = Auth([Account("operator", _PASSWORD, "operator")])
        # All queues are late, so that each page has the most to tell.
        with patch.dict(os.environ, {"LOWKIQ_DASHBOARD_LAG_LIMIT": str(_SHORTEST_LAG)}):
            browser = Browser(dashboard(app, auth=auth))
        browser.come_in(auth, _PASSWORD, time.time())
        for name, path in _PAGES.items():
            browser.get(path)
            proxy.away = away
            # What is read for a while is read anew.
            time.sleep(_KEPT)
            with _round_trips() as sent:
                sample = _sample(partial(browser.get, path))
            proxy.away = 0.0
            print(f"{name}: {sample.seconds:.2f} s", file=sys.stderr, flush=True)
            lines.append(
                [name, f"{sample.seconds:.2f}", str(len(sent)), "reached" if sample.seconds < 1 else "**short**"]
            )
        app.core.backend.client.close()
    return markdown(("page", "seconds", "round trips", f"under {_LONGEST:g}"), lines)


def fill(server: Server, jobs: int, queues: int, url: str = "") -> Lowkiq:
    """An app with so many queues, and so many jobs that wait in them, on an empty server; `url`: its way there."""
    logging.getLogger("lowkiq_lambda").setLevel(logging.ERROR)
    app = Lowkiq(Config(redis_url=url or server.url))
    workers = [
        app.worker(queue_name=f"SyncOrders{number}", shards_count=SHARDS, batch_size=100)(_fail_some)
        for number in range(queues)
    ]
    _leave_dead_and_retries(app, workers)
    _push(workers, jobs)
    _claim_some(app, workers, server.admin)
    _write_history(app, workers)
    return app


def measure(admin: redis.Redis, app: Lowkiq, repeats: int) -> Iterator[Looks]:
    """Ask for each kind of answer, so often."""
    auth = Auth([Account("operator", _PASSWORD, "operator")])
    browser = Browser(dashboard(app, auth=auth))
    browser.come_in(auth, _PASSWORD, time.time())
    yield _looks("overview", browser.get, repeats, admin)
    yield _looks("overview, its refresh", browser.part, repeats, admin)
    yield _looks("`/api/v1/stats`", lambda: browser.get("/api/v1/stats"), repeats, admin)
    yield _looks("`/metrics`", lambda: browser.get("/metrics"), repeats, admin)


def _looks(name: str, ask: Callable[[], Answer], repeats: int, admin: redis.Redis) -> Looks:
    for _ in range(WARM_UP):
        ask()
    before = processor_time(admin)
    with _round_trips() as sent:
        samples = [_sample(ask) for _ in range(repeats)]
    looks = Looks(name, samples, (processor_time(admin) - before) / repeats, len(sent) / repeats)
    print(f"{name}: {MILLISECONDS * median(one.seconds for one in samples):.1f} ms", file=sys.stderr, flush=True)
    return looks


def _sample(ask: Callable[[], Answer]) -> Sample:
    began_at, used = time.perf_counter(), time.process_time()
    answer = ask()
    seconds, processor = time.perf_counter() - began_at, time.process_time() - used
    if answer.status != 200:
        raise RuntimeError(f"the dashboard answered {answer.status}: {answer.words}")
    return Sample(seconds, processor, len(answer.body))


@contextmanager
def _round_trips() -> Iterator[list[object]]:
    """One entry for each time that something is sent, in this process."""
    sent: list[object] = []
    send: Any = redis.Connection.send_packed_command

    def noting(connection: redis.Connection, *args: Any, **kwargs: Any) -> object:  # noqa: ANN401 - passed on
        sent.append(connection)
        return send(connection, *args, **kwargs)

    with patch.object(redis.Connection, "send_packed_command", noting):
        yield sent


def _fail_some(batch: Batch) -> None:
    for job_id in batch:
        if job_id.endswith("0"):
            batch.fail(job_id, ValueError("the benchmark wants it so"))


def _leave_dead_and_retries(app: Lowkiq, workers: Sequence[FunctionWorker]) -> None:
    for word, some in (("dead", workers[::5]), ("retried", workers[::4])):
        for worker in some:
            worker.push_many([{"id": f"{word} {number}", "payload": number} for number in range(20 * SHARDS)])
        app.drain()
        for worker in some if word == "dead" else ():
            app.operate(worker).waiting.kill(everything=True)


def _push(workers: Sequence[FunctionWorker], jobs: int) -> None:
    each, pushed = jobs // len(workers), 0
    for worker in workers:
        for start in range(0, each, PUSHED_AT_ONCE):
            numbers = range(start, min(start + PUSHED_AT_ONCE, each))
            worker.push_many([{"id": number, "payload": str(number)} for number in numbers])
            pushed += len(numbers)
        print(f"pushed {pushed:,} of {jobs:,} jobs", file=sys.stderr, flush=True)


def _claim_some(app: Lowkiq, workers: Sequence[FunctionWorker], admin: redis.Redis) -> None:
    for worker in workers:
        leave_in_flight(admin, app.core.queues.agreed(worker).shards[::6], claim_size=100)


def _write_history(app: Lowkiq, workers: Sequence[FunctionWorker]) -> None:
    now = time.time()
    slots = range(int((now - PAST) // SECONDS.step), int(now // SECONDS.step))
    spread = Counter({bucket: bucket + 1 for bucket in range(BUCKETS // 2)})
    for worker in workers:
        name = app.core.queues.agreed(worker).worker.queue_name
        done = {(name, slot): Slot(slot % 900, slot % 7, spread, spread) for slot in slots}
        send_each(app.core.backend.client, [*commands(done)])


def _line(looks: Looks) -> list[str]:
    times = [MILLISECONDS * sample.seconds for sample in looks.samples]
    middle = median(times)
    return [
        looks.name,
        ratio(middle),
        ratio(quantiles(times, n=20, method="inclusive")[-1]) if len(times) > 1 else "",
        ratio(MILLISECONDS * mean(sample.processor for sample in looks.samples)),
        ratio(MILLISECONDS * looks.server),
        ratio(looks.round_trips),
        whole(mean(sample.size for sample in looks.samples) / 1_000),
        f"under {whole(TARGET)}",
        "reached" if middle < TARGET else "**short**",
    ]


if __name__ == "__main__":
    main()
