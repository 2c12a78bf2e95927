"""`lowkiq simulate`: what a queue would do with other shards, batches, concurrency and compute, and what that costs."""

import math
import re
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from cyclopts import Parameter, Token

from lowkiq_lambda.base.errors import ConfigError
from lowkiq_lambda.cli.codes import DONE, FAILED
from lowkiq_lambda.cli.output import progress, remark, say
from lowkiq_lambda.cli.parts import AppOption, command_app, flag, number, seconds_above_0, whole_number
from lowkiq_lambda.cli.queues import OneQueue

if TYPE_CHECKING:
    from lowkiq_lambda.cli.simulate.choices import TriedChoice
    from lowkiq_lambda.cli.simulate.inputs import Inputs
    from lowkiq_lambda.cli.simulate.tables import Findings
    from lowkiq_lambda.simulate.choice import Choice
    from lowkiq_lambda.simulate.outcome import Outcome

_HELP: Final = """
Simulate how long the jobs of a queue would wait with other shards, batches, calls at once and compute, and what a \
month of each choice costs on AWS. The cheapest choice that keeps --lag-p95 is marked.

The load is the queue's own history, with QUEUE; or rates that you expect, with --rate; or a CSV file, with --trace. \
Nothing is pushed and no handler is called. Assumptions are listed first as guesses, and numbers that hang on them \
begin with ~. Dollars are time, requests and schedules of a function, or a task of Fargate; Redis and the \
rest are in `lowkiq stack costs`.
"""
_EPILOGUE: Final = """
EXIT CODES
  0    A choice keeps --lag-p95; or there is no --lag-p95.
  1    No choice keeps it: the least lag is printed, and what it hangs on.
  2    The command line, the file, the settings or the app cannot work.
  3    Redis cannot be reached.

EXAMPLES
  How many shards does a queue need, by its own history:
    lowkiq simulate SyncOrder --app shop.jobs:app --lag-p95 5s
  And a queue that does not exist yet:
    lowkiq simulate --rate 10/s --peak 70/s:15m --took 40ms+10ms/payload \\
      --ids 20_000 --skew 1.1 --spread 0.5 --lag-p95 5s
  Pushes of a file with the columns at,id or at,id,payloads or minute,jobs:
    lowkiq simulate --trace jobs.csv --took 50ms --lag-p95 1m
  These choices, each with each:
    lowkiq simulate --rate 50/s --took 50ms --lag-p95 1s \\
      --try shards=5,20 --try concurrency=1,10 \\
      --try compute=minute,fargate:0.25x1
  What an outage of twenty minutes leads to, as a chart:
    lowkiq simulate --rate 5/s --took 40ms --outage 10:00-10:20 \\
      --try compute=daemon:1x5 --plot
"""
_DAY: Final = 86_400
_OUTAGE: Final = re.compile(r"([0-9]{1,2}):([0-9]{2})-([0-9]{1,2}):([0-9]{2})")


def _share(_: Any, tokens: Sequence[Token]) -> float:  # noqa: ANN401 - the type of the parameter, as cyclopts has it
    """A converter of `2%` or `0.02`. It raises ValueError."""
    text = tokens[0].value.strip()
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise ValueError("give a share below 100 %, such as 2% or 0.02")
    return value


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """What is pushed, and how long calls take."""

    rate: Annotated[
        str | None,
        Parameter(help="Jobs of a day that is not recorded: 10/s, 600/m, 50000/d.", allow_leading_hyphen=True),
    ] = None
    peak: Annotated[
        tuple[str, ...],
        Parameter(
            negative="",
            show_default=False,
            allow_leading_hyphen=True,
            help="RATE:LENGTH, a peak of that day: 70/s:15m; may be repeated.",
        ),
    ] = ()
    trace: Annotated[
        Path | None, Parameter(help="A CSV file with the columns at,id or at,id,payloads or minute,jobs.")
    ] = None
    ids: Annotated[
        int | None,
        Parameter(
            help="How many ids the jobs have; 10,000 where nothing tells.", converter=whole_number(1, 100_000_000)
        ),
    ] = None
    skew: Annotated[
        float | None,
        Parameter(help="How often ids recur: 0: all alike; 1: as words of a text (Zipf).", converter=number(0, 5)),
    ] = None
    tenants: Annotated[
        int | None,
        Parameter(
            help="How many tenants the ids have, where the file names none.", converter=whole_number(2, 1_000_000)
        ),
    ] = None
    tenant_skew: Annotated[
        float | None, Parameter(help="How many ids tenants have: 0: all alike; 1: as --skew.", converter=number(0, 5))
    ] = None
    took: Annotated[
        str | None,
        Parameter(help="How long a call takes: 50ms, or 40ms+10ms/payload+2ms/id.", allow_leading_hyphen=True),
    ] = None
    spread: Annotated[
        float | None, Parameter(help="How calls differ: 0 not at all, 0.5 by a half or so.", converter=number(0, 4))
    ] = None
    computing: Annotated[
        float | None, Parameter(help="Share of a call in which a processor works: 0.2 or 20%.", converter=_share)
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TryOptions:
    """What is tried, and for how long."""

    lag_p95: Annotated[
        float | None,
        Parameter(
            name="--lag-p95",
            allow_leading_hyphen=True,
            converter=seconds_above_0,
            help="The target: 95 % of jobs begin within it.",
        ),
    ] = None
    try_: Annotated[
        tuple[str, ...],
        Parameter(
            name="--try",
            negative="",
            show_default=False,
            help="What is tried: NAME=A,B of shards, concurrency, batch, threads, memory, "
            "tenants (none, spread, home) and compute (minute, shards, wake, linger, start, "
            "fargate:VCPUxTASKS, daemon:PROCESSESxTHREADS); may be repeated, each with each, at most 24.",
        ),
    ] = ()
    limit: Annotated[
        tuple[str, ...],
        Parameter(
            negative="", show_default=False, help="A limit of the queue: max_running=20 or rate=100/s; may be repeated."
        ),
    ] = ()
    failures: Annotated[
        float, Parameter(help="Share of ids that fail: 2%.", allow_leading_hyphen=True, converter=_share)
    ] = 0.0
    outage: Annotated[str | None, Parameter(help="FROM-UNTIL of a day, in which nothing begins: 10:00-10:20.")] = None
    breakdown: Annotated[str | None, Parameter(help="FROM-UNTIL of a day, in which each call fails as a whole.")] = None
    seed: Annotated[int, Parameter(help="Equal seeds give equal numbers.", converter=whole_number(0, 10**9))] = 1
    seconds: Annotated[
        float,
        Parameter(help="How long it may take; what has not begun by then is left out.", converter=number(1, _DAY)),
    ] = 60.0


command: Final = command_app("simulate", help_=_HELP, epilogue=_EPILOGUE, usage="lowkiq simulate [OPTIONS] [QUEUE]")


@command.default
def simulate_queue(  # noqa: PLR0913 - the options
    queue: OneQueue = None,
    /,
    *,
    load: LoadOptions = LoadOptions(),
    attempt: TryOptions = TryOptions(),
    plot: Annotated[bool, flag("Draw lag and depth over time of the marked choice, or of the first.")] = False,
    svg: Annotated[Path | None, Parameter(help="Write the lag of up to six choices to a file, as SVG.")] = None,
    json: Annotated[bool, flag("Write a line of JSON for each choice; times are seconds.")] = False,
    app: AppOption = None,
) -> int:
    """Simulate; the exit code."""
    from lowkiq_lambda.cli.simulate.choices import limited, tried, usual
    from lowkiq_lambda.cli.simulate.inputs import LoadWords, inputs_of
    from lowkiq_lambda.simulate.choice import Choice

    deadline = time.monotonic() + attempt.seconds
    if svg is not None and (svg.is_dir() or not svg.parent.is_dir()):
        raise ConfigError(f"--svg {svg} is refused: give a file in a folder that exists.")
    base = limited(attempt.limit, Choice(threads=5))
    # That there is one counts for what is guessed; when it is, the trace tells.
    breaks = ((0.0, 0.0),) if attempt.breakdown else ()
    base = msgspec.structs.replace(base, failures=attempt.failures, breakdowns=breaks)
    words = LoadWords(**vars(load), seed=attempt.seed, seconds=attempt.seconds)
    inputs = inputs_of(words, queue, app, base)
    outages, breakdowns = (
        _spans(f"--{name}", text, inputs)
        for name, text in (("outage", attempt.outage), ("breakdown", attempt.breakdown))
    )
    base = msgspec.structs.replace(inputs.base, outages=outages, breakdowns=breakdowns)
    if attempt.try_:
        computes = [inputs.present] if inputs.present else ["minute", "fargate:0.25x1"]
        candidates = tried(attempt.try_, base, computes)
    else:
        candidates = usual(base, inputs.present, inputs.times, attempt.lag_p95)
    if inputs.trace.tenants is None and any(candidate.choice.tenants != "none" for candidate in candidates):
        raise ConfigError(
            "--try tenants= is refused, as no id has a tenant: give --tenants 20, or a --trace with ids such as acme:7."
            if inputs.trace.is_drawn
            else "--try tenants= is refused, as no id of the file has one: the text before a colon, as acme in acme:7."
        )
    findings = _findings(inputs, candidates, attempt, deadline)
    if json:
        for line in findings.json():
            say(msgspec.json.encode(line).decode())
    else:
        _tell(inputs, findings)
    _draw(findings, svg, plot=plot and not json)
    return FAILED if findings.target is not None and findings.cheapest is None else DONE


def _spans(name: str, text: str | None, inputs: "Inputs") -> tuple[tuple[float, float], ...]:
    """Of each day of the trace."""
    if text is None:
        return ()
    match = _OUTAGE.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"{name} {text} is refused: give such as 10:00-10:20.")
    since, until = (int(match[place]) * 3_600 + int(match[place + 1]) * 60 for place in (1, 3))
    if not 0 <= since < until <= _DAY:
        raise ConfigError(f"{name} {text} is refused: it must end after its begin, on the same day.")
    trace = inputs.trace
    days = range(int(trace.starts_at // _DAY) * _DAY, math.ceil(trace.starts_at + trace.seconds), _DAY)
    return tuple((day + since, day + until) for day in days)


def _findings(
    inputs: "Inputs", candidates: "Sequence[TriedChoice]", attempt: TryOptions, deadline: float
) -> "Findings":
    from lowkiq_lambda.cli.simulate.tables import ChoiceRow, Findings
    from lowkiq_lambda.simulate.comparing import ChoiceComparison
    from lowkiq_lambda.stack.costs.prices import load
    from lowkiq_lambda.stack.costs.simulated import simulated_dollars

    prices, seconds, target = load(), inputs.trace.seconds, attempt.lag_p95
    # A task may be the same choice as a daemon on your machine, which has no price.
    priced = {candidate.choice for candidate in candidates if candidate.is_priced}

    def dollars(choice: "Choice", outcome: "Outcome", *, is_priced: bool) -> float | None:
        return simulated_dollars(choice, outcome, seconds, prices) if is_priced else None

    def rank(choice: "Choice", outcome: "Outcome") -> tuple[bool, float]:
        """The cheapest that keep the target come first, then those with the least lag."""
        keeps = target is not None and outcome.p95 <= target
        price = dollars(choice, outcome, is_priced=choice in priced)
        return (not keeps, (float("inf") if price is None else price) if keeps else outcome.p95)

    comparison = ChoiceComparison(inputs.trace, inputs.times, attempt.seed, attempt.seconds, deadline)
    with progress("simulating", len(candidates)) as through:
        results = comparison.run([candidate.choice for candidate in candidates], rank, inputs.draw, through)
    rows = [
        ChoiceRow(
            each,
            result,
            None if result is None else dollars(each.choice, result.outcome, is_priced=each.is_priced),
        )
        for each, result in zip(candidates, results, strict=True)
    ]
    return Findings(rows, target, inputs.times, bool(inputs.guesses))


def _tell(inputs: "Inputs", findings: "Findings") -> None:
    for guess in inputs.guesses:
        say(f"guessed  {guess}")
    times = inputs.times
    parts = [(times.fixed, ""), (times.each_id, " an id"), (times.each_payload, " a payload")]
    mark = "~" if any(guess.startswith("took") for guess in inputs.guesses) else ""
    words = " + ".join(f"{mark}{_brief(seconds)}{each}" for seconds, each in parts if seconds) or "0 ms"
    say(f"{inputs.says}, calls of {words}", "")
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    say(*findings.lines(width), "", *findings.verdict())
    for row in findings.rows[:1]:
        if row.result is not None and (dead := row.result.outcome.dead):
            retries = row.candidate.choice.max_retry_count
            remark(f"note: {dead:,} payload{' dies' if dead == 1 else 's die'}, as {retries} retries are not enough.")
    if any(row.result is None for row in findings.rows):
        remark("note: the time was over before all choices were run: give more --seconds, or try fewer.")
    ran = [row.result.is_whole for row in findings.rows if row.result is not None]
    if not all(ran):
        rest = "the best were run whole." if any(ran) else "with more --seconds the best are run whole."
        remark(f"note: the busiest hours and parts of others stand for the whole; {rest}")
        if any(row.candidate.choice.outages or row.candidate.choice.breakdowns for row in findings.rows):
            remark("note: numbers of parts do not show an outage or a breakdown: look at choices that were run whole.")


def _brief(seconds: float) -> str:
    return f"{seconds * 1_000:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _draw(findings: "Findings", svg: Path | None, *, plot: bool) -> None:
    from lowkiq_lambda.cli.simulate.plots import braille
    from lowkiq_lambda.cli.simulate.plots import svg as svg_of

    ran = [(row, row.result) for row in findings.rows if row.result is not None and row.result.is_whole]
    best = findings.cheapest
    if not ran and (plot or svg is not None):
        remark("note: nothing is drawn, as no choice was run on the whole trace: give more --seconds, or try fewer.")
        return
    if plot:
        row, result = next(((row, result) for row, result in ran if row is best), ran[0])
        width = min(78, shutil.get_terminal_size().columns - 2)
        say("", row.candidate.name, *braille(result.outcome, width))
    if svg is not None:
        try:
            svg.write_text(svg_of([(row.candidate.name, result.outcome) for row, result in ran]), encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"--svg {svg} cannot be written: {error.strerror}.") from error
        remark(f"the lag of {min(6, len(ran))} choices is in {svg}")
