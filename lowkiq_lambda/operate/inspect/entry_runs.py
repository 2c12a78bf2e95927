"""The runs of one stored entry."""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

import msgspec

from lowkiq_lambda.base.fingerprint import first_line
from lowkiq_lambda.operate.inspect.run_filter import RunFilter
from lowkiq_lambda.operate.inspect.run_reader import StoredEntry
from lowkiq_lambda.operate.inspect.stored_errors import StoredErrors
from lowkiq_lambda.store.shard.run_entries import TICKS, RunColumns, numbers_of, unpacked
from lowkiq_lambda.views.runs import KeptRun

ERROR_SHOWN: Final = 120
"""Characters of an error's first line."""
_left_runs = msgspec.msgpack.Decoder(list[str]).decode


def runs_in(entry: StoredEntry, errors: StoredErrors, run_filter: RunFilter) -> Sequence[tuple[int, KeptRun]]:
    """Those of its runs that the filter selects, each with its place in the entry, the last first.

    Raises ValueError for an entry that cannot be read.
    """
    runs = _recovered(entry, run_filter) if entry.is_recovery else _ended(entry, errors, run_filter)
    try:
        return [*runs][::-1]
    except IndexError as error:
        raise ValueError("the entry refers to words or errors that it has not") from error


def payloads_in(entry: StoredEntry, places: Sequence[int]) -> Iterator[list[bytes]]:
    """The kept payloads of these runs, each as its score and its bytes. Raises ValueError as `runs_in`."""
    columns = unpacked(entry.packed)
    ends = [0, *accumulate(numbers_of(columns.counts, "I", len(columns.ids), 1))]
    for place in places:
        yield columns.payloads[ends[place] : ends[place + 1]]


def _ended(entry: StoredEntry, errors: StoredErrors, run_filter: RunFilter) -> Iterator[tuple[int, KeptRun]]:
    columns = unpacked(entry.packed)
    ids, only = columns.ids, run_filter.place_of(columns.ids)
    if not run_filter.has_process(columns.owner, columns.release) or (run_filter.id is not None and only is None):
        return
    texts = _Texts(columns, errors)
    words = ["done", *columns.words]
    outcomes = numbers_of(columns.outcomes, "B", len(ids), 0)
    counts, digests = numbers_of(columns.counts, "I", len(ids), 1), numbers_of(columns.digests, "I", len(ids), 0)
    failed = numbers_of(columns.failed, "H", len(ids), 0)
    for began, took, size, start, end in _batches(columns):
        if not run_filter.has_time(began, took):
            continue
        for place in range(start, end):
            outcome, error = words[outcomes[place]], failed[place]
            if only not in {None, place} or not run_filter.has_outcome(outcome):
                continue
            if run_filter.fingerprint is not None and (not error or texts.fingerprint(error) != run_filter.fingerprint):
                continue
            yield (
                place,
                KeptRun(
                    id=ids[place],
                    at=began,
                    took=took,
                    outcome=outcome,
                    payloads=counts[place],
                    digest=f"{digests[place]:08x}",
                    error=texts.line(error) if error else None,
                    fingerprint=texts.fingerprint(error) if error else None,
                    holder=columns.owner,
                    release=columns.release or None,
                    token=columns.token,
                    batch=size,
                    shard=entry.position.shard,
                    shards_count=entry.position.shards_count,
                    entry=str(entry.position._replace(place=place)),
                    has_payloads=bool(columns.payloads),
                ),
            )


def _batches(columns: RunColumns) -> Iterator[tuple[float, float, int, int, int]]:
    """When each batch began and how long it took, its size, and the places of its first run and behind its last."""
    count = len(columns.took) // 4
    began, took = numbers_of(columns.began, "I", count, 0), numbers_of(columns.took, "I", count, 0)
    sizes = numbers_of(columns.sizes, "H", count, 1)
    ends = [*accumulate(sizes)]
    if (ends[-1] if ends else 0) != len(columns.ids):
        raise ValueError("the batches have other numbers of runs")
    for i, size in enumerate(numbers_of(columns.batches, "H", count, 1)):
        yield columns.base + began[i] / TICKS, took[i] / TICKS, size, ends[i] - sizes[i], ends[i]


class _Texts:
    """The errors of an entry, by their positions from 1."""

    def __init__(self, columns: RunColumns, errors: StoredErrors) -> None:
        self._errors = columns.errors
        self._read = errors.text
        self._lines: dict[int, str] = {}

    def line(self, position: int) -> str:
        """The beginning of the first line."""
        if position not in self._lines:
            self._lines[position] = first_line(self._read(self._errors[position - 1][1]))[:ERROR_SHOWN]
        return self._lines[position]

    def fingerprint(self, position: int) -> str:
        """The fingerprint, in hex digits."""
        return self._errors[position - 1][0].hex()


def _recovered(entry: StoredEntry, run_filter: RunFilter) -> Iterator[tuple[int, KeptRun]]:
    """The runs that a dead holder left."""
    owner, token, _, *pairs = _left_runs(entry.packed)
    at = entry.position.ms / 1000
    if not (run_filter.has_process(owner, "") and run_filter.has_time(at, None)) or run_filter.fingerprint is not None:
        return
    only = run_filter.place_of(pairs[::2])
    for place, (job_id, outcome) in enumerate(zip(pairs[::2], pairs[1::2], strict=True)):
        if (run_filter.id is not None and only != place) or not run_filter.has_outcome(outcome):
            continue
        yield (
            place,
            KeptRun(
                id=job_id,
                at=at,
                took=None,
                outcome=outcome,
                payloads=0,
                digest="",
                error=None,
                fingerprint=None,
                holder=owner,
                release=None,
                token=int(token) if token.isdigit() else 0,
                batch=len(pairs) // 2,
                shard=entry.position.shard,
                shards_count=entry.position.shards_count,
                entry=str(entry.position._replace(place=place)),
                has_payloads=False,
            ),
        )
