"""Handlers that fail, and handlers that run for much longer than they do: what the past of a queue tells."""

import math
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final

from lowkiq_lambda.engine.budget import BatchTiming
from lowkiq_lambda.engine.hindrances import Hindrances
from lowkiq_lambda.operate.doctor.findings import Finding
from lowkiq_lambda.operate.doctor.queue_state import QueueState
from lowkiq_lambda.operate.doctor.words import time
from lowkiq_lambda.operate.inspect.history import SPANS, command, history, windows
from lowkiq_lambda.store.server.faults import translated
from lowkiq_lambda.store.server.pipelines import send_each
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.history import TIMES as BATCH_TIMES
from lowkiq_lambda.views.processes import Doing, Process
from lowkiq_lambda.views.queues import QueueHistory

FAILING: Final = 0.25
"""The share of ids that failed in the last hour above which a queue is told of."""
FEWEST: Final = 20
"""Failures in that hour: of fewer a share says nothing."""
LONGEST: Final = 300.0
"""Seconds that each batch may take."""
TIMES: Final = 10.0
"""So many times as long as 95 of 100 batches a batch may take."""
UNKNOWN: Final = 3_600.0
"""Seconds that it may take where no other batch has ended in the last hour."""
OFTEN: Final = 2
"""Stalls in an hour of which is told."""
SHORTEST: Final = 0.1
"""Seconds: what takes less is told as so much."""
_HOUR: Final = SPANS["1h"]


def read_pasts(backend: Backend, names: Sequence[str]) -> Mapping[str, QueueHistory]:
    """The last hour of each of these queues, in one round trip. Raises BackendError."""
    if not names:
        return {}
    now = backend.clock.time()
    # Where all calls hang, nothing is written any more: what is usual stays known until `UNKNOWN` has passed.
    first, last = (int(at // BATCH_TIMES.window) for at in (now - BATCH_TIMES.kept, now))
    spans = [*dict.fromkeys([*windows(_HOUR, now), *((BATCH_TIMES, number) for number in range(first, last))])]
    with translated():
        answers = send_each(backend.client, [command(name, spans, backend.prefix) for name in names])
    return {name: history(answer, spans, _HOUR, now) for name, answer in zip(names, answers, strict=True)}


def pace_findings(pasts: Mapping[str, QueueHistory], processes: Sequence[Process]) -> Iterator[Finding]:
    """The findings on these queues."""
    for name, past in pasts.items():
        yield from _failing(name, past)
    for process in processes:
        if not process.is_gone:
            for doing in process.doing:
                if doing.queue in pasts:
                    yield from _hung(process, doing, pasts[doing.queue])


def hindrance_findings(states: Sequence[QueueState]) -> Iterator[Finding]:
    """The findings on what kept drains of these queues from their work, by what the drains noted in their shards."""
    for state in states:
        now, timings = state.now, state.notes.timings
        each = [timing.hindrances for timing in timings if timing.hindrances is not None]
        if misled := [one for one in each if one.unused_until > now]:
            yield _misled(state.name, max(misled, key=attrgetter("unused_until")), timings, now)
        late = max(each, key=lambda one: one.stalls_lately(now), default=None)
        if late is not None and late.stalls_lately(now) >= OFTEN:
            yield _stalled(state.name, late, now)


def _misled(name: str, most: Hindrances, timings: Sequence[BatchTiming], now: float) -> Finding:
    slow = max(timings, key=attrgetter("slowest"))
    sentence = (
        f"a drain ended with {time(most.unused)} of its time unused: a batch took {time(slow.slowest)}, "
        f"{time(max(0.0, now - slow.seen_at))} ago, and the next one may; this counts for "
        f"{time(most.unused_until - now)} more"
    )
    return Finding(
        section="work",
        check="unused time",
        mark="warning",
        says=sentence,
        advice="If such calls come again, give them a time limit: max_run_time, or that of the client that they call.",
        about=name,
    )


def _stalled(name: str, late: Hindrances, now: float) -> Finding:
    sentence = (
        f"its holders stood still {late.stalls} times, last {time(max(0.0, now - late.stalled_at))} ago, and were up "
        f"to {time(late.stalled)} late to renew their leases"
    )
    return Finding(
        section="work",
        check="stalls",
        mark="warning",
        says=sentence,
        advice=f"Give them more processor (on Lambda MemorySize), or set LOWKIQ_LEASE_TTL to {_ttl_for(late)} or more.",
        about=name,
    )


def _ttl_for(late: Hindrances) -> int:
    """Seconds of a lease with which such a stall is not near to its loss."""
    return math.ceil(late.stalled * 3 + 1)


def _failing(name: str, past: QueueHistory) -> Iterator[Finding]:
    failed, ended = sum(past.series.failed), sum(past.series.ended)
    if failed >= FEWEST and failed > FAILING * (failed + ended):
        yield Finding(
            section="work",
            check="failing",
            mark="warning",
            says=f"in the last hour {failed:,} of {failed + ended:,} ids failed ({failed * 100 // (failed + ended)}%)",
            advice="See its errors on the dashboard: alike ones are in groups, each with the acts on its jobs.",
            about=name,
        )


def _hung(process: Process, doing: Doing, past: QueueHistory) -> Iterator[Finding]:
    seconds = process.seen_at - doing.since
    usual = past.took.p95 if past.took else None
    if seconds <= (UNKNOWN if usual is None else max(LONGEST, TIMES * usual)):
        return
    if usual is None:
        habit = "no other has ended in the last hour"
    else:
        habit = f"95 of 100 take no more than {time(max(usual, SHORTEST))}"
    yield Finding(
        section="processes",
        check="hung",
        mark="warning",
        says=f"a batch in shard {doing.shard} has run for {time(seconds)}, and {habit} ({process.id})",
        advice="See what it waits for. Evict its holder on the page Shards: another process takes the shard.",
        about=doing.queue,
    )
