"""The processes of a storm: one that pushes, and those that drain. Both run until they are killed."""

import random
import sys
import threading
import time
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

import msgspec
from redis import RedisError

from lowkiq_lambda import Batch, Config, Later, Lowkiq, LowkiqError, Worker
from lowkiq_lambda.jobs.job import shard_for
from lowkiq_lambda.store.shard import backend
from tests.chaos.storm import mutants
from tests.chaos.storm.clock import reading_clock
from tests.chaos.storm.versions import upgraded_script
from tests.kit.acknowledged import Acknowledged
from tests.kit.trust import has_lost_its_lease
from tests.proof.history import Recorder

SHARDS = 2
BAD = "bad"
"""How the ids begin that always fail."""
RETRIES = 2
IN_PART = 0.2
"""Of the runs of several payloads of an id how many perform the first ones alone."""
GOOD_IDS = [f"good-{number}" for number in range(16)]
BAD_IDS = [f"{BAD}-{number}" for number in range(3)]
BRIEF = "brief"
"""How the ids begin of which some payloads expire."""
BRIEF_IDS = [f"{BRIEF}-{number}" for number in range(4)]
EXPIRE_IN = (-5.0, 0.3, 1.0, 3_600.0, None)
"""Seconds: some are over when they are pushed, some wait that long or do not, and some are not over at all."""
BAD_SHARE = 0.4
TURNS = (0.05, 0.05, 0.1, 1.0)
"""Seconds of a drain: a short one leaves jobs behind that are due."""
BACKLOG = 30
"""Payloads that may wait: storms end soon after the last push."""

_pause = threading.Event()


class Scene(msgspec.Struct, frozen=True):
    """Where a storm takes place.

    `clock`: a file with the seconds by which processes take the server's clock to be ahead; None if it is right.
    `upgraded`: the process is of the next version of the library, whose scripts differ.
    """

    url: str
    queue_name: str
    history: Path
    lease_ttl: float
    mutant: str = ""
    clock: Path | None = None
    upgraded: bool = False

    def app(self) -> Lowkiq:
        """An app of this process, without its worker; where there is a mutant, the process is one from now on."""
        if self.mutant:
            mutants.apply(self.mutant)
        if self.upgraded:
            vars(backend)["script"] = upgraded_script
        config = Config(
            redis_url=self.url,
            lease_ttl=self.lease_ttl,
            poll_interval=0.2,
            redis_timeout=0.3,
            settle_interval=0.02,
            claim_payloads=12,
        )
        return Lowkiq(config)

    @classmethod
    def decoded(cls, text: str) -> "Scene":
        """What `encoded` made."""
        return msgspec.json.decode(text, type=cls, dec_hook=lambda kind, value: kind(value))

    @property
    def encoded(self) -> str:
        """For a process that is not forked."""
        return msgspec.json.encode(self, enc_hook=str).decode()

    def lasting(self) -> AbstractContextManager[None]:
        """What this process takes the server's clock for, in the block."""
        return reading_clock(self.clock) if self.clock else nullcontext()

    def declare(self, app: Lowkiq, seed: int) -> type[Worker]:
        """The worker; its handler takes some milliseconds, and notes what it is given."""
        scene, history, rng = self, Recorder(self.history), random.Random(seed)
        app.observers.append(Acknowledged(history))

        class Noting(Worker):
            queue_name = scene.queue_name
            shards_count = SHARDS
            batch_size = 3
            max_retry_count = RETRIES

            def retry_in(self, retry_count: int) -> float:
                return 0.02 * (retry_count + 1)

            def perform(self, batch: Batch) -> None:
                parts = {job_id: _part_of(job_id, payloads, rng) for job_id, payloads in batch.items()}
                for job_id, payloads in parts.items():
                    scope = str(shard_for(job_id, SHARDS))
                    history.write("begin", job_id, payloads, token=batch.token, scope=scope)
                _pause.wait(rng.expovariate(100))
                for job_id in batch:
                    is_bad = job_id.startswith(BAD)
                    if is_bad:
                        batch.fail(job_id, "always")
                    # If it has its lease still, it had it at that time; it may have lost it once this is written.
                    at = time.monotonic()
                    outcome = "stale" if has_lost_its_lease(batch) else "failed" if is_bad else "done"
                    history.write("end", job_id, at=at, outcome=outcome, token=batch.token)
                    if len(parts[job_id]) < len(batch[job_id]):
                        # To whoever reads it nobody was handed the others.
                        for position in range(len(parts[job_id])):
                            batch.done(job_id, payload=position)
                        batch.put_off(job_id, Later(0.02))

        return app.worker(Noting)


def _part_of(job_id: str, payloads: list[int], rng: random.Random) -> list[int]:
    """Those that a run performs: now and then only the first of several, and then the others are put off."""
    in_part = len(payloads) > 1 and not job_id.startswith((BAD, BRIEF)) and rng.random() < IN_PART
    return payloads[: rng.randrange(1, len(payloads))] if in_part else payloads


def drain(scene: Scene, seed: int) -> None:
    """Drain again and again."""
    with scene.lasting():
        _drain(scene, seed)


def push(scene: Scene, seed: int) -> None:
    """Push runs of numbers in no order, each run of an id in one call; a later pusher has higher numbers."""
    with scene.lasting():
        _push(scene, seed)


def _drain(scene: Scene, seed: int) -> None:
    app, rng = scene.app(), random.Random(seed)
    scene.declare(app, seed)
    while True:
        try:
            app.drain(seconds=rng.choice(TURNS))
        except LowkiqError:
            # Faults of the storm; the next drain tries again.
            _pause.wait(0.05)
        _pause.wait(0.01)


def _push(scene: Scene, seed: int) -> None:
    app, history, rng = scene.app(), Recorder(scene.history), random.Random(seed)
    worker = scene.declare(app, seed)
    first = 1_000_000 * seed
    while True:
        _pause.wait(rng.uniform(0.0, 0.03))
        with suppress(LowkiqError, RedisError):
            if (
                sum(
                    int(app.core.backend.client.zcard(shard.key("box")))
                    for shard in app.core.queues.agreed(worker).shards
                )
                > BACKLOG
            ):
                continue
        runs = {
            job_id: range(first, first + rng.choice([1, 2, 3, 5, 20]))
            for job_id in rng.sample(GOOD_IDS, rng.randint(1, 6))
        }
        if rng.random() < BAD_SHARE:
            runs[rng.choice(BAD_IDS)] = range(first, first + rng.randint(1, 2))
        expires_in = rng.choice(EXPIRE_IN)
        brief = {job_id: range(first, first + rng.randint(1, 3)) for job_id in rng.sample(BRIEF_IDS, rng.randint(0, 2))}
        runs |= brief
        first += 20
        pairs = [(job_id, number) for job_id, run in runs.items() for number in run]
        rng.shuffle(pairs)
        over: dict[str, Any] = {} if expires_in is None else {"expires_at": time.time() + expires_in}
        jobs: list[dict[str, Any]] = [
            {"id": job_id, "payload": number, "score": number, **(over if job_id in brief else {})}
            for job_id, number in pairs
        ]
        sent = {job_id: [number for one, number in pairs if one == job_id] for job_id in runs}
        # The server is on this machine, and has its clock.
        expires = None if expires_in is None else time.monotonic() + expires_in
        for job_id, numbers in sent.items():
            history.write("push-begin", job_id, numbers, expires=expires if job_id in brief else None)
        # What broke off may be written: the next runs follow it either way, and its push stays open.
        with suppress(LowkiqError):
            worker.push_many(jobs)
            for job_id, numbers in sent.items():
                history.write("push-end", job_id, numbers, outcome="ok")


if __name__ == "__main__":
    name, orders, number = sys.argv[1:]
    {"drain": drain, "push": push}[name](Scene.decoded(orders), int(number))
