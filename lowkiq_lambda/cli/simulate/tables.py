"""The table of choices, the cheapest that keeps the target, and why the next cheaper one does not."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from lowkiq_lambda.cli.output import table
from lowkiq_lambda.cli.simulate.choices import TriedChoice
from lowkiq_lambda.operate.presentation.formatting import duration
from lowkiq_lambda.simulate.comparing import SOME, ChoiceResult
from lowkiq_lambda.simulate.times import Times

_NEARLY: Final = 1.01
_SKEWED: Final = 1.5
_BUSY: Final = 0.9
_SHARE: Final = 0.25
_WIDE: Final = 100
"""Columns of a terminal, below which each choice has two lines."""
_SCHEDULED: Final = 10.0
_ALIKE: Final = 1.01
_MINUTE: Final = 60.0
_HEAD: Final = ("choice", "lag p50", "p95", "p99", "busy", "$/month")


class ChoiceRow(NamedTuple):
    """A choice, what it brings, and what a month of it costs; None: nobody knows the price, or it was not run."""

    candidate: TriedChoice
    result: ChoiceResult | None
    dollars: float | None


class ChoiceLine(msgspec.Struct, kw_only=True):
    """A choice as JSON. Times are seconds; `low` and `high` bound p95, those of p99 that.

    `guessed`: whether the numbers hang on a guess. `was_run`: False where the time was over before; its numbers are
    null then.

    `keeps`: whether p95 is within the target; None without one. `why`: what p95 hangs on. `others_p95`: of all tenants
    but the one with most payloads. `dead`: payloads that failed for good.
    """

    choice: str
    shards: int
    concurrency: int
    batch: int
    compute: str
    p50: float | None = None
    p95: float | None = None
    p99: float | None = None
    low: float | None = None
    high: float | None = None
    low_p99: float | None = None
    high_p99: float | None = None
    busy: float | None = None
    peak: float | None = None
    jobs: int | None = None
    calls: int | None = None
    invocations: int | None = None
    billed: float | None = None
    dollars: float | None
    keeps: bool | None
    cheapest: bool
    guessed: bool
    is_whole: bool = False
    why: str
    others_p95: float | None = None
    tenants: str
    dead: int | None = None
    was_run: bool


class Findings(NamedTuple):
    """The choices that were tried, for a target (seconds of lag p95), if there is one."""

    rows: Sequence[ChoiceRow]
    target: float | None
    times: Times
    is_guessed: bool

    @property
    def cheapest(self) -> ChoiceRow | None:
        """The cheapest row that keeps the target, the first of those that cost the same.

        Of those without a price the first, if no other keeps it.
        """
        rows = [row for row in self.rows if self.keeps(row)]
        least = min(map(_price, rows), default=0.0)
        return next((row for row in rows if _price(row) <= _ALIKE * least), None)

    def keeps(self, row: ChoiceRow) -> bool:
        """Whether the lag is within the target, also where a handler takes a little longer."""
        return row.result is not None and self.target is not None and row.result.high <= self.target

    def lines(self, width: int | None) -> Iterator[str]:
        """The table, for a terminal of so many columns; None: for a file."""
        best = self.cheapest
        cells = [(row, self._cells(row)) for row in self.rows]
        others = [None if row.result is None else row.result.outcome.others_p95 for row in self.rows]
        if width is not None and width < _WIDE:
            for row, (name, p50, p95, p99, busy, price) in cells:
                mark = f"  <- cheapest that keeps {_target(self.target or 0.0)}" if row is best else ""
                yield f"{name}{mark}"
                yield f"  lag p50 {p50}, p95 {p95}, p99 {p99}"
                yield f"  busy {busy}, {'no price' if price == '-' else f'$ {price}'} a month"
            return
        head_cells: tuple[str, ...] = _HEAD
        rows = [each for _, each in cells]
        if any(each is not None for each in others):
            head_cells = (*_HEAD, "p95 of others")
            rows = [(*each, "-" if p95 is None else self._lag(p95)) for each, p95 in zip(rows, others, strict=True)]
        head, *rest = table(head_cells, rows)
        yield head
        for (row, _), line in zip(cells, rest, strict=True):
            yield f"{line}   <- cheapest that keeps {_target(self.target or 0.0)}" if row is best else line

    def _cells(self, row: ChoiceRow) -> tuple[str, ...]:
        name, result = row.candidate.name, row.result
        if result is None:
            return (name, "not run", "-", "-", "-", "-")
        outcome = result.outcome
        p95, p99 = self._range(result.low, result.high), self._range(result.low_p99, result.high_p99)
        price = "-" if row.dollars is None else self._price(row, "")
        return (name, self._lag(outcome.p50), p95, p99, f"{self._mark}{outcome.busy * 100:.0f} %", price)

    def _price(self, row: ChoiceRow, sign: str) -> str:
        """The dollars of a month; no guess moves the price of a task."""
        return f"{self._mark if row.candidate.choice.is_function else ''}{sign}{row.dollars:,.2f}"

    @property
    def _mark(self) -> str:
        """Before a number."""
        return "~" if self.is_guessed else ""

    def _range(self, low: float, high: float) -> str:
        is_one = high <= _NEARLY * low or high < SOME
        return self._lag(high) if is_one else f"{self._lag(low)} to {_lag(high)}"

    def _lag(self, seconds: float) -> str:
        return f"{self._mark}{_lag(seconds)}" if seconds >= SOME else _lag(seconds)

    def _why(self, row: ChoiceRow) -> str:
        return why(row, self.times, self._mark)

    def verdict(self) -> Iterator[str]:
        """What keeps the target, and why the next cheaper choice does not; or what the floor is."""
        ran = [row for row in self.rows if row.result is not None]
        if self.target is None or not ran:
            yield "Give --lag-p95, such as 5s: the cheapest choice that keeps it is marked."
            return
        target, best = _target(self.target), self.cheapest
        if best is None:
            least = min(ran, key=_p95)
            yield (
                f"No choice keeps a lag p95 of {target}. The least is {self._lag(_p95(least))}, with "
                f"{least.candidate.name}: {self._why(least)}."
            )
            return
        cheaper = [row for row in ran if not self.keeps(row) and _price(row) < _price(best)]
        price = "" if best.dollars is None else f", for {self._price(best, '$')} a month without Redis"
        yield f"{_sentence(best.candidate.name)} keeps a lag p95 of {target}{price}."
        if cheaper:
            row = max(cheaper, key=_price)
            yield (f"The next cheaper, {row.candidate.name}, has {self._lag(_p95(row))}: {self._why(row)}.")

    def json(self) -> Iterator[ChoiceLine]:
        """A line for each choice."""
        best = self.cheapest
        for row in self.rows:
            result, fields = row.result, dict[str, Any]()
            for one in (result and result.outcome, result, row.candidate.choice):
                fields |= {name: getattr(one, name) for name in ChoiceLine.__struct_fields__ if hasattr(one, name)}
            fields["choice"] = row.candidate.name
            yield ChoiceLine(
                dollars=row.dollars,
                keeps=None if self.target is None or result is None else self.keeps(row),
                cheapest=row is best,
                guessed=self.is_guessed,
                why=self._why(row),
                was_run=result is not None,
                **fields,
            )


def why(row: ChoiceRow, times: Times, mark: str) -> str:
    """What the lag of a choice hangs on, in words: what more shards would not help comes first. `mark`: of a guess."""
    if row.result is None:
        return "it was not run"
    return next(text for holds, text in _reasons(row, row.result, times, mark) if holds)


def _reasons(row: ChoiceRow, result: ChoiceResult, times: Times, mark: str) -> Iterator[tuple[bool, str]]:
    choice, outcome, peak = row.candidate.choice, result.outcome, result.peak
    cores, is_late = choice.usable_cores, outcome.p95 > SOME
    yield "outages" in result.hangs_on, "nothing is performed during the outage"
    yield "breakdowns" in result.hangs_on, "calls fail during the breakdown, and their ids run again later"
    ids_a_second = result.pushes * outcome.runs / max(1, outcome.jobs)
    paced = bool(choice.rate) and is_late and ids_a_second > _BUSY * choice.rate
    per = "" if choice.rate_per == 1.0 else f"{choice.rate_per:g}"
    yield paced, f"the limit rate={choice.rate * choice.rate_per:g}/{per}s sets the pace"
    most = choice.max_running * choice.concurrency
    bounded = bool(most) and is_late and peak * slots_of(row) > _BUSY * most
    yield bounded, f"the limit max_running={choice.max_running} sets the pace"
    at_once = min(choice.threads, choice.shards) * choice.concurrency
    computes = at_once * times.computing > cores and peak > _BUSY
    where = "processor of an invocation is" if choice.is_function else f"{cores:.2g} cores are"
    yield computes, f"the handler computes, and the {where} full: more memory or cores, not shards"
    is_skewed = outcome.skew > _SKEWED and outcome.busiest > _SHARE * outcome.end
    yield (
        is_skewed,
        f"one shard has {mark}{outcome.skew:.1f} times the work of the mean one: few ids have most of the jobs",
    )
    yield peak > _BUSY, f"the busiest ten minutes need {mark}{peak * 100:.0f} % of its {_slots(row)}"
    waits_for_tick = outcome.p95 > _SCHEDULED and choice.compute in {"minute", "shards", "start"}
    yield waits_for_tick, "a due id waits for the next schedule, which comes once a minute, whatever the shards"
    waits_for_listener = is_late and choice.compute == "linger"
    yield waits_for_listener, "an id waits between two invocations that listen"
    no_thread = outcome.holderless > outcome.held and choice.threads < choice.shards
    yield no_thread, f"{choice.shards} shards wait for {choice.threads} threads"
    yield True, "an id waits while earlier ones of its shard are performed"


def slots_of(row: ChoiceRow) -> int:
    """Calls at once, of the compute or of the shards, whichever has fewer."""
    choice = row.candidate.choice
    return min(choice.slots, choice.shards * choice.concurrency)


def _slots(row: ChoiceRow) -> str:
    slots = slots_of(row)
    return f"{slots} slots" if slots > 1 else "one slot"


def _lag(seconds: float) -> str:
    return "some ms" if seconds < SOME else duration(seconds)


def _target(seconds: float) -> str:
    return f"{seconds:g} s" if 1 <= seconds < _MINUTE else duration(seconds)


def _sentence(name: str) -> str:
    return name[0].upper() + name[1:]


def _price(row: ChoiceRow) -> float:
    return float("inf") if row.dollars is None else row.dollars


def _p95(row: ChoiceRow) -> float:
    return float("inf") if row.result is None else row.result.high
