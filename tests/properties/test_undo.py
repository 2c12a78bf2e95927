"""Undo beside everything else that happens to a queue: nothing is lost, doubled, or done again."""

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import count
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from hypothesis.strategies import SearchStrategy

from lowkiq_lambda import Batch, Worker
from lowkiq_lambda.operate.acts.bulk_progress import Changed
from lowkiq_lambda.operate.acts.editing import EditRefused
from lowkiq_lambda.operate.queue_operations import QueueOperations
from lowkiq_lambda.testing import ManualClock
from lowkiq_lambda.views.requests import Requested
from tests.kit.apps import MakeApp
from tests.kit.examples import examples
from tests.kit.servers import Server
from tests.kit.stored import stored
from tests.kit.workers import declare

IDS = ("a", "b", "c")
EDITS = count(1)
NUMBERS = 10_000
"""An edit adds a multiple of this to a payload, which is the same one still."""


def of_requested(answer: Requested) -> Changed:
    """How many ids were cancelled at once, as other actions say it."""
    return Changed(len(answer.at_once), answer.action_id, int(bool(answer.action_id)))


def asked(_answer: Requested) -> Changed:
    """Nothing that could be undone."""
    return Changed(0)


def edit_one(queue: QueueOperations, ids: Iterable[str]) -> Changed:
    """Another payload in the place of the first that there is under these ids, unless it runs."""
    for job_id in ids:
        for one in queue.payloads(job_id)[:1]:
            payload = int(str(one.payload)) % NUMBERS + NUMBERS * next(EDITS)
            with suppress(EditRefused):
                return Changed(1, queue.edit(job_id, one.arrival, payload, reason="a test").action_id, 1)
    return Changed(0)


FAILING = st.sampled_from([{*IDS}, {*IDS}, {"a", "b"}, {"c"}, set[str]()])
ACTS: dict[str, Callable[[QueueOperations, list[str]], Changed]] = {
    "delete": lambda queue, ids: queue.waiting.delete(ids),
    "kill": lambda queue, ids: queue.waiting.kill(ids),
    "kill delayed": lambda queue, ids: queue.waiting.kill(ids, error="not now"),
    "requeue": lambda queue, ids: queue.morgue.requeue(ids),
    "requeue last": lambda queue, ids: queue.morgue.requeue(ids, order="last"),
    "delete dead": lambda queue, ids: queue.morgue.delete(ids),
    "run now": lambda queue, ids: queue.waiting.run_now(ids),
    "unblock": lambda queue, ids: queue.unblock(ids),
    "skip": lambda queue, ids: queue.unblock(ids, "skip"),
    "cancel": lambda queue, ids: of_requested(queue.cancel(ids)),
    "cancel and kill": lambda queue, ids: of_requested(queue.cancel(ids, kill=True)),
    "pause": lambda queue, ids: asked(queue.pause_jobs(ids, 45)),
    "resume": lambda queue, ids: asked(queue.resume_jobs(ids)),
    "edit": edit_one,
}
STEPS: SearchStrategy[Any] = st.tuples(
    st.sampled_from([*ACTS, *["undo"] * 6]), st.sampled_from([{*IDS}, {*IDS}, {"a", "b"}, {"c"}])
)


class UndoMachine(RuleBasedStateMachine):
    """Pushes, drains, acts and undoes, at any time; each payload is pushed once, so it can be followed."""

    make_app: MakeApp
    clock: ManualClock
    server: Server
    number: ClassVar[int] = 0
    undone: ClassVar[Counter[str]] = Counter()
    """How many ids were restored, and how many rows skipped, by reason."""

    @initialize(dead_head=st.sampled_from(["skip", "block"]), merge=st.sampled_from(["min", "never"]))
    def begin(self, dead_head: str, merge: str) -> None:
        """A queue of its own."""
        type(self).number += 1
        self.done: list[tuple[str, int]] = []
        self.pushed: set[tuple[str, int]] = set()
        self.deleted: set[tuple[str, int]] = set()
        self.actions: list[str] = []
        self.failing: set[str] = set()
        self.meanwhile: list[Any] = []
        fields: dict[str, Any] = {"dead_head": dead_head, "merge": merge, "max_retry_count": 1, "batch_size": 2}
        fields["retry_in"] = lambda _self, _count: 30.0
        self.app = type(self).make_app()
        self.worker: type[Worker] = declare(self.app, f"undo-{id(self)}-{self.number}", self.perform, **fields)
        (self.shard,) = self.app.core.queues.agreed(self.worker).shards

    def perform(self, batch: Batch) -> None:
        """Something is done meanwhile; then some fail."""
        while self.meanwhile:
            self.act(*self.meanwhile.pop())
        for job_id, payloads in batch.items():
            if job_id in self.failing:
                batch.fail(job_id, "no")
            else:
                self.done += [(job_id, payload % NUMBERS) for payload in payloads]

    @property
    def queue(self) -> QueueOperations:
        """As an operator has it."""
        return self.app.operate(self.worker)

    def there(self) -> Counter[tuple[str, int]]:
        """The payloads that the shard has."""
        found = stored(self.server.admin, self.shard)
        places: Counter[tuple[str, int]] = Counter()
        for name, entries in (("waiting", 0), ("morgue", 2)):
            for job_id, job in found[name].items():
                places.update((job_id, int(entry.payload) % NUMBERS) for entry in job[entries])
        return places

    @rule(ids=st.lists(st.sampled_from(IDS), min_size=2, max_size=6), delay=st.sampled_from([None, 60.0]))
    def push(self, ids: list[str], delay: float | None) -> None:
        """New payloads arrive."""
        for job_id in ids:
            payload = len(self.pushed)
            self.pushed.add((job_id, payload))
            self.worker.push(job_id, payload, score=payload, delay=delay)

    @rule(failing=FAILING, meanwhile=st.lists(STEPS, max_size=2))
    def drain(self, failing: set[str], meanwhile: list[Any]) -> None:
        """What is due is performed, while an operator acts."""
        if not self.there():
            self.push([*IDS], None)
        self.failing, self.meanwhile = failing, meanwhile
        self.app.drain()
        self.meanwhile = []

    @rule(step=STEPS)
    def operate(self, step: Any) -> None:
        """An operator acts."""
        self.act(*step)

    @rule()
    def there_and_back(self) -> None:
        """What is undone at once is as it was."""
        before = self.there()
        changed = self.queue.waiting.delete(everything=True)
        if changed:
            assert (changed, {}) == (self.queue.undo(changed.action_id).restored, {})
        assert before == self.there()

    @rule(name=st.sampled_from([*ACTS]))
    def act_and_undo(self, name: str) -> None:
        """What is undone at once is as it was, wherever payloads lie."""
        before = self.there()
        changed = ACTS[name](self.queue, [*IDS])
        if changed:
            undone = self.queue.undo(changed.action_id)
            assert (changed, {}) == (undone.restored, undone.skipped), name
            self.undone["at once " + name] += 1
            self.actions += [undone.action_id] if undone.action_id else []
        assert before == self.there(), name

    @rule(seconds=st.sampled_from([1.0, 31.0, 31.0, 601.0]))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.clock.advance(seconds)

    def act(self, name: str, ids: set[str]) -> None:
        """Act, or undo what was done, perhaps by an undo."""
        self.undone[name] += 1
        if name != "undo":
            changed: Changed = ACTS[name](self.queue, sorted(ids))
            self.actions += [changed.action_id] if changed.action_id else []
            return
        if not self.actions:
            return
        action_id = self.actions.pop(len(ids) % len(self.actions))
        try:
            result = self.queue.undo(action_id)
        except ValueError as error:
            assert "cannot be undone" in str(error)  # noqa: PT017 - it is too old, or all of its rows were taken
            return
        self.undone["restored"] += result.restored
        self.undone.update(result.skipped)
        self.actions += [result.action_id] if result.action_id else []

    def teardown(self) -> None:
        """Nothing waits for ever: all that is not dead is done once nobody holds it back."""
        self.failing = set()
        self.queue.resume_jobs(IDS)
        self.queue.unblock(IDS)
        self.clock.advance(601.0)
        while self.app.drain():
            self.clock.advance(601.0)
        assert {} == stored(self.server.admin, self.shard)["waiting"]
        self.nothing_is_doubled_and_what_is_done_stays_done()

    @invariant()
    def nothing_is_doubled_and_what_is_done_stays_done(self) -> None:
        """A payload is at one place; one that was done is nowhere; and nobody invents any."""
        places = self.there()
        assert {1} >= {*places.values()}
        assert not places.keys() & {*self.done}
        assert places.keys() <= self.pushed
        assert {1} >= {*Counter(self.done).values()}


@pytest.mark.hypothesis
@pytest.mark.timeout(900)
def test_undo_beside_everything(make_app: MakeApp, clock: ManualClock, server: Server) -> None:
    """All of it happens often enough to mean something."""
    fields = {"make_app": staticmethod(make_app), "clock": clock, "server": server, "undone": Counter(), "number": 0}
    machine: Any = type("Machine", (UndoMachine,), fields)
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples(2_400), stateful_step_count=30, deadline=None)
    )
    assert machine.undone["restored"] > 20, machine.undone
    assert machine.undone["ran meanwhile"] > 0
