"""Calls that wait, in full slots, on a real server with recorded counters: holders have more of them, or shards do."""

from typing import Any, Final

import pytest

from lowkiq_lambda import Auto
from lowkiq_lambda.operate.lateness.kept import OpenHour, write, writing
from lowkiq_lambda.operate.lateness.samples import Sample, ShardSample
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.auto import AutoDecision
from tests.auto.sizing import ONE, WAITED
from tests.kit.apps import MakeApp
from tests.kit.handlers import Notes
from tests.kit.playing import MINUTE, tell_of_daemon
from tests.kit.workers import declare

THREADS: Final = 20


class FullSlots:
    """A late queue of one shard, of whose calls the counters of nine minutes say that they wait, in full slots."""

    def __init__(self, make_app: MakeApp, clock: ManualClock, name: str) -> None:
        self.make_app, self.clock, self.name = make_app, clock, name

    def decision(self, concurrency: int | Auto, slots: int, **settings: Any) -> AutoDecision:
        """What is decided of a worker with this concurrency; so many slots were full."""
        app = self.make_app(namespace=self.name, **settings)
        worker = declare(app, self.name, Notes(), shards_count=ONE, concurrency=concurrency, batch_size=1)
        begins = self.clock.time()
        worker.push_many([{"id": n, "perform_in": begins - WAITED} for n in range(50)])
        shape = app.operate(worker).resharding().layout.shape
        for place in range(9):
            busy, calls = 0.97 * slots * MINUTE * place, 600 * place
            shard = ShardSample(calls, busy, MINUTE * place, WAITED, WAITED, slots)
            sample = Sample(
                *(begins + MINUTE * place, shape, calls, 0, 0, calls, calls, busy, 0.0, MINUTE * place),
                *(50, 0, 0.0, 0.3, 4.0, THREADS, (shard,)),
            )
            write(
                app.core.backend, [*writing(app.core.backend.prefix, self.name, sample, OpenHour(0, sample, sample))], 1
            )
        self.clock.advance(8 * MINUTE)
        tell_of_daemon(app, self.name, THREADS, 0.3)
        return app.operate(worker).auto.decide()


@pytest.fixture
def full(make_app: MakeApp, clock: ManualClock, queue_name: str) -> FullSlots:
    """Such a queue."""
    return FullSlots(make_app, clock, queue_name)


@pytest.mark.parametrize(
    ("least", "cause", "answer"), [(9, "slots", "refusal"), (12, "slots", "refusal"), (20, "shards", "proposal")]
)
def test_shards_wait_until_holders_have_all_their_slots(full: FullSlots, least: int, cause: str, answer: str) -> None:
    """They may let 20 calls run at once, and it is they who come to that."""
    decision = full.decision(Auto(least=least, most=20), least, calls_at_once=400)

    assert (cause, answer) == (decision.cause, decision.answer)


@pytest.mark.parametrize(("settings", "cause"), [({}, "shards"), ({"calls_at_once": 120}, "slots")])
def test_what_no_holder_can_reach_is_not_waited_for(full: FullSlots, settings: dict[str, Any], cause: str) -> None:
    """Its 20 threads share a hundred calls, so that a shard has five of them at most, whatever code allows."""
    assert cause == full.decision(Auto(least=5, most=10), 5, **settings).cause


def test_slots_that_code_fixes_become_shards(full: FullSlots) -> None:
    """Nothing else gives the queue more of them by itself, and the line says what is cheaper."""
    decision = full.decision(2, 2)

    assert ("shards", "proposal") == (decision.cause, decision.answer)
    assert decision.says.endswith("; its calls wait, and with a higher concurrency no move is needed")
