"""Ten shards and their execution environments: what schedules, retries and AWS's bad days do to them."""

import random
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from lowkiq_lambda import Config, Lowkiq
from lowkiq_lambda.store.shard.keys import ShardRef
from tests.aws.runtime.function_stage import DRAIN
from tests.kit.replay.app import HISTORY_VARIABLE, QUEUE_VARIABLE, SHARDS_VARIABLE, replay_worker
from tests.kit.replay.history import push_noted
from tests.kit.servers import Server
from tests.kit.servers.lambda_outcome import Crashed, Error, Invocation, Killed
from tests.kit.servers.lambda_runtime import LambdaEnvironment
from tests.kit.waiting import eventually
from tests.proof.history import Recorder

SHARDS: Final = 10
SPARE: Final = 2
"""Environments that get the same event as another."""
CHUNK: Final = 200
BACKLOG: Final = 700
"""Ids that may wait: pushes go on as long as the functions do."""
LONGEST: Final = 2.0
"""Seconds after which a run is killed; without a reserve some are in the middle of a batch then."""


class Fleet:
    """A queue, the process that pushes to it, and an environment for each shard."""

    def __init__(self, server: Server, queue_name: str, folder: Path, lease_ttl: float) -> None:
        self._server = server
        self.history = Recorder(folder / "history")
        self.app = Lowkiq(Config(redis_url=server.url))
        self.worker = replay_worker(self.app, queue_name, self.history, SHARDS)
        self.shards = [ShardRef(queue_name, SHARDS, index) for index in range(SHARDS)]
        settings = {
            "LOWKIQ_APP": "tests.kit.replay.app:app",
            "LOWKIQ_REDIS_URL": server.url,
            "LOWKIQ_LEASE_TTL": str(lease_ttl),
            "LOWKIQ_RESERVE": "0",
            QUEUE_VARIABLE: queue_name,
            HISTORY_VARIABLE: str(folder / "history"),
            SHARDS_VARIABLE: str(SHARDS),
        }
        self._idle = [LambdaEnvironment(DRAIN, settings, folder) for _ in range(SHARDS + SPARE)]
        self._busy: dict[LambdaEnvironment, tuple[int, Invocation]] = {}
        self.errors: list[str] = []
        """What those said that ended in an error."""
        self.kills = 0

    def begin_pushing(self, jobs: Sequence[Mapping[str, Any]], kills_to_come: int) -> None:
        """Push them in their order, no faster than they are worked off; so much of them as of the kills is done."""
        self._pushing = threading.Thread(target=self._push_all, args=(jobs, kills_to_come))
        self._pushing.start()

    def _push_all(self, jobs: Sequence[Mapping[str, Any]], kills_to_come: int) -> None:
        for at in range(0, len(jobs), CHUNK):
            eventually(partial(self._is_next, kills_to_come * at / len(jobs)), timeout=60.0)
            push_noted(self.worker, self.history, jobs[at : at + CHUNK])

    def _is_next(self, kills: float) -> bool:
        length = self.app.operate.stats()["total"]["length"]
        return length < BACKLOG and (self.kills >= kills or not length)

    def is_done(self) -> bool:
        """Whether all is pushed, and nothing waits, is in flight or runs."""
        keys = [shard.key(name) for shard in self.shards for name in ("due", "flight")]
        return not self._pushing.is_alive() and not self._busy and not self._server.admin.exists(*keys)

    def tick(self, rng: random.Random) -> None:
        """Note which runs ended, and start one for each shard with work that has none; now and then two."""
        for environment, (_, invocation) in list(self._busy.items()):
            if invocation.is_over:
                outcome = invocation.outcome()
                self.errors += [outcome.message] if isinstance(outcome, Error) else []
                if isinstance(outcome, Crashed | Killed):
                    self.history.write("died", process=outcome.pid)
                del self._busy[environment]
                self._idle.append(environment)
        served = {index for index, _ in self._busy.values()}
        for state in self.app.core.drains.drainer.probe(self.shards):
            if state.has_work and state.ref.index not in served:
                self._begin(state.ref.index)
                if rng.random() < 0.1:
                    self._begin(state.ref.index)

    def _begin(self, index: int) -> None:
        if self._idle:
            environment = self._idle.pop(0)
            self._busy[environment] = index, environment.begin({"shard": index}, LONGEST)

    def kill_one(self, rng: random.Random) -> bool:
        """SIGKILL for one that works on a shard with jobs in flight; whether there was one."""
        found = [
            (environment, invocation)
            for environment, (index, invocation) in self._busy.items()
            if not invocation.is_over and self._server.admin.exists(self.shards[index].key("flight"))
        ]
        if found:
            environment, invocation = rng.choice(found)
            environment.kill()
            # It may just have come to its end by itself.
            self.kills += isinstance(invocation.outcome(), Crashed)
        return bool(found)

    def close(self) -> None:
        """End what is left."""
        for environment in [*self._idle, *self._busy]:
            environment.close()
        self._pushing.join()
        self.history.close()
