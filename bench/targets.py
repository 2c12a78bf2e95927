"""What is to be reached, and whether it was. The rates are for the machine of docs/benchmarks.md."""

from collections.abc import Iterator
from statistics import median

from bench.cases import BASE, MANY_SHARDS, MORE_JOBS
from bench.table import Results, goals, ratio
from lowkiq_lambda.cli.output import whole

_BESIDE_BASE = (MANY_SHARDS, MORE_JOBS)


def targets(results: Results) -> str:
    """One line for each target whose cases were measured."""
    return goals(_all(results))


def _all(results: Results) -> Iterator[tuple[str, str, str, bool]]:
    if base := results.of(BASE):
        rate = median(sample.drain for sample in base)
        beside_floor = median(sample.drain / sample.floor for sample in base)
        taken = median(sample.bytes_per_job for sample in base)
        yield "drain, batch_size 100", "90,000/s", f"{whole(rate)}/s", rate >= 90_000
        yield "the same beside its floor", "0.50", ratio(beside_floor), beside_floor >= 0.5
        yield "bytes a job beyond id and payload", "at most 130", whole(taken), taken <= 130
    if single := results.of("batch 1"):
        rate = median(sample.drain for sample in single)
        yield "drain, batch_size 1", "25,000/s", f"{whole(rate)}/s", rate >= 25_000
    if usual := base or single:
        rate = median(sample.enqueue for sample in usual)
        yield "enqueue", "60,000/s", f"{whole(rate)}/s", rate >= 60_000
    if idle := results.latency(BASE):
        for what, own, bare in (("medians", idle[0], idle[2]), ("99th percentiles", idle[1], idle[3])):
            yield f"idle latency beside LPUSH to BRPOP, {what}", "at most 3.00", ratio(own / bare), own / bare <= 3
    if many := results.of(MANY_SHARDS):
        own = median(sample.drain / sample.floor for sample in many)
        yield f"{MANY_SHARDS} beside their own floor", "0.80", ratio(own), own >= 0.8
    for name in _BESIDE_BASE:
        if found := results.ratios(name, BASE):
            yield f"drain with {name}, beside {BASE}", "0.80", ratio(median(found)), median(found) >= 0.8
