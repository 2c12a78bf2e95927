"""The calls of slots to the coordinator of their visit: of any kind, and saves of jobs with a cursor among them."""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final

from lowkiq_lambda.base.errors import LeaseLost
from lowkiq_lambda.engine.flight import Flight
from lowkiq_lambda.engine.leased_shard import LeasedShard
from lowkiq_lambda.store.shard.lease_replies import Checkpoint

CLOSED: Final = "The visit ends: nothing more is saved."


class Inbox:
    """Calls that other threads have posted. One that is interrupted stays first, and is made again."""

    def __init__(self) -> None:
        self._calls: deque[Callable[[], object]] = deque()
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._has_rung = False

    def post(self, call: Callable[[], object]) -> None:
        """From another thread: the call is made as soon as it can be."""
        self.add(call)
        self.ring()

    def add(self, call: Callable[[], object]) -> None:
        """From another thread: the call is made when the coordinator looks next."""
        self._calls.append(call)

    def ring(self) -> None:
        """Wake the coordinator: one ring is enough for all that was added until it looks."""
        if not self._has_rung:
            self._has_rung = True
            self._bell.put(None)

    def wait(self, seconds: float) -> bool:
        """Wait for a ring, at most `seconds`; whether there is a call. An interruption (Ctrl-C) loses no call."""
        with suppress(Empty):
            self._bell.get(timeout=0.0 if self._calls else seconds)
        # Before it looks: what comes from now on rings again.
        self._has_rung = False
        return bool(self._calls)

    def make_calls(self) -> None:
        """Make those that were posted until now, in order; what one raises is raised.

        Those that come meanwhile wait: slots that post again and again keep the coordinator from nothing else.
        """
        for _ in range(len(self._calls)):
            self._calls[0]()
            self._calls.popleft()


class SlotSaves:
    """How the jobs with a cursor of one visit save their progress from their slots: its coordinator writes it."""

    def __init__(self, shard: LeasedShard, flight: Flight, inbox: Inbox) -> None:
        self._shard = shard
        self._flight = flight
        self._inbox = inbox
        self.is_closed = False
        """Whether the visit ends, so that nothing more is saved."""

    def save(self, job_id: str, progress: bytes, *, clears: bool) -> Checkpoint:
        """In the slot: ask the coordinator to save it, and wait for the answer."""
        answers: SimpleQueue[Checkpoint | BaseException] = SimpleQueue()
        self._inbox.post(partial(self._save, answers, job_id, progress, clears=clears))
        # If the visit ends, its coordinator may be gone by now.
        answer = LeaseLost(CLOSED) if self.is_closed else answers.get()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _save(
        self, answers: "SimpleQueue[Checkpoint | BaseException]", job_id: str, progress: bytes, *, clears: bool
    ) -> None:
        if self.is_closed:
            answers.put(LeaseLost(CLOSED))
            return
        try:
            saved = self._shard.save(job_id, progress, clears=clears, left_since=self._flight.oldest_without(job_id))
            self._flight.since[job_id] = self._shard.now()
        except BaseException as error:
            answers.put(error)
            raise
        answers.put(saved)
