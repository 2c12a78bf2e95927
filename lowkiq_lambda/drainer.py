"""Makes visits to the shards of an app: what daemons, functions and `app.drain` share."""

import logging
import math
import os
import secrets
import socket
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from lowkiq_lambda.budget import Budget
from lowkiq_lambda.clock import Clock
from lowkiq_lambda.config import Config
from lowkiq_lambda.drain import DrainResult, DrainTerms, Visit
from lowkiq_lambda.job import PLACE, MorgueJob, ScoredPayload, score_of
from lowkiq_lambda.keeper import Keeper
from lowkiq_lambda.pace import Pace
from lowkiq_lambda.perform import Chain, Performer
from lowkiq_lambda.queue import Queue
from lowkiq_lambda.store.backend import Backend
from lowkiq_lambda.store.codec import load_json
from lowkiq_lambda.store.holding import HolderTerms, Holding, MorgueLimits
from lowkiq_lambda.store.keys import ShardRef
from lowkiq_lambda.store.state import ShardState, probe
from lowkiq_lambda.verdict import ErrorText

logger = logging.getLogger(__name__)

TURN = 0.25
"""Seconds after which a visit ends if another shard has work."""
PROBES = 10
"""How often, at most, all shards are probed in a poll interval."""
CRASHED = "crashed: the process died each time that this job ran alone"


class Drainer:
    """Visits shards, one visit per call; safe to use from several threads at once."""

    def __init__(
        self,
        config: Config,
        clock: Clock,
        backend: Backend,
        queues: Mapping[str, Queue],
        chain: Callable[[Chain], Chain],
    ) -> None:
        self._config = config
        self._clock = clock
        self._backend = backend
        self._queues = queues
        self._chain = chain
        self._keeper = Keeper()
        self._texts = ErrorText(config.format_error, config.dump_error, config.load_error, config.error_max_length)
        self._terms: dict[str, DrainTerms] = {}
        self._running: set[Visit] = set()
        self._lock = threading.Lock()
        self._beginning = threading.RLock()
        self._begun = False

    def begin(self) -> None:
        """Call the hook for the start of a process that drains: once, however often this is called."""
        # A thread that comes second waits until the hook is through; the hook itself may come here again.
        with self._beginning:
            if self._begun:
                return
            self._begun = True
            try:
                self._config.on_server_init()
            except Exception:
                logger.exception("on_server_init raised")

    def now(self, shard: ShardRef) -> float:
        """Unix seconds by the shard's own server. Raises BackendError where it has to be asked and can't."""
        return self._backend.now(shard)

    def shards(self) -> list[ShardRef]:
        """All shards, in order of the workers' declaration (L-57)."""
        return [shard for queue in self._queues.values() for shard in queue.shards]

    def probe(self, shards: Sequence[ShardRef], patience: float = 0.0) -> list[ShardState]:
        """What there is to do in each, in one round trip for each node.

        Raises QueueMismatch, and BackendError where Redis cannot serve for `patience` seconds.
        """
        for name in {shard.queue_name: None for shard in shards}:
            self._ensure_declared(self._queues[name], patience)
        return probe(self._backend, shards, patience)

    def visit(self, shard: ShardRef, budget: Budget) -> DrainResult:
        """Drain a shard as far as the budget allows; see `Visit.drain` for what it raises."""
        queue = self._queues[shard.queue_name]
        self._ensure_declared(queue, min(self._config.patience, budget.remaining()))
        self.begin()
        holding = Holding(self._backend, shard, secrets.token_hex(12), self._holder_terms(queue))
        visit = Visit(self._terms_of(queue), holding, budget, partial(self._backend.now, shard))
        with self._lock:
            self._running.add(visit)
        try:
            return visit.drain()
        finally:
            with self._lock:
                self._running.discard(visit)

    def drain(self, budget: Budget) -> Counter[str]:
        """Visit shards, the most lagging first, until nothing is due or the budget ends; ids by outcome."""
        counts: Counter[str] = Counter()
        refused: dict[ShardRef, float] = {}
        while True:
            asked_at = self._clock.monotonic()
            due = self._due(refused, budget)
            if not due:
                return counts
            answered_at = self._clock.monotonic()
            # Looking at very many shards takes its time: nine tenths are for the work.
            stale_at = answered_at + max(self._config.poll_interval / PROBES, 9 * (answered_at - asked_at))
            turn = TURN if len(due) > 1 else math.inf
            for shard in due:
                if refused.get(shard, -math.inf) < self._clock.monotonic():
                    counts += self._take_turn(shard, budget.for_turn(turn), refused)
                if budget.against_batch(0.0) or self._clock.monotonic() >= stale_at:
                    break

    def _due(self, refused: Mapping[ShardRef, float], budget: Budget) -> list[ShardRef]:
        """The shards to visit, most lagging first; none where the budget has ended."""
        if budget.against_batch(0.0):
            return []
        states = self.probe(self.shards(), min(self._config.patience, budget.remaining()))
        now = self._clock.monotonic()
        due = [state for state in states if state.has_work and refused.get(state.ref, -math.inf) < now]
        return [state.ref for state in sorted(due, key=lambda state: state.lag, reverse=True)]

    def _take_turn(self, shard: ShardRef, turn: Budget, refused: dict[ShardRef, float]) -> Counter[str]:
        result = self.visit(shard, turn)
        if result.token is None or result.reason == "lease lost":
            refused[shard] = self._clock.monotonic() + self._config.poll_interval
        elif result.reason == "out of time":
            # No further batch of this queue is predicted to fit; one of another queue may.
            refused.update(dict.fromkeys(self._queues[shard.queue_name].shards, math.inf))
        return result.counts

    def abandon_all(self, seconds: float) -> None:
        """Before the process exits: what runs is marked interrupted, its shards are free after `seconds`."""
        with self._lock:
            running = list(self._running)
        for visit in running:
            visit.abandon(seconds)

    def _ensure_declared(self, queue: Queue, patience: float) -> None:
        queue.ensure_declared(self._backend, self._config.codec_name, patience)

    def _terms_of(self, queue: Queue) -> DrainTerms:
        name, config = queue.worker.queue_name, self._config
        with self._lock:
            if name not in self._terms:
                load = config.load_payload or load_json
                self._terms[name] = DrainTerms(
                    worker=queue.worker,
                    performer=Performer(queue.worker, self._chain, load, self._texts.read),
                    texts=self._texts,
                    pace=Pace(),
                    keeper=self._keeper,
                    clock=self._clock,
                    owner=f"{socket.gethostname()}:{os.getpid()}",
                    lease_ttl=config.lease_ttl,
                    ack_interval=config.ack_interval,
                    claim_payloads=config.claim_payloads,
                    claim_bytes=config.claim_bytes,
                    after_burial=partial(self._tell_buried, queue),
                )
            return self._terms[name]

    def _holder_terms(self, queue: Queue) -> HolderTerms:
        config = self._config
        morgue = MorgueLimits(config.morgue_max_entries, config.morgue_max_bytes, config.morgue_max_age)
        return HolderTerms(config.lease_ttl, queue.worker.merge, morgue, self._texts.dump(CRASHED))

    def _tell_buried(self, queue: Queue, buried: Sequence[tuple[str, bytes, bytes]]) -> None:
        """Call the worker's hook; what is in the morgue stays there whatever it raises."""
        try:
            queue.worker().retries_exhausted([self._morgue_job(*one) for one in buried])
        except Exception:
            logger.exception("%s.retries_exhausted raised", queue.worker.__name__)

    def _morgue_job(self, job_id: str, entry: bytes, error: bytes) -> MorgueJob:
        payload: object
        try:
            payload = (self._config.load_payload or load_json)(entry[PLACE:])
        except Exception:  # noqa: BLE001 - whatever the codec raises, the raw bytes are shown
            payload = entry[PLACE:]
        text = self._texts.read(error)
        return MorgueJob(job_id, [ScoredPayload(payload, score_of(entry))], self._clock.time(), text)
