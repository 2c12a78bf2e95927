"""What several payloads of an id cost, what payloads of many fields cost, and what each part of a push costs.

`python -m bench.payloads`. Payloads of an id come one round after another, as changes do, or all in one push. Times are
of the processor; what a script takes beyond the smallest one is told part by part. Progress goes to stderr.
"""

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from bench.blank import PUSHED_AT_ONCE
from bench.here import new_queue
from bench.pushing import PARTS, parts_of_a_push
from bench.table import goals, ratio, spread
from bench.usage import MICROSECONDS, processor_time, used_memory
from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.cli.output import markdown, whole
from lowkiq_lambda.store.shard.codec import dump_json
from tests.kit.servers import Server

IDS: Final = 20_000
ONE: Final = "1 payload"
MORE_FOR_TWO: Final = 1.5
"""Of a payload of an id that has two, beside one that has its id to itself."""
BYTES_OF_TWO: Final = 150.0
BESIDE_SMALLEST: Final = 2.3
_TIMEOUT: Final = 600.0


@dataclass(frozen=True, slots=True)
class PayloadLoad:
    """How many payloads an id gets, whether in one push, and how many fields a payload has; 0: a short text."""

    name: str
    payloads: int = 1
    together: bool = False
    fields: int = 0

    def pushes(self, ids: int) -> Iterator[list[Mapping[str, Any]]]:
        """Calls of push_many."""
        rounds = (
            [range(self.payloads)] if self.together else [range(number, number + 1) for number in range(self.payloads)]
        )
        for numbers in rounds:
            jobs: list[Mapping[str, Any]] = [
                {"id": f"id{k:06}", "payload": self.payload(k, number)} for k in range(ids) for number in numbers
            ]
            for start in range(0, len(jobs), PUSHED_AT_ONCE):
                yield jobs[start : start + PUSHED_AT_ONCE]

    def payload(self, of: int, number: int) -> object:
        """12 to 27 bytes, so that no length is luckily just below a step of the server's allocator; or a dict."""
        if not self.fields:
            return f"number {number:03}" + "." * ((of + number) % 16)
        return {f"field {field:03}": f"value {number + field:06}" for field in range(self.fields)}


LOADS: Final = (
    PayloadLoad(ONE),
    *(PayloadLoad(f"{count} payloads", count) for count in (2, 3, 8, 20)),
    *(PayloadLoad(f"{count} payloads in one push", count, together=True) for count in (2, 8)),
    *(PayloadLoad(f"a dict of {count} fields", fields=count) for count in (10, 100)),
)


@dataclass(frozen=True, slots=True)
class PayloadSample:
    """Microseconds of the processor for each payload, in a push and in a drain; bytes an id costs beside its own."""

    load: str
    push: float
    drain: float
    client_push: float
    client_drain: float
    own_bytes: float


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser("python -m bench.payloads", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="how often all is measured (5)")
    parser.add_argument("--ids", type=int, default=IDS, metavar="N", help=f"ids with one payload ({IDS:,})")
    options = parser.parse_args(arguments)
    print(report(options.repeats, options.ids))


def report(repeats: int, ids: int) -> str:
    """Measure, and return the tables."""
    samples: list[PayloadSample] = []
    parts: list[dict[str, float]] = []
    with Server() as server:
        for repeat in range(repeats):
            for load in LOADS:
                samples.append(measure(server, load, max(1, ids // load.payloads // (load.fields or 1))))
                print(repeat + 1, samples[-1], file=sys.stderr, flush=True)
            parts.append(parts_of_a_push(server, ids))
            print(repeat + 1, parts[-1], file=sys.stderr, flush=True)
    return "\n\n".join((table(samples), table_of_parts(parts), goals(targets(samples, parts))))


def measure(server: Server, load: PayloadLoad, ids: int) -> PayloadSample:
    """So many ids, each with its payloads, on a server whose data is thrown away."""
    admin = server.admin
    admin.flushall()
    app = Lowkiq(Config(redis_url=server.url))

    @app.worker(queue_name=new_queue("payloads"), shards_count=1, batch_size=100)
    def blank(_: object) -> None:
        pass

    blank.push_many([{"id": "first"}])
    app.drain(_TIMEOUT)
    calls = list(load.pushes(ids))
    memory, server_at, client_at = used_memory(admin), processor_time(admin), time.process_time()
    for jobs in calls:
        blank.push_many(jobs)
    pushed_by, pushed = time.process_time() - client_at, processor_time(admin) - server_at
    own = used_memory(admin) - memory - _own_bytes(calls)
    server_at, client_at = processor_time(admin), time.process_time()
    counts = app.drain(_TIMEOUT)
    # An id whose payloads two claims share is done twice.
    if counts.keys() != {"done"} or counts["done"] < ids:
        raise RuntimeError(f"not all of {ids} ids were done: {counts}")
    drained_by, drained = time.process_time() - client_at, processor_time(admin) - server_at
    each = MICROSECONDS / (ids * load.payloads)
    return PayloadSample(load.name, pushed * each, drained * each, pushed_by * each, drained_by * each, own / ids)


def _own_bytes(calls: Iterable[Iterable[Mapping[str, Any]]]) -> int:
    """Of the ids, each once, and of all payloads."""
    jobs = [job for call in calls for job in call]
    return sum(len(dump_json(job["payload"])) for job in jobs) + sum(len(name) for name in {job["id"] for job in jobs})


def table(samples: Sequence[PayloadSample]) -> str:
    """A line for each load; the ratio is that of the server's time to the one of a payload alone, in the same round."""
    rows = []
    for load in LOADS:
        found = of(samples, load.name)
        rows.append(
            [
                load.name,
                *(spread([getattr(sample, field) for sample in found], ratio) for field in ("push", "drain")),
                *(spread(beside_one(samples, load.name, field), ratio) for field in ("push", "drain")),
                *(
                    spread([getattr(sample, field) for sample in found], ratio)
                    for field in ("client_push", "client_drain")
                ),
                spread([sample.own_bytes for sample in found], whole),
            ]
        )
    return markdown(
        (
            "an id with",
            *("server, µs a payload: push", "drain", "beside 1 payload: push", "drain"),
            *("client, µs a payload: push", "drain", "bytes/id"),
        ),
        rows,
    )


def of(samples: Sequence[PayloadSample], load: str) -> list[PayloadSample]:
    """Those of a load, in the order of the rounds."""
    return [sample for sample in samples if sample.load == load]


def beside_one(samples: Sequence[PayloadSample], load: str, field: str) -> list[float]:
    """The time of each round beside that of an id with one payload."""
    pairs = zip(of(samples, load), of(samples, ONE), strict=True)
    return [getattr(sample, field) / getattr(one, field) for sample, one in pairs]


def table_of_parts(parts: Sequence[Mapping[str, float]]) -> str:
    """What a payload of a push costs the server, with each part more."""
    rows, before = [], None
    for name in PARTS:
        times = [one[name] for one in parts]
        added: list[float] = [one[name] - one[before] for one in parts] if before else []
        rows.append([name, spread(times, ratio), spread(added, ratio)])
        before = name
    return markdown(("a push that does", "server, µs a payload", "more than the line above"), rows)


def targets(
    samples: Sequence[PayloadSample], parts: Sequence[Mapping[str, float]]
) -> Iterator[tuple[str, str, str, bool]]:
    """What is to be reached: two payloads beside one, and a push beside the smallest that keeps the promises."""
    for field in ("push", "drain"):
        beside = median(beside_one(samples, "2 payloads", field))
        yield (
            f"{field} of two payloads of an id beside one",
            f"at most {MORE_FOR_TWO}",
            ratio(beside),
            beside <= MORE_FOR_TWO,
        )
    own = median(sample.own_bytes for sample in of(samples, "2 payloads"))
    yield "bytes of an id with two", f"at most {whole(BYTES_OF_TWO)}", whole(own), own <= BYTES_OF_TWO
    *_, smallest, ours = PARTS
    beside = median(one[ours] / one[smallest] for one in parts)
    yield "a push beside the smallest", f"at most {BESIDE_SMALLEST}", ratio(beside), beside <= BESIDE_SMALLEST


if __name__ == "__main__":
    main()
