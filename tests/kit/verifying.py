"""Verifies all queues that a test has opened: their journals record everything, and are judged in the end."""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pytest
from redis.cluster import RedisCluster

from lowkiq_lambda.base.errors import LowkiqError
from lowkiq_lambda.operate.inspect.journal_level import set_journal_level
from lowkiq_lambda.operate.verify.verifier import VerificationReport, Verifier
from lowkiq_lambda.store.server.faults import REDIS_ERRORS
from lowkiq_lambda.store.shard import declarations
from lowkiq_lambda.store.shard.backend import Backend
from lowkiq_lambda.store.shard.layout import QueueShards
from lowkiq_lambda.store.shard.reader import ShardReader
from lowkiq_lambda.views.journal import LONGEST

if TYPE_CHECKING:
    from lowkiq_lambda.store.server.connection import Client

PATIENCE: Final = 5.0
"""Seconds for which a server may be away that is asked for a journal."""


class VerifiedQueues:
    """The queues that this process opens, by their names."""

    def __init__(self) -> None:
        self._verifiers: dict[tuple[int, str], tuple[Client, Verifier]] = {}

    def recording(self, open_each: Callable[..., bool]) -> Callable[..., bool]:
        """What opens shards, and lets them record everything then."""

        def open_and_record(backend: Backend, shards: QueueShards, *others: Any) -> bool:
            is_open = open_each(backend, shards, *others)
            reader = ShardReader(backend, PATIENCE, shards)
            # A test that needs a server that is away is judged by what its journals have.
            with suppress(LowkiqError):
                set_journal_level(reader, "all", LONGEST, shards)
                self._verifiers.setdefault((id(backend), shards[0].queue_name), (backend.client, Verifier(reader)))
            return is_open

        return open_and_record

    def reports(self) -> list[VerificationReport]:
        """What is found in the journals that can still be read."""
        reports = []
        for client, verifier in self._verifiers.values():
            with suppress(LowkiqError, *REDIS_ERRORS):
                # The test may have closed its app, and a client of a cluster knows no node then.
                if isinstance(client, RedisCluster):
                    client.nodes_manager.initialize()
                reports.append(verifier.report())
        return reports


def verified(monkeypatch: pytest.MonkeyPatch) -> VerifiedQueues:
    """From now on this process's queues are verified."""
    queues = VerifiedQueues()
    monkeypatch.setattr(declarations, "open_each", queues.recording(declarations.open_each))
    return queues
