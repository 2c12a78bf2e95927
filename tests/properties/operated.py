"""The machine with an operator beside the holders, and how often it runs.

LOWKIQ_TEST_EXAMPLES=10000 lets it run for longer than it does by itself.
"""

import os
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from lowkiq_lambda.operate.acts.action_scripts import ShardSnapshot
from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.store.server.connection import connect
from lowkiq_lambda.store.shard.nodes import FOREVER
from tests.kit.examples import examples
from tests.kit.servers import Server
from tests.kit.stored import stored
from tests.properties.disturbing import disturbance
from tests.properties.machine import IDS
from tests.properties.operators import TICKS, OperatedModel
from tests.properties.wakes import WokenMachine

EXAMPLES = int(os.environ.get("LOWKIQ_TEST_EXAMPLES", examples(320)))
"""More than of other properties: the tests count rare kinds of claims, and 40 examples had as few as eight of one."""
STEPS = 24

SEVERAL = st.lists(IDS, min_size=1, max_size=3, unique=True)


class OperatedMachine(WokenMachine):
    """With an operator beside the holders, who acts on what was there at the look, perhaps much later."""

    model: OperatedModel
    seen: ShardSnapshot | None = None

    def new_model(self, **fields: Any) -> OperatedModel:
        """One that knows of operators."""
        return OperatedModel(**fields)

    @disturbance()
    def look(self) -> None:
        """An operator looks at the shard."""
        (self.seen,) = self.shard.operator().runner.snapshots()
        failed = [job for job in self.model.waiting.values() if self.model.retry_count(job) >= 0]
        counts = len(self.model.waiting), len(failed), len(self.model.morgue)
        assert (self.model.arrival, *counts) == (
            self.seen.arrival,
            self.seen.waiting,
            self.seen.failed,
            self.seen.dead,
        )

    @disturbance(lambda self: self.seen, ids=SEVERAL)
    def delete(self, ids: list[str]) -> None:
        """Delete what waits under ids."""
        assert self.model.delete(self.look_taken(), ids) == self.acting().waiting.delete(ids)

    @disturbance(lambda self: self.seen)
    def delete_failed(self) -> None:
        """Delete what has failed."""
        assert self.model.delete_failed(self.look_taken()) == self.acting().waiting.delete(filter={"least_count": "0"})

    @disturbance(lambda self: self.seen)
    def kill_failed(self) -> None:
        """Send what has failed to the morgue."""
        assert self.model.kill_failed(self.look_taken()) == self.acting().waiting.kill(everything=True)

    @disturbance(lambda self: self.seen, ids=SEVERAL)
    def requeue(self, ids: list[str]) -> None:
        """Take ids from the morgue."""
        assert self.model.requeue(self.look_taken(), ids) == self.acting().morgue.requeue(ids)

    @disturbance(lambda self: self.seen)
    def requeue_all(self) -> None:
        """Take all that lies in the morgue."""
        assert self.model.requeue_all(self.look_taken()) == self.acting().morgue.requeue(everything=True)

    @disturbance(lambda self: self.seen, ids=SEVERAL)
    def delete_dead(self, ids: list[str]) -> None:
        """Delete ids from the morgue."""
        assert self.model.delete_dead(self.look_taken(), ids) == self.acting().morgue.delete(ids)

    @disturbance(lambda self: self.seen)
    def run_now(self) -> None:
        """Make all that waits for a later time due, in its order, before nothing that is due already."""
        if self.look_taken().at != self.model.now:
            # To this action "now" is what the look says.
            self.look()
        before = self.order()
        later = self.model.due_later(self.look_taken())
        assert len(later) == self.acting().waiting.run_now(everything=True)
        times = {id_: job[1] for id_, job in stored(self.server.admin, self.shard.ref)["waiting"].items()}
        if later:
            assert all(times[id_] <= self.model.now + TICKS for id_ in later)
            for id_, job in self.model.waiting.items():
                assert id_ in later or abs(times[id_] - job.due_at) <= TICKS
        self.model.take_times(times, later)
        assert [id_ for id_ in before if id_ in later] == [id_ for id_ in self.order() if id_ in later]
        due_before = [id_ for id_ in before if id_ not in later]
        assert due_before == [id_ for id_ in self.order() if id_ not in later]

    @disturbance(seconds=st.sampled_from([None, 10.0, 60.0]))
    def pause(self, seconds: float | None) -> None:
        """Nobody is to take the shard for a while."""
        self.model.pause(self.shard.operator().pause(seconds))
        assert self.model.paused_until == (FOREVER if seconds is None else self.model.now + seconds)

    @disturbance(lambda self: self.model.paused_until)
    def resume(self) -> None:
        """The pause ends."""
        self.shard.operator().resume()
        self.model.pause(0.0)

    def make_free(self) -> None:
        """A pause is over, too."""
        if self.model.now < self.model.paused_until:
            self.resume()
        super().make_free()

    @disturbance(late=st.booleans())
    def evict_holder(self, *, late: bool) -> None:
        """Nothing more is to be taken from who holds the shard, or from who held it before."""
        token = self.model.token - late
        assert self.model.evict(token) == self.shard.operator().in_flight.evict_holder(self.shard.ref, token)

    def order(self) -> list[str]:
        """Waiting ids by their time."""
        return sorted(self.model.waiting, key=lambda id_: (self.model.waiting[id_].due_at, id_.encode()))

    def look_taken(self) -> ShardSnapshot:
        """What the operator saw."""
        assert self.seen
        return self.seen

    def acting(self) -> QueueOperations:
        """Actions that begin with it."""
        return self.shard.operator(self.look_taken())


def run(machine: type[OperatedMachine], server: Server, examples: int, **more: Any) -> None:
    """So many examples of it, with more settings."""
    machine.server = server
    machine.client = connect(server.url, max_connections=2, timeout=5.0, pool_timeout=5.0)
    try:
        run_state_machine_as_test(
            machine, settings=settings(max_examples=examples, stateful_step_count=STEPS, deadline=None, **more)
        )
    finally:
        machine.client.close()
