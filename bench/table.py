"""Samples to markdown: medians with their spread, ratios within a repeat."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from bench.cases import BASE, Sample
from lowkiq_lambda.cli.output import markdown, whole

MILLISECONDS = 1_000.0

_HEAD = (
    "case",
    "jobs",
    "enqueue/s",
    "client µs",
    "server µs",
    "drain/s",
    "client µs",
    "server µs",
    f"x {BASE}",
    "floor/s",
    "drain : floor",
    "jobs a call",
    "bytes/job",
    "reads/job",
    "commands/job",
    "idle p50 ms",
    "idle p99 ms",
    "LPUSH to BRPOP p50 ms",
    "its p99 ms",
)


@dataclass(frozen=True, slots=True)
class Results:
    """All samples; a repeat's sample of one case stands at the same place as its sample of another."""

    samples: Sequence[Sample]

    def names(self) -> list[str]:
        """The cases, in the order in which they were measured."""
        return list(dict.fromkeys(sample.case for sample in self.samples))

    def of(self, case: str) -> list[Sample]:
        """One sample for each repeat."""
        return [sample for sample in self.samples if sample.case == case]

    def ratios(self, case: str, base: str) -> list[float]:
        """How fast the case was drained, against another case of the same repeat."""
        return [one.drain / other.drain for one, other in zip(self.of(case), self.of(base), strict=False)]

    def latency(self, case: str) -> tuple[float, float, float, float] | None:
        """Of all repeats together, in milliseconds: the median and the 99th percentile, and those of a bare list."""
        found = [MILLISECONDS * seconds for sample in self.of(case) for seconds in sample.latencies]
        bare = [MILLISECONDS * seconds for sample in self.of(case) for seconds in sample.handovers]
        if len(found) < 2:
            return None
        return median(found), _p99(found), median(bare), _p99(bare)


def table(results: Results) -> str:
    """One line for each case."""
    return markdown(_HEAD, (_line(results, name) for name in results.names()))


def spread(values: Sequence[float], text: Callable[[float], str]) -> str:
    """The median, and where there are several values the smallest and the largest."""
    if not values:
        return ""
    middle = text(median(values))
    return middle if len(values) == 1 else f"{middle} ({text(min(values))} to {text(max(values))})"


def goals(lines: Iterable[tuple[str, str, str, bool]]) -> str:
    """A line for each target: its name, what is to be reached, what was measured, and whether that is enough."""
    told = [(what, goal, found, "reached" if reached else "**short**") for what, goal, found, reached in lines]
    return markdown(("target", "to reach", "measured", ""), told)


def ratio(value: float) -> str:
    """With two decimals."""
    return f"{value:.2f}"


def _p99(values: Sequence[float]) -> float:
    return quantiles(values, n=100, method="inclusive")[98]


def _line(results: Results, name: str) -> list[str]:
    samples, idle = results.of(name), results.latency(name)
    return [
        name,
        whole(samples[0].jobs),
        spread([sample.enqueue for sample in samples], whole),
        spread([sample.push_client for sample in samples], ratio),
        spread([sample.push_server for sample in samples], ratio),
        spread([sample.drain for sample in samples], whole),
        spread([sample.drain_client for sample in samples], ratio),
        spread([sample.drain_server for sample in samples], ratio),
        spread(results.ratios(name, BASE), ratio),
        spread([sample.floor for sample in samples], whole),
        spread([sample.drain / sample.floor for sample in samples], ratio),
        whole(median(sample.claim_size for sample in samples)),
        whole(median(sample.bytes_per_job for sample in samples)),
        f"{median(sample.reads for sample in samples):.4f}",
        f"{median(sample.commands for sample in samples):.3f}",
        *(ratio(value) for value in idle or ()),
        *(() if idle else ("", "", "", "")),
    ]
