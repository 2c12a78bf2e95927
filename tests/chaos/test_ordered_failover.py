"""A failover that somebody orders, both sides alive, under Sentinels that look as seldom as they do by default."""

import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from threading import Event
from typing import Any
from uuid import uuid4

import pytest

from lowkiq_lambda import BackendError, Config, Lowkiq
from lowkiq_lambda.store.server.connection import connect
from lowkiq_lambda.store.server.health import check_server
from lowkiq_lambda.store.shard.keys import ShardRef
from tests.kit.apps import close_app
from tests.kit.handlers import Notes
from tests.kit.servers import SentinelSetup
from tests.kit.waiting import eventually
from tests.kit.workers import declare

AFTER = 4.0
"""Seconds for which pushes go on: fewer than a Sentinel takes to make a replica of the old primary."""
BETWEEN_PUSHES = 0.005
"""Seconds: some hundred pushes a second, which leave a machine of two cores room for seven servers."""
ON_THEIR_WAY = 0.1
"""Seconds, at most, between the first and the last push that a promotion overtakes on the way to the replica."""


class Producer:
    """Pushes one job after the other, and remembers when each was accepted."""

    def __init__(self, setup: SentinelSetup) -> None:
        self.accepted: dict[str, float] = {}
        self.queue_name = f"queue-{uuid4().hex}"
        self._app = Lowkiq(Config(redis_url=setup.url, redis_timeout=2.0))
        self._worker = declare(self._app, self.queue_name, Notes())

    def never_ask(self) -> None:
        """Let it find out by errors alone where the primary is."""
        pool: Any = self._app.core.backend.client.connection_pool  # type: ignore[union-attr]  # no cluster
        pool._asks_at = math.inf

    def push_until(self, stop: Event) -> None:
        """Until the test has seen enough."""
        while not stop.wait(BETWEEN_PUSHES):
            job_id = str(len(self.accepted))
            with suppress(BackendError):
                self._worker.push_many([{"id": job_id}])
                self.accepted[job_id] = time.monotonic()
        close_app(self._app)

    def lost(self, setup: SentinelSetup) -> list[float]:
        """When those were accepted of which the new primary knows nothing."""
        found: list[Any] = setup.primary.admin.hkeys(ShardRef(self.queue_name, 1, 0).key("jobs"))
        kept = {job_id.decode() for job_id in found}
        return [at for job_id, at in self.accepted.items() if job_id not in kept]


def fail_over(setup: SentinelSetup, producers: list[Producer]) -> float:
    """Order it while they push; when another primary was there."""
    stop = Event()
    with ThreadPoolExecutor(len(producers)) as threads:
        at_work = [threads.submit(producer.push_until, stop) for producer in producers]
        try:
            eventually(lambda: all(len(producer.accepted) > 20 for producer in producers))
            setup.failover()
            failed_over_at = time.monotonic()
            stop.wait(AFTER)
        finally:
            stop.set()
        for one in at_work:
            one.result()
    return failed_over_at


@pytest.fixture
def setups() -> Iterator[tuple[SentinelSetup, SentinelSetup]]:
    """Without and with `min-replicas-to-write 1`, started side by side."""
    careless, careful = SentinelSetup(hurried=False), SentinelSetup(hurried=False, min_replicas=1)
    with ExitStack() as stack:
        stack.callback(careless.close)
        stack.callback(careful.close)
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(SentinelSetup.start, (careless, careful)))
        yield careless, careful


def test_p2_what_an_ordered_failover_loses_without_and_with_a_replica_that_must_have_it(
    setups: tuple[SentinelSetup, SentinelSetup],
) -> None:
    """P2: who asks the Sentinels leaves the old primary soon; one that needs a replica refuses at once."""
    careless, careful = setups
    forgetful, asking, safe = Producer(careless), Producer(careless), Producer(careful)
    forgetful.never_ask()
    with ThreadPoolExecutor(2) as threads:
        ordered = threads.submit(fail_over, careless, [forgetful, asking])
        threads.submit(fail_over, careful, [safe]).result()
        at = ordered.result()

    assert max(forgetful.lost(careless)) > at + AFTER / 2
    assert max(asking.lost(careless)) < at + AFTER / 2
    assert max(asking.accepted.values()) > at + AFTER / 2
    # Those that were on their way to the replica when that was promoted, if any.
    lost = safe.lost(careful)
    assert not lost or max(lost) - min(lost) < ON_THEIR_WAY


def test_a_server_that_needs_no_replica_is_warned_of_where_sentinels_name_it(
    setups: tuple[SentinelSetup, SentinelSetup],
) -> None:
    """P2: the check at the start says what to set, and nothing where it is set."""
    careless, careful = (connect(one.url, max_connections=1, timeout=5, pool_timeout=1) for one in setups)

    (warning,) = check_server(careless)

    assert "min-replicas-to-write" in warning
    assert [] == check_server(careful)
