"""What a replay came to: the comparison with git, and the sentences that tell it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from local.demo.history import Change, History
from local.demo.replay import Counts, Replay
from local.demo.table import Difference, differences

EXAMPLES = 10
"""How many differing files are named."""


@dataclass(frozen=True, slots=True)
class Report:
    """The end of a replay."""

    history: History
    counts: Counts
    seconds: float
    """From the first push until nothing was left to do."""
    applied: int
    repeated: int
    out_of_order: int
    missing: Sequence[Change]
    different: Sequence[Difference]

    @property
    def is_good(self) -> bool:
        """Whether the table is as git says and nothing went wrong on the way."""
        return not list(self._faults())

    @property
    def summary(self) -> str:
        """The figures, in a line."""
        counts = self.counts
        return (
            f"{len(self.history.changes):,} changes, {self.history.paths:,} files, "
            f"state {'DIFFERS' if self.different else 'equal'}, "
            f"retries {counts.retries:,}, interruptions {counts.interruptions:,}, "
            f"{self.applied / self.seconds:,.0f} jobs/s"
        )

    def explanation(self) -> Iterator[str]:
        """What the figures mean, in lines: what was found equal, or what went wrong."""
        if self.is_good:
            yield (
                f"The table holds the {len(self.history.final):,} files that git ls-tree lists for commit "
                f"{self.history.commit[:12]}."
            )
            yield (
                f"No change was lost, none ran before an older one of its file or beside another; "
                f"{self.repeated:,} ran more than once."
            )
        yield from self._faults()

    def _faults(self) -> Iterator[str]:
        if self.different:
            yield f"{len(self.different):,} files differ from git ls-tree of {self.history.commit[:12]}:"
            for file in self.different[:EXAMPLES]:
                yield f"  {_printable(file.path)}: {file.found or 'none'}, in git {file.expected or 'none'}"
            if len(self.different) > EXAMPLES:
                yield f"  and {len(self.different) - EXAMPLES:,} more"
        if self.missing:
            first = self.missing[0]
            yield (
                f"{len(self.missing):,} changes were never applied, "
                f"the first of {_printable(first.path)} in commit {first.seq:,}."
            )
        if self.out_of_order:
            yield f"{self.out_of_order:,} changes ran out of order."
        if self.counts.overlaps:
            yield f"{self.counts.overlaps:,} times a file was begun while it still ran elsewhere."


def report_on(replay: Replay, history: History, seconds: float) -> Report:
    """Compare the table with what git says, and collect what happened."""
    table = replay.table
    return Report(
        history=history,
        counts=replay.counts,
        seconds=seconds,
        applied=table.applied,
        repeated=table.repeated,
        out_of_order=table.out_of_order,
        missing=table.missing(history.changes),
        different=differences(history.final, table.files()),
    )


def _printable(path: str) -> str:
    return path if path.isprintable() else ascii(path)
