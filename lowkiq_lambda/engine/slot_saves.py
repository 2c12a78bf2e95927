"""How jobs with a cursor that run in slots save their progress: the coordinator of their visit writes it."""

from functools import partial
from queue import SimpleQueue
from typing import Final

from lowkiq_lambda.base.errors import LeaseLost
from lowkiq_lambda.engine.flight import Flight
from lowkiq_lambda.engine.inbox import Inbox
from lowkiq_lambda.engine.leased_shard import LeasedShard
from lowkiq_lambda.store.shard.lease_replies import Checkpoint

CLOSED: Final = "The visit ends: nothing more is saved."


class SlotSaves:
    """Of one visit."""

    def __init__(self, shard: LeasedShard, flight: Flight, inbox: Inbox) -> None:
        self._shard = shard
        self._flight = flight
        self._inbox = inbox
        self.is_closed = False
        """Whether the visit ends, so that nothing more is saved."""

    def save(self, job_id: str, progress: bytes, *, clears: bool) -> Checkpoint:
        """In the slot: have the coordinator save it, and wait for the answer."""
        answers: SimpleQueue[Checkpoint | BaseException] = SimpleQueue()
        self._inbox.post(partial(self._save, answers, job_id, progress, clears=clears))
        # Where the visit ends, its coordinator may be gone by now.
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
