"""More shards have work than the account may run functions: they take turns, nothing is lost, and no alarm rings."""

from collections import Counter
from collections.abc import Iterator
from itertools import count, groupby, islice
from typing import Any, Final

import pytest

from lowkiq_lambda import Batch, Lowkiq
from lowkiq_lambda.jobs.job import shard_for
from lowkiq_lambda.testing import ManualClock
from tests.aws.alarms import rings
from tests.aws.crowded_account import CrowdedAccount, Event
from tests.aws.functions import DrainFunction
from tests.kit.apps import MakeApp
from tests.kit.workers import declare, jobs_of

SHARDS: Final = 14
PLACES: Final = 10
"""Of a new account."""
TOOK: Final = 20.0
"""Seconds of a job."""
COLD_START: Final = 1.0
"""Seconds, and of an environment that was there before less: an idle drain has its place for as long."""
WHOLE: Final = 300.0
"""Seconds that a drain may take."""
MINUTES: Final = 10


def ids_of(shard: int) -> Iterator[str]:
    """All that lie in it."""
    return (str(number) for number in count() if shard_for(str(number), SHARDS) == shard)


class DefaultStack:
    """The drain function of the template's default stack, in an account of ten."""

    def __init__(self, drain: DrainFunction, app: Lowkiq, clock: ManualClock, settings: dict[str, Any]) -> None:
        self._drain, self._clock = drain, clock
        drain.install(app, scheduled_shards=",".join(map(str, range(SHARDS))))
        self.start = clock.time()
        self.ages: dict[int, float] = {}
        """What ticks told of the oldest due job, by the minute in which they did."""
        self.account = CrowdedAccount(PLACES, settings["MaximumEventAgeInSeconds"], self._invoke)

    def play(self) -> None:
        """Ten minutes of its schedules: each shard's, and the tick's behind them."""
        events: list[Event] = [*({"shard": shard} for shard in range(SHARDS)), {"tick": "only"}]
        self.account.play(MINUTES, events, self.start)

    def _invoke(self, event: Event, at: float) -> float:
        # Others run beside it: each begins at its own time, and what it does takes it further.
        self._clock.advance(at - self._clock.time())
        before = len(self._drain.blobs)
        self._drain(event, WHOLE)
        for blob in self._drain.blobs[before:]:
            for age in blob.get("oldest_due_age", []):
                self.ages[int(at - self.start) // 60] = age
        return self._clock.time() + COLD_START

    @property
    def series(self) -> list[float | None]:
        """The metric, minute by minute."""
        return [self.ages.get(minute) for minute in range(MINUTES)]

    @property
    def silence(self) -> int:
        """Minutes in a row without a tick, at most."""
        runs = groupby(self.series, lambda age: age is None)
        return max((len([*minutes]) for is_silent, minutes in runs if is_silent), default=0)


@pytest.mark.parametrize("each", [0, 5, 15], ids=["idle", "100 seconds of work in each shard", "five minutes of it"])
def test_fourteen_shards_take_turns_in_an_account_of_ten(  # noqa: PLR0913, PLR0917 - its fixtures
    drain: DrainFunction,
    make_app: MakeApp,
    clock: ManualClock,
    queue_name: str,
    resources: dict[str, dict[str, Any]],
    each: int,
) -> None:
    """What finds no place waits, and each job is performed once.

    The default stack's alarms are silent all the time, unless drains take all of theirs: then no tick finds a place.
    """
    performed: Counter[str] = Counter()
    begun: dict[int, float] = {}

    def perform(batch: Batch) -> None:
        performed.update(list(batch))
        begun.setdefault(shard_for(next(iter(batch)), SHARDS), clock.time() - stack.start)
        clock.advance(TOOK)

    app = make_app()
    worker = declare(app, queue_name, perform, batch_size=1, shards_count=SHARDS)
    ids = [id for shard in range(SHARDS) for id in islice(ids_of(shard), each)]
    stack = DefaultStack(drain, app, clock, resources["DrainInvocation"]["Properties"])
    if ids:
        worker.push_many(jobs_of(ids))

    stack.play()

    late, silent = (resources[name]["Properties"] for name in ("OldestDueAlarm", "SilenceAlarm"))
    rests = each * TOOK < WHOLE
    assert (rests, dict.fromkeys(ids, 1)) == (not stack.account.dropped, performed)
    assert stack.account.refused > 0
    # Ten at once, and the last four when some of these have ended.
    turns = [round(at / 60) for at in sorted(begun.values())]
    assert turns == ([0] * PLACES + [1 + each * TOOK // 60] * (SHARDS - PLACES) if each else [])
    # An invocation that fails raises, and none did; of the other alarms each has its number.
    assert {*rings(late, stack.series)} <= {"OK"}
    assert rests == (stack.silence < silent["EvaluationPeriods"])
    assert (0, 0) == (app.operate.metrics()[queue_name].length, app.operate.metrics()[queue_name].morgue_length)
