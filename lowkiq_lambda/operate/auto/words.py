"""What is said of the shards of a queue: a line for the activity, pages and terminals."""

from lowkiq_lambda.operate.auto.facts import AutoFacts
from lowkiq_lambda.operate.auto.rule import Proposal, Unmoved
from lowkiq_lambda.operate.auto.sizes import pause_of
from lowkiq_lambda.operate.lateness.words import lasting
from lowkiq_lambda.views.auto import AutoDecision


def line_of(facts: AutoFacts, proposal: Proposal, expected: tuple[float, float] | None) -> str:
    """The line of a move: from how many shards to how many, why, what is expected, and what it costs."""
    pause = f"pause some {lasting(pause_of(facts.ids, facts.shards))}"
    if proposal.to < facts.shards:
        return f"{facts.shards} → {proposal.to} shards: half of them suffice for the busiest minute of a day, {pause}"
    full, late = facts.full
    why = f"for {facts.minutes} of {facts.looked} min late shards were full, {full} of {late} in the last"
    why = f"{why}, slots {min(1.0, facts.busy):.0%} busy, oldest {lasting(facts.lag)}"
    hope = "" if expected is None else f"; p95 {lasting(expected[0])} → {lasting(expected[1])} expected"
    cheaper = "; its calls wait, and with a higher concurrency no move is needed" if facts.are_fixed else ""
    short = f"; {proposal.size.short}" if proposal.size.short else ""
    return f"{facts.shards} → {proposal.to} shards: {why}{hope}, {pause}{short}{cheaper}"


def refusal_of(facts: AutoFacts, refusal: Unmoved) -> str:
    """The line of a queue that lags and stays as it is."""
    hot = f"one id has {facts.part:.0%} of the jobs in its shard (id in lowkiq why)"
    reason = hot if facts.cause == "hot ids" else refusal.reason
    return f"lags {lasting(facts.lag)} and stays at {facts.shards}: {reason}"


def lines_of(decision: AutoDecision) -> list[str]:
    """All of it for a terminal."""
    lines = [f"{decision.queue}: {decision.says}"]
    if decision.cause is not None:
        held = f"in {decision.minutes} of the last {decision.looked} minutes" if decision.looked else "now"
        lines.append(f"Cause: {decision.cause}, {held}.")
    lines += [f"  {line}" for line in decision.evidence]
    if decision.to is not None:
        lines.append(f"A move carries {decision.ids:,} ids, each waits for some {lasting(decision.pause)}.")
    return [*lines, *(f"It is not made by itself: {bar}." for bar in decision.bars)]
