"""A cache that is restored from a snapshot: what was done since is repeated, what was pushed since is gone (E-49)."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from lowkiq_lambda import Batch, Config, Lowkiq, Worker
from tests.kit.servers import Server
from tests.kit.waiting import eventually
from tests.kit.workers import declare

pytestmark = pytest.mark.unverified("the server goes back in time")


class Handing(NamedTuple):
    """What the handler got."""

    id: str
    payloads: list[int]
    token: int
    repeated: bool


class Snapshot:
    """The data of a server at a moment, as a file beside it."""

    def __init__(self, server: Server, folder: Path) -> None:
        self._server = server
        self._file = folder / "snapshot.rdb"

    def take(self) -> None:
        """Keep what the server has now."""
        self._server.admin.save()
        shutil.copy(self._server.data_dir / "dump.rdb", self._file)

    def restore(self) -> None:
        """The server is gone, and one with the data of the snapshot stands in its place."""
        self._server.kill()
        shutil.copy(self._file, self._server.data_dir / "dump.rdb")
        self._server.start()


def drain_all(app: Lowkiq, worker: type[Worker]) -> None:
    """Drain until nothing waits and nothing is in flight."""

    def is_empty() -> bool:
        metrics = app.operate.metrics()[worker.queue_name]
        return not (metrics.length or metrics.in_flight)

    eventually(lambda: app.drain() and is_empty())


def test_a_restored_snapshot_repeats_what_was_done_since_in_order(server: Server, tmp_path: Path) -> None:
    """Its jobs run again, also one in flight then; a batch that runs over the restore has no effect on the queue."""
    app, calls = Lowkiq(Config(redis_url=server.url, lease_ttl=0.5)), list[Handing]()
    snapshot = Snapshot(server, tmp_path)
    at = {"in flight": snapshot.take, "over the restore": snapshot.restore}

    def perform(batch: Batch) -> None:
        for job_id, payloads in batch.items():
            calls.append(Handing(job_id, payloads, batch.token, batch.job(job_id).repeated))
            if job_id in at:
                at.pop(job_id)()

    worker = declare(app, "W", perform, shards_count=1)
    worker.push("done before", 1)
    app.drain()
    worker.push("in flight", 1)
    worker.push("in flight", 2)
    worker.push("waits", 1, delay=0.1)
    worker.push("waits", 2, delay=0.1)
    drain_all(app, worker)
    worker.push("since", 1)
    app.drain()
    worker.push("over the restore", 1)
    app.drain()
    before, calls[:] = [*calls], []

    drain_all(app, worker)

    again = {call.id: call.payloads for call in calls}
    assert {"in flight": [1, 2], "waits": [1, 2]} == again
    assert [call.repeated for call in calls if call.id == "in flight"] == [True]
    assert max(call.token for call in before) < min(call.token for call in calls)
    assert {"done before", "since", "over the restore"} <= {call.id for call in before}
    worker.push_many([{"id": "since", "payload": 1}, {"id": "over the restore", "payload": 1}])
    app.drain()
    assert {"since", "over the restore"} <= {call.id for call in calls}
