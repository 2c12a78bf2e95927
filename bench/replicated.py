"""What `wait_replicas=1` costs: pushes and drains with and without it, by turns, on a primary with a replica.

`python -m bench.replicated`. All is on this machine, so a wait takes no way through a network: add a round trip between
your primary and its replica. A number is the median, with the quartiles; a ratio is that of medians.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from statistics import median, quantiles
from typing import Any, Final

from bench.here import new_queue
from bench.table import MILLISECONDS, ratio
from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.cli.output import markdown
from tests.kit.apps import closing_app
from tests.kit.servers import SentinelSetup

PUSH, PUSHES, DRAIN, ONE_BY_ONE = (
    "push",
    "push_many of 1,000",
    "drain of these, in two calls",
    "drain of 20, one by one",
)
_MANY: Final = 1_000
_FEW: Final = 20

Act = Callable[[], object]
Laps = Mapping[tuple[str, int], Sequence[float]]


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser("python -m bench.replicated", description=__doc__)
    parser.add_argument("--repeats", type=int, default=200, metavar="N", help="how often all is measured (200)")
    options = parser.parse_args(arguments)
    with SentinelSetup() as setup, _acts(setup.url, 0) as without, _acts(setup.url, 1) as waiting:
        print(table(_measure({0: without, 1: waiting}, options.repeats)))


def _measure(acts: Mapping[int, Mapping[str, Act]], repeats: int) -> Laps:
    """Seconds of each act; which app comes first changes, as the second finds the machine warm."""
    laps: dict[tuple[str, int], list[float]] = {}
    for repeat in range(repeats):
        for kind in acts[0]:
            for number in (0, 1) if repeat % 2 else (1, 0):
                began_at = time.perf_counter()
                acts[number][kind]()
                laps.setdefault((kind, number), []).append(time.perf_counter() - began_at)
    return laps


@contextmanager
def _acts(url: str, wait_replicas: int) -> Iterator[Mapping[str, Act]]:
    """What an app does, in this order; the name of what is not measured begins with a blank."""
    with (
        closing_app(Lowkiq(Config(redis_url=url, wait_replicas=wait_replicas))) as fast,
        closing_app(Lowkiq(Config(redis_url=url, wait_replicas=wait_replicas, settle_interval=0))) as slow,
    ):
        many = fast.worker(queue_name=new_queue("replicated"), shards_count=1, batch_size=100)(_nothing)
        few = slow.worker(queue_name=new_queue("replicated"), shards_count=1)(_nothing)
        ids = count()
        acts: dict[str, Act] = {
            PUSH: lambda: many.push(next(ids)),
            PUSHES: lambda: many.push_many(_jobs(ids, _MANY)),
            DRAIN: fast.drain,
            " push of a few": lambda: few.push_many(_jobs(ids, _FEW)),
            ONE_BY_ONE: slow.drain,
        }
        for act in acts.values():
            act()
        yield acts


def _jobs(ids: Iterator[int], number: int) -> list[dict[str, Any]]:
    return [{"id": next(ids)} for _ in range(number)]


def _nothing(_batch: object) -> None:
    pass


def table(laps: Laps) -> str:
    """A line for each kind of act."""
    head = ("milliseconds", "wait_replicas=0", "wait_replicas=1", "ratio")
    rows = [
        (
            kind,
            _spread(laps[kind, 0]),
            _spread(laps[kind, 1]),
            ratio(median(laps[kind, 1]) / median(laps[kind, 0])),
        )
        for kind in (PUSH, PUSHES, DRAIN, ONE_BY_ONE)
    ]
    return markdown(head, rows)


def _spread(seconds: Sequence[float]) -> str:
    low, middle, high = (ratio(MILLISECONDS * each) for each in quantiles(seconds, n=4, method="inclusive"))
    return f"{middle} ({low} to {high})"


if __name__ == "__main__":
    main()
