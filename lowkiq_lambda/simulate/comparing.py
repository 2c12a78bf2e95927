"""Several choices on the same trace: all of them on a thinned one where it is long, then the best ones on the whole.

Runs are spread over processes where they take long. How long the parts are, and whether the whole trace is run, follows
from the time that there is by a speed that is assumed, so that equal seeds give equal numbers; but for the first, none
begins later.
"""

import os
import signal
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from itertools import islice
from multiprocessing import active_children, get_context
from typing import Final, NamedTuple, TypeAlias

import msgspec

from lowkiq_lambda.simulate.choice import Choice
from lowkiq_lambda.simulate.outcome import Outcome
from lowkiq_lambda.simulate.running import simulate
from lowkiq_lambda.simulate.times import Times
from lowkiq_lambda.simulate.trace import Trace

THIN_FROM: Final = 300_000
"""Jobs of a trace, from which choices first run on parts of it."""
HOUR: Final = 3_600.0
PART: Final = 600.0
"""Seconds of each part but the busiest, at most."""
WARM_UP: Final = 180.0
"""Seconds before each part that are simulated and not told: invocations are at work then, and have a backlog."""
SHORTEST: Final = 180.0
"""Seconds of a part at least: of less, what a tick leaves to the next would be chance. There are fewer parts then."""
JOBS_A_SECOND: Final = 60_000
"""That are simulated on a small machine with two processors: half of the time is for parts, half for whole traces."""
OTHERS: Final = 4
WHOLE: Final = 3
"""Choices that then run on the whole trace, at most."""
ALONE_UP_TO: Final = 400_000
"""Jobs of all runs together, up to which other processes would take longer to begin than to help."""
WOBBLE: Final = 0.03
"""By so much may the time of a handler be wrong: where slots are nearly full, that moves the lag by far more."""
FULL: Final = 0.9
"""Share of the slots that is busy, from which a percentile is a range."""
PEAK: Final = 600.0
SOME: Final = 0.010
"""Seconds, below which the model, which has no jitter, says no number."""
SPANS: Final = ("outages", "breakdowns")
Draw: TypeAlias = Callable[[int], Trace]
"""The trace of a seed."""
Part: TypeAlias = tuple[Trace, float]
"""A part of a trace, and how many jobs of the trace it stands for."""
Job: TypeAlias = tuple[int, Times, Choice, int, bool]
"""Number of a run, times, choice, seed, whether it is on the whole trace."""


class ChoiceResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a choice brings.

    `low` and `high` bound p95: over seeds that differ by more than a tenth, and over handlers that take 3 % more or
    less where slots are nearly full; both are p95 where it is sure. `low_p99` and `high_p99` are the same of p99.
    `pushes`: a second, in the busiest ten minutes.
    `peak`: share of the slots that these need; above 1 ids pile up. `is_whole`: whether all of the
    trace was run; the series of others are of parts. `hangs_on`: what makes p95 longer by more
    than a tenth, of SPANS.
    """

    choice: Choice
    outcome: Outcome
    peak: float
    pushes: float
    low: float
    high: float
    low_p99: float
    high_p99: float
    is_whole: bool
    hangs_on: frozenset[str] = frozenset()


class ChoiceComparison(NamedTuple):
    """A trace, and how long calls take. `deadline`: monotonic, where the time began before."""

    trace: Trace
    times: Times
    seed: int = 1
    seconds: float = 60.0
    deadline: float | None = None

    def run(
        self,
        choices: Sequence[Choice],
        rank: Callable[[Choice, Outcome], object],
        draw: Draw | None = None,
        through: Callable[[int], object] = lambda _: None,
    ) -> list[ChoiceResult | None]:
        """A result for each choice, or None where the time was over before. `rank`: the least is run whole.

        `draw`: another trace for another seed, of one that was drawn. `through`: told how many runs are done.
        """
        deadline = time.monotonic() + self.seconds if self.deadline is None else self.deadline
        half = self.seconds * JOBS_A_SECOND / 2
        most = min(THIN_FROM, int(half / len(choices)))
        is_thin = self.trace.jobs > most
        wholes = min(WHOLE, int(half / self.trace.jobs)) if is_thin else len(choices)
        pieces = parts_of(self.trace, most) if is_thin else []
        with _runner(self.trace if wholes else None, pieces, len(choices), deadline, through) as run:
            first = dict(run([(place, self.times, each, self.seed, not is_thin) for place, each in enumerate(choices)]))
            whole = set() if is_thin else {*first}
            if is_thin:
                best = sorted(first, key=lambda place: rank(choices[place], first[place]))[:wholes]  # type: ignore[arg-type, return-value]  # a key that can be compared
                again = dict(run([(place, self.times, choices[place], self.seed, True) for place in best]))
                first.update(again)
                whole |= {*again}
            wobbles = self._wobbles(choices, first, whole, run)
            spans = self._spans(choices, first, whole, run)
        seeds = self._other_seeds(choices, first, draw, deadline) if draw and not is_thin else {}
        return [
            None
            if place not in first
            else self._result(
                choice,
                first[place],
                [*wobbles.get(place, ()), *seeds.get(place, ())],
                spans[place],
                is_whole=place in whole,
            )
            for place, choice in enumerate(choices)
        ]

    def _wobbles(
        self, choices: Sequence[Choice], outcomes: dict[int, Outcome], whole: set[int], run: "Run"
    ) -> dict[int, list[Outcome]]:
        """Outcomes with handlers that take a little less and more, where slots are nearly full."""
        full = [place for place, one in outcomes.items() if peak_of(self.trace, choices[place], one) > FULL]
        jobs = [
            (place + side * len(choices), self.times.scaled(factor), choices[place], self.seed, place in whole)
            for side, factor in enumerate((1 - WOBBLE, 1 + WOBBLE))
            for place in full
        ]
        bounds: dict[int, list[Outcome]] = {}
        for number, outcome in run(jobs):
            bounds.setdefault(number % len(choices), []).append(outcome)
        return bounds

    def _spans(
        self, choices: Sequence[Choice], outcomes: dict[int, Outcome], whole: set[int], run: "Run"
    ) -> dict[int, set[str]]:
        """Spans on which late choices hang: each runs without its outages, and without its breakdowns."""
        places = [place for place, one in outcomes.items() if one.p95 > SOME]
        without = [(place, name) for place in places for name in SPANS if getattr(choices[place], name)]
        jobs = [
            (number, self.times, msgspec.structs.replace(choices[place], **{name: ()}), self.seed, place in whole)
            for number, (place, name) in enumerate(without)
        ]
        spans = {place: set[str]() for place in outcomes}
        for number, outcome in run(jobs):
            place, name = without[number]
            if outcome.p95 < 0.9 * outcomes[place].p95:
                spans[place].add(name)
        return spans

    def _other_seeds(
        self, choices: Sequence[Choice], outcomes: dict[int, Outcome], draw: Draw, deadline: float
    ) -> dict[int, list[Outcome]]:
        """Outcomes of two more seeds, where p95 of the three differs by more than a tenth."""
        others: dict[int, list[Outcome]] = {}
        for seed in (self.seed + 1, self.seed + 2):
            if time.monotonic() > deadline:
                break
            with _runner(draw(seed), [], len(choices), deadline, lambda _: None) as run:
                jobs = [(place, self.times, choices[place], seed, True) for place in outcomes]
                for place, outcome in run(jobs):
                    others.setdefault(place, []).append(outcome)
        all_of = {place: [outcomes[place].p95, *(one.p95 for one in each)] for place, each in others.items()}
        return {place: others[place] for place, p95s in all_of.items() if max(p95s) > 1.1 * min(p95s)}

    def _result(
        self, choice: Choice, outcome: Outcome, others: Sequence[Outcome], hangs_on: set[str], *, is_whole: bool
    ) -> ChoiceResult:
        p95s, p99s = ([each.p95 for each in (outcome, *others)], [each.p99 for each in (outcome, *others)])
        return ChoiceResult(
            choice=choice,
            outcome=outcome,
            peak=peak_of(self.trace, choice, outcome),
            pushes=_busiest(self.trace),
            low=min(p95s),
            high=max(p95s),
            low_p99=min(p99s),
            high_p99=max(p99s),
            is_whole=is_whole,
            hangs_on=frozenset(hangs_on),
        )


Run: TypeAlias = Callable[[Sequence[Job]], Iterable[tuple[int, Outcome]]]


def peak_of(trace: Trace, choice: Choice, outcome: Outcome) -> float:
    """Share of the slots of the shards, or of the compute where it has fewer, that the busiest ten minutes need."""
    if not outcome.jobs:
        return 0.0
    slots = min(choice.slots, choice.shards * choice.concurrency)
    return _busiest(trace) * (outcome.seconds / outcome.jobs) / slots


def _busiest(trace: Trace) -> float:
    return max(trace.per_step(PEAK), default=0) / min(PEAK, max(trace.seconds, 1.0))


def parts_of(trace: Trace, most: int) -> list[Part]:
    """The busiest hour and the one after it, and parts of four others, each with how many jobs it stands for.

    They are shortened alike until they have some `most` jobs, to whole minutes: schedules come once in each.
    """
    whole = _parts(trace, 1.0)
    jobs = sum(piece.jobs for piece, _ in whole)
    warm_up = sum(bisect_left(piece.at, piece.warm_up) for piece, _ in whole)
    return whole if jobs <= most else _parts(trace, max(0.0, most - warm_up) / (jobs - warm_up))


def _parts(trace: Trace, scale: float) -> list[Part]:
    counts = trace.per_step(PART)
    steps = max(1, round(scale * HOUR / PART))
    busiest = max(range(len(counts)), key=lambda place: sum(counts[place : place + steps]))
    since, until = busiest * PART, busiest * PART + _minutes(2 * scale * HOUR)
    pieces = [(trace.between(since, until, WARM_UP), float(sum(counts[busiest : busiest + 2 * steps])))]
    others = [place for place in range(len(counts)) if not busiest <= place < busiest + 2 * steps and counts[place]]
    length = max(SHORTEST, _minutes(scale * PART))
    step = max(1, -(-len(others) // (OTHERS if length > SHORTEST else OTHERS // 2)))
    # Not the first one, before which nothing could warm up.
    if parts := others[step // 2 :: step]:
        each = sum(counts[place] for place in others) / len(parts)
        pieces += [(trace.between(place * PART, place * PART + length, WARM_UP), each) for place in parts]
    return [(piece, weight) for piece, weight in pieces if piece.jobs]


def _minutes(seconds: float) -> float:
    return 60.0 * max(1, round(seconds / 60))


def joined(outcomes: Sequence[tuple[Outcome, float]]) -> Outcome:
    """One outcome for the whole trace: percentiles weighted by jobs, and sums by what each part stands for."""
    total = sum(weight for _, weight in outcomes)
    shares = [(one, weight / total, weight / max(1, one.jobs)) for one, weight in outcomes]
    first = outcomes[0][0]
    return msgspec.structs.replace(
        first,
        jobs=round(total),
        p50=sum(one.p50 * share for one, share, _ in shares),
        p95=sum(one.p95 * share for one, share, _ in shares),
        p99=sum(one.p99 * share for one, share, _ in shares),
        others_p95=None
        if first.others_p95 is None
        else sum((one.others_p95 or 0.0) * share for one, share, _ in shares),
        mean=sum(one.mean * share for one, share, _ in shares),
        most=max(one.most for one, *_ in shares),
        busy=sum(one.busy * share for one, share, _ in shares),
        calls=round(sum(one.calls * times for one, _, times in shares)),
        runs=round(sum(one.runs * times for one, _, times in shares)),
        seconds=sum(one.seconds * times for one, _, times in shares),
        visits=round(sum(one.visits * times for one, _, times in shares)),
        invocations=round(sum(one.invocations * times for one, _, times in shares)),
        billed=sum(one.billed * times for one, _, times in shares),
        dead=round(sum(one.dead * times for one, _, times in shares)),
        end=max(one.end for one, _ in outcomes),
    )


_OF_PROCESS: list[tuple[Trace | None, Sequence[Part]]] = []
"""In a process that runs simulations: the trace, None where it is not run whole, and its parts."""


def _prepare(trace: Trace | None, pieces: Sequence[Part]) -> None:
    _OF_PROCESS[:] = [(trace, pieces)]


def _run_one(job: Job) -> tuple[int, Outcome]:
    number, times, choice, seed, is_whole = job
    trace, pieces = _OF_PROCESS[0]
    if trace is not None and (is_whole or not pieces):
        return number, simulate(trace, times, choice, seed=seed)
    return number, joined([(simulate(piece, times, choice, seed=seed), weight) for piece, weight in pieces])


@contextmanager
def _runner(
    trace: Trace | None, pieces: Sequence[Part], choices: int, deadline: float, through: Callable[[int], object]
) -> Iterator[Run]:
    """Runs jobs, in other processes where that pays; but the first, none begins after the deadline."""
    processes = min(os.cpu_count() or 1, choices)
    jobs_of_run = sum(piece.jobs for piece, _ in pieces) or (trace.jobs if trace is not None else 0)
    done = 0

    def note(result: tuple[int, Outcome]) -> tuple[int, Outcome]:
        nonlocal done
        done += 1
        through(done)
        return result

    if processes == 1 or jobs_of_run * choices <= ALONE_UP_TO:
        _prepare(trace, pieces)
        try:
            yield lambda jobs: (note(_run_one(job)) for job in jobs if not done or time.monotonic() < deadline)
        finally:
            _OF_PROCESS.clear()
        return
    others = {*active_children()}
    with ProcessPoolExecutor(processes, get_context("spawn"), _prepare, (trace, pieces)) as pool:

        def begun(jobs: Iterable[Job]) -> set[Future[tuple[int, Outcome]]]:
            with _no_interrupts():
                return {pool.submit(_run_one, job) for job in jobs}

        def run(jobs: Sequence[Job]) -> Iterator[tuple[int, Outcome]]:
            # A pool cancels nothing that it has queued for its processes, so each gets its next run when it is free.
            todo = iter(jobs)
            running = begun(islice(todo, processes if time.monotonic() < deadline else int(not done)))
            while running:
                over, running = wait(running, return_when=FIRST_COMPLETED)
                if time.monotonic() < deadline:
                    running |= begun(islice(todo, len(over)))
                for future in over:
                    yield note(future.result())

        try:
            yield run
        except BaseException:
            # Nobody waits for what they do, and Ctrl-C is not for them.
            for process in {*active_children()} - others:
                process.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@contextmanager
def _no_interrupts() -> Iterator[None]:
    """Processes that begin here never see Ctrl-C, of which each would print where it was; this one sees it after."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
