"""Samples of peers to markdown: medians with their spread, ratios within a repeat."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from bench.peers.catalog import Settings, label
from bench.peers.running import PeerSample, Took
from bench.table import ratio, spread
from lowkiq_lambda.cli.output import markdown, whole

_DRAINED = ("drained/s", "worker µs", "server µs", "x ours")
_BLANK = ("blank jobs", "best settings", "pushed/s", "client µs", "server µs", *_DRAINED)


@dataclass(slots=True)
class Row:
    """A peer with its best settings, and a sample for each repeat that it was done with."""

    name: str
    settings: Settings
    jobs: int
    samples: dict[int, PeerSample] = field(default_factory=dict)


def blank_table(rows: Sequence[Row]) -> str:
    """Pushes and drains of jobs that do nothing; the first row is what the rates are compared with."""
    return markdown(_BLANK, [[row.name, label(row.settings), *_pushed(row), *_drained(row, rows[0])] for row in rows])


def waiting_table(rows: Sequence[Row], wait: float) -> str:
    """Drains of handlers that wait."""
    head = (f"handlers that wait {wait * 1_000:.0f} ms", "best settings", *_DRAINED)
    return markdown(head, [[row.name, label(row.settings), *_drained(row, rows[0])] for row in rows])


def summary(blank: Sequence[Row], waiting: Sequence[Row]) -> str:
    """Medians alone, a line for each peer; a job's processor time is the program's and the server's together."""
    names = dict.fromkeys(row.name for row in (*blank, *waiting))
    rows = [
        [
            name,
            *_medians(blank, name, _pushed_side),
            *_medians(blank, name, _drained_side),
            *_medians(waiting, name, _drained_side),
        ]
        for name in names
    ]
    return markdown(("", "pushed/s", "µs a job", "drained/s", "µs a job", "5 ms: drained/s", "µs a job"), rows)


def _pushed_side(sample: PeerSample) -> Took:
    return sample.pushed


def _drained_side(sample: PeerSample) -> Took:
    return sample.drained


def _medians(rows: Sequence[Row], name: str, side: Callable[[PeerSample], Took]) -> tuple[str, str]:
    for row in rows:
        if row.name == name:
            took = [side(sample) for sample in row.samples.values()]
            return whole(median(one.rate for one in took)), _micro(median(one.own + one.server for one in took))
    return "", ""


def _pushed(row: Row) -> list[str]:
    return [
        _cell(row, lambda sample: sample.pushed.rate, whole),
        _cell(row, lambda sample: sample.pushed.own, _micro),
        _cell(row, lambda sample: sample.pushed.server, _micro),
    ]


def _drained(row: Row, base: Row) -> list[str]:
    beside = [one.drained.rate / base.samples[turn].drained.rate for turn, one in _shared(row.samples, base.samples)]
    return [
        _cell(row, lambda sample: sample.drained.rate, whole),
        _cell(row, lambda sample: sample.drained.own, _micro),
        _cell(row, lambda sample: sample.drained.server, _micro),
        spread(beside, _ratio),
    ]


def _shared(samples: Mapping[int, PeerSample], base: Mapping[int, PeerSample]) -> list[tuple[int, PeerSample]]:
    return [(turn, sample) for turn, sample in samples.items() if turn in base]


def _cell(row: Row, value: Callable[[PeerSample], float], text: Callable[[float], str]) -> str:
    return spread([value(sample) for sample in row.samples.values()], text)


def _micro(value: float) -> str:
    return f"{value:.1f}" if value < 100 else whole(value)


def _ratio(value: float) -> str:
    return ratio(value) if value >= 0.1 else f"{value:.4f}"
