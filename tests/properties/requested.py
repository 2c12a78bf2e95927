"""A queue of one shard whose handler and operators do at random what they may, beside a model of its payloads.

A payload is a number, and no two are equal. In the model it is `live` from its push on until it is done, or cancelled.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from lowkiq_lambda import Batch, Lowkiq, Worker
from lowkiq_lambda.store.shard.keys import REQUESTS
from lowkiq_lambda.testing import ManualClock
from tests.kit.deaths import Mortal, outlive
from tests.kit.looks import left_behind
from tests.kit.workers import declare

IDS: Final = ("t:a", "t:b", "u:c")
Act: TypeAlias = tuple[str, str]
"""What is done, and to which id."""
MOST_DEATHS: Final = 2
"""Of one example: the third crash of a payload kills it."""


class RequestedQueue:
    """The queue, and what has to be true of it."""

    def __init__(self, app: Lowkiq, clock: ManualClock, queue_name: str, **fields: Any) -> None:
        self.app = app
        self.task = app.task("some")
        self.clock = clock
        self.mortal = Mortal(app)
        self.live: dict[str, list[int]] = {job_id: [] for job_id in IDS}
        self.ended: list[int] = []
        self.paused: dict[str, float] = {}
        self.doomed: dict[str, list[int]] = {}
        """What was in flight of ids when they were cancelled."""
        self.pushed = 0
        self.deaths = 0
        self.runs: list[Sequence[Act]] = []
        self.wrong: list[str] = []
        self.acts: dict[str, Callable[[str], object]] = {
            "push": self.push,
            "cancel": self.cancel,
            "kill": self.kill,
            "pause": self.pause,
            "resume": self.resume,
            "end": self.end_task,
        }
        self.worker: type[Worker] = declare(app, queue_name, self.handle, batch_size=2, merge="never", **fields)
        self.desk = app.operate(self.worker)

    def now(self) -> float:
        """As the shard has it."""
        return self.app.core.backend.now(self.desk.reader.shards[0])

    def in_flight(self, job_id: str) -> list[int]:
        """The payloads of the id that are, perhaps of a batch that has not begun, or of a holder that is dead."""
        return [int(str(payload)) for job in self.desk.in_flight.fetch([job_id]) for payload, _ in job.payloads]

    def drop(self, job_id: str, payloads: list[int]) -> None:
        """They are live no more."""
        self.live[job_id] = [one for one in self.live[job_id] if one not in payloads]

    def push(self, job_id: str) -> None:
        """One more payload."""
        self.pushed += 1
        self.task.push(self.worker, job_id, self.pushed)
        self.live[job_id].append(self.pushed)

    def cancel(self, job_id: str, *, kill: bool = False) -> None:
        """What waits is gone at once; what runs unless it is done."""
        running = self.in_flight(job_id)
        answer = self.desk.cancel([job_id], kill=kill)
        waits = [payload for payload in self.live[job_id] if payload not in running]
        self.live[job_id] = [payload for payload in self.live[job_id] if payload in running]
        if running:
            self.doomed[job_id] = running
        self._expect("in_flight" if running else "at_once" if waits else "gone", answer, job_id)

    def end_task(self, _job_id: str) -> None:
        """The same of all ids: each payload that is live is of the task, and later ones are of another."""
        running = {job_id: self.in_flight(job_id) for job_id in IDS}
        if self.task.cancel(running=True):
            self.wrong.append("items wait on")
        self.task = self.app.task("some")
        self.live = {job_id: [one for one in self.live[job_id] if one in running[job_id]] for job_id in IDS}
        self.doomed |= {job_id: payloads for job_id, payloads in running.items() if payloads}

    def kill(self, job_id: str) -> None:
        """The same, to the morgue."""
        self.cancel(job_id, kill=True)

    def pause(self, job_id: str) -> None:
        """For a while."""
        answer = self.desk.pause_jobs([job_id], 60)
        self.paused[job_id] = max(self.paused.get(job_id, 0.0), self.now() + 60)
        is_running = bool(self.in_flight(job_id))
        self._expect("in_flight" if is_running else "at_once" if self.live[job_id] else "gone", answer, job_id)

    def resume(self, job_id: str) -> None:
        """It may run again."""
        self.desk.resume_jobs([job_id])
        self.paused.pop(job_id, None)

    def handle(self, batch: Batch) -> None:
        """As a handler: looks at what it is handed, does what the example says, and ends so."""
        acts = self.runs.pop(0) if self.runs else ()
        given = {job_id: [int(str(payload)) for payload in batch[job_id]] for job_id in batch}
        self._look_at(given)
        self.act(acts)
        ends = {job_id: word for word, job_id in acts if word in {"fail", "die"} and job_id in batch}
        if "die" in ends.values() and self.deaths < MOST_DEATHS:
            self.deaths += 1
            self.mortal.die()
            return
        for job_id, payloads in given.items():
            self._end(batch, job_id, payloads, is_done=job_id not in ends)

    def act(self, acts: Sequence[Act]) -> None:
        """Operators and producers do this."""
        for word, job_id in acts:
            if word in self.acts:
                self.acts[word](job_id)

    def _look_at(self, given: dict[str, list[int]]) -> None:
        for job_id, payloads in given.items():
            if self.paused.get(job_id, 0.0) > self.now() + 0.2:
                self.wrong.append(f"{job_id} runs in its pause")
            if self.doomed.get(job_id, payloads) != payloads:
                # It was given back before it began.
                self.drop(job_id, self.doomed.pop(job_id))
            if payloads != self.live[job_id][: len(payloads)]:
                self.wrong.append(f"{job_id} is handed {payloads}, and not {self.live[job_id]}")

    def _end(self, batch: Batch, job_id: str, payloads: list[int], *, is_done: bool) -> None:
        if is_done:
            self.ended += payloads
        else:
            batch.fail(job_id, "failed")
        if is_done or job_id in self.doomed:
            self.drop(job_id, payloads)
        self.doomed.pop(job_id, None)

    def drain(self, runs: Sequence[Sequence[Act]]) -> None:
        """The handler does these, run by run, and nothing more after them."""
        self.runs = list(runs)
        # What a dead holder had in its hands is recovered, unless nobody wants it any more.
        self._drop_doomed()
        if self.mortal.drain() is None:
            outlive(self.app, self.clock, self.worker)
        else:
            self._drop_doomed()

    def end(self) -> None:
        """All that is left is done, and nothing is forgotten or left behind."""
        for _ in range(8):
            self.clock.advance(600)
            self.drain([])
        shard = self.desk.reader.shards[0].using((REQUESTS,))
        assert [] == self.wrong
        assert {job_id: [] for job_id in IDS} == self.live
        assert sorted(set(self.ended)) == sorted(self.ended)
        left = left_behind(self.app, self.worker)
        # A pause of an id without payloads stays until somebody claims one, or resumes it.
        self.desk.resume_jobs([*IDS])
        assert ({}, 0) == (left, self.app.core.backend.client.hlen(shard.key(REQUESTS)))

    def _drop_doomed(self) -> None:
        for job_id, payloads in self.doomed.items():
            self.drop(job_id, payloads)
        self.doomed = {}

    def _expect(self, name: str, answer: Any, job_id: str) -> None:
        lists = {field: getattr(answer, field) for field in ("at_once", "in_flight", "gone")}
        if lists != {field: [job_id] * (field == name) for field in lists}:
            self.wrong.append(f"{job_id}: {answer}, and not {name}")
